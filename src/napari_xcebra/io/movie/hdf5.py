"""Opens a movie in an HDF5 file: a dataset of three axes.

A dataset with a usual name is taken, or else the largest one. Where its numbers lie in the file as
they are, frames are read without a library.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import check, dataset_at, has_signature, open_hdf5, walk
from napari_xcebra.io.movie.like import Like
from napari_xcebra.io.movie.raw import raw_frames
from napari_xcebra.recording.movies.frames import Frames
from napari_xcebra.recording.movies.movie import Movie
from napari_xcebra.recording.stored_file import StoredFile, changed_since

NAME = "HDF5 (a dataset of frames × height × width)"
USUAL = ("mov", "movie", "data", "images", "imaging", "registered", "Y", "frames", "1", "dataset")
LEAST_FRAMES, LEAST_PIXELS = 3, 64
MOST_KEPT = 128 * 2**20
"""Bytes of unpacked chunks that the library keeps."""


def sniff(path: Path) -> bool:
    """Whether it is an HDF5 file with a dataset that may be a movie."""
    if not has_signature(path):
        return False
    try:
        with open_hdf5(path) as file:
            return bool(_datasets(file))
    except InputError:
        return False


def load(path: Path, like: Like) -> Movie:
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
        return raw_frames(path, int(start), dataset.dtype, dataset.shape, axes)
    sizes = dict(zip(axes, dataset.shape, strict=True))
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    return Hdf5Frames(
        path,
        str(dataset.name),
        (sizes["t"], sizes["y"], sizes["x"]),
        dataset.dtype.newbyteorder("="),
        axes,
        min(max(2 * chunk, 2**20), MOST_KEPT),
    )


@dataclass(frozen=True, eq=False)
class Hdf5Frames(Frames):
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
    def _stored(self) -> _Open:
        return _Open(self)

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """One frame at a time."""
        return self._stored.read(number, rows, columns)


class _Open:
    """A dataset whose file is open as long as this object lives."""

    def __init__(self, frames: Hdf5Frames) -> None:
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
