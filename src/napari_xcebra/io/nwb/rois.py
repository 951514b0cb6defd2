"""What an NWB file says about each ROI: its id, whether it is accepted, and all else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import h5py
import numpy as np

from napari_xcebra.io.hdf5.reading import dataset_at, read
from napari_xcebra.io.nwb.traces import Plane
from napari_xcebra.io.nwb.walk import column_names, plain_column
from napari_xcebra.recording import InputError

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
        notes.append("Planes count their ROIs anew: cells have running numbers over all planes.")
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
        notes.append("The file does not tell which ROIs are cells: all count as cells.")
    for name in column_names(table):
        if name in MASKS or name.lower() in (*ACCEPTED, *REJECTED):
            continue
        column = plain_column(table, name)
        if column is not None and len(column) == length:
            columns[NAMES.get(name, name)] = column[plane.rows]
    return Rois(_unique(ids, plane.rows), accepted, columns)


def _unique(ids: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """Ids of the rows, if they are whole numbers and no two the same."""
    if ids is None or ids.dtype.kind not in "iu" or len(np.unique(ids[rows])) < len(rows):
        return None
    return ids[rows].astype(np.int64)


def acceptance_columns(table: h5py.Group, length: int) -> dict[str, h5py.Dataset]:
    """Columns that say which ROIs are cells or are not, by their name in small letters."""
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
