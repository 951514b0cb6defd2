"""Reads DeepLabCut poses: .csv with three or four header rows, or .h5 written by pandas.

The names in the columns are scorer, (individuals,) bodyparts, coords. In the .h5 they are pickled,
and read without running anything; pandas and PyTables would run what they find.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError
from napari_xcebra.io.behavior.poses import AXES, behavior_of, track_of
from napari_xcebra.io.containers.hdf5 import (
    attribute,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
    walk,
)
from napari_xcebra.io.containers.pickles import loads
from napari_xcebra.io.containers.tables import SUFFIXES, TABLE, text_form
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.settings import OpenSettings

NAME = "poses from DeepLabCut (.csv, .h5)"
_COORDS = {*AXES, "likelihood"}
_ALONE = "single"
"""Animal that DeepLabCut adds for parts that no animal has."""

MOST_LOOKED_AT = 1000
"""Objects of a file among which poses are looked for; pandas puts them at its top."""

Names = Sequence[tuple[str, ...]]


def sniff(path: Path) -> bool:
    """Whether the headers are those of poses."""
    try:
        if has_signature(path):
            with open_hdf5(path) as file:
                return _frame(file) is not None
        if not path.is_file() or path.suffix.lower() not in SUFFIXES:
            return False
        return _coords_row(text_form(path).rows) is not None
    except Exception:  # whatever it is, it is no pose
        return False


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Points of every body part."""
    names, values = _from_hdf5(path) if has_signature(path) else _from_csv(path)
    parts: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for i, name in enumerate(names):
        if len(name) not in (3, 4):
            raise InputError(
                f"{path} has a column named {' / '.join(name)}: scorer, body part and coordinate "
                "are needed."
            )
        animal = name[1] if len(name) == 4 and name[1] != _ALONE else ""
        parts.setdefault((animal, name[-2]), {})[name[-1]] = values[:, i]
    for (_, part), columns in parts.items():
        if not {"x", "y"} <= set(columns):
            raise InputError(f"{path} has {part} without x and y.")
    tracks = [track_of(animal, part, columns) for (animal, part), columns in parts.items()]
    return behavior_of(tracks, settings, path)


def _coords_row(rows: Sequence[Sequence[str]]) -> int | None:
    """Number of the row that says x, y, likelihood; after two or three rows of names."""
    for i, row in enumerate(rows[2:4], start=2):
        if len(row) > 2 and {"x", "y"} <= set(row[1:]) <= _COORDS and row[0] in ("coords", ""):
            return i
    return None


def _from_csv(path: Path) -> tuple[Names, np.ndarray]:
    with sentence_on_failure(path, TABLE):
        form = text_form(path)
        last = _coords_row(form.rows)
        if last is None:
            raise InputError(f"{path} has no row that says x, y, likelihood under its body parts.")
        table = pd.read_csv(
            path,
            sep=form.separator,
            encoding=form.encoding,
            skiprows=form.skipped + last + 1,
            header=None,
            low_memory=False,
            compression=None,  # pandas would unpack by the name alone
        )
        names = list(zip(*(row[1:] for row in form.rows[: last + 1]), strict=True))
        if table.shape[1] != len(names) + 1:
            raise InputError(
                f"{path} has {len(names)} names but {table.shape[1] - 1} columns of numbers."
            )
        return names, table.iloc[:, 1:].to_numpy(np.float64)


def _from_hdf5(path: Path) -> tuple[Names, np.ndarray]:
    with open_hdf5(path) as file:
        frame = _frame(file)
        if frame is None:
            raise InputError(f"{path} holds no table of poses.")
        names, values = _table(frame, path) if _is_table(frame) else _fixed(frame)
    if values.ndim != 2 or values.shape[1] != len(names) or values.dtype.kind not in "biuf":
        raise InputError(
            f"{path} has {len(names)} names for an array of shape {values.shape}: one per column "
            "is needed."
        )
    return names, values.astype(np.float64)


def _frame(file: h5py.File) -> h5py.Group | None:
    """The group in which pandas stored a table whose columns have several names."""
    for node in islice(walk(file), MOST_LOOKED_AT):
        if not isinstance(node, h5py.Group):
            continue
        named = {"frame_table": "table", "frame": "axis0_level2"}.get(_kind(node))
        if named is not None and dataset_at(node, named) is not None:
            return node
    return None


def _kind(node: h5py.Group) -> str:
    return str(attribute(node, "pandas_type", ""))


def _is_table(frame: h5py.Group) -> bool:
    return dataset_at(frame, "table") is not None


def _table(frame: h5py.Group, path: Path) -> tuple[Names, np.ndarray]:
    """Columns of pandas' table format, which come in blocks of one type each."""
    table = dataset_at(frame, "table")
    assert table is not None
    rows = read(table)
    names: list[tuple[str, ...]] = []
    blocks = []
    for field in rows.dtype.names or ():
        if field.startswith("values_block_"):
            kind = _pickled(table, f"{field}_kind", path)
            names += [tuple(map(str, name)) for name in kind]
            blocks.append(rows[field].reshape(len(rows), -1))
    if not blocks:
        raise InputError(f"{path} has no block of values in its table of poses.")
    return names, np.concatenate(blocks, axis=1)


def _pickled(table: h5py.Dataset, name: str, path: Path) -> list[Any]:
    if attribute(table, name) is None:
        raise InputError(f"{path} does not name the columns of its table of poses.")
    found = loads(bytes(table.attrs[name]), str(path))
    if not isinstance(found, list) or not all(isinstance(entry, tuple) for entry in found):
        raise InputError(f"{path} has columns with one name each: no poses.")
    return found


def _fixed(frame: h5py.Group) -> tuple[Names, np.ndarray]:
    """Columns of pandas' fixed format: the names of each level, and which of them a column has."""
    names: list[tuple[str, ...]] = []
    blocks = []
    for block in range(_number(frame, "nblocks")):
        levels = []
        for level in range(_number(frame, f"block{block}_items_nlevels")):
            words = _read(frame, f"block{block}_items_level{level}")
            which = _read(frame, f"block{block}_items_label{level}")
            levels.append([str(words[i]) for i in which])
        names += list(zip(*levels, strict=True))
        blocks.append(_read(frame, f"block{block}_values"))
    if not blocks:
        raise InputError(f"{frame.file.filename} has an empty table of poses.")
    return names, np.concatenate(blocks, axis=1)


def _number(frame: h5py.Group, name: str) -> int:
    number = int(attribute(frame, name, 0))
    if not 0 <= number <= 100:
        raise InputError(f"{frame.file.filename}: {name} is {number}: the file is damaged.")
    return number


def _read(frame: h5py.Group, name: str) -> np.ndarray:
    dataset = dataset_at(frame, name)
    if dataset is None:
        raise InputError(f"{frame.file.filename} has no {frame.name}/{name}.")
    return np.atleast_1d(read(dataset))
