"""Opens a movie that CaImAn keeps to work on: plain numbers, with their layout in the file name.

``…_d1_512_d2_512_d3_1_order_F_frames_3000.mmap``: height, width and planes, float32. Pixels count
down the columns of the image. In order F a frame lies together, in order C the values of a pixel.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.movie.like import Like
from napari_xcebra.recording.movies.frames import Frames, PixelFrames, PlainFrames, TurnedFrames
from napari_xcebra.recording.movies.movie import Movie

NAME = "CaImAn (.mmap)"
STORED = np.dtype("<f4")
_LAYOUT = re.compile(r"_d1_(\d{1,7})_d2_(\d{1,7})_d3_(\d{1,5})_order_([CF])_frames_(\d{1,9})")


def sniff(path: Path) -> bool:
    """Whether its name has the layout."""
    return path.suffix == ".mmap" and _LAYOUT.search(path.name) is not None and path.is_file()


def load(path: Path, like: Like) -> Movie:
    """Movie with the size that the name says."""
    found = _LAYOUT.search(path.name)
    if found is None:
        raise InputError(f"{path} does not have its size in its name, as CaImAn writes it.")
    height, width, planes, frames = (int(found[i]) for i in (1, 2, 3, 5))
    claimed = math.prod((height, width, planes, frames)) * STORED.itemsize
    size = path.stat().st_size
    if not claimed or size != claimed:
        raise InputError(
            f"{path} has {size:,} bytes, but its name says {height} × {width} pixels, "
            f"{planes} planes and {frames:,} frames, which take {claimed:,}: it is incomplete."
        )
    shape = frames, height, width
    by_frame = found[4] == "F"
    parts = tuple(_plane(path, shape, plane, planes, by_frame) for plane in range(planes))
    return Movie(parts, path, stacked=planes > 1)


def _plane(
    path: Path, shape: tuple[int, int, int], plane: int, planes: int, by_frame: bool
) -> Frames:
    frames, height, width = shape
    size = height * width * STORED.itemsize
    if not by_frame:
        return PixelFrames(path, shape, STORED, plane * size * frames)
    places = range(plane * size, frames * planes * size, planes * size)
    return TurnedFrames(PlainFrames(path, (frames, width, height), STORED, places))
