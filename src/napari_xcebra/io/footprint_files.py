"""Reads footprints from separate files: label images, masks and ImageJ ROIs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import read_npy
from napari_xcebra.io.containers.tiff import is_tiff, read_tiff, tiff_pixel_size
from napari_xcebra.io.formats.imagej import MAGIC as ROI_MAGIC
from napari_xcebra.io.formats.imagej import DrawnRois, read_rois
from napari_xcebra.recording.footprints import MOST_PIXELS, Footprints

LARGEST_LABEL = 2**53
"""Up to here a label is exact also where it is stored as a float."""
_BESIDE = re.compile(
    r"(.*[ _-])?((labels?|masks?)\.(tiff?|npy|zarr|ome\.zarr)|roiset\.zip)", re.IGNORECASE
)
_MOST_BESIDE, _LARGEST_BESIDE = 8, 256 * 2**20
"""Files that are looked into unasked, and the bytes each may have."""


def read_footprints(given: Any, n_cells: int, field: tuple[int, ...] | None = None) -> Footprints:
    """Footprints from a path, an array or a napari Labels layer.

    Parameters
    ----------
    given : path or array or object with an array as `data`
        A path leads to a label image (.tif, .npy, OME-Zarr), to masks, or to ROIs of ImageJ
        (RoiSet.zip, .roi). An array is a label image, (height, width) or (planes, height, width)
        of whole numbers, or masks, (cells, height, width).
    n_cells : int
        How many cells the traces have. Labels in ascending order are the cells in order; there
        may be fewer of them than cells if they are the numbers of the cells, from 1 on.
    field : (height, width), optional
        Field of view if known, since ROIs do not say how far it reaches beyond them.

    Returns
    -------
    Footprints
    """
    if isinstance(given, str | PathLike):
        regions = read_regions(Path(given))
        found = regions.of_cells(n_cells)
        if isinstance(regions.content, DrawnRois) and field is not None and len(field) == 2:
            return _within(found, field)
        return found
    return regions_of(given).of_cells(n_cells)


def regions_of(given: Any) -> Regions:
    """Regions of an array or a napari Labels layer."""
    if isinstance(given, Regions):
        return given
    name = "The label image"
    if not isinstance(given, np.ndarray) and hasattr(given, "data"):
        name, given = str(getattr(given, "name", name)), given.data
    try:
        array = np.asarray(given)
    except Exception as error:  # of a lazy array, anything can fail
        raise InputError(f"{name} cannot be read as a label image.") from error
    return Regions(name, array)


def read_regions(path: Path) -> Regions:
    """Regions of a file or a zarr folder, by what is in it rather than by its name."""
    if path.is_dir():
        from napari_xcebra.io.containers.zarr import read_ome_labels

        return Regions(path.name, *read_ome_labels(path))
    if not path.is_file():
        raise InputError(f"There is no file {path} to read footprints from.")
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    if is_tiff(start):
        return Regions(path.name, read_tiff(path), tiff_pixel_size(path))
    if start.startswith(b"\x93NUMPY"):
        return Regions(path.name, read_npy(path))
    if start.startswith((ROI_MAGIC, b"PK")):
        return Regions(path.name, read_rois(path))
    raise InputError(
        f"{path} is neither a label image (.tif, .npy, OME-Zarr) nor ImageJ ROIs (RoiSet.zip, "
        ".roi)."
    )


def regions_beside(path: Path) -> list[Regions]:
    """Regions in files beside a file of traces that are called labels, masks or RoiSet.

    Those whose name begins most like that of the traces come first; what cannot be read is
    passed over.
    """
    home = path.parent.resolve()
    try:
        named = [p for p in path.parent.iterdir() if _BESIDE.fullmatch(p.name) and p != path]
    except OSError:  # a file may be readable in a folder that cannot be listed
        return []
    named.sort(key=lambda p: (-_same_start(p.name, path.name), p.name))
    found = []
    for candidate in named[:_MOST_BESIDE]:
        try:
            here = candidate.resolve().parent == home
            if here and candidate.stat().st_size <= _LARGEST_BESIDE:
                found.append(read_regions(candidate))
        except (InputError, OSError):
            continue
    return found


@dataclass(frozen=True)
class Regions:
    """What was drawn or labelled, before it is matched with traces.

    Parameters
    ----------
    name : str
        Where it comes from, for sentences.
    content : array of labels or masks, or DrawnRois
    pixel_size : float or None
        Micrometres per pixel, where the file says so.
    """

    name: str
    content: np.ndarray | DrawnRois
    pixel_size: float | None = None

    def of_cells(self, n_cells: int, *, every: bool = False) -> Footprints:
        """Footprints of that many cells, or a sentence; `every` if none may be without."""
        if isinstance(self.content, DrawnRois):
            return self._of_rois(self.content, n_cells)
        image = self.content
        if image.ndim not in (2, 3) or image.dtype.kind not in "biuf" or not image.size:
            raise InputError(
                f"{self.name} has the shape {image.shape} and type {image.dtype}: whole numbers, "
                "(height, width) or (planes, height, width), or masks, (cells, height, width), "
                "are needed."
            )
        if image.size > MOST_PIXELS * max(n_cells, 1):
            raise InputError(
                f"{self.name} has {image.size:,} pixels: too many for a field of view."
            )
        if image.ndim == 3 and _are_masks(image):
            return self._of_masks(image, n_cells)
        try:
            return self._of_labels(image, n_cells, every)
        except InputError:
            if image.ndim == 3 and n_cells in (image.shape[0], image.shape[2]):
                return self._of_masks(image, n_cells)
            raise

    def fit(self, n_cells: int) -> bool:
        """Whether there is a region for every one of that many cells."""
        try:
            self.of_cells(n_cells, every=True)
        except InputError:
            return False
        return True

    def _of_rois(self, rois: DrawnRois, n_cells: int) -> Footprints:
        """Cell i is the i-th ROI; points and lines are passed over if there are too many ROIs."""
        if rois.count == n_cells:
            return rois.footprints
        with_area, rank = np.unique(rois.footprints.cell, return_inverse=True)
        if len(with_area) != n_cells:
            rest = rois.count - len(with_area)
            others = f" and {rest} points or lines" if rest else ""
            self._refuse(len(with_area), n_cells, others)
        return replace(rois.footprints, cell=rank.astype(np.int32))

    def _of_masks(self, masks: np.ndarray, n_cells: int) -> Footprints:
        # MATLAB has the cells last
        if masks.shape[0] != n_cells == masks.shape[2]:
            masks = np.moveaxis(masks, -1, 0)
        if len(masks) != n_cells:
            self._refuse(len(masks), n_cells)
        return Footprints.from_masks(masks)

    def _of_labels(self, image: np.ndarray, n_cells: int, every: bool) -> Footprints:
        if not _whole(image):
            raise InputError(
                f"{self.name} has values that are not whole numbers: labels are needed."
            )
        pixels = np.nonzero(image)
        found = image[pixels].astype(np.int64)
        if not len(found) or found.min() < 0:
            what = "no label" if not len(found) else f"the label {found.min()}"
            raise InputError(f"{self.name} has {what}: labels from 1 on are needed.")
        labels, cell = np.unique(found, return_inverse=True)
        if len(labels) != n_cells:
            # Labels with gaps number the cells, some of which have no region; labels without
            # gaps that end early are more likely those of another recording.
            if every or not len(labels) < labels[-1] <= n_cells:
                self._refuse(len(labels), n_cells)
            cell = labels[cell] - 1
        *planes, row, column = (axis.astype(np.int32) for axis in pixels)
        return Footprints(
            shape=tuple(image.shape),
            cell=cell.astype(np.int32),
            row=row,
            column=column,
            weight=np.ones(len(cell), np.float32),
            plane=planes[0] if planes else None,
        )

    def _refuse(self, found: int, n_cells: int, others: str = "") -> None:
        raise InputError(
            f"{self.name} has {found} cells{others} but the traces have {n_cells}: one region per "
            "cell is needed (if the traces are transposed, set `layout`)."
        )


def _within(footprints: Footprints, field: tuple[int, ...]) -> Footprints:
    """Footprints in a larger field of view, if it is."""
    larger = all(size >= drawn for size, drawn in zip(field, footprints.shape, strict=True))
    return replace(footprints, shape=tuple(field)) if larger else footprints


def _are_masks(stack: np.ndarray) -> bool:
    """Whether a stack has an image per cell, rather than labels in each plane."""
    if stack.dtype.kind == "b" or not _whole(stack):
        return True
    # one value besides 0, such as 255, does not tell cells apart
    most = stack.max()
    return bool(most > 0 and ((stack == 0) | (stack == most)).all())


def _whole(array: np.ndarray) -> bool:
    if array.dtype.kind != "f":
        return True
    if not np.isfinite(array).all() or np.abs(array).max() > LARGEST_LABEL:
        return False
    return bool((array == np.round(array)).all())


def _same_start(one: str, other: str) -> int:
    """How many characters two names begin with in common."""
    alike = (a == b for a, b in zip(one, other, strict=False))
    return sum(takewhile(bool, alike))
