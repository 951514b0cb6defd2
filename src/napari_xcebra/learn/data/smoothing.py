"""Filters traces over time, block by block.

Traces are read once, a block of frames at a time, so that those of a recording on disk are never
in memory both raw and filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import LazyTraces

BLOCK_BYTES = 4 * 2**20
"""Traces filtered at a time: what fits into a cache takes half as long as 32 MB."""

BAND = 64
"""Frames that are filtered by one product."""
WIDEST = 128
"""Neighbours of a frame up to which products are faster than a filter, zeros and all."""


def smoothed(
    recording: Recording, columns: np.ndarray, kernel: np.ndarray, every: int = 1
) -> Iterator[tuple[slice, np.ndarray]]:
    """Traces of some cells, filtered within each run of frames in use.

    Parameters
    ----------
    kernel : (2 radius + 1,) float32
        Weights of the frames around each frame, from the earliest on.
    every : int
        Read only every n-th block.

    Yields
    ------
    slice, (frames, cells) float32
        Some frames at a time, in their order.
    """
    read = partial(_read, recording, columns=columns)
    number = 0
    for span in spans(recording):
        for here in blocks(span, len(columns), 4 * radius_of(kernel)):
            if number % every == 0:
                yield here, smoothed_within(span, here, read, kernel)
            number += 1


def smoothed_within(
    span: slice, here: slice, read: Callable[[slice], np.ndarray], kernel: np.ndarray
) -> np.ndarray:
    """Some frames of a run, filtered within it: (frames, cells) float32.

    Parameters
    ----------
    span, here : slice
        Frames of the run, and those wanted.
    read : callable
        Traces of a stretch of frames, (frames, cells) float32.
    """
    radius = radius_of(kernel)
    first, last = max(here.start - radius, span.start), min(here.stop + radius, span.stop)
    traces = read(slice(first, last))
    if radius == 0:
        return traces
    # beyond its ends a run goes on as it begins and ends
    before, behind = first - (here.start - radius), here.stop + radius - last
    if before or behind:
        around = (np.repeat(traces[:1], before, 0), traces, np.repeat(traces[-1:], behind, 0))
        traces = np.concatenate(around)
    return _filtered(traces, kernel)


def gaussian_kernel(deviation: float) -> np.ndarray:
    """Weights of a Gaussian, up to four standard deviations (in frames): (frames,) float32.

    >>> gaussian_kernel(0.0)
    array([1.], dtype=float32)
    """
    if deviation == 0:
        return np.ones(1, np.float32)
    radius = int(4 * deviation + 0.5)
    kernel = np.exp(-0.5 * np.square(np.arange(-radius, radius + 1) / deviation))
    weights: np.ndarray = (kernel / kernel.sum()).astype(np.float32)
    return weights


def radius_of(kernel: np.ndarray) -> int:
    """Frames on either side that a kernel takes into account."""
    return len(kernel) // 2


def _filtered(traces: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Filtered traces of the frames that have a radius of others on either side.

    As products with a band of weights: a filter that goes from cell to cell takes twenty times as
    long, most of it to find the values of a cell.
    """
    radius = radius_of(kernel)
    if 2 * radius > WIDEST:
        whole: np.ndarray = scipy.ndimage.correlate1d(traces, kernel, axis=0, mode="nearest")
        return whole[radius:-radius]
    band = _band(kernel.tobytes())
    found = np.empty((len(traces) - 2 * radius, traces.shape[1]), np.float32)
    for start in range(0, len(found), BAND):
        rows = min(BAND, len(found) - start)
        around = traces[start : start + rows + 2 * radius]
        np.matmul(band[:rows, : len(around)], around, out=found[start : start + rows])
    return found


@lru_cache(maxsize=4)
def _band(weights: bytes) -> np.ndarray:
    """Weights of a kernel at every frame of a band: (BAND, BAND + 2 radius) float32."""
    kernel = np.frombuffer(weights, np.float32)
    band = np.zeros((BAND, BAND + 2 * radius_of(kernel)), np.float32)
    for row in range(BAND):
        band[row, row : row + len(kernel)] = kernel
    return band


def _read(recording: Recording, frames: slice, columns: np.ndarray) -> np.ndarray:
    """(frames, cells) float32."""
    traces = recording.traces
    if np.array_equal(columns, np.arange(recording.n_cells)):
        return np.asarray(traces[frames])
    if isinstance(traces, LazyTraces):
        return traces[frames, columns]
    return np.take(traces[frames], columns, axis=1)


def blocks(span: slice, cells: int, least: int = 1) -> Iterator[slice]:
    """Frames of a span in blocks that fit into the cache, but no shorter than `least`."""
    step = max(BLOCK_BYTES // (4 * max(cells, 1)), least, 1)
    for start in range(span.start, span.stop, step):
        yield slice(start, min(start + step, span.stop))


def spans(recording: Recording) -> Iterator[slice]:
    """Runs of frames that are all in use, or all excluded, within one segment."""
    excluded = np.asarray(recording.excluded)
    changes = np.flatnonzero(excluded[1:] != excluded[:-1]) + 1
    edges = np.unique(np.r_[np.asarray(recording.starts), changes, recording.n_frames])
    for start, stop in pairwise(edges):
        yield slice(int(start), int(stop))
