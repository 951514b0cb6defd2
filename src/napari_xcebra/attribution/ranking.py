"""Makes the table of cells: its columns, and which rows are shown in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.attribution.single_cell import STATISTICS, CellStatistics
from napari_xcebra.recording import Recording

SAMPLE = 500
"""Cells by whose texts the width of a column is found."""


@dataclass(frozen=True, eq=False)
class CellColumn:
    """One column of the table: its name, values and meaning, and how it is written.

    Parameters
    ----------
    name : str
        Its title, unique in a table.
    values : (cells,) array
        In the order of the recording: yes or no, numbers or words. NaN is left empty.
    help : str
        What it means, for a tooltip.
    format : str
        Of numbers that are not integers, as in Python: ".2f" has two decimals.
    width : int
        In letters.
    none : int, optional
        Integer that stands for no value, as NaN does.
    texts : (cells,) str, optional
        Written in place of the values; cells are still ordered by the values.
    bars : (3, cells) float, optional
        A bar drawn under the text: its start, mark and end, between 0 and 1.
    """

    name: str
    values: np.ndarray
    help: str = ""
    format: str = "#.4g"
    width: int = 8
    none: int | None = None
    texts: np.ndarray | None = None
    bars: np.ndarray | None = None

    @cached_property
    def missing(self) -> np.ndarray:
        """(cells,) bool, which cells have no value."""
        if self.values.dtype.kind == "f":
            return np.isnan(self.values)
        nothing: np.ndarray = np.zeros(len(self.values), bool)
        return nothing if self.none is None else self.values == self.none

    def text(self, cell: int) -> str:
        """What is written in the table.

        Yes and no are words, which a spreadsheet sorts and counts; a missing number is left empty.
        """
        value = self.values[cell]
        if isinstance(value, np.bool_):
            return "yes" if value else "no"
        if self.missing[cell]:
            return ""
        if self.texts is not None:
            return str(self.texts[cell])
        if isinstance(value, np.floating):
            return format(float(value), self.format).rstrip(".")
        return str(value)

    def longest(self) -> list[str]:
        """The longest texts of some hundred cells, with those of the lowest and highest values."""
        known = np.flatnonzero(~self.missing)
        if not len(known) or self.values.dtype.kind == "b":
            return []
        some = known[np.linspace(0, len(known) - 1, min(len(known), SAMPLE)).astype(int)]
        ends = known[np.argsort(self.values[known], kind="stable")[[0, -1]]]
        texts = {self.text(int(cell)) for cell in (*some, *ends)}
        return sorted(texts, key=len)[-5:]

    def order(self, *, descending: bool) -> np.ndarray:
        """Positions of the cells, ordered by their values; those without one last."""
        order = np.argsort(self.values, kind="stable")
        order = order[::-1] if descending else order
        missing = self.missing[order]
        return np.concatenate([order[~missing], order[missing]])


_ABOUT: dict[str, tuple[str, str, int]] = {
    "rank": ("1 for the highest score; empty for cells that were not used.", "", 8),
    "cell": ("Id of the cell in the program that found it.", "", 6),
    "name": ("Name that the source gives the cell.", "", 12),
    "score": ("How much the cell carries the factor.", "#.4g", 8),
    "interval": (
        "Interval of the score, 5 to 95 %, from resampled blocks of time. Sorted by its lower end.",
        "",
        17,
    ),
    "lag (s)": (
        "Seconds by which the cell follows the behaviour; negative if it leads. Empty where its "
        "score may be 0.",
        "+.2f",
        8,
    ),
    "± sd": ("Standard deviation of the score over the seeds.", "#.2g", 8),
    "z": ("Score in standard deviations above the mean of the cells.", ".2f", 6),
    "q": (
        "Lower is surer: among the cells with this q or a lower one, this share is expected by "
        "chance. For the factor as a whole.",
        ".2g",
        7,
    ),
    "ranks": (
        "Best and worst rank over the seeds; the bar spans them, from the first rank at the left "
        "to the last. Sorted by how far apart they are.",
        "",
        10,
    ),
    "stable": (
        "Whether all seeds agree: z on the same side of the threshold, and ranks within a quarter "
        "of the cells.",
        "",
        7,
    ),
    "above": ("Whether z is above the threshold.", "", 9),
    "accepted": ("Whether the ROI counts as a cell.", "", 9),
}
"""Help, format and width of the columns that a table may have."""
MARKED: tuple[str, ...] = ("stable", "above", "accepted")
"""Yes-or-no columns, at the right."""


@dataclass(frozen=True)
class RowFilter:
    """Which cells the table shows.

    Parameters
    ----------
    text : str
        Beginning of an id or part of a name; several are separated by commas or spaces.
    accepted_only, above_only : bool
    q_limit : float, optional
        Of tested cells, those with a q up to this.
    stable_only : bool
        Of cells scored with several seeds, those on which all agree.
    """

    text: str = ""
    accepted_only: bool = False
    above_only: bool = False
    q_limit: float | None = None
    stable_only: bool = False


@dataclass(frozen=True, eq=False)
class Ranking:
    """Columns of the table, one entry a cell in the order of the recording.

    Parameters
    ----------
    columns : mapping of str to CellColumn
        By name. "rank" is 0, and "score" and "z" are NaN, where a cell was not used.
    """

    columns: Mapping[str, CellColumn]
    _texts: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        recording: Recording,
        painted: ScoreMap,
        threshold: float,
        accepted: np.ndarray | None = None,
    ) -> Ranking:
        """Table of a map; `accepted` replaces the decisions of the extractor."""
        columns = {"rank": painted.ranks, "cell": np.asarray(recording.cell_ids)}
        if "name" in recording.cells:
            columns["name"] = np.asarray(recording.cells["name"]).astype(str)
        columns["score"] = painted.scores
        if painted.score_sd is not None:
            columns["± sd"] = painted.score_sd
        columns["z"] = painted.z
        if painted.q is not None:
            columns["q"] = painted.q
        if painted.places is not None:
            columns["ranks"] = np.where(painted.known, np.diff(painted.places, axis=0)[0], -1)
            columns["stable"] = painted.stable(threshold)
        columns["above"] = painted.above(threshold)
        columns["accepted"] = np.asarray(recording.accepted if accepted is None else accepted)
        low, high, lag = (painted.detail(name) for name in ("low", "high", "lag"))
        if low is not None and high is not None:
            columns["interval"] = low
        if lag is not None and np.isfinite(lag).any():
            columns["lag (s)"] = lag
        made = {name: _known_column(name, values) for name, values in columns.items()}
        if painted.places is not None:
            texts, bars = _ranges(painted, painted.places)
            made["ranks"] = replace(made["ranks"], none=-1, texts=texts, bars=bars)
        if low is not None and high is not None:
            ends = [f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)]
            made["interval"] = replace(made["interval"], texts=np.array(ends))
        return cls(made)

    def with_columns(self, more: Iterable[CellColumn]) -> Ranking:
        """Table with more columns, beside the scores."""
        columns = dict(self.columns)
        marks = {name: columns.pop(name) for name in MARKED if name in columns}
        columns |= {column.name: column for column in more}
        return replace(self, columns=columns | marks)

    def only(self, names: Iterable[str]) -> Ranking:
        """Table without the other columns."""
        return replace(self, columns={n: self.columns[n] for n in names if n in self.columns})

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.columns)

    @property
    def n_cells(self) -> int:
        """Cells, shown or not."""
        return len(self.columns["cell"].values)

    def rows(self, column: str, *, descending: bool, shown: RowFilter) -> np.ndarray:
        """Positions of the cells that pass a filter, ordered by a column; unused cells last."""
        order = self.columns[column].order(descending=descending)
        unused = self.columns["rank"].values[order] == 0
        order = np.concatenate([order[~unused], order[unused]])
        return order[self._passes(shown)[order]]

    def text(self, column: str, cell: int) -> str:
        """What is written in the table."""
        return self.columns[column].text(cell)

    def as_tsv(self, cells: Sequence[int] | np.ndarray) -> str:
        """Rows to paste into a spreadsheet, under a header."""
        lines = ["\t".join(self.titles)]
        lines += ["\t".join(self.text(name, cell) for name in self.titles) for cell in cells]
        return "\n".join(lines) + "\n"

    def _passes(self, shown: RowFilter) -> np.ndarray:
        """(cells,) bool."""
        passes = np.ones(self.n_cells, bool)
        if shown.accepted_only:
            passes &= self.columns["accepted"].values
        if shown.above_only:
            passes &= self.columns["above"].values
        if shown.q_limit is not None and "q" in self.columns:
            passes &= self.columns["q"].values <= shown.q_limit
        if shown.stable_only and "stable" in self.columns:
            passes &= self.columns["stable"].values
        wanted = shown.text.replace(",", " ").casefold().split()
        if wanted:
            passes &= np.logical_or.reduce([self._matches(text) for text in wanted])
        return passes

    def _matches(self, text: str) -> np.ndarray:
        if not self._texts:
            self._texts["cell"] = self.columns["cell"].values.astype(str)
            if "name" in self.columns:
                self._texts["name"] = np.char.lower(self.columns["name"].values)
        found = np.char.startswith(self._texts["cell"], text)
        if "name" in self._texts:
            found |= np.char.find(self._texts["name"], text) >= 0
        return found


def _known_column(name: str, values: np.ndarray) -> CellColumn:
    return CellColumn(name, values, *_ABOUT[name], none=0 if name == "rank" else None)


def _ranges(painted: ScoreMap, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Text and bar of the ranks over seeds; the mark is the rank in the map itself."""
    best, worst = places
    texts = [f"{b}" if b == w else f"{b}–{w}" for b, w in zip(best, worst, strict=True)]
    last = max(int(painted.known.sum()) - 1, 1)
    return np.array(texts), (np.stack([best, painted.ranks, worst]) - 1) / last


def statistic_columns(
    found: CellStatistics | None, factor: str, names: Sequence[str]
) -> list[CellColumn]:
    """Columns of the table of cells for some statistics, those that are there for the factor."""
    values = found.of(factor) if found is not None else {}
    return [
        CellColumn(STATISTICS[n].title, values[n], help_on(n), ".3g") for n in names if n in values
    ]


def help_on(name: str) -> str:
    """What a statistic is, for a tooltip."""
    statistic = STATISTICS[name]
    unit = f", in {statistic.unit}" if statistic.unit else ""
    return f"{name.replace('_', ' ').capitalize()}{unit}. {statistic.help}"
