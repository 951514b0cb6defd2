"""Makes one recording from what an extractor wrote and what the animal did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.placing import Placed, on_frames
from napari_xcebra.io.clocks.time_files import trigger_rate
from napari_xcebra.io.clocks.timestamps import rate_of, usual_step
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.signals import chosen_traces
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import IN_MEMORY, LazyTraces, Origin, in_blocks, read_block
from napari_xcebra.recording.variables import Variable

Value = TypeVar("Value")


def _told_apart(
    placed: Placed, known: Mapping[str, Variable], file: str
) -> tuple[Placed, tuple[str, ...]]:
    """Behaviour of a file with names that no other file has, and a sentence on each change.

    A variable that is known already with the same values is left out.

    Parameters
    ----------
    placed : Placed
    known : mapping of str to Variable
        What files before it have.
    file : str
        Its name, which is put behind names that are taken.
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
    kind, choice = chosen_traces(found, settings, rate, path)
    traces, origin = choice.traces, Origin(form, kind, choice.how)
    opened, computed = origin.notes(path.name)
    notes = (*([opened] if form else []), *found.notes, computed)
    accepted = np.ones(found.n_cells, bool) if found.accepted is None else found.accepted
    excluded = np.zeros(found.n_frames, bool) if found.excluded is None else found.excluded
    warnings = settings.contradicted_by(_own_rate(found))
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
