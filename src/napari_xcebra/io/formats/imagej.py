"""Reads ROIs drawn in ImageJ or Fiji: a RoiSet.zip of the ROI Manager, or a single .roi file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.containers.tiff import quiet
from napari_xcebra.io.decisions.plan import Plan, change_to, target_of
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.report.exports import default_path

if TYPE_CHECKING:
    from napari_xcebra.io.decisions.decided import Decided

MAGIC = b"Iout"
MOST_SIDE, LARGEST = 2**15, 2**24
"""Pixels: the side of a field of view, and the box around one ROI."""


@dataclass(frozen=True)
class DrawnRois:
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


def read_rois(path: Path) -> DrawnRois:
    """ROIs of a RoiSet.zip or .roi file, filled."""
    shapes = [_shape(roi, path) for roi in _rois(path)]
    if not shapes:
        raise InputError(f"{path} holds no ImageJ ROI.")
    for number, shape in enumerate(shapes, start=1):
        _check_place(shape, f"ROI {number} of {path}")
    pixels = [_filled(shape) for shape in shapes]
    row, column = np.concatenate(pixels, axis=1)
    footprints = Footprints(
        shape=(int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1),
        cell=np.repeat(np.arange(len(pixels), dtype=np.int32), [p.shape[1] for p in pixels]),
        row=row,
        column=column,
        weight=np.ones(len(row), np.float32),
    )
    return DrawnRois(len(shapes), footprints)


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
            yield file.read()
            return
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if m.filename.lower().endswith(".roi")]
            for member in members:
                with archive.open(member) as packed:
                    yield packed.read()


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


def _check_place(shape: _Shape, name: str) -> None:
    """Raise where no cell lies, or is that large."""
    if not shape.outlines:
        return
    points = np.concatenate(shape.outlines)
    if not np.isfinite(points).all() or np.abs(points).max() > MOST_SIDE:
        raise InputError(f"{name} lies outside any field of view: the file is damaged.")
    height, width = np.ptp(points, axis=0) + 2
    if width * height > LARGEST:
        raise InputError(f"{name} is {width:.0f} × {height:.0f} pixels: no cell is that large.")


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


TITLE = "ImageJ ROIs of the accepted cells (.zip)"
_MOVE, _LINE, _CLOSE = 0.0, 1.0, 4.0
"""Steps of a path, as Java's `PathIterator` counts them."""


def plan_decisions(decided: Decided, destination: Path | None) -> Plan:
    """One file: an ROI for each accepted cell that has pixels."""
    if decided.recording.footprints is None:
        raise InputError("The recording has no footprints: there are no outlines to write.")
    default = default_path(decided.recording, "accepted-RoiSet", suffix=".zip")
    path = target_of(default, destination)
    pixels = _pixels(decided)
    if not pixels:
        raise InputError("No accepted cell has a footprint: there are no outlines to write.")
    what = f"Outlines of {len(pixels)} accepted cells, named by their ids."
    without = int(decided.accepted.sum()) - len(pixels)
    warnings = [f"{without} accepted cells have no pixels and are left out."] if without else []

    def make(temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for cell, (places, plane) in pixels.items():
                name = f"cell_{cell}"
                archive.writestr(f"{name}.roi", outline(places, name, plane).tobytes())

    return Plan("imagej", (change_to(path, what, make),), decided.summary(), tuple(warnings))


def outline(places: np.ndarray, name: str, plane: int | None = None) -> Any:
    """ROI around pixels, a composite one if they lie apart or have holes.

    Parameters
    ----------
    places : (pixels, 2) int
        Row and column.
    name : str
    plane : int, optional
        Position in the stack, from 0 on.

    Returns
    -------
    roifile.ImagejRoi
    """
    from roifile import ROI_TYPE, ImagejRoi

    outlines = _outlines(places)
    if len(outlines) == 1:
        return ImagejRoi.frompoints(outlines[0], name=name, position=plane)
    path = np.concatenate([_path(points) for points in outlines]).astype(np.float32)
    points = np.concatenate(outlines)
    roi = ImagejRoi()
    roi.roitype, roi.name = ROI_TYPE.RECT, name
    roi.left, roi.top = (int(v) for v in np.floor(points.min(axis=0)))
    roi.right, roi.bottom = (int(v) for v in np.ceil(points.max(axis=0)))
    roi.multi_coordinates, roi.shape_roi_size = path, len(path)
    roi.position = 0 if plane is None else plane + 1
    return roi


def _pixels(decided: Decided) -> dict[int, tuple[np.ndarray, int | None]]:
    """Pixels of each accepted cell, (pixels, 2), and the plane most of them are in, by id."""
    footprints = decided.recording.footprints
    assert footprints is not None
    found: dict[int, tuple[np.ndarray, int | None]] = {}
    order = np.argsort(footprints.cell, kind="stable")
    ends = np.searchsorted(footprints.cell[order], np.arange(decided.recording.n_cells + 1))
    for position in np.flatnonzero(decided.accepted):
        own = order[ends[position] : ends[position + 1]]
        plane = None
        if footprints.plane is not None and len(own):
            plane = int(np.bincount(footprints.plane[own]).argmax())
            own = own[footprints.plane[own] == plane]
        if len(own):
            places = np.stack([footprints.row[own], footprints.column[own]], axis=1)
            found[int(decided.cell_ids[position])] = (places, plane)
    return found


def _outlines(places: np.ndarray) -> list[np.ndarray]:
    """Closed outlines, (points, 2) of x and y; ImageJ has the corner of a pixel at whole numbers.

    They run half way between pixels inside and outside, so that the centres of exactly these
    pixels lie within.
    """
    from skimage.measure import find_contours

    first = places.min(axis=0) - 1
    inside = np.zeros(np.ptp(places, axis=0) + 3)
    inside[tuple((places - first).T)] = 1.0
    found = find_contours(inside, 0.5)
    return [(points[:-1] + first + 0.5)[:, ::-1].astype(np.float32) for points in found]


def _path(points: np.ndarray) -> np.ndarray:
    """Steps along an outline: move to the first point, lines to the others, and close."""
    steps = np.column_stack([np.full(len(points), _LINE), points])
    steps[0, 0] = _MOVE
    return np.append(steps.reshape(-1), _CLOSE)
