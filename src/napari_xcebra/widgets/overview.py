"""What was found in a recording, in the words of a dock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napari_xcebra.recording import Recording, Variable
from napari_xcebra.traces import in_blocks

GLANCE = 60.0
"""Seconds of a variable that are drawn."""
POINTS = 120
"""That they are drawn with, at most."""
COLUMNS = 3
"""Columns of a variable that are drawn."""


@dataclass(frozen=True)
class VariableLook:
    """What is told about a variable.

    Parameters
    ----------
    variable : Variable
    low, high : float
        NaN if no value is known.
    known : float
        Share of the frames that have a value, 0 to 1.
    lines : tuple of (points, 2) float
        Of each column its course over a minute in the middle, both axes from 0 to 1.
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
        spread = self.high - self.low
        # as fine as the range is wide, so that 0.000173 … 6.28 is not
        decimals = min(max(2 - int(np.floor(np.log10(spread))), 0), 6) if spread > 0 else 3
        low, high = (f"{round(end, decimals):g}" for end in (self.low, self.high))
        return f"{low} … {high} {self.variable.unit}".strip()


@dataclass(frozen=True)
class Look:
    """What takes a look at all values.

    Parameters
    ----------
    constant : int
        Cells whose trace never changes.
    variables : tuple of VariableLook
    """

    constant: int
    variables: tuple[VariableLook, ...]


def look_into(recording: Recording) -> Look:
    """Go through all traces and variables; takes seconds where they are many."""
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
    """What a recording comes to, as (what, how much)."""
    return [
        ("Cells", _cells(recording, look)),
        ("Frames", f"{recording.n_frames:,} at {recording.rate:.4g} per second"),
        ("Duration", duration(recording.n_frames / recording.rate)),
        *_where(recording),
        *_parts(recording),
        ("Behaviour", _behavior(recording, look)),
    ]


def _cells(recording: Recording, look: Look | None) -> str:
    accepted = int(np.asarray(recording.accepted).sum())
    words = [f"{accepted:,} accepted of {recording.n_cells:,}"]
    if look is not None and look.constant:
        words.append(f"{look.constant:,} constant")
    return ", ".join(words)


def _where(recording: Recording) -> list[tuple[str, str]]:
    if recording.footprints is None:
        return [("Footprints", "none: cells are drawn on a grid")]
    *planes, height, width = recording.footprints.shape
    many = planes[0] if planes else len(np.unique(recording.cells.get("plane", [0])))
    field = f"{height} × {width} pixels"
    return [("Field of view", f"{field}, {many} planes" if many > 1 else field)]


def _parts(recording: Recording) -> list[tuple[str, str]]:
    """Trials and left-out frames, where there are any."""
    found = []
    if len(np.asarray(recording.starts)) > 1:
        found.append(("Trials", f"{len(np.asarray(recording.starts)):,}"))
    left_out = int(np.asarray(recording.excluded).sum())
    if left_out:
        share = 100 * left_out / recording.n_frames
        found.append(("Left out", f"{left_out:,} frames ({share:.1f} %)"))
    return found


def _behavior(recording: Recording, look: Look | None) -> str:
    count = len(recording.behavior)
    if not count:
        return "none yet"
    words = f"{count} variable{'s' if count > 1 else ''}"
    if look is None:
        return words
    known = [variable.known for variable in look.variables]
    low, high = percent(min(known)), percent(max(known))
    return f"{words}, {low if low == high else f'{low} to {high}'} of frames known"


def percent(share: float) -> str:
    """Share of the whole; what is not all or nothing is not rounded to it.

    >>> percent(1.0), percent(0.9996), percent(0.0)
    ('100 %', '99.9 %', '0 %')
    """
    value = 100 * share
    if value in (0, 100) or 1 <= value <= 99:
        return f"{value:.0f} %"
    return f"{min(max(value, 0.1), 99.9):.1f} %"


def duration(seconds: float) -> str:
    """As a person would say it.

    >>> duration(42.31), duration(200), duration(5400)
    ('42.3 s', '3 min 20 s', '1 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
