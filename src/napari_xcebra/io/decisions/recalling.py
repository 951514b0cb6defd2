"""Reads decisions back from a table of ours, also onto newly extracted ROIs.

suite2p removes its decisions when it is run again, and gives ROIs other numbers. The table beside
them has the place of each, by which an ROI of the new run is the one that is nearest, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.curation.order import centroids_of
from napari_xcebra.errors import InputError
from napari_xcebra.recording.recording import Recording
from napari_xcebra.spreadsheets import read_csv

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.curation.decisions import Curation

FARTHEST = 3.0
"""Pixels between the centres of one cell in two runs, at most."""
_NEEDED = ("cell", "accepted")


@dataclass(frozen=True, eq=False)
class Recalled:
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

        Decisions by threshold stay decisions by threshold.

        Returns
        -------
        int
            Cells on which the table decides.
        """
        rows = self.decisions(curation.cell_ids)
        rows = rows[~curation.by_hand[self.known]]
        accepted = np.where(rows["accepted"], "accepted", "rejected")
        status = rows["status"].to_numpy() if "status" in rows else accepted
        by_hand = rows["by"].to_numpy() != "threshold" if "by" in rows else np.ones(len(rows), bool)
        cells = np.flatnonzero(np.isin(curation.cell_ids, rows["cell"]))
        above = np.zeros(curation.n_cells, bool)
        above[cells[~by_hand & (status == "accepted")]] = True
        if above.any():
            curation.decide_above(above)
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


def recall(path: str | PathLike[str], recording: Recording) -> Recalled:
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
        return Recalled(by_id, table, by_place=False)
    same = by_id >= 0
    apart = np.linalg.norm(places[same] - written[by_id[same]], axis=1)
    if set(ids) == set(position) and (np.isnan(apart) | (apart < 0.5)).all():
        return Recalled(by_id, table, by_place=False)
    return Recalled(_nearest(places, written), table, by_place=True)


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
