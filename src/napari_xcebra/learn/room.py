"""Where the inputs of a training are kept: in memory, in a file, or nowhere."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from pathlib import Path

import numpy as np

from napari_xcebra.recording import InputError, Recording
from napari_xcebra.traces import lie_by_frame


def room_for(frames: int, cells: int) -> np.ndarray:
    """Memory for inputs, (frames, cells) float32; a file if there is too little, gone by itself.

    What is gathered from the file stays in memory as long as there is room.
    """
    if _fit_into_memory(frames, cells):
        return _in_memory(frames, cells)
    with tempfile.TemporaryFile(prefix="napari-xcebra-") as file:
        return np.memmap(file, np.float32, "w+", shape=(frames, cells))


def need_reading(recording: Recording, cells: int, radius: int) -> bool:
    """Whether inputs are to be made of the traces as they are asked for, without a copy of them.

    A frame that is smoothed is made of some twenty, which a training reads again and again: for
    it a copy pays, where the disk has room. Without smoothing it does not.

    Parameters
    ----------
    cells : int
        That are in use.
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
            f"Half of the free memory ({_gigabytes(_spare_memory())}) does not hold them, nor has "
            f"{tempfile.gettempdir()} room for a copy ({_gigabytes(_spare_disk())} free). Free some"
            " space, set TMPDIR to a folder on a larger disk, accept fewer cells, or save the "
            "traces as a .npy file of (frames, cells), which is read as it is."
        )
    return False


def _in_memory(frames: int, cells: int) -> np.ndarray:
    """Not initialised, in pages as they come.

    numpy asks the system for large pages, and where memory is in pieces that makes the first
    touch of a gigabyte take 2.5 s instead of 0.5, to spare a hundredth of a training step.
    """
    size = 4 * frames * cells
    if size == 0 or not hasattr(mmap, "MAP_PRIVATE"):  # as on Windows
        return np.empty((frames, cells), np.float32)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, np.float32).reshape(frames, cells)


def _fit_into_memory(frames: int, cells: int) -> bool:
    return 4 * frames * cells < _spare_memory() / 2


def _spare_memory() -> float:
    """Bytes that can be had without taking any from other programs; infinite if it is not told."""
    told = Path("/proc/meminfo")
    if told.exists():
        for line in told.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * float(line.split()[1])
    return float("inf")


def _spare_disk() -> int:
    """Bytes free where temporary files go."""
    return shutil.disk_usage(tempfile.gettempdir()).free


def _gigabytes(size: float) -> str:
    return f"{size / 2**30:.3g} GB"
