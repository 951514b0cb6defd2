"""Opens movies in zarr folders, versions 2 and 3: plain arrays, OME-Zarr, and those of Minian.

An OME-Zarr image may have axes of time, channels and planes: the first channel is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.zarr import (
    LETTERS,
    StoredArray,
    axes_named,
    finest_level,
    is_any_array,
    json_in,
    multiscale,
    pixel_size_of,
    stored_in,
)
from napari_xcebra.io.movie.like import Like
from napari_xcebra.recording.movies.frames import AHEAD, KeptFrames
from napari_xcebra.recording.movies.movie import Movie

NAME = "zarr, OME-Zarr"


def sniff(path: Path) -> bool:
    """Whether it is a folder with a zarr array, or with an image of OME."""
    try:
        return path.is_dir() and bool(_places(path))
    except (OSError, ValueError, RecursionError):
        return False


def load(path: Path, like: Like) -> Movie:
    """Movie of the array, or of the finest level of an OME image."""
    about = multiscale(path)
    places = _places(path)
    if not places:
        raise InputError(f"{path} has no zarr array: a movie of frames × height × width is needed.")
    arrays = [checked(place, path) for place in places]
    found = next((each for each in arrays if len(each.shape) >= 3), arrays[0])
    axes = _axes(found, about, like)
    planes = found.shape[axes.index("z")] if "z" in axes else 1
    parts = tuple(ZarrFrames(found, axes, plane) for plane in range(planes))
    size = pixel_size_of(about, axes) if about else None
    return Movie(parts, path, stacked=planes > 1, pixel_size=size)


def checked(place: Path, root: Path) -> StoredArray:
    """Array that may be unpacked in whichever process looks at it."""
    found = stored_in(place, root)
    if found.packed_by:
        raise InputError(
            f"{place} is packed by {found.packed_by}, which does not say how large a chunk "
            "becomes: save a movie with blosc or zstd."
        )
    return replace(found, present=())  # it would be sent along with every recording


def _places(path: Path) -> list[Path]:
    """Folders of arrays that may be the movie, the likeliest first."""
    if is_any_array(path):
        return [path]
    about = multiscale(path)
    if about is not None:
        level = finest_level(about)
        return [path / level] if level and is_any_array(path / level) else []
    inside = sorted(folder for folder in path.iterdir() if folder.is_dir())[:1000]
    return [folder for folder in inside if _n_axes(folder) == 3]


def _n_axes(folder: Path) -> int:
    if not is_any_array(folder):
        return 0
    about = json_in(folder / ".zarray") or json_in(folder / "zarr.json")
    shape = about.get("shape")
    return len(shape) if isinstance(shape, list) else 0


def _axes(found: StoredArray, about: Mapping[str, Any] | None, like: Like) -> tuple[str, ...]:
    """Which axis is time, channel, plane, row and column."""
    axes = axes_named(about) if about is not None else ()
    axes = axes or tuple(LETTERS.get(name.lower(), "?") for name in found.axes)
    if len(axes) == len(found.shape) and {"t", "y", "x"} <= set(axes) <= set("tczyx"):
        return axes
    if len(found.shape) == 3:
        return like.axes(found.shape)
    if len(found.shape) == 5:  # as OME has it where it does not say
        return tuple("tczyx")
    raise InputError(
        f"{found.path} has an array of shape {found.shape}: a movie of frames × height × width is "
        "needed."
    )


@dataclass(frozen=True, eq=False)
class ZarrFrames(KeptFrames):
    """Frames of a plane of a zarr array; those of a chunk are unpacked together, and kept.

    Parameters
    ----------
    stored : StoredArray
    axes : tuple of "t", "c", "z", "y" and "x"
    plane : int
    """

    stored: StoredArray
    axes: tuple[str, ...]
    plane: int = 0

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Frames, height and width."""
        frames, height, width = (self.stored.shape[self.axes.index(axis)] for axis in "tyx")
        return frames, height, width

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """In the byte order of this machine."""
        return self.stored.dtype.newbyteorder("=")

    def together(self, number: int) -> tuple[int, np.ndarray]:
        """Frames of the chunk with this one, as many as may be kept."""
        frames, height, width = self.shape
        step = self.stored.chunks[self.axes.index("t")]
        most = max(1, AHEAD // (height * width * self.dtype.itemsize))
        first = number - number % step
        if step > most:
            first += (number - first) // most * most
        stop = min(first + min(step, most), frames)
        where = {"t": slice(first, stop), "c": slice(0, 1), "z": slice(self.plane, self.plane + 1)}
        found = self.stored.read(*(where.get(axis, slice(None)) for axis in self.axes))
        ahead = [axis for axis in self.axes if axis in "cz"]
        order = [self.axes.index(axis) for axis in (*ahead, "t", "y", "x")]
        block = found.transpose(order).reshape(stop - first, height, width)
        return first, np.ascontiguousarray(block, self.dtype)
