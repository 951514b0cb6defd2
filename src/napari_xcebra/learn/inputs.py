"""What the encoder is fed: traces of the cells in use, smoothed and standardised.

Traces are gone through once, some frames at a time, so that those of a recording on disk are never
in memory as they are and as they are fed at once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import InputError, Recording
from napari_xcebra.traces import LazyTraces

BLOCK_BYTES = 32 * 2**20
"""Traces that are smoothed at a time."""

BAND = 128
"""Frames that are smoothed by one product."""


@dataclass(frozen=True)
class Inputs:
    """How traces of a recording become inputs of the encoder.

    Parameters
    ----------
    cell_ids : (cells in use,) int64
        Cells by the ids of the recording.
    mean, scale : (cells in use,) float32
        Taken over the training frames.
    smoothing : float
        Standard deviation of a Gaussian, in frames; 0 for none.
    """

    cell_ids: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    smoothing: float

    def columns(self, recording: Recording) -> np.ndarray:
        """Columns of the recording's traces that hold these cells: (cells in use,) int64."""
        ids = np.asarray(recording.cell_ids)
        order = np.argsort(ids)
        place = np.searchsorted(ids, self.cell_ids, sorter=order)
        columns = order[np.minimum(place, len(ids) - 1)]
        missing = self.cell_ids[ids[columns] != self.cell_ids]
        if len(missing):
            raise InputError(
                f"The recording lacks {len(missing)} of the {len(self.cell_ids)} cells this fit "
                f"was trained on (first: {missing[0]}): it belongs to another recording."
            )
        return columns

    def of(self, recording: Recording) -> np.ndarray:
        """Inputs at every frame: (frames, cells in use) float32."""
        columns = self.columns(recording)
        found = room_for(recording.n_frames, len(columns))
        for frames, traces in smoothed(recording, columns, self.smoothing):
            np.subtract(traces, self.mean, out=found[frames])
            found[frames] /= self.scale
        return found


def inputs_for(
    recording: Recording, frames: np.ndarray, settings: FitSettings
) -> tuple[Inputs, np.ndarray]:
    """Cells in use with their standardisation, and what it makes of the traces.

    Cells that are not accepted (unless asked for) or constant over these frames take no part.

    Parameters
    ----------
    frames : (n,) int64
        Ascending, those over which mean and scale are taken.

    Returns
    -------
    Inputs
    (frames, cells in use) float32
        As `Inputs.of` would find them.
    """
    use = np.asarray(recording.accepted) if settings.accepted_only else np.ones(recording.n_cells)
    columns = np.flatnonzero(use)
    if len(columns) == 0:
        raise InputError("No cell is accepted: accept some, or turn `accepted_only` off.")
    # torch comes with it, which a window that only shows a fit does without
    from napari_xcebra.learn.device import limited_threads

    smoothing = settings.smoothing * recording.rate
    found = room_for(recording.n_frames, len(columns))
    moments = _Moments(len(columns))
    with limited_threads(settings.threads):
        for here, traces in smoothed(recording, columns, smoothing):
            found[here] = traces
            first, last = np.searchsorted(frames, [here.start, here.stop])
            moments.add(traces[frames[first:last] - here.start])
    mean, scale = moments.mean, moments.deviation
    moving = scale > 1e-6 * np.maximum(np.abs(mean), 1e-30)
    if not moving.any():
        raise InputError(
            f"All {len(columns)} cells in use are constant over the training frames: at least one "
            "that changes is needed."
        )
    inputs = Inputs(
        np.asarray(recording.cell_ids)[columns[moving]],
        mean[moving].astype(np.float32),
        scale[moving].astype(np.float32),
        smoothing,
    )
    if not moving.all():
        found = np.compress(moving, found, axis=1)
    for here in _blocks(slice(0, len(found)), found.shape[1]):
        found[here] -= inputs.mean
        found[here] /= inputs.scale
    return inputs, found


class _Moments:
    """Mean and standard deviation of each cell, from frames that come in blocks."""

    def __init__(self, cells: int) -> None:
        self.count = 0
        self.sums, self.squares = np.zeros(cells), np.zeros(cells)
        self.origin: np.ndarray | None = None

    def add(self, traces: np.ndarray) -> None:
        """(frames, cells) float32 more."""
        if len(traces) == 0:
            return
        if self.origin is None:
            self.origin = traces[0].copy()
        # from a value it has: squares of a bright cell's own values would hide how little it moves
        centred = traces - self.origin
        self.count += len(centred)
        self.sums += centred.sum(0, dtype=np.float64)
        self.squares += np.square(centred, out=centred).sum(0, dtype=np.float64)

    @property
    def mean(self) -> np.ndarray:
        return self.sums / max(self.count, 1) + (0 if self.origin is None else self.origin)

    @property
    def deviation(self) -> np.ndarray:
        count = max(self.count, 1)
        return np.sqrt(np.maximum(self.squares / count - np.square(self.sums / count), 0))


