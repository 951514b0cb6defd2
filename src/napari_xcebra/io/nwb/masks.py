"""Footprints in NWB files, put the right way round.

The specification has `x` before `y`, in masks as in images. Some writers follow it, some put the
row first in masks, in images, or in both. Images stay as they are (see `nwb_images`), and masks
are turned to fit them: within their bounds if these tell, else onto the brighter pixels.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.footprints import Footprints
from napari_xcebra.io.hdf5.reading import attribute, dataset_at, read
from napari_xcebra.io.hdf5.traces import footprints_of_masks, turned
from napari_xcebra.recording import InputError

AROUND = 21
"""Pixels across the neighbourhood that a cell should be brighter than."""
FEWEST = 5
"""Cells from which on their brightness counts."""
CLEAR = 3.0
"""Standard errors by which cells must be brighter one way round than the other."""


@dataclass(frozen=True)
class Masks:
    """Masks as the file has them.

    Parameters
    ----------
    stored : Footprints
        `row` is the file's first coordinate (x), `column` its second.
    exact : bool
        Whether its shape is that of the field of view, and not just as far as cells reach.
    usual : bool
        Whether writers of such masks usually put the column first.
    told : bool
        Whether the file says that they do.
    """

    stored: Footprints
    exact: bool
    usual: bool
    told: bool = False


def read_masks(table: h5py.Group, rows: np.ndarray) -> Masks | None:
    """Masks of some rows of a PlaneSegmentation; None if it has none.

    Parameters
    ----------
    table : group
    rows : (cells,) int
        Row of each cell.
    """
    images = dataset_at(table, "image_mask")
    if images is not None:
        if len(rows) and int(rows.max()) >= len(images):
            raise InputError(f"{_where(table)} has {len(images)} masks for row {rows.max()}.")
        # as the specification says: x before y
        return Masks(footprints_of_masks(images, rows, turned=False), exact=True, usual=True)
    for name in ("pixel_mask", "voxel_mask"):
        pixels = dataset_at(table, name)
        if pixels is not None:
            found = _from_pixels(table, name, pixels, rows)
            if not len(found.cell):
                return None
            shape = _told_shape(table)
            if shape is not None and all(a <= b for a, b in zip(found.shape, shape, strict=False)):
                return Masks(replace(found, shape=shape), exact=True, usual=True, told=True)
            # suite2p and neuroconv write the row as x
            return Masks(found, exact=False, usual=False)
    return None


def described(shape: tuple[int, ...]) -> str:
    """What a table written by this program says about its masks: sizes, and what x and y are."""
    *planes, height, width = shape
    sizes = f"{width} columns (x), {height} rows (y)"
    return (
        f"Field of view: {sizes}, {planes[0]} planes (z)" if planes else f"Field of view: {sizes}"
    )


def _told_shape(table: h5py.Group) -> tuple[int, ...] | None:
    """Size of the field of view that `described` tells, x before y as the masks have it."""
    said = re.match(
        r"Field of view: (\d{1,6}) columns \(x\), (\d{1,6}) rows \(y\)"
        r"(?:, (\d{1,4}) planes \(z\))?$",
        str(attribute(table, "description", "")),
    )
    if said is None:
        return None
    width, height, planes = said.groups()
    return (*([int(planes)] if planes else []), int(width), int(height))


def _from_pixels(
    table: h5py.Group, name: str, dataset: h5py.Dataset, rows: np.ndarray
) -> Footprints:
    fields = ("x", "y", "z", "weight") if name == "voxel_mask" else ("x", "y", "weight")
    ends = dataset_at(table, f"{name}_index")
    if ends is None or not set(fields) <= set(dataset.dtype.names or ()):
        raise InputError(f"{_where(table)} has a {name} without {', '.join(fields)} or its index.")
    pixels = read(dataset)
    last = np.asarray(read(ends), np.int64)
    lengths = np.diff(np.r_[0, last])
    if (lengths < 0).any() or last.sum() < 0 or (len(last) and last[-1] > len(pixels)):
        raise InputError(f"{_where(table)} has a {name}_index that does not fit its {name}.")
    if len(rows) and int(rows.max()) >= len(last):
        raise InputError(f"{_where(table)} has {len(last)} masks for row {rows.max()}.")
    cell_of_row = np.full(len(last), -1)
    cell_of_row[rows] = np.arange(len(rows))
    cell = np.repeat(cell_of_row, lengths)
    pixels = pixels[: len(cell)]
    own = (cell >= 0) & (pixels["weight"] > 0)
    place = [np.asarray(pixels[field][own], np.int64) for field in fields[:-1]]
    if any(len(axis) and (axis.min() < 0 or axis.max() >= 2**20) for axis in place):
        raise InputError(f"{_where(table)} has a {name} with pixels outside any image.")
    shape = tuple(int(axis.max(initial=0)) + 1 for axis in place)
    row, column, *plane = (axis.astype(np.int32) for axis in place)
    weight = pixels["weight"][own].astype(np.float32)
    footprints = Footprints(shape[:2], cell[own].astype(np.int32), row, column, weight)
    if not plane or shape[2] == 1:
        return footprints
    return replace(footprints, shape=(shape[2], *shape[:2]), plane=plane[0])


def placed(
    masks: Masks, images: Collection[np.ndarray], *, swap: bool
) -> tuple[Footprints, str | None]:
    """Masks the right way round, and a note if the file does not tell which way that is.

    Parameters
    ----------
    masks : Masks
    images : collection of (height, width)
        Images that may be of the same field of view.
    swap : bool
        Whether the user wants them the other way round than found.
    """
    candidates = {turn: turned(masks.stored) if turn else masks.stored for turn in (False, True)}
    fitting = {
        turn: [image for image in images if _fits(candidate, image.shape, masks.exact)]
        for turn, candidate in candidates.items()
    }
    certain = True
    if masks.told:
        turn = masks.usual
    elif bool(fitting[False]) != bool(fitting[True]):
        turn = bool(fitting[True])
    else:
        brightest = _brighter_turned(candidates, fitting)
        certain = brightest is not None
        turn = masks.usual if brightest is None else brightest
    turn ^= swap
    note = None
    if not certain and not swap:
        note = (
            "The file does not tell rows from columns of the footprints: if they do not lie on the "
            "cells of the image, open it with `swap_axes`."
        )
    footprints = candidates[turn]
    if not masks.exact and fitting[turn]:
        shape = fitting[turn][0].shape
        footprints = replace(footprints, shape=(*footprints.shape[:-2], *shape))
    return footprints, note


def _fits(footprints: Footprints, shape: tuple[int, ...], exact: bool) -> bool:
    height, width = footprints.shape[-2:]
    if exact:
        return (height, width) == shape
    return height <= shape[0] and width <= shape[1]


def _brighter_turned(
    candidates: dict[bool, Footprints], fitting: dict[bool, list[np.ndarray]]
) -> bool | None:
    """Which way round cells are clearly brighter than around them; None if neither."""
    if (
        len(np.unique(candidates[False].cell)) < FEWEST
        or not fitting[False]
        or candidates[False].plane is not None
    ):
        return None
    excess = {
        turn: np.mean([_excess(candidate, image) for image in fitting[turn]], axis=0)
        for turn, candidate in candidates.items()
    }
    gain = excess[True] - excess[False]
    if abs(gain.mean()) <= CLEAR * gain.std(ddof=1) / np.sqrt(len(gain)):
        return None
    return bool(gain.mean() > 0)


def _excess(footprints: Footprints, image: np.ndarray) -> np.ndarray:
    """(cells,) how much brighter each cell is than around it, in deviations of the image."""
    local = image - scipy.ndimage.uniform_filter(
        np.asarray(image, np.float64), AROUND, mode="nearest"
    )
    local /= local.std() or 1.0
    of_cell = np.bincount(
        footprints.cell, footprints.weight * local[footprints.row, footprints.column]
    )
    weight = np.bincount(footprints.cell, footprints.weight)
    return of_cell[weight > 0] / weight[weight > 0]


def _where(table: h5py.Group) -> str:
    return f"{table.file.filename}: {table.name}"
