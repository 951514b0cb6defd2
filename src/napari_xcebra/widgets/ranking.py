"""The table of cells: its columns, and which rows are shown in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.score_map import ScoreMap

DIGITS = 4
"""Significant digits of scores."""


@dataclass(frozen=True)
class RowFilter:
    """Which cells the table shows.

    Parameters
    ----------
    text : str
        Beginning of an id, or part of a name; several, separated by commas or blanks.
    accepted_only, selected_only : bool
    """

    text: str = ""
    accepted_only: bool = False
    selected_only: bool = False


@dataclass(frozen=True, eq=False)
class Ranking:
    """Columns of the table, one entry a cell in the order of the recording.

    Parameters
    ----------
    columns : mapping of str to (cells,) array
        "rank" is 0, and "score" and "z" are NaN, where a cell was not used.
    """

    columns: Mapping[str, np.ndarray]
    _texts: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, recording: Recording, painted: ScoreMap, threshold: float) -> Ranking:
        """Table of a map."""
        columns = {"rank": painted.ranks, "cell": np.asarray(recording.cell_ids)}
        if "name" in recording.cells:
            columns["name"] = np.asarray(recording.cells["name"]).astype(str)
        columns |= {"score": painted.scores, "z": painted.z}
        columns["selected"] = painted.selected(threshold)
        columns["accepted"] = np.asarray(recording.accepted)
        return cls(columns)

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.columns)

    @property
    def n_cells(self) -> int:
        """Cells, shown or not."""
        return len(self.columns["cell"])

    def rows(self, column: str, *, descending: bool, shown: RowFilter) -> np.ndarray:
        """Positions of the cells that pass a filter, ordered by a column; unused cells last."""
        values = self.columns[column]
        order = np.argsort(values, kind="stable")
        order = order[::-1] if descending else order
        unused = self.columns["rank"][order] == 0
        order = np.concatenate([order[~unused], order[unused]])
        return order[self._passes(shown)[order]]

    def text(self, column: str, cell: int) -> str:
        """What stands in the table.

        Yes and no are words, which a table program sorts and counts; a score that is not there
        is left empty.
        """
        value = self.columns[column][cell]
        if isinstance(value, np.bool_):
            return "yes" if value else "no"
        if isinstance(value, np.floating):
            return _number(column, float(value)) if np.isfinite(value) else ""
        return "" if column == "rank" and value == 0 else str(value)

    def as_tsv(self, cells: Sequence[int] | np.ndarray) -> str:
        """Rows to paste into a spreadsheet, with a header."""
        lines = ["\t".join(self.titles)]
        lines += ["\t".join(self.text(name, cell) for name in self.titles) for cell in cells]
        return "\n".join(lines) + "\n"

    def _passes(self, shown: RowFilter) -> np.ndarray:
        """(cells,) bool."""
        passes = np.ones(self.n_cells, bool)
        if shown.accepted_only:
            passes &= self.columns["accepted"]
        if shown.selected_only:
            passes &= self.columns["selected"]
        wanted = shown.text.replace(",", " ").casefold().split()
        if wanted:
            passes &= np.logical_or.reduce([self._matches(text) for text in wanted])
        return passes

    def _matches(self, text: str) -> np.ndarray:
        if not self._texts:
            self._texts["cell"] = self.columns["cell"].astype(str)
            if "name" in self.columns:
                self._texts["name"] = np.char.lower(self.columns["name"])
        found = np.char.startswith(self._texts["cell"], text)
        if "name" in self._texts:
            found |= np.char.find(self._texts["name"], text) >= 0
        return found


def _number(column: str, value: float) -> str:
    return f"{value:.2f}" if column == "z" else f"{value:#.{DIGITS}g}".rstrip(".")