def smoothed(
    recording: Recording, columns: np.ndarray, deviation: float
) -> Iterator[tuple[slice, np.ndarray]]:
    """Traces of some cells, smoothed by a Gaussian within each run of frames in use.

    Parameters
    ----------
    deviation : float
        Of the Gaussian, in frames.

    Yields
    ------
    slice, (frames, cells) float32
        Some frames at a time, all of them in their order.
    """
    radius = int(4 * deviation + 0.5)
    for span in _spans(recording):
        for here in _blocks(span, len(columns), 4 * radius):
            first, last = max(here.start - radius, span.start), min(here.stop + radius, span.stop)
            traces = _read(recording, slice(first, last), columns)
            if radius > 0:
                # beyond its ends a run goes on as it begins and ends
                before = np.repeat(traces[:1], first - (here.start - radius), axis=0)
                behind = np.repeat(traces[-1:], here.stop + radius - last, axis=0)
                traces = _gaussian(np.concatenate([before, traces, behind]), deviation, radius)
            yield here, traces


def _gaussian(traces: np.ndarray, deviation: float, radius: int) -> np.ndarray:
    """Smoothed traces of the frames that have `radius` others on either side.

    As products with a band of weights: a filter that goes from cell to cell takes twenty times as
    long, most of it to find the values of a cell.
    """
    if 2 * radius > BAND:  # most of the products would be with zeros
        return gaussian_filter1d(traces, deviation, axis=0, radius=radius)[radius:-radius]
    kernel = np.exp(-0.5 * np.square(np.arange(-radius, radius + 1) / deviation))
    kernel = (kernel / kernel.sum()).astype(np.float32)
    band = np.zeros((BAND, BAND + 2 * radius), np.float32)
    for row in range(BAND):
        band[row, row : row + len(kernel)] = kernel
    found = np.empty((len(traces) - 2 * radius, traces.shape[1]), np.float32)
    for start in range(0, len(found), BAND):
        rows = min(BAND, len(found) - start)
        around = traces[start : start + rows + 2 * radius]
        np.matmul(band[:rows, : len(around)], around, out=found[start : start + rows])
    return found


def room_for(frames: int, cells: int) -> np.ndarray:
    """Memory for inputs, (frames, cells) float32; a file if there is too little, gone by itself.

    What is gathered from the file stays in memory as long as there is room.
    """
    if 4 * frames * cells < _spare_memory() / 2:
        return np.empty((frames, cells), np.float32)
    with tempfile.TemporaryFile(prefix="napari-xcebra-") as file:
        return np.memmap(file, np.float32, "w+", shape=(frames, cells))


def _spare_memory() -> float:
    """Bytes that can be had without taking any from other programs; infinite if it is not told."""
    told = Path("/proc/meminfo")
    if told.exists():
        for line in told.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * float(line.split()[1])
    return float("inf")


def _read(recording: Recording, frames: slice, columns: np.ndarray) -> np.ndarray:
    """(frames, cells) float32."""
    traces = recording.traces
    if np.array_equal(columns, np.arange(recording.n_cells)):
        return np.asarray(traces[frames])
    if isinstance(traces, LazyTraces):
        return traces[frames, columns]
    return np.take(traces[frames], columns, axis=1)


def _blocks(span: slice, cells: int, least: int = 1) -> Iterator[slice]:
    """Frames of a span, so many at a time as fit into a block, but no fewer than `least`."""
    step = max(BLOCK_BYTES // (4 * max(cells, 1)), least, 1)
    for start in range(span.start, span.stop, step):
        yield slice(start, min(start + step, span.stop))


def _spans(recording: Recording) -> Iterator[slice]:
    excluded = np.asarray(recording.excluded)
    changes = np.flatnonzero(excluded[1:] != excluded[:-1]) + 1
    edges = np.unique(np.r_[np.asarray(recording.starts), changes, recording.n_frames])
    for start, stop in pairwise(edges):
        yield slice(int(start), int(stop))
