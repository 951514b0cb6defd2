"""Reads movies whose numbers lie in a file as they are, in any order of the axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_xcebra.recording.movies.frames import Frames, PixelFrames, PlainFrames, TurnedFrames


def raw_frames(
    path: Path, start: int, dtype: np.dtype, shape: tuple[int, ...], axes: tuple[str, ...]
) -> Frames:
    """Frames of an array that lies in a file, the last axis changing fastest.

    Parameters
    ----------
    path : Path
    start : int
        Where it begins, in bytes.
    dtype : numpy.dtype
    shape : three int
    axes : three of "t", "y" and "x"
        Which axis is which; frames are the first or the last.
    """
    if axes[0] == "t":
        frames, *sides = shape
        size = sides[0] * sides[1] * dtype.itemsize
        places = range(start, start + frames * size, size)
        plain = PlainFrames(path, (frames, sides[0], sides[1]), dtype, places)
        return plain if axes[1:] == ("y", "x") else TurnedFrames(plain)
    # all values of a pixel together: column after column, or row after row
    first, second, frames = shape
    pixels = PixelFrames(path, (frames, second, first), dtype, start)
    return pixels if axes[:2] == ("x", "y") else TurnedFrames(pixels)
