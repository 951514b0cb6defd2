"""Makes one recording from what an extractor wrote and what the animal did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.placing import Placed, on_frames
from napari_xcebra.io.clocks.time_files import trigger_rate
from napari_xcebra.io.clocks.timestamps import ascends, rate_of, usual_step
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.settings import OpenSettings, TraceKind
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import (
    IN_MEMORY,
    CorrectedTraces,
    LazyTraces,
    Origin,
    are_events,
    in_blocks,
    read_block,
)
from napari_xcebra.recording.variables import Variable

Value = TypeVar("Value")


def _told_apart(
    placed: Placed, known: Mapping[str, Variable], file: str
) -> tuple[Placed, tuple[str, ...]]:
    """Behaviour of a file with names that no file before it has, and a sentence on each change.

    A variable that is known already with the same values is left out.
    """
    kept: list[Variable] = []
    names: dict[str, str] = {}
    for variable in placed.variables:
        before = known.get(variable.name)
        if before is None:
            kept.append(variable)
        elif not np.array_equal(before.values, variable.values, equal_nan=True):
            taken = {*known, *(v.name for v in placed.variables), *names.values()}
            names[variable.name] = _free(f"{variable.name}_{Path(file).stem or 'other'}", taken)
            kept.append(replace(variable, name=names[variable.name]))
    trials = placed.trials
    if trials is not None:
        columns, words = _renamed(trials.columns, names), _renamed(trials.words, names)
        trials = replace(trials, columns=columns, words=words)
    sentences = tuple(
        f"{file or 'A second file'} also has a variable {name}: it is called {new} here."
        for name, new in names.items()
    )
    return replace(placed, variables=kept, trials=trials), sentences


def _renamed(values: Mapping[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    return {names.get(name, name): value for name, value in values.items()}


def _free(wanted: str, taken: set[str]) -> str:
    numbered = (f"{wanted}_{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (wanted, *numbered) if name not in taken)


MOST_FRAMES = 10_000_000
"""Four days at 30 frames per second: what claims more is damaged, and the clock alone is large."""
SLOWEST, FASTEST = 0.1, 5000.0
"""Frames per second beyond which a clock is rather in another unit."""
WITHIN = 0.05
"""Relative difference of two rates of a file, once one is in another unit."""
LARGEST_TRACE, SMALLEST_TRACE = 1e15, 1e-15
"""Values of traces beyond which float32 does not hold their squares and the sums of these."""
LARGEST, SMALLEST = 1e100, 1e-100
"""The same for variables, in float64."""
UNLIKE = 1e9
"""Times as much as a cell may vary less than others before it is named."""
LOOKED_AT = 64
"""Frames and cells of traces on disk whose size is looked at."""
PAUSE = 5.0
"""Usual steps of the frame clock after which the imaging counts as interrupted."""


def assemble(
    found: Extraction,
    behavior: Sequence[Behavior],
    settings: OpenSettings,
    path: Path,
    form: str = "",
) -> Recording:
    """Recording with the traces chosen and the behaviour on its frames.

    Parameters
    ----------
    found : Extraction
    behavior : sequence of Behavior
        As of `with_behavior`.
    settings : OpenSettings
    path : Path
        Where it came from.
    form : str
        Its format, in words.
    """
    if found.n_frames > MOST_FRAMES:
        raise InputError(
            f"{path} has {found.n_frames:,} frames: up to {MOST_FRAMES:,} are read. It is damaged, "
            "or its axes are swapped."
        )
    rate, times = _frame_clock(found, settings, path)
    kind, choice = _chosen_traces(found, settings, rate, path)
    traces, origin = choice.traces, Origin(form, kind, choice.how)
    opened, computed = origin.notes(path.name)
    notes = (*([opened] if form else []), *found.notes, computed)
    accepted = np.ones(found.n_cells, bool) if found.accepted is None else found.accepted
    excluded = np.zeros(found.n_frames, bool) if found.excluded is None else found.excluded
    warnings = (*settings.contradicted_by(_own_rate(found)), *_odd_clock(found, settings))
    if 4 * found.n_frames * found.n_cells <= IN_MEMORY:
        traces = _read(traces)
        _check_traces(traces, path)
        traces, accepted, excluded, more = _finite(traces, accepted, excluded)
        accepted, odd = _of_usual_size(traces, accepted, found.cell_ids, path)
        notes, warnings = (*notes, *more), (*warnings, *odd)
    else:
        for signal in found.signals.values():  # as stored: others are computed from whole traces
            _check_traces(_middle(signal), path)
    recording = Recording(
        traces=traces,
        rate=rate,
        cell_ids=found.cell_ids,
        accepted=accepted,
        starts=np.r_[_interruptions(times), [] if found.starts is None else found.starts],
        excluded=excluded,
        footprints=found.footprints,
        images=found.images,
        source=str(path),
        notes=notes,
        times=times,
        cells=found.cells,
        origin=origin,
        pixel_size=settings.pixel_size or found.pixel_size,
        warnings=warnings,
    )
    return with_behavior(recording, behavior, settings, own=found.behavior)


def with_behavior(
    recording: Recording,
    sources: Sequence[Behavior],
    settings: OpenSettings,
    own: Behavior | None = None,
) -> Recording:
    """Recording with behaviour brought to its frames.

    Parameters
    ----------
    recording : Recording
    sources : sequence of Behavior
        A variable whose name an earlier one has gets the name of its file behind it.
    settings : OpenSettings
    own : Behavior, optional
        That of them which lay in the recording's own file, and shares its clock.
    """
    times = np.asarray(recording.times)
    variables, trials = dict(recording.behavior), recording.trials
    starts, excluded = [np.asarray(recording.starts)], np.asarray(recording.excluded)
    notes, warnings = recording.notes, recording.warnings
    for source in sources:
        placed = on_frames(source, times, _same_clock(settings) if source is own else settings)
        _check_size(placed.variables, source.name)
        placed, renamed = _told_apart(placed, variables, source.name)
        variables |= {variable.name: variable for variable in placed.variables}
        starts.append(placed.starts)
        excluded = excluded | placed.excluded
        trials = placed.trials or trials
        differ = () if source is own else placed.warnings
        notes, warnings = (*notes, *placed.notes), (*warnings, *renamed, *differ)
    return replace(
        recording,
        behavior=variables,
        starts=np.concatenate(starts),
        excluded=excluded,
        trials=trials,
        notes=notes,
        warnings=warnings,
    )


def _odd_clock(found: Extraction, settings: OpenSettings) -> tuple[str, ...]:
    """A sentence on a rate at which nobody images; raises if the clock denies the file's rate."""
    rate = None if settings.rate else _own_rate(found)
    times = np.asarray([] if found.times is None else found.times, np.float64)
    counted = rate_of(times) if ascends(times) else None
    for unit, factor in (("ms", 1e3), ("µs", 1e6)):
        if rate and counted and abs(counted * factor / rate - 1) < WITHIN:
            raise InputError(
                f"The file says {rate:.4g} frames per second, but its times of the frames give "
                f"{counted:.4g}: they seem to count {unit}. Set `rate` to {rate:.4g}, which "
                "takes its place."
            )
    rate = counted or rate
    if rate is None or settings.rate or SLOWEST <= rate <= FASTEST:
        return ()
    in_ms = f", but {1e3 * rate:.4g} if it counts ms" if 1e3 * rate < FASTEST else ""
    return (
        f"The clock of the file gives {rate:.4g} frames per second{in_ms}. If that is wrong, set "
        "`rate`.",
    )


