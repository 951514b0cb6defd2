"""Opens an array of frames: a .npy file of three axes."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.containers.npy import mapped_header
from napari_xcebra.io.movie.like import Like
from napari_xcebra.io.movie.raw import raw_frames
from napari_xcebra.recording.movies.movie import Movie

NAME = "array (.npy of frames × height × width)"


def sniff(path: Path) -> bool:
    """Whether it is an array of three axes."""
    if not path.is_file() or not first_bytes(path).startswith(b"\x93NUMPY"):
        return False
    try:
        return len(mapped_header(path).shape) == 3
    except InputError:
        return False


def load(path: Path, like: Like) -> Movie:
    """Movie of the array."""
    header = mapped_header(path)
    if len(header.shape) != 3 or header.dtype.kind not in "biuf" or 0 in header.shape:
        raise InputError(
            f"{path} has an array of shape {header.shape} and type {header.dtype}: numbers, "
            "frames × height × width, are needed."
        )
    shape, axes = header.shape, like.axes(header.shape)
    if header.columns_first:
        shape, axes = shape[::-1], axes[::-1]
    return Movie((raw_frames(path, header.start, header.dtype, shape, axes),), path)
