"""Reads TIFF images page by page, and opens TIFF stacks and folders of them as movies.

Only pages of the file itself are looked at: what OME or Micro-Manager headers say about further
files is not followed. Where pixels of a movie are not compressed, only their places are noted, and
frames are read without a library. Where the file says that its pages have planes or channels beside
time, planes are told apart, and the first channel is taken.
"""

from __future__ import annotations

import logging
import math
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes
from napari_xcebra.io.extraction import judged, micrometres
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

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
# each of these would have pages looked for elsewhere than in the chain of pages
_NO_DIALECTS: dict[str, Any] = {
    "is_lsm": False,
    "is_ndpi": False,
    "is_ome": False,
    "is_scanimage": False,
}


def is_tiff(first_bytes: bytes) -> bool:
    """Whether a file that begins like this is a TIFF."""
    return first_bytes[:4] in MAGIC


@contextmanager
def _open_tiff(path: Path) -> Iterator[Any]:
    """The file, which is looked at as a chain of pages."""
    from tifffile import TiffFile

    with quiet("tifffile"), TiffFile(path, **_NO_DIALECTS) as file:
        yield file


def read_tiff(path: Path) -> np.ndarray:
    """Image of a TIFF file, or the stack of its pages, each a plane.

    Returns
    -------
    (height, width) or (planes, height, width) array of numbers
    """
    with sentence_on_failure(path), _open_tiff(path) as file:
        pages = list(_pages(file))
        _check(path, pages)
        images = [page.asarray() for page in pages]
    return images[0] if len(images) == 1 else np.stack(images)


def tiff_pixel_size(path: Path) -> float | None:
    """Micrometres per pixel, where a TIFF file says so in a way that can be true."""
    try:
        with _open_tiff(path) as file:
            return _page_pixel_size(file.pages[0])
    except Exception:  # whatever is wrong with it, it does not tell
        return None


def _page_pixel_size(page: Any) -> float | None:
    """Micrometres per pixel, where the first page of a TIFF file says so."""
    tags = [page.tags.get(name) for name in ("XResolution", "YResolution")]
    shares = [tag.value for tag in tags if tag is not None]
    known = len(shares) == 2 and all(len(share) == 2 and share[1] for share in shares)
    resolution = (shares[0][0] / shares[0][1], shares[1][0] / shares[1][1]) if known else None
    unit = page.tags.get("ResolutionUnit")
    text = str(page.description or "")
    return _described_size(text, resolution, int(unit.value) if unit is not None else 1)


def _described_size(text: str, resolution: tuple[float, float] | None, unit: int) -> float | None:
    """Micrometres per pixel that a TIFF tells: to OME, to ImageJ, or in its own tags.

    Parameters
    ----------
    text : str
        Its description.
    resolution : (across, down) or None
        Pixels per unit.
    unit : int
        2: inches, 3: centimetres, 1: none.
    """
    if (said := re.search(r'\bPhysicalSizeX="([^"]{1,40})"', text)) is not None:
        named = re.search(r'\bPhysicalSizeXUnit="([^"]{1,20})"', text)
        scale = micrometres(named[1]) if named else 1.0
        try:
            return judged(float(said[1]) * scale)[0] if scale else None
        except ValueError:
            return None
    if resolution is None or not all(0 < number < np.inf for number in resolution):
        return None
    scale = {2: 25_400.0, 3: 1e4}.get(unit)
    if text.startswith("ImageJ="):
        named = re.search(r"^unit=(.{1,20})$", text, re.MULTILINE)
        scale = micrometres(named[1]) if named else None
    return judged(*(scale / number for number in resolution))[0] if scale else None


def _pages(file: Any) -> Iterator[Any]:
    """Pages in order, without previews; a chain that leads back to an earlier one is damaged."""
    seen: set[int] = set()
    for page in file.pages:
        if page.offset in seen:
            raise ValueError("its pages form a circle")
        seen.add(page.offset)
        if not page.is_reduced or len(seen) == 1:
            yield page


def _check(path: Path, pages: list[Any]) -> None:
    """Compare what the pages claim with each other and with the size of the file."""
    if not pages:
        raise InputError(f"{path} contains no image.")
    shapes = {tuple(page.shape) for page in pages}
    # three planes may have been written as if they were red, green and blue
    planes = len(pages) == 1 and len(pages[0].shape) == 3 and pages[0].planarconfig == 2
    if len(shapes) > 1 or not (planes or len(pages[0].shape) == 2):
        shown = ", ".join(" × ".join(map(str, shape)) for shape in sorted(shapes)[:3])
        raise InputError(
            f"{path} has images of {shown} pixels: one greyscale image, or several of the "
            "same size, are needed."
        )
    if not all(map(_can_unpack, pages)):
        raise InputError(
            f"{path} is compressed in a way that needs the package imagecodecs: install it, or "
            "save the image without compression."
        )
    types = {np.dtype(page.dtype).kind if page.dtype is not None else "" for page in pages}
    if not types <= set("biuf"):
        raise InputError(f"{path} has pixels that are not numbers: a greyscale image is needed.")


def _can_unpack(page: Any) -> bool:
    """Whether the compression of a page is known here."""
    from tifffile import TIFF

    try:
        unpack = page.compression == 1 or TIFF.DECOMPRESSORS[page.compression]
        return bool(unpack and (page.predictor == 1 or TIFF.UNPREDICTORS[page.predictor]))
    except KeyError:
        return False


@contextmanager
def quiet(logger: str) -> Iterator[None]:
    """Keep a library from logging what an error says anyway."""
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


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
    with sentence_on_failure(path), _open_tiff(path) as file:
        first = file.pages[0]
        if len(first.shape) != 2 or np.dtype(first.dtype).kind not in "biuf":
            raise InputError(
                f"{path} has pages of shape {first.shape} and type {first.dtype}: greyscale "
                "frames are needed."
            )
        if not 0 < math.prod(first.shape) * first.dtype.itemsize <= LARGEST_FRAME:
            raise InputError(f"{path} claims frames of {first.shape}: it is damaged.")
        if not _can_unpack(first):
            raise InputError(
                f"{path} is compressed in a way that needs the package imagecodecs: install it, or "
                "save the movie without compression."
            )
        size = _page_pixel_size(first)
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
        self._context = _open_tiff(path)
        self.file = self._context.__enter__()

    def __del__(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