def _check_size(variables: Sequence[Variable], source: str) -> None:
    """Raise for a variable whose numbers cannot be calculated with."""
    for variable in variables:
        size = np.abs(variable.values)
        most = float(np.nanmax(size, initial=0))
        if most > LARGEST or 0 < most < SMALLEST:
            frame = int(np.nanargmax(size.max(axis=1)))
            raise InputError(
                f"{variable.name} of {source or 'the recording'} reaches {most:.3g} (frame "
                f"{frame}): what is beyond {LARGEST:g}, or all below {SMALLEST:g}, cannot be "
                "calculated with. Correct it, or give it in another unit."
            )


def _check_traces(traces: np.ndarray, path: Path) -> np.ndarray:
    """(cells,) float32, how large the values of each are; raises if none can be used."""
    top = np.maximum(np.abs(traces.min(axis=0)), np.abs(traces.max(axis=0)))
    known = top[~np.isnan(top)]
    if len(known) and ((known > LARGEST_TRACE).all() or 0 < known.max() < SMALLEST_TRACE):
        most = min(float(known.max()), 3.4e38)
        raise InputError(
            f"The traces of {path} reach {most:.3g}: values between {SMALLEST_TRACE:g} and "
            f"{LARGEST_TRACE:g} can be calculated with. Multiply them by a power of ten."
        )
    return top


