"""Places events on the frames, and recognises times that are in another unit."""

from __future__ import annotations

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import Events
from napari_xcebra.recording import Variable
from napari_xcebra.text import counted

PER_SECOND = {"ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units that times are mistaken for seconds in, and how many make a second."""


def place_events(
    events: Events, times: np.ndarray, offset: float, where: str
) -> tuple[Variable, tuple[str, ...]]:
    """Events counted in the frames nearest to them; and notes.

    Parameters
    ----------
    events : Events
    times : (frames,) float64
        Seconds at which the frames were taken; NaN (at either end) where that is not known.
    offset : float
        Seconds to add to the clock of the events.
    where : str
        Name of the file, for sentences.
    """
    at = np.asarray(events.times, np.float64)
    if events.in_frames:
        whole = np.where(np.isfinite(at), np.round(at), -1)
        frames = np.where((whole >= 0) & (whole < len(times)), whole, -1).astype(np.int64)
    else:
        frames = frames_at(at + offset, times)
    inside = frames >= 0
    if inside.all() and len(at):
        notes = (f"{events.name}: {counted(len(at), 'event')} in the recording.",)
        return Variable(events.name, count_in_frames(frames, len(times)), "event"), notes
    sentence = _outside(events, at, ~inside, times, offset, where)
    if not inside.any():
        raise InputError(f"No event {events.name} lies in the recording. {sentence}")
    notes = (
        f"{events.name}: {int(inside.sum())} of {len(at)} events lie in the recording. {sentence}",
    )
    return Variable(events.name, count_in_frames(frames, len(times)), "event"), notes


def frames_at(at: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The frame nearest to each moment, −1 outside the recording: (moments,) int64."""
    seen = np.flatnonzero(np.isfinite(times))
    if len(seen) == 0:
        return np.full(len(at), -1, np.int64)
    known = times[seen]
    half = float(np.median(np.diff(known))) / 2 if len(known) > 1 else np.inf
    middle = (known[1:] + known[:-1]) / 2
    inside = np.isfinite(at) & (at >= known[0] - half) & (at <= known[-1] + half)
    nearest = np.searchsorted(middle, np.where(inside, at, known[0]), side="right")
    return np.where(inside, seen[nearest], -1)


def count_in_frames(frames: np.ndarray, n_frames: int) -> np.ndarray:
    """How many of the moments lie in each frame: (frames,) float64."""
    return np.bincount(frames[frames >= 0], minlength=n_frames).astype(np.float64)


def begun(values: np.ndarray) -> np.ndarray:
    """How often an event begins in each sample of a column of marks: (samples, 1) float64.

    Marks that stay up are one event; numbers above 1 are counts. NaN where it is not known.
    """
    marks = np.nan_to_num(values[:, :1])
    if marks.max(initial=0) > 1 and (marks == np.round(marks)).all():
        begins = np.maximum(marks, 0)
    else:
        up = marks > 0
        begins = (up & np.r_[[[True]], ~up[:-1]]).astype(np.float64)
    return np.where(np.isnan(values[:, :1]), np.nan, begins)


def misread_unit(at: np.ndarray, times: np.ndarray, column: str) -> str:
    """What the unit of moments seems to be, if not seconds; empty if nothing tells."""
    at, known = at[np.isfinite(at)], times[np.isfinite(times)]
    if len(at) < 2 or len(known) < 2:
        return ""
    whole = bool((at == np.round(at)).all())
    if whole and len(known) * 0.5 < at.max() <= len(known) and at.max() > 2 * known[-1]:
        return f"the numbers look like frames. Name the column {column}_frame."
    for unit, factor in PER_SECOND.items():
        if 0.2 < (at.max() - at.min()) / (known[-1] - known[0]) / factor < 1.25:
            return (
                f"the times look like {unit}. Name the unit in the header, such as {column}_{unit}."
            )
    return ""


def _outside(
    events: Events,
    at: np.ndarray,
    misses: np.ndarray,
    times: np.ndarray,
    offset: float,
    where: str,
) -> str:
    """Sentence on the first event that lies outside the recording."""
    if len(at) == 0:
        return f"{where} has no rows of it."
    first = int(np.flatnonzero(misses)[0])
    row = first + 1 if events.rows is None else int(events.rows[first])
    if events.in_frames:
        return f"Row {row} of {where} names frame {at[first]:g}, of {len(times)} frames."
    sentence = (
        f"Row {row} of {where} has {at[first] + offset:g} s; the frames were taken from "
        f"{np.nanmin(times):g} s to {np.nanmax(times):g} s"
    )
    said = misread_unit(at + offset, times, "time") if misses.mean() > 0.5 else ""
    return f"{sentence}: {said}" if said else f"{sentence}."
