"""Reads SLEAP poses: analysis .h5, or .csv with one row per animal and frame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError
from napari_xcebra.io.behavior.poses import Track, behavior_of, track_of
from napari_xcebra.io.containers.hdf5 import attribute, dataset_at, has_signature, open_hdf5, read
from napari_xcebra.io.containers.tables import SUFFIXES, read_table, text_form
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.settings import OpenSettings

NAME = "poses from SLEAP (analysis .h5, .csv)"
FRAME = "frame_idx"
MOST_POINTS = 200_000_000
"""Frames × animals × nodes of a table: one number in it may claim any length of the video."""
_USUAL = ("track", "xy", "node", "frame")
"""Axes of the tracks where the file does not name them."""


def sniff(path: Path) -> bool:
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


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Points of every node of every animal."""
    if has_signature(path):
        return behavior_of(_from_hdf5(path), settings, path)
    return behavior_of(_from_csv(path), settings, path, sparse=True)


def _from_hdf5(path: Path) -> list[Track]:
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
        Track(animal, node, tracks[:, i, j], None if scores is None else scores[:, i, j])
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


def _from_csv(path: Path) -> list[Track]:
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
            tracks.append(track_of(name, node, columns))
    return tracks


def _frame_numbers(table: pd.DataFrame, path: Path) -> np.ndarray:
    numbers = pd.to_numeric(table.get(FRAME, pd.Series(dtype=float)), errors="coerce")
    if numbers.empty or numbers.isna().any() or not numbers.between(0, MOST_POINTS).all():
        raise InputError(f"{path} has rows without a frame number ({FRAME}).")
    return numbers.to_numpy().astype(np.int64)
