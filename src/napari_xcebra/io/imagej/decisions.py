"""Writes outlines of the accepted cells as a RoiSet.zip for the ROI Manager of ImageJ."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.decided import Decided
from napari_xcebra.io.transaction.plan import Plan, change_to, target_of
from napari_xcebra.report.exports import default_path

TITLE = "ImageJ ROIs of the accepted cells (.zip)"
_MOVE, _LINE, _CLOSE = 0.0, 1.0, 4.0
"""Steps of a path, as Java's `PathIterator` counts them."""


def plan(decided: Decided, destination: Path | None) -> Plan:
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
