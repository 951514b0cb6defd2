"""Finds the largest transients of traces, how fast they fall, and traces of mere events."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.recording.traces import LazyTraces, read_block

COUNT = 5
APART = 3.0
"""Seconds between two transients at least."""
SMOOTHING = 0.2
"""Seconds over which a trace is averaged before peaks are looked for."""
BLOCK = 30.0
"""Seconds whose median is the baseline there."""
ABOVE_NOISE = 4.0
"""Standard deviations of the noise that a transient rises above the baseline."""
FALL_COUNT, FALL_SECONDS = 30, 3.0
"""Transients of a cell, and seconds after each, from which their fall is measured."""
SILENT, ISOLATED = 0.8, 0.5
"""Share of the values of events that are 0, and of the others that follow on a 0, at least."""
SOME_FRAMES, SOME_CELLS, NEIGHBOURS = 20_000, 100, 10
"""Frames and cells from which the nature of traces is told, and how many of these lie together."""


def are_events(traces: Any) -> bool:
    """Whether traces are events, single or counted, rather than a signal that decays.

    Parameters
    ----------
    traces : (frames, cells) array or LazyTraces
    """
    block = _some(traces)
    if not np.isfinite(block).all() or block.min(initial=0.0) < 0:
        return False
    above = block > 0
    if not above.any() or (~above).mean() < SILENT:
        return False
    alone = above[1:] & ~above[:-1]
    return bool(alone.sum() >= ISOLATED * max(above[1:].sum(), 1))


def half_fall(traces: Any, rate: float) -> float | None:
    """Seconds in which the largest transients usually fall to half; None without any.

    Activity that goes on prolongs it, so it is an upper bound of what the indicator does.

    Parameters
    ----------
    traces : (frames, cells) array or LazyTraces
    rate : float
        Frames per second.
    """
    length = max(2, round(FALL_SECONDS * rate))
    found = []
    for trace in _some(traces).T:
        peaks = largest_transients(trace, rate, FALL_COUNT)
        peaks = peaks[peaks + length <= len(trace)]
        if len(peaks) < 3:
            continue
        course = np.median([trace[peak : peak + length] for peak in peaks], axis=0)
        course = course - min(float(np.median(trace)), course.min())
        fallen = np.flatnonzero(course <= course[0] / 2)
        if len(fallen):
            found.append(fallen[0] / rate)
    return float(np.median(found)) if found else None


def _some(traces: Any) -> np.ndarray:
    """Cells spread over the recording, at its first frames: (frames, cells) float64.

    On disk, where neighbours cost as much as one, they are groups of neighbours.
    """
    frames, cells = traces.shape
    wide = NEIGHBOURS if isinstance(traces, LazyTraces) and cells > SOME_CELLS else 1
    few = np.unique(np.linspace(0, cells - wide, min(cells, SOME_CELLS) // wide).astype(np.int64))
    stretch = slice(0, min(frames, SOME_FRAMES))
    columns = [read_block(traces, stretch, slice(int(c), int(c) + wide)) for c in few]
    return np.concatenate(columns, axis=1).astype(np.float64)


def largest_transients(trace: np.ndarray, rate: float, count: int = COUNT) -> np.ndarray:
    """Frames at which the largest transients of a trace peak, the largest first.

    Slow drifts are taken out, and a transient rises well above the noise; one that is close to a
    larger one does not count.

    Parameters
    ----------
    trace : (frames,) float
        Any signal that rises with activity; frames that are not known are NaN.
    rate : float
        Frames per second.
    count : int
        How many at most.

    Returns
    -------
    (n,) int64
    """
    values = np.asarray(trace, np.float64)
    known = np.isfinite(values)
    if known.sum() < 3:
        return np.zeros(0, np.int64)
    values = np.where(known, values, np.median(values[known]))
    smooth = scipy.ndimage.uniform_filter1d(values, max(1, round(SMOOTHING * rate)), mode="mirror")
    rise = smooth - _baseline(smooth, max(3, round(BLOCK * rate)))
    noise = 1.4826 * np.median(np.abs(rise - np.median(rise)))
    # where most frames are exactly at the baseline, as in spikes, any rise counts
    least = max(ABOVE_NOISE * noise, 1e-6 * np.abs(rise).max(), np.finfo(float).tiny)
    padded = np.pad(rise, 1, constant_values=rise.min() - 1)  # peaks at either end count
    peaks, found = scipy.signal.find_peaks(
        padded, height=least, distance=max(1, round(APART * rate))
    )
    largest = np.argsort(-found["peak_heights"], kind="stable")[:count]
    return (peaks[largest] - 1).astype(np.int64)


def _baseline(values: np.ndarray, length: int) -> np.ndarray:
    """(frames,) median of each block, with straight lines between their middles."""
    blocks = np.array_split(np.arange(len(values)), max(1, len(values) // length))
    medians = [np.median(values[block]) for block in blocks]
    return np.interp(np.arange(len(values)), [block.mean() for block in blocks], medians)
