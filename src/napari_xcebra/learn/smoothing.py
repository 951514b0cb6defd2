"""Traces smoothed by a Gaussian, some frames at a time.

Traces are gone through once, some frames at a time, so that those of a recording on disk are never
in memory as they are and as they are fed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.recording import Recording
from napari_xcebra.traces import LazyTraces

BLOCK_BYTES = 4 * 2**20
"""Traces that are smoothed at a time: what fits into a cache takes half as long as 32 MB."""

BAND = 64
"""Frames that are smoothed by one product."""
WIDEST = 128
"""Neighbours of a frame up to which products are faster than a filter, zeros and all."""


def smoothed(
    recording: Recording, columns: np.ndarray, deviation: float, every: int = 1
) -> Iterator[tuple[slice, np.ndarray]]:
    """Traces of some cells, smoothed by a Gaussian within each run of frames in use.

    Parameters
    ----------
    deviation : float
        Of the Gaussian, in frames.
    every : int
        Of the blocks they are read in, only each so-manieth.

    Yields
    ------
    slice, (frames, cells) float32
        Some frames at a time, in their order.
    """
    read = partial(_read, recording, columns=columns)
    number = 0
    for span in spans(recording):
        for here in blocks(span, len(columns), 4 * radius_of(deviation)):
            if number % every == 0:
                yield here, smoothed_within(span, here, read, deviation)
            number += 1


def smoothed_within(
    span: slice, here: slice, read: Callable[[slice], np.ndarray], deviation: float
) -> np.ndarray:
    """Some frames of a run, smoothed within it: (frames, cells) float32.

    Parameters
    ----------
    span, here : slice
        Frames of the run, and those wanted.
    read : callable
        Traces of a stretch of frames, (frames, cells) float32.
    """
    radius = radius_of(deviation)
    first, last = max(here.start - radius, span.start), min(here.stop + radius, span.stop)
    traces = read(slice(first, last))
    if radius == 0:
        return traces
    # beyond its ends a run goes on as it begins and ends
    before, behind = first - (here.start - radius), here.stop + radius - last
    if before or behind:
        around = (np.repeat(traces[:1], before, 0), traces, np.repeat(traces[-1:], behind, 0))
        traces = np.concatenate(around)
    return _gaussian(traces, deviation)


def radius_of(deviation: float) -> int:
    """Frames on either side that the Gaussian takes into account."""
    return int(4 * deviation + 0.5)


def _gaussian(traces: np.ndarray, deviation: float) -> np.ndarray:
    """Smoothed traces of the frames that have a radius of others on either side.

    As products with a band of weights: a filter that goes from cell to cell takes twenty times as
    long, most of it to find the values of a cell.
    """
    radius = radius_of(deviation)
    if 2 * radius > WIDEST:
        return scipy.ndimage.gaussian_filter1d(traces, deviation, axis=0, radius=radius)[
            radius:-radius
        ]
    band = _band(deviation)
    found = np.empty((len(traces) - 2 * radius, traces.shape[1]), np.float32)
    for start in range(0, len(found), BAND):
        rows = min(BAND, len(found) - start)
        around = traces[start : start + rows + 2 * radius]
        np.matmul(band[:rows, : len(around)], around, out=found[start : start + rows])
    return found


@lru_cache(maxsize=4)
def _band(deviation: float) -> np.ndarray:
    """Weights of a Gaussian at every frame of a band: (BAND, BAND + 2 radius) float32."""
    radius = radius_of(deviation)
    kernel = np.exp(-0.5 * np.square(np.arange(-radius, radius + 1) / deviation))
    kernel = (kernel / kernel.sum()).astype(np.float32)
    band = np.zeros((BAND, BAND + 2 * radius), np.float32)
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
    """Frames of a span, so many at a time as fit into a block, but no fewer than `least`."""
    step = max(BLOCK_BYTES // (4 * max(cells, 1)), least, 1)
    for start in range(span.start, span.stop, step):
        yield slice(start, min(start + step, span.stop))


def spans(recording: Recording) -> Iterator[slice]:
    """Runs of frames that are all in use, or all not, within one segment."""
    excluded = np.asarray(recording.excluded)
    changes = np.flatnonzero(excluded[1:] != excluded[:-1]) + 1
    edges = np.unique(np.r_[np.asarray(recording.starts), changes, recording.n_frames])
    for start, stop in pairwise(edges):
        yield slice(int(start), int(stop))
