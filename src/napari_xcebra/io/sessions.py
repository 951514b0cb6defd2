"""Names sessions, and reads which of their cells are the same, as other programs matched them.

==========  ======================================================================================
table       a column per session (its name in the header), ids of the recording in a row for each
            cell, empty or negative where a cell was not found; .csv, .tsv, .parquet
CellReg     ``cellRegistered….mat``: ``cell_registered_struct.cell_to_index_map``, a row per cell
            and a column per session, ROIs counted from 1, 0 where there is none
ROICaT      ``….tracking.results_clusters.json``: ``labels_bySession``, for each session the
            cluster of each ROI, −1 for none
==========  ======================================================================================

ROICaT's own pickles and richfiles can run code when opened, and are therefore not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import name_of
from napari_xcebra.io.containers.matlab import is_mat, read_mat
from napari_xcebra.recording.matching import MISSING, Matching

MOST = 512 * 2**20
"""Bytes of a JSON file."""


def read_matching(path: str | PathLike[str]) -> Matching:
    """Which cells of several sessions are the same, from a table, CellReg or ROICaT.

    Sessions of a table are named by its header; those of the others are called "1", "2" and so on,
    in the order they were given to that program.
    """
    path = Path(path)
    if path.is_dir() or path.suffix.lower() in (".pkl", ".pickle", ".richfile", ".zip"):
        raise InputError(
            f"{path} is not read: files of this kind may run code when they are opened. ROICaT "
            "writes ….tracking.results_clusters.json beside it; choose that file."
        )
    if not path.exists():
        raise InputError(f"{path} does not exist.")
    if not path.is_file():
        raise InputError(f"{path} is a pipe or a device: a file is needed.")
    if path.suffix.lower() == ".json":
        return _roicat(path)
    if is_mat(path):
        return _cellreg(path)
    return _table(path)


def _table(path: Path) -> Matching:
    from napari_xcebra.io.containers.tables import read_table  # imports pandas

    table = read_table(path)
    wrong = [str(name) for name, values in table.items() if values.dtype.kind not in "biuf"]
    if wrong:
        raise InputError(
            f"{path} has text in column {wrong[0]!r}: cell ids are needed, one column per session, "
            "empty where a cell was not found."
        )
    try:
        # by way of Int64, which keeps ids that no float64 tells apart
        whole = [column.astype("Int64").fillna(MISSING) for _, column in table.items()]
    except (TypeError, ValueError):
        raise InputError(f"{path} has numbers that are not whole: cell ids are needed.") from None
    ids = np.stack([column.to_numpy(np.int64) for column in whole], axis=1)
    return Matching(tuple(map(str, table.columns)), np.maximum(ids, MISSING), source=str(path))


def _cellreg(path: Path) -> Matching:
    arrays = {name: array for name, array in read_mat(path).items() if array.ndim == 2}
    maps = [array for name, array in arrays.items() if name.endswith("cell_to_index_map")]
    if not maps:
        raise InputError(
            f"{path} has no cell_to_index_map: CellReg writes it to cellRegistered….mat."
        )
    return _of_positions(np.asarray(maps[0], np.int64) - 1, path)


def _roicat(path: Path) -> Matching:
    sessions = _labels_by_session(path)
    clusters = sorted({label for labels in sessions for label in labels if label != MISSING})
    row = {label: number for number, label in enumerate(clusters)}
    ids = np.full((len(clusters), len(sessions)), MISSING, np.int64)
    for column, labels in enumerate(sessions):
        for position, label in enumerate(labels):
            if label == MISSING:
                continue
            if ids[row[label], column] != MISSING:
                raise InputError(
                    f"{path} has cluster {label} twice in session {column + 1}: a cell can be "
                    "matched only once."
                )
            ids[row[label], column] = position
    return _of_positions(ids, path)


def _labels_by_session(path: Path) -> list[list[int]]:
    if path.stat().st_size > MOST:
        raise InputError(f"{path} is larger than {MOST // 2**20} MB: it is not a list of labels.")
    try:
        about: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}).") from error
    if isinstance(about, dict) and "clusters" in about:
        about = about["clusters"]
    sessions = about.get("labels_bySession") if isinstance(about, dict) else None
    whole = isinstance(sessions, list) and all(
        isinstance(labels, list)
        and all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
        for labels in sessions
    )
    if not whole:
        raise InputError(
            f"{path} has no labels_bySession with whole numbers for each session: ROICaT writes it "
            "to ….tracking.results_clusters.json."
        )
    assert isinstance(sessions, list)
    return sessions


def _of_positions(ids: np.ndarray, path: Path) -> Matching:
    sessions = tuple(str(number + 1) for number in range(ids.shape[1]))
    return Matching(sessions, np.where(ids < 0, MISSING, ids), positions=True, source=str(path))


_DAY = re.compile(
    r"(?<!\d)(?:19|20)\d{2}[-_.]?\d{2}[-_.]?\d{2}(?!\d)|(?<![a-z])(?:day|session|ses|d)[ _-]?\d+",
    re.IGNORECASE,
)


def session_names(sources: Sequence[str]) -> list[str]:
    """A name for each session: its day, or the folder in which the paths differ.

    Parameters
    ----------
    sources : sequence of str
        Paths that recordings were opened from.

    Examples
    --------
    >>> session_names(["m1/2024-05-01/suite2p/plane0", "m1/2024-05-02/suite2p/plane0"])
    ['2024-05-01', '2024-05-02']
    >>> session_names(["m1/before/F.npy", "m1/after/F.npy"])
    ['before', 'after']
    """
    days = [
        [found[0] for part in PurePath(s).parts if (found := _DAY.search(part))] for s in sources
    ]
    if all(days) and len({own[-1] for own in days}) == len(sources):
        return [own[-1] for own in days]
    if (names := _different(list(map(name_of, sources)))) is not None:
        return names
    parts = [PurePath(source).parts[::-1] for source in sources]
    for level in zip(*parts, strict=False):
        if (names := _different(list(level))) is not None:
            return names
    return [f"{name} ({number})" for number, name in enumerate(map(name_of, sources), start=1)]


def _different(names: list[str]) -> list[str] | None:
    """Names without the ends of files, if no two are the same."""
    short = [re.sub(r"\.\w{1,6}$", "", name) for name in names]
    return short if len(set(short)) == len(names) else None
