"""Frames of a movie that stay on disk until they are read.

The classes here know where the pixels lie, not what they show. They carry paths and places instead
of pixels, so that they are pickled at little cost, and open files when they are first read, in
each process anew. Any number of threads may read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.stored import StoredFile, StoredMatrix, changed_since

if TYPE_CHECKING:
    from napari_xcebra.recording.footprints import Footprints
    from napari_xcebra.recording.traces import LazyTraces

FILES_OPEN = 8
"""Files of a movie that are open at a time."""
AHEAD = 32 * 2**20
"""Bytes of frames that are read at once where the values of a pixel lie together."""


Numbers = Sequence[int] | np.ndarray
"""Of frames, in any order."""


class Frames:
    """Behaves like (frames, height, width) numbers; subclasses say how to read a part of a frame.

    Attributes
    ----------
    shape : (frames, height, width)
    dtype : numpy.dtype
        In the byte order of this machine.
    """

    shape: tuple[int, int, int]
    dtype: np.dtype

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """(rows, columns) of a frame; slices have a start, a stop, and no step."""
        raise NotImplementedError

    def block(self, numbers: Numbers, rows: slice, columns: slice) -> np.ndarray:
        """(numbers, rows, columns) of several frames."""
        size = (len(numbers), rows.stop - rows.start, columns.stop - columns.start)
        found = np.empty(size, self.dtype)
        for place, number in enumerate(numbers):
            found[place] = self.read(int(number), rows, columns)
        return found

    def close(self) -> None:
        """Let go of files and of what was kept in memory; reading opens them again."""
        for kept in ("_stored", "_matrix", "_kept"):
            vars(self).pop(kept, None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


@dataclass(eq=False)
class _Kept:
    """The frames that were read last, and the lock of whoever reads others."""

    first: int = 0
    block: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))
    lock: threading.Lock = field(default_factory=threading.Lock)


class KeptFrames(Frames):
    """Frames that come several at a time, whole; subclasses say which come together.

    Those that were read last are kept.
    """

    def together(self, number: int) -> tuple[int, np.ndarray]:
        """(frames, height, width) that come with a frame, and the number of the first."""
        raise NotImplementedError

    @cached_property
    def _kept(self) -> _Kept:
        return _Kept()

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """From the frames that are kept, or else from those that come with this one."""
        kept = self._kept
        with kept.lock:
            if not kept.first <= number < kept.first + len(kept.block):
                kept.first, kept.block = self.together(number)
            return kept.block[number - kept.first, rows, columns].astype(self.dtype)


@dataclass(frozen=True, eq=False)
class PlainFrames(Frames):
    """Frames that lie in a file as plain numbers, row after row.

    Parameters
    ----------
    path : Path
    shape : (frames, height, width)
    stored : numpy.dtype
        As it is stored, in any byte order.
    places : range or (frames,) int64
        Where each frame begins, in bytes.
    """

    path: Path
    shape: tuple[int, int, int]
    stored: np.dtype
    places: Numbers

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """In the byte order of this machine."""
        return self.stored.newbyteorder("=")

    @cached_property
    def _stored(self) -> StoredFile:
        return StoredFile(self.path)

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """Read the rows in one go, and cut the columns."""
        file, (_, _, width) = self._stored, self.shape
        file.check_same()
        row = width * self.stored.itemsize
        place = int(self.places[number]) + rows.start * row
        found = file.read((rows.stop - rows.start) * row, place)
        if len(found) < (rows.stop - rows.start) * row:
            raise changed_since(self.path)
        pixels = np.frombuffer(found, self.stored).reshape(-1, width)[:, columns]
        return pixels.astype(self.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class PixelFrames(KeptFrames):
    """Frames of a file in which all values of a pixel lie together, column after column.

    So CaImAn keeps movies to work on (order C), and numpy those in Fortran order.

    Parameters
    ----------
    path : Path
    shape : (frames, height, width)
    stored : numpy.dtype
    start : int
        Where the values begin, in bytes.
    """

    path: Path
    shape: tuple[int, int, int]
    stored: np.dtype
    start: int

    dtype = np.dtype(np.float32)

    @cached_property
    def _matrix(self) -> StoredMatrix:
        frames, height, width = self.shape
        return StoredMatrix(self.path, self.start, self.stored, (height * width, frames))

    def together(self, number: int) -> tuple[int, np.ndarray]:
        """Some frames ahead: they cost as much as one."""
        frames, height, width = self.shape
        ahead = range(number, min(number + max(1, AHEAD // (4 * height * width)), frames))
        return number, self.block(ahead, slice(0, height), slice(0, width))

    def block(self, numbers: Numbers, rows: slice, columns: slice) -> np.ndarray:
        """Read from the first frame to the last, pixel by pixel."""
        wanted = np.asarray(numbers, np.int64)
        height, across = self.shape[1], columns.stop - columns.start
        if not len(wanted):
            return super().block(wanted, rows, columns)
        first = int(wanted.min())
        stretch = slice(first, int(wanted.max()) + 1)
        if rows == slice(0, height):
            pixels = slice(columns.start * height, columns.stop * height)
            values = self._matrix.read(pixels, stretch)
        else:
            begin = range(columns.start * height, columns.stop * height, height)
            runs = [slice(at + rows.start, at + rows.stop) for at in begin]
            values = np.concatenate([self._matrix.read(run, stretch) for run in runs])
        found = values.reshape(across, rows.stop - rows.start, -1)[:, :, wanted - first]
        return np.ascontiguousarray(found.transpose(2, 1, 0))


@dataclass(frozen=True, eq=False)
class TurnedFrames(Frames):
    """Frames with rows and columns swapped."""

    part: Frames

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Frames, height and width."""
        frames, width, height = self.part.shape
        return frames, height, width

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """As it was."""
        return self.part.dtype

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """(rows, columns)."""
        return self.part.read(number, columns, rows).T

    def block(self, numbers: Numbers, rows: slice, columns: slice) -> np.ndarray:
        """(numbers, rows, columns)."""
        return self.part.block(numbers, columns, rows).transpose(0, 2, 1)

    def close(self) -> None:
        """Let go of its files."""
        self.part.close()


