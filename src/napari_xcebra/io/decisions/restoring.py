"""Restores the files that were there before decisions were written, also after a restart."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.curation.order import centroids_of
from napari_xcebra.errors import InputError
from napari_xcebra.files import in_a_sentence
from napari_xcebra.io.decisions import backups
from napari_xcebra.io.decisions.backups import unfinished_in
from napari_xcebra.io.decisions.plan import (
    FileChange,
    Plan,
    Seen,
    Written,
    alone_in,
    check_writable,
    seen,
)
from napari_xcebra.io.formats.suite2p.folder import folders_near
from napari_xcebra.io.formats.suite2p.writing import check_backup, written_near
from napari_xcebra.recording.recording import Recording
from napari_xcebra.spreadsheets import read_csv

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.curation.decisions import Curation


Version = Literal["original", "previous"]


def restore(path: str | PathLike[str], version: Version = "original") -> Written:
    """Put the original back in place of what was written; see `plan_restore`.

    A write that was interrupted is undone first, which may be all there is to do.
    """
    undone = repair(path)
    written = plan_restore(path, version, needed=not undone).write()
    return Written("restore", tuple(dict.fromkeys([*undone, *written.files])))


def repair(path: str | PathLike[str]) -> list[Path]:
    """Undo a write to a recording that was interrupted; the files that were put back.

    Parameters
    ----------
    path : path
        What the recording is opened from.
    """
    writes = unfinished_in(folders_near(Path(path).resolve()))
    folders = {folder for write in writes for folder in write.folders}
    if not folders:  # none, or those of others
        return []
    with in_a_sentence(path), alone_in(folders) as undone:
        return undone


def interrupted(path: str | PathLike[str]) -> tuple[str, ...]:
    """Sentences on writes to a recording that were not completed; nothing is changed."""
    writes = unfinished_in(folders_near(Path(path).resolve()))
    return tuple(write.sentence for write in writes)


def plan_restore(
    path: str | PathLike[str], version: Version = "original", *, needed: bool = True
) -> Plan:
    """What `restore` would do.

    Parameters
    ----------
    path : path
        A file that was written, or a folder of suite2p (all of its planes and `combined`, which
        are written together, go back together).
    version : {"original", "previous"}
        As the other program wrote it, or as it was written here the time before.
    needed : bool
        Whether it is an error if there is nothing to restore.
    """
    path = Path(path).resolve()
    with in_a_sentence(path):
        plan = plan_for(written_near(path) or [path], version, path, needed=needed)
        return replace(plan, warnings=(*plan.warnings, *interrupted(path)))


def plan_for(
    files: Iterable[Path],
    version: Version = "original",
    where: Path | None = None,
    *,
    needed: bool = True,
) -> Plan:
    """Plan that restores each of the files, found at `where`."""
    files = list(files)
    changes = [change for file in files if (change := _change(file, version)) is not None]
    if not changes and needed:
        raise InputError(
            f"There is nothing to restore at {where or files[0]}: nothing was written, or no "
            f"{version} version is kept beside it."
        )
    foreign = [
        f"{change.path} was changed by another program after napari-xcebra wrote it."
        for change in changes
        if change.path.exists() and not backups.is_ours(change.path)
    ]
    return Plan("restore", tuple(changes), _summary(changes), tuple(foreign))


def _change(path: Path, version: Version) -> FileChange | None:
    """What restoring does to a file; None if there is nothing to do."""
    path = path.resolve()  # backups are beside what a link points at
    before = seen(path, backups.record_of(path))  # first: what is decided below relies on it
    kept = [backups.previous(path)] if version == "previous" else backups.originals(path)
    source = next((file for file in kept if file.is_file()), None)
    if source is not None:
        return _put_back(path, source, before, ours=version == "previous")
    if version == "previous" or not (backups.is_ours(path) and backups.is_new(path)):
        return None
    check_writable(path)
    kept_as = backups.previous(path)
    what = "There was no such file before."
    return FileChange(path, "remove", what, backup=kept_as, before={**before, **seen(kept_as)})


def _put_back(path: Path, source: Path, before: Seen, *, ours: bool) -> FileChange:
    """Replace the file by its backup, and keep the file."""
    check_writable(path)
    check_backup(source, path)
    backup = backups.backup_for(path)
    return FileChange(
        path,
        "replace" if path.exists() else "new file",
        f"Restored from {source.name}.",
        lambda temporary: _same_file(source, temporary),
        backup=backup,
        uses_up=source,
        ours=ours,
        before={**before, **seen(source, *([backup] if backup else []))},
    )


def _same_file(source: Path, temporary: Path) -> None:
    """Link to the backup, which costs nothing; its own name is removed afterwards."""
    temporary.unlink()
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copy2(source, temporary)


def _summary(changes: Sequence[FileChange]) -> str:
    count = len(changes)
    return "1 file is restored." if count == 1 else f"{count} files are restored together."


FARTHEST = 3.0
"""Pixels between the centres of one cell in two runs, at most."""
_NEEDED = ("cell", "accepted")


@dataclass(frozen=True, eq=False)
class _Recalled:
    """Decisions from a table on the cells of a recording.

    Parameters
    ----------
    row : (cells,) int
        Row of the table that each cell is; -1 for none.
    table : DataFrame
        As it was written.
    by_place : bool
        Whether cells were found by where they are rather than by their ids.
    """

    row: np.ndarray
    table: pd.DataFrame
    by_place: bool

    @property
    def known(self) -> np.ndarray:
        """(cells,) bool, those the table has."""
        return self.row >= 0

    def accepted(self, default: np.ndarray) -> np.ndarray:
        """(cells,) bool: what the table says where it knows the cell, else the default."""
        said = self.table["accepted"].to_numpy(bool)
        return np.where(self.known, said[self.row], np.asarray(default, bool))

    def decisions(self, cell_ids: np.ndarray) -> pd.DataFrame:
        """Rows of the table under the ids of the recording, as `Curation.table` has them."""
        rows = self.table.iloc[self.row[self.known]].drop(columns="cell").reset_index(drop=True)
        rows.insert(0, "cell", np.asarray(cell_ids)[self.known])
        return rows

    def onto(self, curation: Curation) -> int:
        """Apply the decisions, with tags and notes, where nobody has decided by hand yet.

        Decisions that were not made by hand stay decisions of whoever made them.

        Returns
        -------
        int
            Cells on which the table decides.
        """
        rows = self.decisions(curation.cell_ids)
        rows = rows[~curation.by_hand[self.known]]
        accepted = np.where(rows["accepted"], "accepted", "rejected")
        status = rows["status"].to_numpy() if "status" in rows else accepted
        by = rows["by"].to_numpy() if "by" in rows else np.full(len(rows), "hand")
        cells = np.flatnonzero(np.isin(curation.cell_ids, rows["cell"]))

        def by_others(who: str, decision: str) -> np.ndarray:
            return np.isin(np.arange(curation.n_cells), cells[(by == who) & (status == decision)])

        if (above := by_others("threshold", "accepted")).any():
            curation.decide_above(above)
        for who in ("extractor", "proposal"):
            sides = by_others(who, "accepted"), by_others(who, "rejected")
            if np.any(sides):
                curation.adopt(*sides, who)
        by_hand = ~np.isin(by, ("threshold", "extractor", "proposal"))
        for decision in ("accepted", "rejected"):
            meant = cells[by_hand & (status == decision)]
            if len(meant):
                curation.decide(meant, decision)
        self._tell_words(curation, cells, rows)
        return int(np.isin(status, ("accepted", "rejected")).sum())

    def _tell_words(self, curation: Curation, cells: np.ndarray, rows: pd.DataFrame) -> None:
        """Give cells the tags and notes of their rows."""
        tagged: dict[str, list[int]] = {}
        for cell, tags in zip(cells, rows.get("tags", ()), strict=False):
            for tag in filter(None, str(tags).split(";")):
                tagged.setdefault(tag, []).append(cell)
        for tag, meant in tagged.items():
            curation.tag(meant, tag, on=True)
        for cell, note in zip(cells, rows.get("note", ()), strict=False):
            if str(note):
                curation.write_note(int(cell), str(note))

    def summary(self) -> str:
        """A sentence: how many cells were matched, and how."""
        how = f"position (within {FARTHEST:g} pixels)" if self.by_place else "id"
        return (
            f"{int(self.known.sum())} of {len(self.row)} cells were matched by {how} to a table of "
            f"{len(self.table)}; the others keep the decision of the extractor."
        )


def recall(path: str | PathLike[str], recording: Recording) -> _Recalled:
    """Decisions in a table of everything, or the one beside suite2p's files.

    Cells are matched by id if their positions agree, otherwise by position.

    Parameters
    ----------
    path : path
        As ``plan_output("csv", …)`` wrote it.
    recording : Recording
    """
    table = _table(Path(path))
    places = _places(recording)
    written = _written_places(table)
    position = {int(cell): i for i, cell in enumerate(table["cell"])}
    ids = np.asarray(recording.cell_ids).tolist()
    by_id = np.array([position.get(cell, -1) for cell in ids])
    if places is None or written is None:
        if set(ids) != set(position):
            raise InputError(
                f"{path} has {len(table)} cells with other ids than the {len(ids)} of the "
                "recording, and their positions are unknown: they cannot be matched."
            )
        return _Recalled(by_id, table, by_place=False)
    same = by_id >= 0
    apart = np.linalg.norm(places[same] - written[by_id[same]], axis=1)
    if set(ids) == set(position) and (np.isnan(apart) | (apart < 0.5)).all():
        return _Recalled(by_id, table, by_place=False)
    return _Recalled(_nearest(places, written), table, by_place=True)


def _table(path: Path) -> pd.DataFrame:
    try:
        table = read_csv(
            path,
            keep_default_na=False,
            na_values={"y": "", "x": "", "plane": ""},
            dtype=dict.fromkeys(("tags", "note"), str),  # also where all of them look like numbers
        )
    except (ValueError, OSError) as error:
        raise InputError(f"{path} is not a table of decisions ({error}).") from error
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise InputError(f"{path} is not a table of decisions: it has no column {missing[0]!r}.")
    if table["accepted"].dtype != bool or table["cell"].dtype.kind not in "iu":
        raise InputError(
            f"{path} is not a table of decisions: `cell` must be a whole number and `accepted` "
            "True or False in every row."
        )
    twice = table["cell"][table["cell"].duplicated()]
    if len(twice):
        raise InputError(f"{path} has two rows for cell {twice.iloc[0]}.")
    return table


def _places(recording: Recording) -> np.ndarray | None:
    """(cells, 3): plane, y and x of each, planes too far apart for matches across them."""
    if recording.footprints is None:
        return None
    centres = centroids_of(recording.footprints, recording.n_cells)
    plane = recording.cells.get("plane", centres[:, 0] if centres.shape[1] > 2 else 0.0)
    return _in_space(plane, centres[:, -2], centres[:, -1])


def _written_places(table: pd.DataFrame) -> np.ndarray | None:
    if "y" not in table or "x" not in table:
        return None
    plane = table["plane"].to_numpy(float) if "plane" in table else 0.0
    return _in_space(plane, table["y"].to_numpy(float), table["x"].to_numpy(float))


def _in_space(plane: np.ndarray | float, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.stack([np.broadcast_to(np.asarray(plane, float) * 1e6, y.shape), y, x], axis=1)


def _nearest(places: np.ndarray, written: np.ndarray) -> np.ndarray:
    """(cells,) row of the table that is the mutual nearest neighbour, or -1."""
    row = np.full(len(places), -1)
    here = np.flatnonzero(np.isfinite(places).all(axis=1))
    there = np.flatnonzero(np.isfinite(written).all(axis=1))
    if not len(here) or not len(there):
        return row
    apart, nearest = scipy.spatial.cKDTree(written[there]).query(places[here])
    _, back = scipy.spatial.cKDTree(places[here]).query(written[there])
    mutual = (back[nearest] == np.arange(len(here))) & (apart <= FARTHEST)
    row[here[mutual]] = there[nearest[mutual]]
    return row
