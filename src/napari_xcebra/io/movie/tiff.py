"""Opens TIFF stacks, and folders of TIFF files that follow each other.

Where pixels are not compressed, only their places are noted, and frames are read without a library.
Where the file says that its pages have planes or channels beside time, planes are told apart, and
the first channel is taken.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes
from napari_xcebra.io.containers.tiff import can_unpack, is_tiff, open_tiff, page_pixel_size
from napari_xcebra.io.movie.finding import Like
from napari_xcebra.recording.movies import (
    Frames,
    JoinedFrames,
    KeptFrames,
    Movie,
    Numbers,
    PlainFrames,
)
from napari_xcebra.recording.stored import changed_since

MOVIE = "TIFF stack, or a folder of TIFF files"
MOST_FILES, MOST_TAGS = 200_000, 1000
LARGEST_FRAME = 2**28
"""Bytes of a frame; what claims more is damaged."""
_FORM = (256, 257, 258, 259, 262, 277, 317, 339)
"""Tags that say how pixels are stored: width, height, bits, compression, what they mean, numbers a
pixel, predictor, kind of numbers."""


def sniff_movie(path: Path) -> bool:
    """Whether it begins like a TIFF, or is a folder of such files and nothing but them."""
    if path.is_dir():
        files = _files(path)
        return len(files) > 1 and is_tiff(first_bytes(files[0]))
    return is_tiff(first_bytes(path))


def load_movie(path: Path, like: Like) -> Movie:
    """Opens a stack with a frame a page, or a folder of TIFF files that follow each other."""
    files = _files(path) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} has no TIFF files.")
    parts: list[tuple[Frames, ...]] = []
    pixel_size = None
    for file in files:
        planes, size = _stack(file)
        pixel_size = pixel_size or size
        first = parts[0][0] if parts else planes[0]
        if planes[0].shape[1:] != first.shape[1:] or len(planes) != len((parts or [planes])[0]):
            raise InputError(
                f"{file} has frames of {_times(planes)} pixels, but {files[0].name} of "
                f"{_times(parts[0])}: put the files of one movie into a folder of their own."
            )
        parts.append(planes)
    joined = parts[0] if len(parts) == 1 else tuple(map(JoinedFrames, zip(*parts, strict=True)))
    return Movie(joined, path, stacked=len(joined) > 1, pixel_size=pixel_size)


def _times(planes: Sequence[Frames]) -> str:
    sides = planes[0].shape[1:]
    return " × ".join(map(str, sides if len(planes) == 1 else (len(planes), *sides)))


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


def _stack(path: Path) -> tuple[tuple[Frames, ...], float | None]:
    """Frames of each plane of a file, and its pixel size."""
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
        stored = np.dtype(first.dtype).newbyteorder(file.byteorder)
        places = _places(path, file)
        if places is None:
            pages = _planes(path, first, len(file.pages))
            frame = stored.newbyteorder("=")
            return tuple(_PackedFrames(path, (len(p), *first.shape), frame, p) for p in pages), size
        planes = [places[p.start : p.stop : p.step] for p in _planes(path, first, len(places))]
        return tuple(PlainFrames(path, (len(p), *first.shape), stored, p) for p in planes), size


def _planes(path: Path, first: Any, count: int) -> list[range]:
    """Pages of each plane, of the first channel, as the description of the first page says."""
    sizes, time_last = _said_sizes(first)
    times, planes, channels = sizes
    if count != math.prod(sizes) or times == 1 or planes == channels == 1:
        return [range(count)]  # a program may count frames as planes
    if not time_last:
        raise InputError(
            f"{path} has {planes} planes and {channels} channels at {times} times, which do not "
            "follow each other at each time: save it with time as the last of these axes."
        )
    step = planes * channels
    between = channels if time_last == "planes" else 1
    return [range(plane * between, count, step) for plane in range(planes)]


def _said_sizes(first: Any) -> tuple[tuple[int, int, int], str]:
    """Numbers of times, planes and channels; and which of the last two comes later, if time does.

    ImageJ has channels before planes before times; OME-TIFF says the order of its axes.
    """
    text = str(first.description or "")
    if first.is_ome:
        said = [re.search(rf'Size{axis}="(\d{{1,9}})"', text) for axis in "TZC"]
        order = re.search(r'DimensionOrder="XY([CZT]{3})"', text)
        last = {"CZT": "planes", "ZCT": "channels"}.get(order[1] if order else "", "")
    else:
        # tifffile calls every file ImageJ's that begins as its description does
        names = ("frames", "slices", "channels") if first.is_imagej else ()
        said = [re.search(rf"^{name}=(\d{{1,9}})\s*$", text, re.MULTILINE) for name in names]
        last = "planes"
    sizes = [int(found[1]) if found else 1 for found in said] or [1, 1, 1]
    return (sizes[0], sizes[1], sizes[2]), last


def _places(path: Path, file: Any) -> Numbers | None:
    """Where the pixels of each frame begin; None if they are compressed, or lie in pieces."""
    first = file.pages[0]
    size = math.prod(first.shape) * first.dtype.itemsize
    plain = first.compression == 1 and first.predictor == 1 and first.bitspersample % 8 == 0
    if plain and (places := _after_each_other(path, first, size)) is not None:
        return places
    _check_alike(path, file)
    return _by_page(file, size) if plain else None


def _check_alike(path: Path, file: Any) -> None:
    """Raise if a page stores its pixels in another way than the first."""
    tiff, pages, handle = file.tiff, file.pages, file.filehandle
    pages.useframes = True  # which reads no more of a page than where its pixels are
    usual = None
    for number in range(len(pages)):
        handle.seek(pages[number].offset if number else pages.first.offset)
        (count,) = struct.unpack(tiff.tagnoformat, handle.read(tiff.tagnosize))
        tags = handle.read(min(count, MOST_TAGS) * tiff.tagsize)
        entries = (tags[i : i + tiff.tagsize] for i in range(0, len(tags), tiff.tagsize))
        form = {entry[:2]: entry for entry in entries
                if struct.unpack(f"{tiff.byteorder}H", entry[:2])[0] in _FORM}  # fmt: skip
        usual = usual or form
        if form != usual:
            raise InputError(
                f"{path}: page {number + 1:,} stores its pixels in another way than those before "
                "(type, size or compression). Save all frames in one way."
            )


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


@dataclass(frozen=True, eq=False)
class _PackedFrames(KeptFrames):
    """Compressed pages of a TIFF file, unpacked one at a time.

    Parameters
    ----------
    path : Path
    shape : (frames, height, width)
    dtype : numpy.dtype
    pages : range
    """

    path: Path
    shape: tuple[int, int, int]
    dtype: np.dtype
    pages: range

    @cached_property
    def _stored(self) -> _OpenTiff:
        return _OpenTiff(self.path)

    def together(self, number: int) -> tuple[int, np.ndarray]:
        """The page alone."""
        try:
            page = self._stored.file.pages[self.pages[number]].asarray()
        # a damaged file fails in many ways
        except Exception as error:
            raise changed_since(self.path) from error
        if page.shape != self.shape[1:]:
            raise changed_since(self.path)
        return number, page[None]


class _OpenTiff:
    """A TIFF file that is open as long as this object lives."""

    def __init__(self, path: Path) -> None:
        self._context = open_tiff(path)
        self.file = self._context.__enter__()

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
