"""Reads the ROIs of NWB files: footprints the right way round, ids, acceptance and other columns.

The specification has `x` before `y`, in masks as in images. Some writers follow it, some put the
row first in masks, in images, or in both. Images stay as they are, and masks
are turned to fit them: within their bounds if these tell, else onto the brighter pixels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    attribute,
    dataset_at,
    footprints_of_masks,
    read,
    turned,
)
from napari_xcebra.io.extraction import columns_of
from napari_xcebra.io.formats.nwb.walk import Plane, column_names, plain_column
from napari_xcebra.recording.footprints import Footprints

AROUND = 21
"""Pixels across the neighbourhood that a cell should be brighter than."""
FEWEST = 5
"""Cells from which on their brightness counts."""
CLEAR = 3.0
"""Standard errors by which cells must be brighter one way round than the other."""


@dataclass(frozen=True)
class _Masks:
    """Masks as the file has them.

    Parameters
    ----------
    stored : Footprints
        `row` is the file's first coordinate (x), `column` its second.
    exact : bool
        Whether its shape is that of the field of view, not just the extent of the cells.
    usual : bool
        Whether writers of such masks usually put the column first.
    told : bool
        Whether the file says that they do.
    """

    stored: Footprints
    exact: bool
    usual: bool
    told: bool = False


def read_masks(table: h5py.Group, rows: np.ndarray) -> _Masks | None:
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
        return _Masks(footprints_of_masks(images, rows, turned=False), exact=True, usual=True)
    for name in ("pixel_mask", "voxel_mask"):
        pixels = dataset_at(table, name)
        if pixels is not None:
            found = _from_pixels(table, name, pixels, rows)
            if not len(found.cell):
                return None
            shape = _told_shape(table)
            if shape is not None and all(a <= b for a, b in zip(found.shape, shape, strict=False)):
                return _Masks(replace(found, shape=shape), exact=True, usual=True, told=True)
            # suite2p and neuroconv write the row as x
            return _Masks(found, exact=False, usual=False)
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
    masks: _Masks, images: Collection[np.ndarray], *, swap: bool
) -> tuple[Footprints, str | None]:
    """Masks in the right orientation, and a note if the file does not say which that is.

    Parameters
    ----------
    masks : _Masks
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
            "The file does not say which axis of the footprints is rows: if they do not lie on the "
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
    """Orientation in which cells are clearly brighter than their surroundings, if any."""
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
    """(cells,) how much brighter each cell is than its surroundings, in standard deviations."""
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


ACCEPTED = ("is_accepted", "iscell", "is_cell", "accepted", "valid_roi", "manual_accepted")
REJECTED = ("rejected", "is_rejected")
"""Columns that say which ROIs are cells, in small letters; the first that is there counts."""
MASKS = ("image_mask", "pixel_mask", "voxel_mask")
NAMES = {"roi_name": "name", "names": "name"}


@dataclass(frozen=True)
class Rois:
    """What is known about the ROIs of a recording, in its order.

    Parameters
    ----------
    ids : (cells,) int or None
        None where they are not unique over all planes.
    accepted : (cells,) bool or None
    columns : mapping of str to (cells,) array
    """

    ids: np.ndarray | None = None
    accepted: np.ndarray | None = None
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)


def about_rois(planes: Sequence[Plane], notes: list[str]) -> Rois:
    """What the tables of all planes say about their ROIs, one plane after the other."""
    parts = [_about(plane, notes) for plane in planes]
    if len(parts) == 1:
        return parts[0]
    ids = [part.ids for part in parts if part.ids is not None]
    joined = np.concatenate(ids) if len(ids) == len(parts) else None
    accepted = None
    if any(part.accepted is not None for part in parts):
        accepted = np.concatenate(
            [
                np.ones(len(plane.rows), bool) if part.accepted is None else part.accepted
                for part, plane in zip(parts, planes, strict=True)
            ]
        )
    common = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in common}
    columns["plane"] = np.repeat(np.arange(len(planes)), [len(plane.rows) for plane in planes])
    if joined is not None and len(np.unique(joined)) < len(joined):
        columns["id_in_plane"] = joined
        joined = None
        notes.append("ROI ids repeat from plane to plane: cells are numbered across all planes.")
    return Rois(joined, accepted, columns)


def _about(plane: Plane, notes: list[str]) -> Rois:
    table = plane.table
    if table is None:
        return Rois()
    ids = plain_column(table, "id")
    length = len(plane.rows) if ids is None else len(ids)
    if ids is not None and plane.rows.max() >= length:
        raise InputError(
            f"{table.file.filename}: {table.name} has {length} ROIs, but the traces name number "
            f"{plane.rows.max()}."
        )
    if length > len(plane.rows):
        notes.append(f"{length - len(plane.rows)} ROIs have no trace and are left out.")
    accepted, columns = _acceptance(table, plane.rows, length)
    if accepted is None:
        notes.append("The file does not say which ROIs are cells: all count as cells.")
    for name in column_names(table):
        if name in MASKS or name.lower() in (*ACCEPTED, *REJECTED):
            continue
        column = plain_column(table, name, axes=2)
        if column is not None and len(column) == length:
            columns |= columns_of(NAMES.get(name, name), column[plane.rows])
    return Rois(_unique(ids, plane.rows), accepted, columns)


def _unique(ids: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """Ids of the rows, if they are whole numbers and no two the same."""
    if ids is None or ids.dtype.kind not in "iu" or len(np.unique(ids[rows])) < len(rows):
        return None
    return ids[rows].astype(np.int64)


def acceptance_columns(table: h5py.Group, length: int) -> dict[str, h5py.Dataset]:
    """Columns that accept or reject ROIs, by their name in lower case."""
    names = {name.lower(): name for name in column_names(table)}
    found = {}
    for key in (*ACCEPTED, *REJECTED):
        dataset = dataset_at(table, names[key]) if key in names else None
        if dataset is None or dataset.dtype.kind not in "biuf" or dataset.shape[:1] != (length,):
            continue
        if dataset.shape in ((length,), (length, 2)):
            found[key] = dataset
    return found


def _acceptance(
    table: h5py.Group, rows: np.ndarray, length: int
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """(cells,) bool from the column that says so; and the probability, where one has it."""
    accepted: np.ndarray | None = None
    likely: dict[str, np.ndarray] = {}
    for key, dataset in acceptance_columns(table, length).items():
        values = np.asarray(read(dataset), np.float64)
        # suite2p: a flag, and the probability that its classifier gave
        flags = values[rows] if values.ndim == 1 else values[rows, 0]
        if accepted is None:
            accepted = flags <= 0.5 if key in REJECTED else flags > 0.5
        if values.ndim == 2 and not likely:
            likely = {"probability": values[rows, 1]}
        elif not np.isin(values, (0, 1)).all() and not likely:
            likely = {"probability": values[rows]}
    return accepted, likely
