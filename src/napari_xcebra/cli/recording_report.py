"""What `info` prints about a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from napari_xcebra.cli.report import table
from napari_xcebra.cli.sparkline import WIDTH, in_bins, picked, sparkline
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording_facts import (
    VARIABLE_WORDS,
    duration_of,
    footprints_of,
    overlap_of,
    planes_of,
    said_by_notes,
    variable_words,
)
from napari_xcebra.traces import LazyTraces, read_block

GROUPS, CELLS_A_GROUP, FRAMES_A_STRETCH = 4, 16, 25
"""Traces on disk are looked at in a few groups of neighbouring cells, and in short stretches of
frames all along the recording: whichever way round they lie, that takes few reads."""


def recording_tables(recording: Recording) -> str:
    """What a recording holds: facts, its variables, and what was done on the way."""
    said = said_by_notes(recording)
    facts = _facts(recording, {what: text for what, (text, _) in said.items()})
    width = max(len(name) for name, _ in facts)
    lines = [f"{name.ljust(width)}  {value}" for name, value in facts]
    lines += ["", _variable_table(recording)]
    # what stands among the facts need not be said again
    notes = [note for note in recording.notes if note not in {note for _, note in said.values()}]
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _facts(recording: Recording, said: Mapping[str, str]) -> list[tuple[str, str]]:
    times = np.asarray(recording.times)
    activity = _Activity.of(recording)
    facts = [
        ("source", recording.source or "–"),
        ("format", said.get("format", "–")),
        ("frames", f"{recording.n_frames}"),
        ("frames per second", f"{recording.rate:g}"),
        ("duration", duration_of(float(times[-1] - times[0]) + 1 / recording.rate)),
        ("trials or sessions", f"{len(np.asarray(recording.starts))}"),
        ("excluded frames", f"{int(np.asarray(recording.excluded).sum())}"),
        ("cells", f"{recording.n_cells} ({_counts(recording, activity)})"),
        ("planes", planes_of(recording)),
        ("known about cells", ", ".join(recording.cells)),
        ("footprints", footprints_of(recording)),
        ("images", ", ".join(recording.images) or "none"),
        ("traces", said.get("traces", "–")),
        ("mean activity", sparkline(activity.mean)),
        ("behaviour", overlap_of(recording)),
    ]
    return [(name, value) for name, value in facts if value]


def _counts(recording: Recording, activity: _Activity) -> str:
    accepted = int(np.asarray(recording.accepted).sum())
    sample = f" of a sample of {activity.n_cells}" if activity.sampled else ""
    return f"{accepted} accepted, {activity.n_constant}{sample} constant"


@dataclass(frozen=True)
class _Activity:
    """Activity of the cells, or of a sample of them.

    Parameters
    ----------
    mean : (stretches,) float64
        Mean over cells, each in its own standard deviations.
    n_cells, n_constant : int
        Cells looked at, and those that never change.
    sampled : bool
    """

    mean: np.ndarray
    n_cells: int
    n_constant: int
    sampled: bool

    @classmethod
    def of(cls, recording: Recording) -> _Activity:
        traces = recording.traces
        if isinstance(traces, LazyTraces):
            seen, frames = _sample(traces)
        else:
            seen, frames = np.asarray(traces, np.float32), None
        varied = np.ptp(seen, axis=0) > 0
        used = varied & np.isfinite(seen).all(axis=0)
        mean = np.zeros(len(seen))
        for cell in np.flatnonzero(used):  # one at a time, so as not to copy them all
            trace = seen[:, cell].astype(np.float64)
            mean += (trace - trace.mean()) / (trace.std() or 1)
        mean /= max(int(used.sum()), 1)
        if frames is not None:
            mean = np.array([mean[part].mean() for part in frames])
        return cls(in_bins(mean), seen.shape[1], int((~varied).sum()), frames is not None)


def _sample(traces: LazyTraces) -> tuple[np.ndarray, list[slice]]:
    """Traces of some cells in some stretches of frames, and where the stretches lie in them."""
    n_frames, n_cells = traces.shape
    cells = _stretches(n_cells, GROUPS, CELLS_A_GROUP)
    frames = _stretches(n_frames, WIDTH, FRAMES_A_STRETCH)
    seen = [np.concatenate([read_block(traces, f, c) for c in cells], axis=1) for f in frames]
    ends = np.cumsum([len(part) for part in seen])
    return np.concatenate(seen), [slice(e - len(p), e) for e, p in zip(ends, seen, strict=True)]


def _stretches(length: int, count: int, each: int) -> list[slice]:
    """Stretches spread evenly over a length, that do not overlap; all of it if it is short."""
    if length <= count * each:
        edges = np.linspace(0, length, min(count, length) + 1).astype(int)
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]
    starts = np.linspace(0, length - each, count).astype(int)
    return [slice(int(start), int(start) + each) for start in starts]


def _variable_table(recording: Recording) -> str:
    if not recording.behavior:
        return "No behaviour: give --behavior FILE."
    header = [*VARIABLE_WORDS, "over time"]
    return table(header, [_row(name, v) for name, v in recording.behavior.items()])


def _row(name: str, variable: Variable) -> list[str]:
    values = variable.values[:, 0]
    # categories and angles have no mean
    curve = in_bins(values) if variable.kind == "continuous" else picked(values)
    return [*variable_words(name, variable), sparkline(curve)]