def _of_usual_size(
    traces: np.ndarray, accepted: np.ndarray, ids: np.ndarray | None, path: Path
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Which cells are accepted, without those of values out of all proportion; and warnings."""
    top = _check_traces(traces, path)
    ids = np.arange(len(top)) if ids is None else np.asarray(ids)
    huge, warnings = top > LARGEST_TRACE, []
    if huge.any():
        warnings.append(
            f"{_cells(ids[huge])} up to {top.max():.3g}, which no trace has: kept in the tables "
            "but not used."
        )
    spread = np.where(huge, 0, np.ptp(np.where(huge, 0, traces), axis=0))
    varied = spread > 0
    usual = float(np.median(spread[varied])) if varied.any() else 0.0
    if (faint := varied & (spread < usual / UNLIKE)).any():
        warnings.append(
            f"{_cells(ids[faint])} that vary {usual / spread[faint].min():.3g} times less than "
            "those of other cells: are they in another unit?"
        )
    return accepted & ~huge, tuple(warnings)


def _cells(ids: np.ndarray) -> str:
    """The cells of these ids, as the start of a sentence on their values."""
    named = ", ".join(map(str, ids[:6].tolist())) + (" …" if len(ids) > 6 else "")
    return f"Cell {named} has values" if len(ids) == 1 else f"Cells {named} have values"


def _middle(traces: LazyTraces | np.ndarray) -> np.ndarray:
    """A few frames and cells, which cost little wherever they lie."""
    frames, cells = (slice(n // 2, min(n, n // 2 + LOOKED_AT)) for n in traces.shape)
    return read_block(traces, frames, cells)


def _read(traces: LazyTraces | np.ndarray) -> np.ndarray:
    """All traces, (frames, cells) float32; what is not finite stays so."""
    whole = np.empty(traces.shape, np.float32)
    for cells, block in in_blocks(traces):
        whole[:, cells] = block
    return whole


def _own_rate(found: Extraction) -> float | None:
    """Frames per second, as the source says or its frame times do."""
    if not found.rate and found.times is not None:
        return rate_of(np.asarray(found.times, np.float64))
    return found.rate


def _frame_clock(found: Extraction, settings: OpenSettings, path: Path) -> tuple[float, np.ndarray]:
    """Frames per second, and the time of each frame."""
    if found.times is not None and len(found.times) != found.n_frames:
        raise InputError(f"{path} has {len(found.times)} frame times for {found.n_frames} frames.")
    rate = settings.rate or _own_rate(found) or trigger_rate(settings)
    if not rate:
        raise InputError(
            f"{path} does not give the frame rate: set `rate`, in frames per second, such as 30, "
            "or `trigger` to a file of the frame times."
        )
    if found.times is None or settings.rate:
        return float(rate), np.arange(found.n_frames) / rate
    return float(rate), np.asarray(found.times, np.float64)


def _interruptions(times: np.ndarray) -> np.ndarray:
    """Frames before which the imaging paused: sessions that were put one after the other."""
    steps = np.diff(times)
    if len(steps) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(steps > PAUSE * usual_step(steps)) + 1


def _same_clock(settings: OpenSettings) -> OpenSettings:
    """Settings for behaviour in the recording's own file, which shares its clock."""
    return replace(settings, offset=0.0, trigger="")


def _finite(
    traces: np.ndarray, accepted: np.ndarray, excluded: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """Traces without NaN: frames without any value are left out, cells with gaps are rejected."""
    finite = np.isfinite(traces)
    if finite.all():
        return traces, accepted, excluded, ()
    notes = []
    dark = ~finite.any(axis=1)
    if dark.any() and not dark.all():
        excluded = excluded | dark
        finite[dark] = True
        notes.append(f"{int(dark.sum())} frames in which no cell has a value are left out.")
    gaps = ~finite.all(axis=0)
    if gaps.any():
        accepted = accepted & ~gaps
        notes.append(
            f"{int(gaps.sum())} cells have values that are NaN or infinite: they are kept in the "
            "tables but not used."
        )
    return np.nan_to_num(traces, nan=0.0, posinf=0.0, neginf=0.0), accepted, excluded, tuple(notes)


USUAL_NEUROPIL = 0.7
"""Share of the neuropil where the source does not say (suite2p's own default)."""
KNOTS = 24
"""Points a window at which the running baseline is taken; it is straight between them."""

EVENTS = "events, as most values are 0; cells with few events weigh less in training"

Traces = LazyTraces | np.ndarray


@dataclass(frozen=True)
class Choice:
    """Traces, and how they were computed."""

    traces: Traces
    how: str


def _chosen_traces(
    found: Extraction, settings: OpenSettings, rate: float, path: Path
) -> tuple[TraceKind, Choice]:
    """The kind of traces asked for, or the best there is."""
    choices = available(found, settings, rate)
    kind = settings.traces if settings.traces != "auto" else next(iter(choices))
    if kind not in choices:
        raise InputError(
            f"{path} has no {kind} traces; it has: {', '.join(choices)}. Set `traces` to one of "
            "these."
        )
    return kind, choices[kind]


def available(found: Extraction, settings: OpenSettings, rate: float) -> dict[TraceKind, Choice]:
    """Kinds of traces that the signals allow, the preferred one first.

    This costs little: traces are read and computed when they are used, but for some that may be
    events.
    """
    signals = found.signals
    choices: dict[TraceKind, Choice] = {}
    best = None
    if "fluorescence" in signals:
        best = _corrected(found, settings)
        choices["dff"] = _relative(best, settings, rate)
    elif "traces" in signals:
        best = Choice(signals["traces"], "as they are in the file")
        if are_events(signals["traces"]):
            choices["events"] = Choice(signals["traces"], EVENTS)
    if "dff" in signals:
        choices["dff"] = Choice(signals["dff"], "ΔF/F as in the file")
    if "denoised" in signals:
        choices["denoised"] = Choice(signals["denoised"], "denoised by the extractor")
    if best is not None and "neuropil" in signals:
        choices["corrected"] = best
    if "fluorescence" in signals:
        choices["raw"] = Choice(signals["fluorescence"], "raw fluorescence")
    elif best is not None:
        choices["raw"] = best
    if "events" in signals:
        choices["events"] = Choice(signals["events"], "deconvolved events")
    best = best or next(iter(choices.values()))
    choices["zscored"] = Choice(
        _StandardTraces(best.traces), f"{best.how}, in standard deviations of each cell"
    )
    return choices


def _corrected(found: Extraction, settings: OpenSettings) -> Choice:
    """Fluorescence, minus a share of the neuropil if there is any."""
    raw = found.signals["fluorescence"]
    if "neuropil" not in found.signals:
        return Choice(raw, "fluorescence")
    share = settings.neuropil
    if share < 0:
        said = found.neuropil_coefficient
        share = USUAL_NEUROPIL if said is None else said
    traces = CorrectedTraces(raw, found.signals["neuropil"], share)
    return Choice(traces, f"fluorescence minus {share:g} × neuropil")


def _relative(best: Choice, settings: OpenSettings, rate: float) -> Choice:
    seconds, percentile = settings.baseline_seconds, settings.baseline_percentile
    return Choice(
        _RelativeTraces(best.traces, seconds * rate, percentile),
        f"ΔF/F: {best.how}, over a running baseline (percentile {percentile:g} of {seconds:g} s)",
    )


class _TracesByCell(LazyTraces):
    """Traces computed from others with some statistics of each cell.

    These are computed for a group of cells when one of them is first read, because all their
    frames are needed.
    """

    source: Traces

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.source.shape

    def known(self, traces: np.ndarray) -> tuple[np.ndarray, ...]:
        """Statistics of cells with these traces (frames, cells): arrays (…, cells)."""
        raise NotImplementedError

    def made(self, traces: np.ndarray, frames: slice, *known: np.ndarray) -> np.ndarray:
        """New traces (frames, cells) of some cells at some frames."""
        raise NotImplementedError

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        block = np.empty((frames.stop - frames.start, cells.stop - cells.start), np.float32)
        for group in self.cell_blocks():
            here = slice(max(group.start, cells.start), min(group.stop, cells.stop))
            if here.start < here.stop:
                inside = slice(here.start - group.start, here.stop - group.start)
                known = (about[..., inside] for about in self._known(group))
                place = slice(here.start - cells.start, here.stop - cells.start)
                with np.errstate(all="ignore"):  # what is not finite is reported where it is used
                    traces = read_block(self.source, frames, here)
                    block[:, place] = self.made(traces, frames, *known)
        return block

    def _known(self, group: slice) -> tuple[np.ndarray, ...]:
        if group.start not in self._found:
            traces = read_block(self.source, slice(0, self.shape[0]), group)
            with np.errstate(all="ignore"):
                self._found[group.start] = self.known(traces)
        return self._found[group.start]

    @cached_property
    def _found(self) -> dict[int, tuple[np.ndarray, ...]]:
        return {}


@dataclass(frozen=True)
class _RelativeTraces(_TracesByCell):
    """(F − F₀) / F₀ over a running percentile F₀.

    Where neuropil correction brings F₀ near zero, it is divided by a tenth of the cell's usual
    fluorescence instead, or by its noise if that is more, so that no cell explodes.

    Parameters
    ----------
    source : (frames, cells)
        F.
    window : float
        Frames over which the percentile is taken.
    percentile : float
    """

    source: Traces
    window: float
    percentile: float

    @property
    def _bin(self) -> int:
        """Frames that are averaged before the percentile is taken, which removes its noise."""
        return max(1, min(round(self.window / KNOTS), self.shape[0]))

    def known(self, traces: np.ndarray) -> tuple[np.ndarray, ...]:
        """F₀ at its knots, (knots, cells), and the least divisor of each cell, (cells,)."""
        binned = _bin_means(traces, self._bin)
        size = min(max(3, round(self.window / self._bin)), len(binned))
        knots = scipy.ndimage.percentile_filter(
            binned, self.percentile, size=(size, 1), mode="nearest"
        )
        least = np.maximum(0.1 * np.median(np.abs(binned), axis=0), noise(traces))
        return knots.astype(np.float32), np.where(least > 0, least, 1).astype(np.float32)

    def made(self, traces: np.ndarray, frames: slice, *known: np.ndarray) -> np.ndarray:
        """ΔF/F, (frames, cells)."""
        knots, least = known
        place = (np.arange(frames.start, frames.stop) + 0.5) / self._bin - 0.5
        place = np.clip(place, 0, len(knots) - 1)
        before = place.astype(np.int64)
        after = np.minimum(before + 1, len(knots) - 1)
        share = (place - before).astype(np.float32)[:, None]
        baseline = knots[before] + share * (knots[after] - knots[before])
        return (traces - baseline) / np.maximum(baseline, least)


@dataclass(frozen=True)
class _StandardTraces(_TracesByCell):
    """Traces in standard deviations from their mean; constant ones are 0."""

    source: Traces

    def known(self, traces: np.ndarray) -> tuple[np.ndarray, ...]:
        """Mean and standard deviation, (cells,) each; values that are not finite do not count."""
        finite = np.isfinite(traces)
        count = np.maximum(finite.sum(axis=0), 1)
        mean = np.where(finite, traces, 0).sum(axis=0, dtype=np.float64) / count
        squares = np.where(finite, traces - mean, 0) ** 2
        deviation = np.sqrt(squares.sum(axis=0) / count)
        # a constant trace may still deviate from its mean by rounding
        moving = deviation > 1e-6 * np.abs(mean)
        return mean.astype(np.float32), np.where(moving, deviation, 1).astype(np.float32)

    def made(self, traces: np.ndarray, frames: slice, *known: np.ndarray) -> np.ndarray:
        """Standardised, (frames, cells)."""
        mean, deviation = known
        return (traces - mean) / deviation


def noise(traces: np.ndarray) -> np.ndarray:
    """How much a cell usually changes from one frame to the next, (cells,)."""
    some = np.unique(np.linspace(0, max(len(traces) - 2, 0), 2000).astype(np.int64))
    steps = np.abs(traces[some + 1] - traces[some]) if len(traces) > 1 else traces * 0
    return np.median(np.where(np.isfinite(steps), steps, 0), axis=0)


def _bin_means(traces: np.ndarray, width: int) -> np.ndarray:
    """Means over bins of frames, (bins, cells) float64; gaps in the traces do not count.

    Parameters
    ----------
    traces : (frames, cells)
    width : int
        Frames a bin; the last one may have fewer.
    """
    edges = np.arange(0, len(traces), width)
    finite = np.isfinite(traces)
    if finite.all():
        sums = np.add.reduceat(traces, edges, axis=0, dtype=np.float64)
        return sums / np.diff(np.r_[edges, len(traces)])[:, None]
    sums = np.add.reduceat(np.where(finite, traces, 0), edges, axis=0, dtype=np.float64)
    counts = np.add.reduceat(finite, edges, axis=0, dtype=np.int64)
    means = sums / np.maximum(counts, 1)
    for cell in np.flatnonzero((counts == 0).any(axis=0) & (counts > 0).any(axis=0)):
        filled = counts[:, cell] > 0
        means[:, cell] = np.interp(edges, edges[filled], means[filled, cell])
    return means
