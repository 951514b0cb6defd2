"""Opens movies in arrays of frames: .npy, a dataset of HDF5, zarr folders (2 and 3), OME-Zarr.

In HDF5, a dataset with a usual name is taken, or else the largest one. Where numbers lie in the
file as they are, frames are read without a library. An OME-Zarr image may have axes of time,
channels and planes: the first channel is taken.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.containers.hdf5 import check, dataset_at, has_signature, open_hdf5, walk
from napari_xcebra.io.containers.npy import mapped_header
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
from napari_xcebra.io.movie.finding import Like
from napari_xcebra.recording.movies import (
    AHEAD,
    Frames,
    KeptFrames,
    Movie,
    PixelFrames,
    PlainFrames,
    TurnedFrames,
)
from napari_xcebra.recording.stored import StoredFile, changed_since

MOVIE = "array of frames × height × width (.npy, HDF5, zarr, OME-Zarr)"


def sniff_movie(path: Path) -> bool:
    """Whether it is, or holds, an array that may be a movie."""
    return any(is_one(path) for is_one in _LOADS)


def load_movie(path: Path, like: Like) -> Movie:
    """Opens .npy, the likeliest dataset of HDF5, or the first channel of zarr and OME-Zarr."""
    load = next((load for is_one, load in _LOADS.items() if is_one(path)), None)
    if load is None:
        raise InputError(f"{path} has no array of three axes.")
    return load(path, like)


def _raw_frames(
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


def _is_npy(path: Path) -> bool:
    """Whether it is an array of three axes."""
    if not path.is_file() or not first_bytes(path).startswith(b"\x93NUMPY"):
        return False
    try:
        return len(mapped_header(path).shape) == 3
    except InputError:
        return False


def _load_npy(path: Path, like: Like) -> Movie:
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
    return Movie((_raw_frames(path, header.start, header.dtype, shape, axes),), path)


USUAL = ("mov", "movie", "data", "images", "imaging", "registered", "Y", "frames", "1", "dataset")
LEAST_FRAMES, LEAST_PIXELS = 3, 64
MOST_KEPT = 128 * 2**20
"""Bytes of unpacked chunks that the library keeps."""


def _is_hdf5(path: Path) -> bool:
    """Whether it is an HDF5 file with a dataset that may be a movie."""
    if not has_signature(path):
        return False
    try:
        with open_hdf5(path) as file:
            return bool(_datasets(file))
    except InputError:
        return False


def _load_hdf5(path: Path, like: Like) -> Movie:
    """Movie of the dataset that looks most like one."""
    with open_hdf5(path) as file:
        found = _datasets(file)
        if not found:
            raise InputError(
                f"{path} has no dataset of three axes: a movie of frames × height × width is "
                "needed."
            )
        fitting = [each for each in found if _fits(each, like)]
        dataset = (fitting or found)[0]
        check(dataset)
        return Movie((_frames(path, dataset, like.axes(dataset.shape)),), path)


def _datasets(file: h5py.File) -> list[h5py.Dataset]:
    """Those that may be movies, the likeliest first."""
    found = [
        node
        for node in walk(file)
        if isinstance(node, h5py.Dataset)
        and node.ndim == 3
        and node.dtype.kind in "biuf"
        and min(node.shape) > 1
        and max(node.shape) >= LEAST_FRAMES
        and node.size >= LEAST_FRAMES * LEAST_PIXELS
    ]

    def rank(node: h5py.Dataset) -> tuple[bool, int]:
        return str(node.name).rsplit("/", 1)[-1] not in USUAL, -node.size

    return sorted(found, key=rank)


def _fits(dataset: h5py.Dataset, like: Like) -> bool:
    sizes = dict(zip(like.axes(dataset.shape), dataset.shape, strict=True))
    return like.field is None or (sizes["y"], sizes["x"]) == like.field


def _frames(path: Path, dataset: h5py.Dataset, axes: tuple[str, str, str]) -> Frames:
    start = dataset.id.get_offset()
    if start is not None and dataset.chunks is None:
        return _raw_frames(path, int(start), dataset.dtype, dataset.shape, axes)
    sizes = dict(zip(axes, dataset.shape, strict=True))
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    return _Hdf5Frames(
        path,
        str(dataset.name),
        (sizes["t"], sizes["y"], sizes["x"]),
        dataset.dtype.newbyteorder("="),
        axes,
        min(max(2 * chunk, 2**20), MOST_KEPT),
    )


@dataclass(frozen=True, eq=False)
class _Hdf5Frames(Frames):
    """Frames in a dataset that is stored in chunks, which may be compressed.

    Parameters
    ----------
    path : Path
    name : str
        Of the dataset.
    shape : (frames, height, width)
    dtype : numpy.dtype
    axes : three of "t", "y" and "x"
    kept : int
        Bytes of unpacked chunks to keep.
    """

    path: Path
    name: str
    shape: tuple[int, int, int]
    dtype: np.dtype
    axes: tuple[str, str, str]
    kept: int

    @cached_property
    def _stored(self) -> _OpenDataset:
        return _OpenDataset(self)

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """One frame at a time."""
        return self._stored.read(number, rows, columns)


class _OpenDataset:
    """A dataset whose file is open as long as this object lives."""

    def __init__(self, frames: _Hdf5Frames) -> None:
        self._frames, self._lock = frames, threading.Lock()
        self._same = StoredFile(frames.path)
        try:
            self._file = h5py.File(frames.path, "r", locking="best-effort", rdcc_nbytes=frames.kept)
            self._dataset = dataset_at(self._file, frames.name)
        except OSError as error:
            raise changed_since(frames.path) from error

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        frames, dataset = self._frames, self._dataset
        self._same.check_same()
        where: dict[str, Any] = {"t": number, "y": rows, "x": columns}
        wanted = rows.stop - rows.start, columns.stop - columns.start
        try:
            with self._lock:
                found = dataset[tuple(where[axis] for axis in frames.axes)]  # type: ignore[index]
        # a file that was changed meanwhile fails in many ways
        except Exception as error:
            raise changed_since(frames.path) from error
        turned = frames.axes.index("y") > frames.axes.index("x")
        found = (found.T if turned else found).astype(frames.dtype, copy=False)
        if found.shape != wanted:
            raise changed_since(frames.path)
        return found


def _is_zarr(path: Path) -> bool:
    """Whether it is a folder with a zarr array, or with an image of OME."""
    try:
        return path.is_dir() and bool(_places(path))
    except (OSError, ValueError, RecursionError):
        return False


def _load_zarr(path: Path, like: Like) -> Movie:
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


_LOADS = {_is_zarr: _load_zarr, _is_npy: _load_npy, _is_hdf5: _load_hdf5}
