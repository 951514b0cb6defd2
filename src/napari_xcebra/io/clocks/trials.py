"""Trials and epochs on the frames: where they begin and end, and what is known about each.

A frame belongs to an interval if it was taken at its start or later, and before its stop. Segments
begin at every start and stop, so that no pair and no window crosses one; frames between trials are
kept, in segments of their own. What is known about a trial becomes a variable that is the same in
all its frames and unknown outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.io.extraction import Intervals
from napari_xcebra.io.kinds import FEW, variable_from
from napari_xcebra.recording import InputError, Variable


@dataclass(frozen=True)
class Column:
    """What is known about intervals, on the frames.

    Parameters
    ----------
    variable : Variable
    labels : tuple of str
        What its values 0, 1, 2 … stand for, if they are words.
    short : str
        Name of the column in its source.
    """

    variable: Variable
    labels: tuple[str, ...]
    short: str


@dataclass(frozen=True)
class PlacedIntervals:
    """Intervals on the frames.

    Parameters
    ----------
    name : str
    columns : sequence of Column
    starts : (segments,) int64
        Frames at which an interval begins or ends.
    inside : (frames,) bool
        Frames in any of the intervals.
    notes : tuple of str
    """

    name: str
    columns: Sequence[Column]
    starts: np.ndarray
    inside: np.ndarray
    notes: tuple[str, ...]


def place_intervals(intervals: Intervals, times: np.ndarray, offset: float) -> PlacedIntervals:
    """Intervals on the frames.

    Parameters
    ----------
    intervals : Intervals
    times : (frames,) float64
        Seconds at which the frames were taken; NaN (at either end) where that is not known.
    offset : float
        Seconds to add to the clock of the intervals.
    """
    first, last = _frames_of(intervals, times, offset)
    held = first < last
    if not held.any():
        raise InputError(_nowhere(intervals, times, offset))
    number = np.full(len(times), -1)
    for i in np.flatnonzero(held):
        number[first[i] : last[i]] = i
    notes = [f"{intervals.name}: {int(held.sum())} of {len(held)} lie in the recording."]
    lengths = (last - first)[held]
    if lengths.sum() > (number >= 0).sum():
        notes.append(f"{intervals.name} overlap: a later one counts where two share a frame.")
    columns = []
    for name, values in intervals.columns.items():
        column, note = _column(intervals.name, name, np.asarray(values), number)
        columns += [column] if column is not None else []
        notes += [note] if note else []
    starts = np.unique(np.r_[first[held], last[held]])
    starts = starts[starts < len(times)]
    return PlacedIntervals(intervals.name, columns, starts, number >= 0, tuple(notes))


def _frames_of(
    intervals: Intervals, times: np.ndarray, offset: float
) -> tuple[np.ndarray, np.ndarray]:
    """First frame of each interval, and the one after its last."""
    start, stop = (np.asarray(edge, np.float64) for edge in (intervals.start, intervals.stop))
    known = np.isfinite(start) & np.isfinite(stop)
    if intervals.in_frames:
        edges = [np.where(known, np.clip(np.ceil(e), 0, len(times)), 0) for e in (start, stop)]
        return edges[0].astype(np.int64), edges[1].astype(np.int64)
    seen = np.flatnonzero(np.isfinite(times))
    lead = int(seen[0]) if len(seen) else 0
    first, last = (np.searchsorted(times[seen], e + offset) + lead for e in (start, stop))
    return np.where(known, first, 0), np.where(known, last, 0)


def _nowhere(intervals: Intervals, times: np.ndarray, offset: float) -> str:
    if not np.isfinite(intervals.start + intervals.stop).any():
        return f"{intervals.name} have no start and stop."
    start, stop = np.nanmin(intervals.start), np.nanmax(intervals.stop)
    if intervals.in_frames:
        return (
            f"{intervals.name} reach from frame {start:g} to {stop:g}, but the recording has "
            f"{len(times)} frames: none holds a frame."
        )
    return (
        f"{intervals.name} reach from {start + offset:g} s to {stop + offset:g} s and the frames "
        f"from {np.nanmin(times):g} s to {np.nanmax(times):g} s: none of them holds a frame. Set "
        "`offset` to bring the two clocks together, or give the times in seconds."
    )


def _column(
    of: str, name: str, values: np.ndarray, number: np.ndarray
) -> tuple[Column | None, str | None]:
    """What is known about each interval, at the frames; or a note why not."""
    import pandas as pd

    full = name if name.lower().startswith(of.rstrip("s").lower()) else f"{of}_{name}"
    if values.dtype.kind in "biuf":
        values = values.astype(np.float64)
        values = np.where(np.isinf(values), np.nan, values)
        variable = variable_from(full, values)
        placed = np.where(number >= 0, values[number], np.nan)
        return Column(replace(variable, values=placed), (), name), None
    codes, words = pd.factorize(pd.Series(values).astype("string"), sort=True)
    if len(words) > FEW:
        return None, f"Column {name} of {of} holds text and was left out."
    labels = tuple(str(word) for word in words)
    placed = np.where((number >= 0) & (codes[number] >= 0), codes[number], np.nan)
    numbered = ", ".join(f"{label} = {i}" for i, label in enumerate(labels))
    note = f"{full} holds words, numbered: {numbered}." if labels else None
    return Column(Variable(full, placed, "discrete"), labels, name), note