@dataclass(frozen=True, eq=False)
class JoinedFrames(Frames):
    """Frames of several files that follow each other.

    Parameters
    ----------
    parts : tuple of Frames
        Of one height and width.
    """

    parts: tuple[Frames, ...]

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Frames, height and width."""
        return (int(self._ends[-1]), *self.parts[0].shape[1:])

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """One that holds the numbers of all."""
        return np.result_type(*(part.dtype for part in self.parts))

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([part.shape[0] for part in self.parts])

    @cached_property
    def _open(self) -> deque[int]:
        return deque()

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """From the file that has it; those that were not read for long are closed."""
        which = int(np.searchsorted(self._ends, number, side="right"))
        if which not in self._open:
            self._open.append(which)
            if len(self._open) > FILES_OPEN:
                self.parts[self._open.popleft()].close()
        part = self.parts[which]
        return part.read(number - int(self._ends[which]) + part.shape[0], rows, columns)

    def close(self) -> None:
        """Let go of all files."""
        for part in self.parts:
            part.close()


@dataclass(frozen=True, eq=False)
class TiledFrames(Frames):
    """Frames of several planes side by side in one image.

    Parameters
    ----------
    parts : tuple of Frames
        Cut to the shortest.
    corners : tuple of (row, column)
        Where each of them begins in the image.
    shape : (frames, height, width)
    """

    parts: tuple[Frames, ...]
    corners: tuple[tuple[int, int], ...]
    shape: tuple[int, int, int]

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """One that holds the numbers of all."""
        return np.result_type(*(part.dtype for part in self.parts))

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """(rows, columns); zero where no plane lies."""
        found = np.zeros((rows.stop - rows.start, columns.stop - columns.start), self.dtype)
        for part, corner in zip(self.parts, self.corners, strict=True):
            down, there = _shared(rows, corner[0], part.shape[1])
            across, over = _shared(columns, corner[1], part.shape[2])
            if down.start < down.stop and across.start < across.stop:
                found[there, over] = part.read(number, down, across)
        return found

    def close(self) -> None:
        """Let go of all files."""
        for part in self.parts:
            part.close()


def _shared(wanted: slice, begin: int, size: int) -> tuple[slice, slice]:
    """What a part that begins there has of a stretch: counted in the part, and in the stretch."""
    own = slice(max(wanted.start - begin, 0), min(wanted.stop - begin, size))
    shift = begin - wanted.start
    return own, slice(own.start + shift, own.stop + shift)


@dataclass(frozen=True, eq=False)
class Movie:
    """Frames that are read when they are asked for.

    It can be pickled, read from several threads at once, and takes no memory to speak of. Where a
    file was changed or removed meanwhile, reading raises an `InputError` with a sentence.

    Parameters
    ----------
    planes : tuple of Frames
        One, or those of each plane in their order.
    source : Path
        File or folder that it was read from; of a simulated one, what it is.
    stacked : bool
        Whether frames have an axis of planes, even if there is only one.
    numbers : (recording frames,) int or None
        Frame of the movie at each frame of the recording; None: they are the same.
    rate : float or None
        Frames per second, where the file says so.
    pixel_size : float or None
        Micrometres per pixel, where the file says so.
    contrast : (float, float)
        Values to show as black and white, found in a few frames.
    """

    planes: tuple[Frames, ...]
    source: Path
    stacked: bool = False
    numbers: np.ndarray | None = None
    rate: float | None = None
    pixel_size: float | None = None
    contrast: tuple[float, float] = (0.0, 1.0)

    @property
    def field(self) -> tuple[int, int]:
        """Height and width in pixels; those of the largest plane."""
        height, width = np.max([plane.shape[1:] for plane in self.planes], axis=0)
        return int(height), int(width)

    @property
    def n_frames(self) -> int:
        """Number of frames; planes may differ by one, and are cut to the shortest."""
        return min(plane.shape[0] for plane in self.planes)

    @property
    def shape(self) -> tuple[int, ...]:
        """(frames, height, width), or (frames, planes, height, width)."""
        return (self.n_frames, *([len(self.planes)] if self.stacked else []), *self.field)

    @property
    def dtype(self) -> np.dtype:
        """Type of the values of a frame."""
        return np.result_type(*(plane.dtype for plane in self.planes))

    @property
    def words(self) -> str:
        """Its file and size, for people."""
        size = " × ".join(map(str, self.field))
        planes = f"{len(self.planes)} planes of " if self.stacked else ""
        return f"{self.source.name}, {planes}{size}, {self.n_frames:,} frames"

    def frame(self, number: int) -> np.ndarray:
        """One frame of the movie, counted from 0.

        Returns
        -------
        (height, width) array, or (planes, height, width)
        """
        if not self.stacked:
            return self.plane(number)
        return np.stack([self.plane(number, i) for i in range(len(self.planes))])

    def plane(self, number: int, plane: int = 0) -> np.ndarray:
        """(height, width), one plane of a frame, with zeros where it is smaller than others."""
        self._check(number)
        _, height, width = self.planes[plane].shape
        read = self.planes[plane].read(number, slice(0, height), slice(0, width))
        if (height, width) == self.field:
            return read
        whole = np.zeros(self.field, self.dtype)
        whole[:height, :width] = read
        return whole

    def crop(self, frames: Numbers, plane: int, rows: slice, columns: slice) -> np.ndarray:
        """A part of the field in some frames, reading no more than that takes.

        Parameters
        ----------
        frames : sequence of int
            Numbers of frames of the movie; see `of_frame`.
        plane : int
            0 if there are no planes.
        rows, columns : slice
            Cut to the field.

        Returns
        -------
        (frames, rows, columns) float32
        """
        numbers = np.asarray(frames, np.int64)
        for number in (numbers.min(), numbers.max()) if len(numbers) else ():
            self._check(int(number))
        _, height, width = self.planes[plane].shape
        down, across = (slice(*part.indices(size)[:2]) for part, size in
                        ((rows, height), (columns, width)))  # fmt: skip
        if down.stop <= down.start or across.stop <= across.start:
            return np.zeros((len(numbers), 0, 0), np.float32)
        found = self.planes[plane].block(numbers, down, across)
        return found.astype(np.float32, copy=False)

    def of_frame(self, recording_frame: int) -> int:
        """The frame of the movie at a frame of the recording."""
        if self.numbers is not None:
            last = len(self.numbers) - 1
            return int(self.numbers[min(max(recording_frame, 0), last)])
        return int(min(max(recording_frame, 0), self.n_frames - 1))

    def close(self) -> None:
        """Let go of open files; they are opened again when a frame is read."""
        for plane in self.planes:
            plane.close()

    def _check(self, number: int) -> None:
        if not 0 <= number < self.n_frames:
            raise InputError(
                f"{self.source} has {self.n_frames:,} frames: there is no frame {number:,}."
            )


@dataclass(frozen=True, eq=False)
class RenderedFrames(Frames):
    """Cells that light up with their traces, over a resting field, with the noise of photons.

    A frame is the same whenever it is asked for. Traces and footprints are those of the recording,
    so that it takes no memory of its own to speak of.

    Parameters
    ----------
    traces : (frames, rois) float32
        ΔF/F.
    footprints : Footprints
        Without planes.
    rest : (height, width) float32
        The field at ΔF/F 0, in detector counts.
    gain : (pixels of the footprints,) float32
        Detector counts that ΔF/F 1 adds there.
    dark : float
        Detector counts without light.
    noise : float
        Standard deviation of a pixel, in square roots of its counts above `dark`.
    seed : int
    """

    traces: np.ndarray | LazyTraces
    footprints: Footprints
    rest: np.ndarray
    gain: np.ndarray
    dark: float
    noise: float
    seed: int = 0

    dtype = np.dtype(np.int16)

    def __post_init__(self) -> None:
        for name, found, wanted in (
            ("rest", np.shape(self.rest), self.footprints.shape),
            ("gain", np.shape(self.gain), self.footprints.cell.shape),
        ):
            if found != wanted:
                raise InputError(f"{name} of the movie has shape {found}: {wanted} is needed.")

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Frames, height and width."""
        height, width = self.rest.shape
        return len(self.traces), height, width

    @cached_property
    def _place(self) -> np.ndarray:
        """Of each pixel of the footprints, in the field row after row."""
        return np.ravel_multi_index(self.footprints.pixels, self.rest.shape)

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """Render the frame, and cut the part."""
        image = self.rest.copy()
        lit = self.gain * self.traces[number][self.footprints.cell]
        np.add.at(image.reshape(-1), self._place, lit)
        light = np.sqrt(np.maximum(image - self.dark, 0))
        noise = np.random.default_rng([self.seed, number]).standard_normal(image.shape, np.float32)
        image += np.float32(self.noise) * light * noise
        return np.clip(image[rows, columns], 0, np.iinfo(np.int16).max).astype(np.int16)


