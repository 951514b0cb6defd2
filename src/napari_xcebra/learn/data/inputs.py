"""Turns traces of the cells in use into inputs, in memory, in a file, or computed on demand."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import psutil

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.smoothing import (
    blocks,
    gaussian_kernel,
    radius_of,
    smoothed,
    smoothed_within,
    spans,
)
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import lie_by_frame, read_block
from napari_xcebra.standardise import changes

MOST_IN_MEMORY = 3 * 2**29
"""Inputs that are held in memory at most; the system caches those in a file, if it has room."""


def _room_for(frames: int, cells: int) -> np.ndarray:
    """Memory for inputs, (frames, cells) float32, or a temporary file if there is too little.

    The system keeps what was read from the file in memory as long as there is room.
    """
    if _fit_into_memory(frames, cells):
        return _in_memory(frames, cells)
    with tempfile.TemporaryFile(prefix="napari-xcebra-") as file:
        return np.memmap(file, np.float32, "w+", shape=(frames, cells))


def _need_reading(recording: Recording, cells: int, radius: int) -> bool:
    """Whether to compute inputs from the traces on demand, without a copy of them.

    A smoothed frame is made of some twenty, which a run reads again and again: there a copy pays,
    if the disk has room. Without smoothing it does not.

    Parameters
    ----------
    cells : int
        Cells in use.
    radius : int
        Frames on either side that are smoothed over.
    """
    frames = recording.n_frames
    if _fit_into_memory(frames, cells):
        return False
    fit_onto_disk = 4 * frames * cells < 0.9 * _spare_disk()
    if lie_by_frame(recording.traces) and not (radius and fit_onto_disk):
        return True
    if not fit_onto_disk:
        raise InputError(
            f"{cells:,} cells at {frames:,} frames are {_gigabytes(4 * frames * cells)} of inputs. "
            f"They do not fit into half of the free memory ({_gigabytes(_spare_memory())}), nor "
            f"onto the disk of {tempfile.gettempdir()} ({_gigabytes(_spare_disk())} free). Free "
            "some space, set TMPDIR to a folder on a larger disk, accept fewer cells, or save the "
            "traces as a .npy file of (frames, cells), which is read as it is."
        )
    return False


def _in_memory(frames: int, cells: int) -> np.ndarray:
    """Not initialised, in pages as they come.

    numpy asks the system for large pages; where memory is fragmented, the first touch of a
    gigabyte then takes 2.5 s instead of 0.5, to save a hundredth of a training step.
    """
    size = 4 * frames * cells
    if size == 0 or not hasattr(mmap, "MAP_PRIVATE"):  # as on Windows
        return np.empty((frames, cells), np.float32)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.float32).reshape(frames, cells)


def _fit_into_memory(frames: int, cells: int) -> bool:
    return 4 * frames * cells < min(_spare_memory() / 2, MOST_IN_MEMORY)


def _spare_memory() -> int:
    """Bytes available without taking any from other programs, on any system."""
    return int(psutil.virtual_memory().available)


def _spare_disk() -> int:
    """Bytes free where temporary files go."""
    return shutil.disk_usage(tempfile.gettempdir()).free


def _gigabytes(size: float) -> str:
    return f"{size / 2**30:.3g} GB"


class ReadInputs:
    """Stands for (frames, cells in use) float32 inputs, and computes them when indexed by frames.

    Parameters
    ----------
    recording : Recording
        Its traces are quick to read frame by frame.
    inputs : Inputs
    """

    def __init__(self, recording: Recording, inputs: Inputs) -> None:
        self.traces, self.inputs = recording.traces, inputs
        self._columns = inputs.columns(recording)
        self._extent = slice(int(self._columns.min()), int(self._columns.max()) + 1)
        self._own = self._columns - self._extent.start
        self._all = np.array_equal(self._columns, np.arange(self._extent.start, self._extent.stop))
        self._spans = list(spans(recording))
        self._starts = np.array([span.start for span in self._spans])

    @property
    def shape(self) -> tuple[int, int]:
        """Frames, and cells in use."""
        return self.traces.shape[0], len(self._columns)

    def __getitem__(self, frames: np.ndarray) -> np.ndarray:
        """Inputs at these frames, as of `Inputs.of`, in any order: (n, cells in use) float32."""
        order = np.argsort(frames)
        ascending = frames[order]
        number = np.searchsorted(self._starts, ascending, side="right") - 1
        # frames that are smoothed over the same others are read together
        apart = np.diff(ascending) > 2 * radius_of(self.inputs.kernel) + 1
        edges = np.flatnonzero(apart | (np.diff(number) > 0)) + 1
        found = np.empty((len(frames), len(self._columns)), np.float32)
        for some in np.split(np.arange(len(frames)), edges) if len(frames) else []:
            first, last = int(ascending[some[0]]), int(ascending[some[-1]])
            stretch = smoothed_within(
                self._spans[number[some[0]]],
                slice(first, last + 1),
                self._read,
                self.inputs.kernel,
            )
            found[order[some]] = stretch[ascending[some] - first]
        self.inputs.standardise(found)
        return found

    def _read(self, frames: slice) -> np.ndarray:
        """(frames, cells in use) float32."""
        traces = read_block(self.traces, frames, self._extent)
        if not np.isfinite(traces.sum()):
            self.traces[frames, self._columns]  # says where
        return traces if self._all else np.take(traces, self._own, axis=1)


SAMPLED_BYTES = 4 * 2**30
"""Traces that suffice for mean and scale where inputs are computed on demand."""


CLIP = 10.0
"""Standard deviations at which an input is clipped.

