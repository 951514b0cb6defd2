"""Describes what a recording holds, in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_xcebra.recording.recording import Recording, Variable
from napari_xcebra.recording.traces import in_blocks
from napari_xcebra.recording.variables import Trials
from napari_xcebra.text import counted, duration, percent

POOR, LEAST = 0.5, 3
"""Variables known at less than this share of what the best is are named, up to so many."""
GLANCE = 60.0
"""Seconds of a variable that are drawn."""
POINTS = 120
"""Points that they are drawn with, at most."""
COLUMNS = 3
"""Columns of a variable that are drawn."""

MOST_WORDS = 4
"""Words of a variable up to which each is named in a table."""
MOST_VALUES = 8
"""Values of a column of trials up to which each is named."""

VARIABLE_WORDS = ("variable", "kind", "unit", "columns", "range", "known")
"""Headings of what `variable_words` gives."""


def variable_words(name: str, variable: Variable) -> list[str]:
    """A variable's name, kind, unit, number of columns, range and share of known frames."""
    return [
        name,
        variable.kind,
        variable.unit or "–",
        str(variable.values.shape[1]),
        _range(variable),
        percent(float(variable.known.mean())),
    ]


def _range(variable: Variable) -> str:
    """Lowest and highest value; the words of a variable that has words, the number of events."""
    known = variable.values[variable.known]
    if len(variable.words) > MOST_WORDS:
        return f"{len(variable.words)} values"
    if variable.words:
        return ", ".join(variable.words)
    if variable.kind == "event":
        return f"{known.sum():,.0f}×"
    return f"{known.min():.4g} to {known.max():.4g}" if len(known) else "–"


def duration_of(recording: Recording) -> str:
    """Time from the first frame to the end of the last."""
    times = np.asarray(recording.times)
    return duration(float(times[-1] - times[0]) + 1 / recording.rate)


def planes_of(recording: Recording) -> int:
    """Number of planes; 0 if the source does not say."""
    where = recording.footprints
    if where is not None and where.plane is not None:
        return where.shape[0]
    return len(np.unique(recording.cells.get("plane", [])))


def footprints_of(recording: Recording) -> str:
    """Size of the field of view, and the number of cells without a footprint."""
    where = recording.footprints
    if where is None:
        return "none"
    shown = f"{' × '.join(map(str, where.shape))} pixels"
    without = recording.n_cells - len(np.unique(where.cell))
    return f"{shown}, {counted(without, 'cell')} without" if without else shown


def movie_of(recording: Recording) -> str:
    """The movie, or why there is none; empty if none was expected."""
    if recording.movie is not None:
        return recording.movie.words
    why = recording.origin.without_movie
    return f"none: {why}" if why else ""


def _field_of(shape: tuple[int, ...], pixel_size: float | None) -> str:
    """Height and width of a field of view, in pixels and, where known, in micrometres.

    >>> _field_of((512, 500), 0.8)
    '512 × 500 pixels (410 × 400 µm)'
    """
    field = " × ".join(map(str, shape[-2:])) + " pixels"
    if pixel_size is None:
        return field
    return f"{field} ({' × '.join(f'{size * pixel_size:.3g}' for size in shape[-2:])} µm)"


def overlap_of(recording: Recording) -> str:
    """Share and span of the imaging that the behaviour covers."""
    if not recording.behavior:
        return "none"
    known = np.all([variable.known for variable in recording.behavior.values()], axis=0)
    shares = {name: float(v.known.mean()) for name, v in recording.behavior.items()}
    best = max(shares.values())
    least = [n for n in sorted(shares, key=shares.__getitem__) if shares[n] < POOR * best]
    told = ", ".join(f"{name} at {percent(shares[name])}" for name in least[:LEAST])
    poor = f"; {told} of them" if told else ""
    if not known.any():
        return f"no frame at which every variable is known{poor}"
    times = np.asarray(recording.times)
    first, last = times[known][[0, -1]]
    return (
        f"every variable known at {percent(float(known.mean()))} of the frames{poor}, {first:.6g} "
        f"to {last:.6g} s (imaging {times[0]:.6g} to {times[-1]:.6g} s)"
    )


def segments_and_events(recording: Recording) -> list[tuple[str, str]]:
    """What the recording is cut into, what is known of its trials, and events in it."""
    trials = recording.trials
    found = [("Segments", f"{len(np.asarray(recording.starts)):,}")]
    if trials is not None:
        seconds = float(np.median(trials.stop - trials.first)) / recording.rate
        words = f"{len(trials):,}, {seconds:.2g} s long"
        found = [("Trials", "; ".join([words, *(_values_of(trials, c) for c in trials.columns)]))]
    events = [(name, v) for name, v in recording.behavior.items() if v.kind == "event"]
    told = ", ".join(f"{name} {np.nansum(v.values):,.0f}×" for name, v in events)
    return [*found, ("Events", told)] if told else found


