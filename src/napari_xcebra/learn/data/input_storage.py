"""Keeps the inputs of a run in memory or in a file, or computes them on demand."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from typing import TYPE_CHECKING

import numpy as np
import psutil

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.smoothing import radius_of, smoothed_within, spans
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import lie_by_frame, read_block

if TYPE_CHECKING:
    from napari_xcebra.learn.data.inputs import Inputs


def room_for(frames: int, cells: int) -> np.ndarray:
    """Memory for inputs, (frames, cells) float32, or a temporary file if there is too little.

    The system keeps what was read from the file in memory as long as there is room.
    """
    if _fit_into_memory(frames, cells):
        return _in_memory(frames, cells)
    with tempfile.TemporaryFile(prefix="napari-xcebra-") as file:
        return np.memmap(file, np.float32, "w+", shape=(frames, cells))


def need_reading(recording: Recording, cells: int, radius: int) -> bool:
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
    return 4 * frames * cells < _spare_memory() / 2


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
