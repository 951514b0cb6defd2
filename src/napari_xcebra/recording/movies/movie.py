"""Holds the movie of a recording: where its frames are, and which belongs to which time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.movies.frames import Frames, Numbers


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
