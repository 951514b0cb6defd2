"""Reads ROIs drawn in ImageJ or Fiji: a RoiSet.zip of the ROI Manager, or a single .roi file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.tiff import quiet
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.recording.footprints import Footprints

MAGIC = b"Iout"
MOST_ROIS, MOST_BYTES = 100_000, 16 * 2**20
MOST_SIDE, LARGEST, MOST_DRAWN = 2**15, 2**24, 2**26
"""Pixels: the side of a field of view, the box around one ROI, those of all ROIs together."""
MOST_WORK = 2**32
"""Pixels of a box times the points of its outline, for all ROIs: some seconds."""


@dataclass(frozen=True)
class Rois:
    """ROIs in the order of the ROI Manager.

    Parameters
    ----------
    count : int
        Points and lines included.
    footprints : Footprints
        Its cell i is the i-th ROI; one without an area has no pixels. The field of view is as
        large as the ROIs need.
    """

    count: int
    footprints: Footprints


def read_rois(path: Path) -> Rois:
    """ROIs of a RoiSet.zip or .roi file, filled."""
    shapes = [_shape(roi, path) for roi in _rois(path)]
    if not shapes:
        raise InputError(f"{path} holds no ImageJ ROI.")
    areas = [_area(shape, f"ROI {i + 1} of {path}") for i, shape in enumerate(shapes)]
    points = [sum(map(len, shape.outlines)) for shape in shapes]
    if sum(areas) > MOST_DRAWN or np.dot(areas, points) > MOST_WORK:
        raise InputError(f"{path} has ROIs that cover far more pixels than cells do.")
    pixels = [_filled(shape) for shape in shapes]
    row, column = np.concatenate(pixels, axis=1)
    footprints = Footprints(
        shape=(int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1),
        cell=np.repeat(np.arange(len(pixels), dtype=np.int32), [p.shape[1] for p in pixels]),
        row=row,
        column=column,
        weight=np.ones(len(row), np.float32),
    )
    return Rois(len(shapes), footprints)


def _rois(path: Path) -> Iterator[Any]:
    """ROIs of a file, one after the other; nothing is unpacked to disk."""
    from roifile import ImagejRoi

    for number, content in enumerate(_contents(path)):
        with sentence_on_failure(path), quiet("roifile"):
            try:
                roi = ImagejRoi.frombytes(content)
            except Exception as error:
                raise ValueError(f"ROI {number + 1}: {error}") from error
        yield roi


def _contents(path: Path) -> Iterator[bytes]:
    """Bytes of each ROI."""
    with sentence_on_failure(path), path.open("rb") as file:
        if file.read(4) == MAGIC:
            file.seek(0)
            yield _bounded(file)
            return
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if m.filename.lower().endswith(".roi")]
            if len(members) > MOST_ROIS:
                raise ValueError(f"it holds {len(members)} ROIs")
            for member in members:
                with archive.open(member) as packed:
                    yield _bounded(packed)


def _bounded(file: IO[bytes]) -> bytes:
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"a ROI has more than {MOST_BYTES:,} bytes")
    return content


@dataclass(frozen=True)
class _Shape:
    """Closed outlines of one ROI, (points, 2) of y and x each; none without an area."""

    outlines: tuple[np.ndarray, ...] = ()
    oval: bool = False


def _shape(roi: Any, path: Path) -> _Shape:
    """Outlines, with the centre of a pixel at a whole number; ImageJ has its corner there."""
    from roifile import ROI_SUBTYPE, ROI_TYPE

    areas = (ROI_TYPE.POLYGON, ROI_TYPE.RECT, ROI_TYPE.OVAL, ROI_TYPE.FREEHAND, ROI_TYPE.TRACED)
    overlays = (ROI_SUBTYPE.TEXT, ROI_SUBTYPE.ARROW, ROI_SUBTYPE.IMAGE)
    if roi.roitype not in areas or roi.subtype in overlays:
        return _Shape()
    if roi.roitype in (ROI_TYPE.RECT, ROI_TYPE.OVAL) and not roi.composite:
        return _Shape((_box(roi) - 0.5,), oval=roi.roitype == ROI_TYPE.OVAL)
    with sentence_on_failure(path), quiet("roifile"):
        outlines = [np.asarray(o, np.float64)[:, ::-1] - 0.5 for o in roi.coordinates(multi=True)]
    return _Shape(tuple(outline for outline in outlines if len(outline) > 2))


def _box(roi: Any) -> np.ndarray:
    """Corners of the box around a rectangle or oval."""
    if roi.subpixelrect:
        left, top, width, height = roi.xd, roi.yd, roi.widthd, roi.heightd
    else:
        left, top = roi.left, roi.top
        width, height = roi.right - roi.left, roi.bottom - roi.top
    right, bottom = left + width, top + height
    return np.array([[top, left], [top, right], [bottom, right], [bottom, left]], np.float64)


def _area(shape: _Shape, name: str) -> int:
    """Pixels of the box around the outlines, or a sentence where no cell is that large."""
    if not shape.outlines:
        return 0
    points = np.concatenate(shape.outlines)
    if not np.isfinite(points).all() or np.abs(points).max() > MOST_SIDE:
        raise InputError(f"{name} lies outside any field of view: the file is damaged.")
    height, width = np.ptp(points, axis=0) + 2
    if width * height > LARGEST:
        raise InputError(f"{name} is {width:.0f} × {height:.0f} pixels: no cell is that large.")
    return int(width * height)


def _filled(shape: _Shape) -> np.ndarray:
    """(2, pixels) int32, row and column of the pixels whose centre is inside the outlines."""
    from skimage import draw

    if not shape.outlines:
        return np.zeros((2, 0), np.int32)
    points = np.concatenate(shape.outlines)
    first = np.floor(points.min(axis=0))
    inside = np.zeros((np.ceil(points.max(axis=0)) - first + 1).astype(int), bool)
    for outline in shape.outlines:
        y, x = (outline - first).T
        if shape.oval:
            ry, rx = max(np.ptp(y) / 2, 1e-9), max(np.ptp(x) / 2, 1e-9)
            drawn = draw.ellipse(y.mean(), x.mean(), ry, rx, shape=inside.shape)
        else:
            drawn = draw.polygon(y, x, shape=inside.shape)
        inside[drawn] ^= True  # a part within another is a hole
    pixels = np.argwhere(inside) + first.astype(int)
    return pixels[(pixels >= 0).all(axis=1)].T.astype(np.int32)
