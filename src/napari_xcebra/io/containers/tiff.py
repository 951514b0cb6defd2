"""Reads TIFF images page by page, after comparing their size with that of the file.

Only pages of the file itself are looked at: what OME or Micro-Manager headers say about further
files is not followed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.pixel_size import of_description
from napari_xcebra.recording.footprints import MOST_PIXELS

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MOST_PAGES = 100_000
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
def open_tiff(path: Path) -> Iterator[Any]:
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
    with sentence_on_failure(path), open_tiff(path) as file:
        pages = list(_pages(file))
        _check(path, pages)
        images = [page.asarray() for page in pages]
    return images[0] if len(images) == 1 else np.stack(images)


def tiff_pixel_size(path: Path) -> float | None:
    """Micrometres per pixel, where a TIFF file says so in a way that can be true."""
    try:
        with open_tiff(path) as file:
            return page_pixel_size(file.pages[0])
    except Exception:  # whatever is wrong with it, it does not tell
        return None


def page_pixel_size(page: Any) -> float | None:
    """Micrometres per pixel, where the first page of a TIFF file says so."""
    tags = [page.tags.get(name) for name in ("XResolution", "YResolution")]
    shares = [tag.value for tag in tags if tag is not None]
    known = len(shares) == 2 and all(len(share) == 2 and share[1] for share in shares)
    resolution = (shares[0][0] / shares[0][1], shares[1][0] / shares[1][1]) if known else None
    unit = page.tags.get("ResolutionUnit")
    text = str(page.description or "")
    return of_description(text, resolution, int(unit.value) if unit is not None else 1)


def _pages(file: Any) -> Iterator[Any]:
    """Pages in order; a chain that leads back to an earlier one is damaged."""
    seen: set[int] = set()
    for number in range(MOST_PAGES):
        try:
            page = file.pages[number]
        except IndexError:
            return
        if page.offset in seen:
            raise ValueError("its pages form a circle")
        seen.add(page.offset)
        # a preview of the page before
        if not page.is_reduced or number == 0:
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
    if not all(map(can_unpack, pages)):
        raise InputError(
            f"{path} is compressed in a way that needs the package imagecodecs: install it, or "
            "save the image without compression."
        )
    types = {np.dtype(page.dtype).kind if page.dtype is not None else "" for page in pages}
    if not types <= set("biuf"):
        raise InputError(f"{path} has pixels that are not numbers: a greyscale image is needed.")
    if sum(math.prod(page.shape) for page in pages) > MOST_PIXELS:
        raise InputError(
            f"{path} claims {len(pages)} images of {' × '.join(map(str, pages[0].shape))} pixels: "
            "it is damaged, or no label image."
        )


def can_unpack(page: Any) -> bool:
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