STANDS = 0.5
"""Seconds that a frame stands for at most, unless they are farther apart throughout."""


@dataclass(frozen=True, eq=False)
class Video:
    """A video on the clock of a recording; it stays on disk.

    Parameters
    ----------
    path : Path
    times : (frames,) float64
        Seconds on the clock of the recording, ascending.
    field : (height, width)
        In pixels.
    stamps : (frames,) float64
        Seconds at which the file shows them, by which a frame is found in it.
    """

    path: Path
    times: np.ndarray
    field: tuple[int, int]
    stamps: np.ndarray

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.times)

    @property
    def words(self) -> str:
        """Its file, size and span, for people."""
        height, width = self.field
        first, last = self.times[[0, -1]]
        return (
            f"{self.path.name}, {width} × {height}, {self.n_frames:,} frames, "
            f"{first:,.1f} to {last:,.1f} s"
        )

    def at(self, seconds: float) -> int | None:
        """The frame that was taken last at a time of the recording; None where there is none."""
        step = float(np.median(np.diff(self.times[:1000]))) if self.n_frames > 1 else 0.0
        place = int(np.searchsorted(self.times, seconds + 1e-6, side="right")) - 1
        if place < 0 or seconds - self.times[place] > max(2 * step, STANDS):
            return None
        return place
