"""Opens TIFF stacks, and folders of TIFF files that follow each other.

Where pixels are not compressed, only their places are noted, and frames are read without a library.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.movie.like import Like
from napari_xcebra.io.tiff import can_unpack, is_tiff, open_tiff, page_pixel_size
from napari_xcebra.recording.movies.frames import (
    Frames,
    JoinedFrames,
    KeptFrames,
    Numbers,
    PlainFrames,
)
from napari_xcebra.recording.movies.movie import Movie
from napari_xcebra.recording.stored_file import changed_since

NAME = "TIFF stack, or a folder of TIFF files"
MOST_FILES = 200_000
LARGEST_FRAME = 2**28
"""Bytes of a frame; what claims more is damaged."""


def sniff(path: Path) -> bool:
    """Whether it begins like a TIFF, or is a folder of such files and nothing but them."""
    if path.is_dir():
        files = _files(path)
        return len(files) > 1 and is_tiff(first_bytes(files[0]))
    return is_tiff(first_bytes(path))


def load(path: Path, like: Like) -> Movie:
    """Movie with a frame a page."""
    files = _files(path) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} has no TIFF files.")
    parts: list[Frames] = []
    pixel_size = None
    for file in files:
        frames, size = _stack(file)
        pixel_size = pixel_size or size
        if parts and frames.shape[1:] != parts[0].shape[1:]:
            raise InputError(
                f"{file} has frames of {_times(frames)} pixels, but {files[0].name} of "
                f"{_times(parts[0])}: put the files of one movie into a folder of their own."
            )
        parts.append(frames)
    whole = parts[0] if len(parts) == 1 else JoinedFrames(tuple(parts))
    return Movie((whole,), path, pixel_size=pixel_size)


def _times(frames: Frames) -> str:
    return " × ".join(map(str, frames.shape[1:]))


def _files(folder: Path) -> list[Path]:
    """TIFF files of a folder, by the numbers in their names."""
    try:
        found = [file for file in folder.iterdir() if file.suffix.lower() in (".tif", ".tiff")]
    except OSError:
        return []
    return sorted(found[:MOST_FILES], key=lambda file: _by_numbers(file.name))


def _by_numbers(name: str) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


def _stack(path: Path) -> tuple[Frames, float | None]:
    """Frames of a file, and its pixel size."""
    with sentence_on_failure(path), open_tiff(path) as file:
        first = file.pages[0]
        if len(first.shape) != 2 or np.dtype(first.dtype).kind not in "biuf":
            raise InputError(
                f"{path} has pages of shape {first.shape} and type {first.dtype}: greyscale "
                "frames are needed."
            )
        if not 0 < math.prod(first.shape) * first.dtype.itemsize <= LARGEST_FRAME:
            raise InputError(f"{path} claims frames of {first.shape}: it is damaged.")
        if not can_unpack(first):
            raise InputError(
                f"{path} is compressed in a way that needs the package imagecodecs: install it, or "
                "save the movie without compression."
            )
        size = page_pixel_size(first)
        return _plain(path, file) or _packed(path, file), size


def _plain(path: Path, file: Any) -> PlainFrames | None:
    """Frames that are not compressed; None if they are."""
    first = file.pages[0]
    if first.compression != 1 or first.predictor != 1 or first.bitspersample % 8:
        return None
    size = math.prod(first.shape) * first.dtype.itemsize
    stored = np.dtype(first.dtype).newbyteorder(file.byteorder)
    places = _after_each_other(path, first, size) or _by_page(file, size)
    if places is None:
        return None
    return PlainFrames(path, (len(places), *first.shape), stored, places)


def _after_each_other(path: Path, first: Any, size: int) -> range | None:
    """Places where ImageJ wrote many frames after a single page."""
    said = re.search(r"^images=(\d{1,9})\s*$", str(first.description or ""), re.MULTILINE)
    start = first.dataoffsets[0] if first.dataoffsets else 0
    count = int(said[1]) if said and first.is_imagej else 0
    if count < 2 or start + count * size > path.stat().st_size or not _together(first, size):
        return None
    return range(start, start + count * size, size)


def _by_page(file: Any, size: int) -> Numbers | None:
    """Places of all pages; None if the pixels of one lie in several."""
    pages = file.pages
    pages.useframes = True  # which reads no more of a page than where its pixels are
    places = np.zeros(len(pages), np.int64)
    for number in range(len(pages)):
        page = pages[number]
        if not _together(page, size):
            return None
        places[number] = page.dataoffsets[0]
    steps = np.unique(np.diff(places))
    if len(steps) == 1 and steps[0] > 0:
        return range(int(places[0]), int(places[-1]) + 1, int(steps[0]))
    return places


def _together(page: Any, size: int) -> bool:
    """Whether the pixels of a page lie in one piece."""
    if page.keyframe.is_tiled:
        return False
    begins, counts = np.asarray(page.dataoffsets), np.asarray(page.databytecounts)
    return bool(counts.sum() == size and (begins[1:] == begins[:-1] + counts[:-1]).all())


def _packed(path: Path, file: Any) -> PackedFrames:
    first = file.pages[0]
    dtype = np.dtype(first.dtype).newbyteorder("=")
    return PackedFrames(path, (len(file.pages), *first.shape), dtype)


@dataclass(frozen=True, eq=False)
class PackedFrames(KeptFrames):
    """Compressed pages of a TIFF file, unpacked one at a time.

    Parameters
    ----------
    path : Path
    shape : (frames, height, width)
    dtype : numpy.dtype
    """

    path: Path
    shape: tuple[int, int, int]
    dtype: np.dtype

    @cached_property
    def _stored(self) -> _Open:
        return _Open(self.path)

    def together(self, number: int) -> tuple[int, np.ndarray]:
        """The page alone."""
        try:
            page = self._stored.file.pages[number].asarray()
        # a damaged file fails in many ways
        except Exception as error:
            raise changed_since(self.path) from error
        if page.shape != self.shape[1:]:
            raise changed_since(self.path)
        return number, page[None]


class _Open:
    """A TIFF file that is open as long as this object lives."""

    def __init__(self, path: Path) -> None:
        self._context = open_tiff(path)
        self.file = self._context.__enter__()

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
