"""Joins decisions on cells with everything else known about them in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.curation.order import centroids_of
from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.plan import Plan, change_to, target_of
from napari_xcebra.recording.recording import Recording
from napari_xcebra.report.exports import default_path
from napari_xcebra.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas as pd


CURATED = ("status", "by", "tags", "note", "curator", "time", "merged_into", "merged_how")
"""Columns of `Curation.table` that are written, in this order."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Checked decisions, ready to be written.

    Parameters
    ----------
    recording : Recording
    path : Path or None
        What the recording was opened from.
    accepted : (cells,) bool
        Decision where there is one, else what the extractor says.
    table : DataFrame or None
        One row per cell that was decided on or all cells: cell, status, by, tags, note, curator,
        time.
    scores : DataFrame or None
        One row per cell and factor: cell, factor, score, and more such as z and q.
    extractor : (cells,) bool
        What the extractor says; that of the recording if not given.
    """

    recording: Recording
    path: Path | None
    accepted: np.ndarray
    table: pd.DataFrame | None = None
    scores: pd.DataFrame | None = None
    extractor: np.ndarray | None = None

    def __post_init__(self) -> None:
        accepted = np.asarray(self.accepted)
        if accepted.shape != (self.recording.n_cells,) or accepted.dtype != bool:
            raise InputError(
                f"accepted has shape {accepted.shape} and type {accepted.dtype}: True or False "
                f"for each of the {self.recording.n_cells} cells is needed."
            )
        object.__setattr__(self, "accepted", accepted)
        extractor = self.recording.accepted if self.extractor is None else self.extractor
        object.__setattr__(self, "extractor", np.asarray(extractor))
        _check(self.table, "table", ("cell",))
        _check(self.scores, "scores", ("cell", "factor", "score"))

    @property
    def cell_ids(self) -> np.ndarray:
        """(cells,) int64."""
        return np.asarray(self.recording.cell_ids)

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors that have scores."""
        return () if self.scores is None else tuple(map(str, self.scores["factor"].unique()))

    def score(self, factor: str, column: str = "score") -> np.ndarray:
        """(cells,), scores of a factor or another column of them; NaN where there is none."""
        if self.scores is None:
            raise InputError("There are no scores.")
        own = self.scores[self.scores["factor"].astype(str) == factor]
        values = own.drop_duplicates("cell").set_index("cell")[column]
        return np.asarray(values.reindex(self.cell_ids))

    def everything(self) -> pd.DataFrame:
        """One row per cell: place, properties, what the extractor says, decisions, scores."""
        import pandas as pd

        recording = self.recording
        columns: dict[str, Any] = {"cell": self.cell_ids}
        for name in ("plane", "roi"):
            if name in recording.cells:
                columns[name] = recording.cells[name]
        columns |= _places(recording)
        columns["accepted"] = self.accepted
        columns["extractor_accepted"] = self.extractor
        if "probability" in recording.cells:
            columns["extractor_probability"] = recording.cells["probability"]
        for name, values in recording.cells.items():
            if name not in ("plane", "roi", "probability"):
                columns[f"cell_{name}" if name in (*columns, *CURATED) else name] = values
        frame = pd.DataFrame(columns)
        if self.table is not None:
            known = [name for name in CURATED if name in self.table]
            curated = self.table.drop_duplicates("cell").set_index("cell")[known]
            frame = frame.join(curated, on="cell")
        for factor in self.factors:
            for column in _score_columns(self.scores):
                frame[f"{column}_{factor}"] = self.score(factor, column)
        return frame

    def tagged(self, tag: str) -> np.ndarray:
        """(cells,) bool, which have a tag."""
        if self.table is None or "tags" not in self.table:
            return np.zeros(len(self.accepted), bool)
        rows = self.table.drop_duplicates("cell").set_index("cell").reindex(self.cell_ids)
        return np.array([tag in str(tags).split(";") for tags in rows["tags"]], bool)

    @property
    def merged(self) -> dict[int, tuple[np.ndarray, bool]]:
        """Positions of the parts of merged cells, and whether they are summed, by position."""
        if self.table is None or "merged_into" not in self.table:
            return {}
        rows = self.table.drop_duplicates("cell").set_index("cell").reindex(self.cell_ids)
        into = rows["merged_into"].fillna("").astype(str).to_numpy()
        own = into == self.cell_ids.astype(str)
        summed = rows["merged_how"].to_numpy() == "sum"
        return {int(i): (np.flatnonzero(into == into[i]), bool(summed[i]))
                for i in np.flatnonzero(own)}  # fmt: skip

    def summary(self) -> str:
        """A sentence: how many cells are accepted, and on how many the extractor disagrees."""
        changed = int((self.accepted != self.extractor).sum())
        count = f"{int(self.accepted.sum())} of {len(self.accepted)} cells are accepted"
        return f"{count}; the extractor disagrees on {changed or 'none'}."


def _check(table: pd.DataFrame | None, name: str, needed: tuple[str, ...]) -> None:
    missing = [] if table is None else [column for column in needed if column not in table]
    if missing:
        raise InputError(f"{name} has no column {missing[0]!r}: {', '.join(needed)} are needed.")


def _score_columns(scores: pd.DataFrame | None) -> list[str]:
    named = [] if scores is None else [str(name) for name in scores.columns]
    return [name for name in named if name not in ("cell", "factor")]


def _places(recording: Recording) -> dict[str, np.ndarray]:
    """Centre of each footprint in pixels: "y" and "x", and "plane" where the source has none."""
    if recording.footprints is None:
        return {}
    centres = centroids_of(recording.footprints, recording.n_cells)
    places = {"y": centres[:, -2], "x": centres[:, -1]}
    if centres.shape[1] > 2 and "plane" not in recording.cells:
        places = {"plane": centres[:, 0], **places}
    return places


TABLE = "Table of everything (.csv)"


def plan_table(decided: Decided, destination: Path | None) -> Plan:
    """One file: a row per cell."""
    default = default_path(decided.recording, "decisions", suffix=".csv")
    path = target_of(default, destination)
    table = decided.everything()
    what = f"A row for each of the {len(table)} cells: {', '.join(table.columns)}."
    return Plan("csv", (change_to(path, what, writing(table)),), decided.summary())


def writing(table: pd.DataFrame) -> Callable[[Path], None]:
    """Function that writes the table to a path."""
    return lambda path: write_csv(table, path)
