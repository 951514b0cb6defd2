"""Reads tracked poses of DeepLabCut and SLEAP: a variable (x, y) for each body part.

In tables of DeepLabCut, the names of columns are scorer, (individuals,) bodyparts, coords. In its
.h5 they are pickled, and read without running anything; pandas and PyTables would run what they
find.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.containers.hdf5 import (
    attribute,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
    walk,
)
from napari_xcebra.io.containers.npy import loads
from napari_xcebra.io.containers.tables import SUFFIXES, TABLE, read_table, text_form
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.text import percent

NAME = "poses from DeepLabCut (.csv, .h5) or SLEAP (analysis .h5, .csv)"
AXES = ("x", "y", "z")
MOST_TOLD = 6
"""Body parts of which a note says how often they are unknown."""


def sniff(path: Path) -> bool:
    """Whether it is a file of DeepLabCut or of SLEAP."""
    return _is_deeplabcut(path) or _is_sleap(path)


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Points of every body part of every animal."""
    if _is_deeplabcut(path):
        return _behavior_of(_tracks_of_deeplabcut(path), settings, path)
    # SLEAP may leave out frames at the end of a table
    is_table = not has_signature(path)
    tracks = _sleap_from_csv(path) if is_table else _sleap_from_hdf5(path)
    return _behavior_of(tracks, settings, path, sparse=is_table)


@dataclass(frozen=True)
class _Track:
    """One body part of one animal, over the frames of a video.

    Parameters
    ----------
    animal : str
        Empty if the source does not tell animals apart.
    part : str
    points : (frames, 2) or (frames, 3) float64
        Pixels; NaN where not found.
    likelihood : (frames,) float64 or None
        How sure the source is; NaN where it does not say.
    """

    animal: str
    part: str
    points: np.ndarray
    likelihood: np.ndarray | None = None


def _track_of(animal: str, part: str, columns: Mapping[str, np.ndarray]) -> _Track:
    """Track of the columns x, y, maybe z, and likelihood or score."""
    points = np.stack([columns[axis] for axis in AXES if axis in columns], axis=1)
    return _Track(animal, part, points, columns.get("likelihood", columns.get("score")))


def _behavior_of(
    tracks: Sequence[_Track], settings: OpenSettings, path: Path, *, sparse: bool = False
) -> Behavior:
    """Behaviour of tracks; a `sparse` source may leave out frames at the end."""
    name, animals = path.name, {track.animal for track in tracks}
    series, notes, unsure, found = [], [], 0, 0
    poor: dict[str, float] = {}
    for track in tracks:
        points = np.array(track.points, np.float64)
        present = ~np.isnan(points).any(axis=1)
        low = np.zeros(len(points), bool)
        if track.likelihood is not None:
            low = present & (track.likelihood < settings.likelihood)
        points[low | ~present] = np.nan
        unsure, found = unsure + int(low.sum()), found + int(present.sum())
        label = f"{track.animal}_{track.part}" if track.animal and len(animals) > 1 else track.part
        poor[label] = float(np.isnan(points).any(axis=1).mean())
        if np.isnan(points).all():
            notes.append(f"{label} of {name} is below `likelihood` in every frame: left out.")
            continue
        series.append(Series(label, points, unit="px", kind="continuous", sparse=sparse))
    if not series:
        raise InputError(
            f"{path} has no body part with a likelihood of {settings.likelihood:g} or more in any "
            "frame: lower `likelihood`."
        )
    if unsure:
        notes.insert(
            0,
            f"{percent(unsure / found)} of the points in {name} are less likely than "
            f"{settings.likelihood:g} and treated as unknown (`likelihood`): {_told(poor)}.",
        )
    return Behavior(tuple(series), notes=tuple(notes), name=name)


def _told(poor: Mapping[str, float]) -> str:
    """Share of the frames at which each part is unknown, the worst first."""
    worst = sorted(poor, key=lambda part: -poor[part])
    told = ", ".join(f"{part} {percent(poor[part])}" for part in worst[:MOST_TOLD])
    return f"{told} …" if len(worst) > MOST_TOLD else told


_COORDS = {*AXES, "likelihood"}
_ALONE = "single"
"""Animal that DeepLabCut adds for parts that no animal has."""

MOST_LOOKED_AT = 1000
"""Objects of a file among which poses are looked for; pandas puts them at its top."""

Names = Sequence[tuple[str, ...]]


def _is_deeplabcut(path: Path) -> bool:
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


def _tracks_of_deeplabcut(path: Path) -> list[_Track]:
    names, values = _dlc_from_hdf5(path) if has_signature(path) else _dlc_from_csv(path)
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
    return [_track_of(animal, part, columns) for (animal, part), columns in parts.items()]


def _coords_row(rows: Sequence[Sequence[str]]) -> int | None:
    """Number of the row that says x, y, likelihood; after two or three rows of names."""
    for i, row in enumerate(rows[2:4], start=2):
        if len(row) > 2 and {"x", "y"} <= set(row[1:]) <= _COORDS and row[0] in ("coords", ""):
            return i
    return None


