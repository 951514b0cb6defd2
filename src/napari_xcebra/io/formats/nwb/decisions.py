"""Writes decisions and scores into the ROI table of an NWB file.

Written with h5py: pynwb cannot replace a column, and files of other writers that it warns about are
changed in nothing else. Columns by which the file already says what is a cell (`iscell`,
`Accepted`, `Rejected`) are brought into agreement, so that every reader finds the same cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import h5py
import numpy as np

from napari_xcebra.errors import InputError, ValuesError
from napari_xcebra.io.containers.hdf5 import (
    attribute,
    changed_copy,
    child,
    dataset_at,
    open_hdf5,
    read,
)
from napari_xcebra.io.formats.nwb.reading import imaged_together
from napari_xcebra.io.formats.nwb.rois import REJECTED, acceptance_columns
from napari_xcebra.io.formats.nwb.walk import Plane, column_names, planes_in, typed_objects
from napari_xcebra.io.transaction.plan import Plan, change_to, seen, target_of

if TYPE_CHECKING:
    from napari_xcebra.io.decisions.decided import Decided


TITLE = "NWB (is_accepted and scores)"
ACCEPTED, SCORE = "is_accepted", "xcebra_score_"


def plan_decisions(decided: Decided, destination: Path | None, *, in_place: bool = False) -> Plan:
    """One file: a copy with the decisions, or the opened one with a backup.

    Parameters
    ----------
    decided : Decided
    destination : Path or None
        File or folder for the copy; beside the source if None.
    in_place : bool
        Whether the opened file is replaced instead.
    """
    source = decided.path
    assert source is not None
    beside = source.with_name(f"{source.stem}-curated{source.suffix}")
    target = target_of(source if in_place else beside, destination)
    is_same = target.resolve() == source.resolve()
    if is_same and not in_place:
        raise InputError(
            f"{target} is the file that was opened: choose another name, or replace it (in place)."
        )
    read = seen(source)
    scores = {f"{SCORE}{_plain(name)}": decided.score(name) for name in decided.factors}
    what, warnings = _described(source, decided, list(scores))
    if not is_same:
        what = f"Copy of {source} with these decisions: {what}"
        if target.resolve().parent != source.resolve().parent and _has_links(source):
            warnings.append(
                f"{source.name} refers to other files beside it: put {target.name} into the same "
                "folder as those."
            )

    def make(path: Path) -> None:
        room = 16 * decided.recording.n_cells * (1 + len(scores))
        changed_copy(source, path, lambda file: write_columns(file, decided.accepted, scores), room)

    change = change_to(target, what, make, size=source.stat().st_size, copy=True)
    return Plan("nwb", (change,), decided.summary(), tuple(warnings), read)


def accepted_in(file: h5py.File) -> np.ndarray:
    """(cells,) bool, what the tables of ROIs say, in the order of the recording."""
    found = []
    for plane in opened_planes(file):
        length = _length(_table(plane))
        found.append(_flags(acceptance_columns(_table(plane), length), length)[plane.rows])
    return np.concatenate(found)


def opened_planes(file: h5py.File) -> list[Plane]:
    """Tables of ROIs that were opened, in the order of the recording."""
    return imaged_together(planes_in(typed_objects(file), []), [])


def _described(source: Path, decided: Decided, scores: list[str]) -> tuple[str, list[str]]:
    """Columns the ROI table will have; raises if the file does not belong to the recording."""
    warnings: list[str] = []
    with open_hdf5(source) as file:
        planes = opened_planes(file)
        there = sum(len(plane.rows) for plane in planes)
        if there != decided.recording.n_cells:
            raise InputError(
                f"{source} has {there} ROIs but the recording has {decided.recording.n_cells}: it "
                "has been rewritten since it was opened. Reopen it."
            )
        agreed: dict[str, None] = {}
        for plane in planes:
            table = _table(plane)
            for dataset in acceptance_columns(table, _length(table)).values():
                name = str(dataset.name).rsplit("/", 1)[-1]
                if _is_flag(dataset):
                    agreed[name] = None
                else:
                    warnings.append(f"{name} holds probabilities and is left as it is.")
    agreed.pop(ACCEPTED, None)
    what = f"the table of ROIs has {', '.join([ACCEPTED, *scores])}"
    if agreed:
        what += f", and {', '.join(agreed)} in agreement"
    return f"{what}.", list(dict.fromkeys(warnings))


def write_columns(file: h5py.File, accepted: np.ndarray, scores: Mapping[str, np.ndarray]) -> None:
    """Write the columns into every table, rows without traces as they were."""
    first = 0
    for plane in opened_planes(file):
        own = slice(first, first + len(plane.rows))
        first += len(plane.rows)
        table = _table(plane)
        length = _length(table)
        present = acceptance_columns(table, length)
        flags = _flags(present, length)
        flags[plane.rows] = accepted[own]
        for key, dataset in present.items():
            if _is_flag(dataset) and key != ACCEPTED:
                _agree(dataset, ~flags if key in REJECTED else flags)
        text = "whether the ROI counts as a cell, as decided in napari-xcebra"
        _put_column(table, ACCEPTED, flags, text)
        for name, values in scores.items():
            column = np.full(length, np.nan)
            column[plane.rows] = values[own]
            factor = name.removeprefix(SCORE)
            _put_column(table, name, column, f"how much the ROI carries {factor} (xCEBRA)")


def _table(plane: Plane) -> h5py.Group:
    if plane.table is None:
        raise ValuesError("it has traces but no table of ROIs in which to mark them.")
    return plane.table


def _length(table: h5py.Group) -> int:
    ids = dataset_at(table, "id")
    if ids is None or ids.ndim != 1:
        raise InputError(f"{table.file.filename}: {table.name} has no ids of ROIs.")
    return len(ids)


def _flags(present: Mapping[str, h5py.Dataset], length: int) -> np.ndarray:
    """(ROIs,) bool, what the table says now; without a column, every ROI is a cell."""
    for key, dataset in present.items():
        values = np.asarray(read(dataset), np.float64)
        flags = (values if values.ndim == 1 else values[:, 0]) > 0.5
        return ~flags if key in REJECTED else flags
    return np.ones(length, bool)


def _is_flag(dataset: h5py.Dataset) -> bool:
    """Whether a column says yes or no (with a probability beside it or not)."""
    return dataset.ndim == 2 or bool(np.isin(read(dataset), (0, 1)).all())


def _agree(dataset: h5py.Dataset, flags: np.ndarray) -> None:
    values = dataset[()]
    (values if values.ndim == 1 else values[:, 0])[:] = flags
    dataset[...] = values


def _put_column(table: h5py.Group, name: str, values: np.ndarray, description: str) -> None:
    """Add a column to the table, or replace ours."""
    names = column_names(table)
    if child(table, name) is not None:
        identity = attribute(table[name], "object_id")
        del table[name]
    else:
        identity = None
    column = table.create_dataset(name, data=values, maxshape=(None,), chunks=True)
    attributes: dict[str, Any] = {
        "description": description,
        # before NWB 2.2, tables belonged to the core
        "namespace": attribute(table["id"], "namespace", "hdmf-common"),
        "neurodata_type": "VectorData",
        "object_id": identity if isinstance(identity, str) else str(uuid4()),
    }
    for key, value in attributes.items():
        column.attrs[key] = value
    if name not in names:
        table.attrs["colnames"] = np.array([*names, name], h5py.string_dtype())


def _has_links(source: Path) -> bool:
    """Whether the file links to others."""
    found = []

    def look(group: h5py.Group) -> None:
        for name in group:
            kind = group.get(name, getlink=True)
            if isinstance(kind, h5py.ExternalLink):
                found.append(name)

    with open_hdf5(source) as file:
        look(file)
        file.visititems(lambda _, node: look(node) if isinstance(node, h5py.Group) else None)
    return bool(found)


def _plain(name: str) -> str:
    """Name of a factor that may stand in a path of HDF5."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_.") or "factor"