def _values_of(trials: Trials, column: str) -> str:
    """Values of a column of trials, with how many trials have each."""
    values = trials.columns[column]
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(different) > MOST_VALUES:
        return f"{column} {different[0]:.4g} to {different[-1]:.4g}"
    each = zip(different, counts, strict=True)
    told = ", ".join(f"{trials.label(column, value)} {count}×" for value, count in each)
    return f"{column}: {told}"


def further_notes(recording: Recording) -> list[str]:
    """Notes other than those on format and traces, which stand among the facts."""
    told = recording.origin.notes(Path(recording.source).name)
    return [*recording.warnings, *(note for note in recording.notes if note not in told)]


@dataclass(frozen=True)
class VariableLook:
    """A variable at a glance.

    Parameters
    ----------
    variable : Variable
    low, high : float
        NaN if no value is known.
    known : float
        Share of the frames that have a value, 0 to 1.
    lines : tuple of (points, 2) float
        For each column, its course over a minute in the middle, both axes from 0 to 1.
    """

    variable: Variable
    low: float
    high: float
    known: float
    lines: tuple[np.ndarray, ...]

    @property
    def range(self) -> str:
        """Lowest and highest value with the unit."""
        if np.isnan(self.low):
            return "no values"
        if self.variable.words or self.variable.kind == "event":
            return _range(self.variable)
        spread = self.high - self.low
        # as fine as the range is wide, so that 0.000173 … 6.28 is not
        decimals = min(max(2 - int(np.floor(np.log10(spread))), 0), 6) if spread > 0 else 3
        low, high = (f"{round(end, decimals):g}" for end in (self.low, self.high))
        return f"{low} … {high} {self.variable.unit}".strip()


@dataclass(frozen=True)
class Look:
    """What only reading all values tells.

    Parameters
    ----------
    constant : int
        Cells whose trace never changes.
    variables : tuple of VariableLook
    """

    constant: int
    variables: tuple[VariableLook, ...]


def look_into(recording: Recording) -> Look:
    """Go through all traces and variables; takes seconds if there are many."""
    return Look(
        sum(
            int((block == block[:1]).all(axis=0).sum()) for _, block in in_blocks(recording.traces)
        ),
        tuple(look_at(variable, recording.rate) for variable in recording.behavior.values()),
    )


def look_at(variable: Variable, rate: float) -> VariableLook:
    """Range, share of known frames, and course of a variable."""
    known = variable.known
    if not known.any():
        return VariableLook(variable, np.nan, np.nan, 0.0, ())
    values = variable.values
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    # a middle one of the frames that have a value
    centre = int(np.flatnonzero(known)[int(known.sum()) // 2])
    length = int(min(max(GLANCE * rate, 2), len(values)))
    first = min(max(centre - length // 2, 0), len(values) - length)
    part = values[first : first + length, :COLUMNS]
    lines = tuple(_course(column, low, high) for column in part.T)
    return VariableLook(variable, low, high, float(known.mean()), lines)


def _course(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Line to draw, (points, 2), both axes from 0 to 1 and NaN where no value is known."""
    frames = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))
    height = (values[frames] - low) / ((high - low) or 1.0)
    return np.stack([frames / max(len(values) - 1, 1), height], axis=1)


def facts(recording: Recording, look: Look | None = None) -> list[tuple[str, str]]:
    """The facts that a dock shows, as (what, how much)."""
    cells = f"{int(np.asarray(recording.accepted).sum()):,} accepted of {recording.n_cells:,}"
    if look is not None and look.constant:
        cells += f", {look.constant:,} constant"
    found = [
        ("Cells", cells),
        ("Frames", f"{recording.n_frames:,} at {recording.rate:.4g} per second"),
        ("Duration", duration_of(recording)),
    ]
    if recording.footprints is None:
        found.append(("Footprints", "none: cells are drawn on a grid"))
    else:
        field = _field_of(recording.footprints.shape, recording.pixel_size)
        planes = planes_of(recording)
        found.append(("Field of view", f"{field}, {planes} planes" if planes > 1 else field))
    if recording.trials is not None or len(np.asarray(recording.starts)) > 1:
        found += segments_and_events(recording)
    left_out = int(np.asarray(recording.excluded).sum())
    if left_out:
        share = 100 * left_out / recording.n_frames
        found.append(("Left out", f"{counted(left_out, 'frame')} ({share:.1f} %)"))
    if movie := movie_of(recording):
        found.append(("Movie", movie))
    if recording.video is not None:
        found.append(("Video", recording.video.words))
    return [*found, ("Behaviour", _behavior(recording, look))]


def _behavior(recording: Recording, look: Look | None) -> str:
    if not recording.behavior:
        return "none yet"
    words = counted(len(recording.behavior), "variable")
    if look is None:
        return words
    shares = {about.variable.name: about.known for about in look.variables}
    worst = min(shares, key=shares.__getitem__)
    low, high = percent(shares[worst]), percent(max(shares.values()))
    if low == high:
        return f"{words}, {low} of frames known"
    name = f" ({worst})" if shares[worst] < POOR * max(shares.values()) else ""
    return f"{words}, {low}{name} to {high} of frames known"