Cells that are nearly silent in training reached 112,620 in held-out frames of a real recording.
"""

QUIET = 0.01
"""Least scale of a cell, as a share of the median: a cell that hardly moves is not blown up."""

RARE = 2.0
"""The same for traces of events, where a cell with one event would weigh as much as one with fifty.

Chosen on CA1 events (ridge of the position, blocked: R² 0.52 to 0.53) and checked on simulated
spikes (0.35 to 0.37 at one spike in 25 s a cell, 0.853 to 0.857 at one in 9 s).
"""


@dataclass(frozen=True)
class Filter:
    """One filter over time for all cells: weights of the smoothed frames around each frame.

    Parameters
    ----------
    weights : tuple of float
        An odd number, from the earliest frame on.
    spacing : int
        Frames between two of them.
    """

    weights: tuple[float, ...] = (1.0,)
    spacing: int = 1

    def after(self, kernel: np.ndarray) -> np.ndarray:
        """Weights of a kernel and this filter behind it, as one: (frames,) float32."""
        if self.does_nothing:
            return kernel
        spread = np.zeros((len(self.weights) - 1) * self.spacing + 1)
        spread[:: self.spacing] = self.weights
        return np.convolve(kernel.astype(np.float64), spread).astype(np.float32)

    @property
    def does_nothing(self) -> bool:
        """Whether it leaves frames unchanged."""
        return len(self.weights) == 1


UNFILTERED = Filter()


@dataclass(frozen=True)
class Inputs:
    """Rule that turns traces of a recording into inputs of the encoder.

    Parameters
    ----------
    cell_ids : (cells in use,) int64
        Cells by the ids of the recording.
    mean, scale : (cells in use,) float32
        Taken over the training frames.
    smoothing : float
        Standard deviation of a Gaussian, in frames; 0 for none.
    filter : Filter
        Applied after smoothing, to undo delay and decay of the indicator.
    clip : float
        Standard deviations at which inputs are clipped; infinite in fits of earlier versions.
    """

    cell_ids: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    smoothing: float
    filter: Filter = UNFILTERED
    clip: float = float("inf")

    @property
    def kernel(self) -> np.ndarray:
        """Weights of the frames around each frame, smoothing and filter in one: float32."""
        return self.filter.after(gaussian_kernel(self.smoothing))

    @property
    def radius(self) -> int:
        """Frames on either side that an input depends on."""
        return radius_of(self.kernel)

    def standardise(self, traces: np.ndarray) -> None:
        """Turn filtered traces into inputs, in place: (frames, cells in use) float32.

        Not by `standardise.standardised`: mean and scale were taken over blocks of other frames.
        """
        traces -= self.mean
        traces /= self.scale
        np.clip(traces, -self.clip, self.clip, out=traces)

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
                f"was trained on (first: {missing[0]}): the fit belongs to another recording."
            )
        return columns

    def of(self, recording: Recording) -> np.ndarray:
        """Inputs at every frame: (frames, cells in use) float32."""
        columns = self.columns(recording)
        found = _room_for(recording.n_frames, len(columns))
        for frames, traces in smoothed(recording, columns, self.kernel):
            found[frames] = traces
            self.standardise(found[frames])
        return found

    def on(self, recording: Recording) -> np.ndarray | ReadInputs:
        """The same, or computed on demand if memory does not hold them."""
        if _need_reading(recording, len(self.cell_ids), self.radius):
            return ReadInputs(recording, self)
        return self.of(recording)


def columns_in_use(recording: Recording, settings: FitSettings) -> np.ndarray:
    """Columns of the traces to use, before constant ones are left out: int64."""
    use = np.asarray(recording.accepted) if settings.accepted_only else np.ones(recording.n_cells)
    columns = np.flatnonzero(use)
    if len(columns) == 0:
        raise InputError("No cell is accepted: accept some, or turn `accepted_only` off.")
    return columns


def inputs_for(
    recording: Recording,
    frames: np.ndarray,
    settings: FitSettings,
    filter_: Filter = UNFILTERED,
    report: Callable[[], object] = lambda: None,
) -> tuple[Inputs, np.ndarray | ReadInputs]:
    """Cells in use with their standardisation, and the inputs it gives.

    Cells that are not accepted (unless asked for) or constant over these frames are left out.
    Where inputs are computed on demand, mean and scale come from evenly spaced blocks of frames.

    Parameters
    ----------
    frames : (n,) int64
        Frames over which mean and scale are taken, ascending.
    filter_ : Filter
        Behind the smoothing that the settings ask for.
    report : callable
        Called after every block of frames; may raise to give up.

    Returns
    -------
    Inputs
    (frames, cells in use) float32
        As `Inputs.of` gives them.
    """
    columns = columns_in_use(recording, settings)
    # this imports torch, which a window that only shows a fit does without
    from napari_xcebra.learn.device import limited_threads

    smoothing = settings.smoothing * recording.rate
    kernel = filter_.after(gaussian_kernel(smoothing))
    size = recording.n_frames, len(columns)
    reading = _need_reading(recording, len(columns), radius_of(kernel))
    kept = None if reading else _room_for(*size)
    every = 1 if kept is not None else -(-4 * size[0] * size[1] // SAMPLED_BYTES)
    moments = _RunningMoments(len(columns))
    with limited_threads(settings.threads):
        for here, traces in smoothed(recording, columns, kernel, every):
            if kept is not None:
                kept[here] = traces
            first, last = np.searchsorted(frames, [here.start, here.stop])
            all_of_them = last - first == len(traces)
            moments.add(traces if all_of_them else traces[frames[first:last] - here.start])
            report()
    inputs, moving = _standardisation(recording, columns, moments, smoothing, filter_)
    if kept is None:
        return inputs, ReadInputs(recording, inputs)
    if not moving.all():
        kept = np.compress(moving, kept, axis=1)
    for here in blocks(slice(0, len(kept)), kept.shape[1]):
        inputs.standardise(kept[here])
    return inputs, kept


def _standardisation(
    recording: Recording,
    columns: np.ndarray,
    moments: _RunningMoments,
    smoothing: float,
    filter_: Filter,
) -> tuple[Inputs, np.ndarray]:
    """Inputs of the cells that change, and which of these columns they are: (columns,) bool."""
    mean, scale = moments.mean, moments.deviation
    moving = changes(mean, scale)
    if not moving.any():
        raise InputError(
            f"All {len(columns)} cells in use are constant over the training frames: at least one "
            "that changes is needed."
        )
    least = RARE if recording.origin.signal == "events" else QUIET
    scale = np.maximum(scale, least * np.median(scale[moving]))
    inputs = Inputs(
        np.asarray(recording.cell_ids)[columns[moving]],
        mean[moving].astype(np.float32),
        scale[moving].astype(np.float32),
        smoothing,
        filter_,
        CLIP,
    )
    return inputs, moving


class _RunningMoments:
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
