"""Holds the rows of the table of cells: ranked, sorted and filtered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt
from qtpy.QtGui import QColor

from napari_xcebra.attribution.ranking import Ranking, RowFilter
from napari_xcebra.widgets.controls.boxes import plain

SWATCH = "rank"
"""Column that shows the colour of the cell."""
MARKS = {"yes": "✓", "no": ""}
BAR = Qt.ItemDataRole.UserRole
"""Role of the bar under an entry's text: its start, mark and end, between 0 and 1."""
SIDES = {"U": Qt.AlignmentFlag.AlignLeft, "b": Qt.AlignmentFlag.AlignHCenter}
"""Alignment of words, and of yes and no; numbers are right-aligned."""


class CellModel(QAbstractTableModel):
    """Rows in an order of their own: sorting 10,000 cells takes numpy a millisecond."""

    def __init__(self, *, tall_titles: bool = False) -> None:
        super().__init__()
        self._tall = tall_titles
        self.ranking: Ranking | None = None
        self.cells = np.zeros(0, np.int64)
        self._colors: np.ndarray | None = None
        self._column, self._descending = "rank", False
        self._filter = RowFilter()

    def show_ranking(self, ranking: Ranking | None, colors: np.ndarray | None) -> None:
        """Show another table; `colors` is (cells, 4), between 0 and 1."""
        before, cells = self.ranking, self._arranged(ranking)
        same_rows = np.array_equal(cells, self.cells)
        if before and ranking and before.titles == ranking.titles and same_rows:
            self.ranking, self._colors = ranking, colors
            # no reset: the view stays where the user scrolled to
            last = self.index(len(cells) - 1, len(ranking.titles) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self.ranking, self._colors, self.cells = ranking, colors, cells
        self.endResetModel()

    def filter(self, shown: RowFilter) -> None:
        """Show other rows."""
        self.beginResetModel()
        self._filter = shown
        self.cells = self._arranged(self.ranking)
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Order the rows by a column."""
        if self.ranking is None or not 0 <= column < len(self.ranking.titles):
            return
        self.beginResetModel()
        self._column = self.ranking.titles[column]
        self._descending = order == Qt.SortOrder.DescendingOrder
        self.cells = self._arranged(self.ranking)
        self.endResetModel()

    def _arranged(self, ranking: Ranking | None) -> np.ndarray:
        """Positions of the cells to show, in their order."""
        if ranking is None:
            return np.zeros(0, np.int64)
        column = self._column if self._column in ranking.titles else "rank"
        return ranking.rows(column, descending=self._descending, shown=self._filter)

    def rows_of(self, cells: Iterable[int]) -> np.ndarray:
        """Rows of some cells, ascending; cells that are filtered out have none."""
        return np.flatnonzero(np.isin(self.cells, np.fromiter(cells, np.int64)))

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 -- Qt's signature
        """Cells shown."""
        return 0 if parent.isValid() else len(self.cells)

    def columnCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 -- Qt's signature
        """Columns."""
        return 0 if parent.isValid() or self.ranking is None else len(self.ranking.titles)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, alignment and colour of an entry."""
        if self.ranking is None or not index.isValid():
            return None
        name, cell = self.ranking.titles[index.column()], int(self.cells[index.row()])
        column = self.ranking.columns[name]
        kind = column.values.dtype.kind
        if role == Qt.ItemDataRole.DisplayRole:
            text = column.text(cell)
            return MARKS[text] if kind == "b" else text
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return SIDES.get(kind, Qt.AlignmentFlag.AlignRight) | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.DecorationRole and name == SWATCH:
            return (
                None if self._colors is None else QColor.fromRgbF(*map(float, self._colors[cell]))
            )
        if role == BAR and column.bars is not None and not column.missing[cell]:
            return tuple(map(float, column.bars[:, cell]))
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Titles of the columns, with hints."""
        if self.ranking is None or orientation != Qt.Orientation.Horizontal:
            return None
        title = self.ranking.titles[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return title.replace(" ", "\n") if self._tall else title
        help = plain(self.ranking.columns[title].help)
        return help if role == Qt.ItemDataRole.ToolTipRole else None