def _dlc_from_csv(path: Path) -> tuple[Names, np.ndarray]:
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


def _dlc_from_hdf5(path: Path) -> tuple[Names, np.ndarray]:
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


FRAME = "frame_idx"
MOST_POINTS = 200_000_000
"""Frames × animals × nodes of a table: one number in it may claim any length of the video."""
_USUAL = ("track", "xy", "node", "frame")
"""Axes of the tracks where the file does not name them."""


def _is_sleap(path: Path) -> bool:
    """Whether there are tracks and nodes, or columns named after them."""
    try:
        if has_signature(path):
            with open_hdf5(path) as file:
                tracks, nodes = dataset_at(file, "tracks"), dataset_at(file, "node_names")
                return tracks is not None and tracks.ndim == 4 and nodes is not None
        if not path.is_file() or path.suffix.lower() not in SUFFIXES:
            return False
        header = text_form(path, 1).rows[0]
        return FRAME in header and any(name.endswith(".x") for name in header)
    except Exception:  # whatever it is, it is no pose
        return False


def _sleap_from_hdf5(path: Path) -> list[_Track]:
    with open_hdf5(path) as file:
        tracks = _ordered(file, "tracks", ("frame", "track", "node", "xy"), path)
        nodes = _texts(file, "node_names")
        animals = _texts(file, "track_names")
        scores = None
        if dataset_at(file, "point_scores") is not None:
            scores = _ordered(file, "point_scores", ("frame", "track", "node"), path)
            scores = scores if scores.shape == tracks.shape[:3] else None
    if len(nodes) != tracks.shape[2] or tracks.shape[3] not in (2, 3):
        raise InputError(
            f"{path} has tracks of {tracks.shape[2]} nodes and {tracks.shape[3]} coordinates for "
            f"{len(nodes)} names of nodes."
        )
    if len(animals) != tracks.shape[1]:
        animals = [f"track_{i}" for i in range(tracks.shape[1])]
    return [
        _Track(animal, node, tracks[:, i, j], None if scores is None else scores[:, i, j])
        for i, animal in enumerate(animals)
        for j, node in enumerate(nodes)
    ]


def _ordered(file: h5py.File, name: str, wanted: Sequence[str], path: Path) -> np.ndarray:
    """Array of a dataset, its axes in the order that is wanted."""
    dataset = dataset_at(file, name)
    if dataset is None:
        raise InputError(f"{path} has no {name}.")
    array = np.asarray(read(dataset))
    dims = attribute(dataset, "dims")
    axes = json.loads(dims) if isinstance(dims, str) else [a for a in _USUAL if a in wanted]
    if (
        array.dtype.kind not in "biuf"
        or array.ndim != len(wanted)
        or sorted(axes) != sorted(wanted)
    ):
        raise InputError(
            f"{path} has {name} of shape {array.shape}: axes {', '.join(wanted)} are needed."
        )
    return array.transpose([axes.index(axis) for axis in wanted]).astype(np.float64)


def _texts(file: h5py.File, name: str) -> list[str]:
    dataset = dataset_at(file, name)
    return [] if dataset is None else [str(text) for text in np.atleast_1d(read(dataset))]


def _sleap_from_csv(path: Path) -> list[_Track]:
    table = read_table(path)
    frames = _frame_numbers(table, path)
    nodes = [str(name)[:-2] for name in table.columns if str(name).endswith(".x")]
    animals = np.full(len(table), "", object)
    if "track" in table:
        animals = table["track"].astype("string").fillna("").to_numpy(object)
    names = list(dict.fromkeys(animals))
    n_frames = int(frames.max()) + 1
    if n_frames * len(names) * len(nodes) > MOST_POINTS:
        raise InputError(
            f"{path} has {len(nodes)} nodes of {len(names)} tracks in {n_frames:,} frames: that is "
            "too much; join the tracks of each animal first."
        )
    tracks = []
    for name in names:
        rows = np.flatnonzero(animals == name)
        for node in nodes:
            columns = {}
            for axis in ("x", "y", "z", "score"):
                if f"{node}.{axis}" in table:
                    values = pd.to_numeric(table[f"{node}.{axis}"], errors="coerce")
                    columns[axis] = np.full(n_frames, np.nan)
                    columns[axis][frames[rows]] = values.to_numpy(np.float64)[rows]
            if "y" not in columns:
                raise InputError(f"{path} has {node}.x without {node}.y.")
            tracks.append(_track_of(name, node, columns))
    return tracks


def _frame_numbers(table: pd.DataFrame, path: Path) -> np.ndarray:
    numbers = pd.to_numeric(table.get(FRAME, pd.Series(dtype=float)), errors="coerce")
    if numbers.empty or numbers.isna().any() or not numbers.between(0, MOST_POINTS).all():
        raise InputError(f"{path} has rows without a frame number ({FRAME}).")
    return numbers.to_numpy().astype(np.int64)
