"""Lists all cells by rank, sorted and filtered, linked with the image through the selection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    QPointF,
    QRectF,
    Qt,
    Signal,
)
from qtpy.QtGui import QColor, QKeySequence, QPen
from qtpy.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QHeaderView,
    QLineEdit,
    QMenu,
    QSizePolicy,
    QStyledItemDelegate,
    QTableView,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.attribution.ranking import Ranking, RowFilter
from napari_xcebra.text import chance_text, counted
from napari_xcebra.widgets.controls.boxes import plain
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.plots.plot_style import BLUE, ORANGE

ARROW, MARGIN = 16, 12
"""Pixels beside a title for the arrow of sorting, and around every entry."""


class _BarDelegate(QStyledItemDelegate):
    """Draws the bar of an entry under its text: a line with a mark on it."""

    def paint(self, painter: Any, option: Any, index: QModelIndex) -> None:
        """Draw the entry as Qt does, then the bar."""
        super().paint(painter, option, index)
        bar = index.data(BAR)
        if bar is None:
            return
        inside = QRectF(option.rect).adjusted(5, 0, -5, 0)
        begin, mark, end = (inside.left() + part * inside.width() for part in bar)
        y = inside.bottom() - 2
        painter.save()
        painter.setPen(QPen(QColor(BLUE), 2))
        painter.drawLine(QPointF(begin, y), QPointF(max(end, begin + 2), y))
        painter.setPen(QPen(QColor(ORANGE), 2))
        painter.drawLine(QPointF(mark, y - 2), QPointF(mark, y + 2))
        painter.restore()


class CellTable(QWidget):
    """Table with a filter; reports which rows are marked, and can mark others.

    With `tall_titles`, titles have one word per line, for columns narrower than their titles.
    """

    marked = Signal(object)
    """Positions of the cells whose rows the user marked."""

    def __init__(self, *, tall_titles: bool = False) -> None:
        super().__init__()
        self.model = _CellModel(tall_titles=tall_titles)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Find by id or name")
        self.search.setToolTip(
            "The start of an id or part of a name; separate several with commas."
        )
        self.search.setClearButtonEnabled(True)
        self.accepted_only = QCheckBox("accepted")
        self.accepted_only.setToolTip("Show accepted cells only.")
        self.above_only = QCheckBox("above threshold")
        self.above_only.setToolTip("Show cells above the threshold only.")
        self.view = _RankedView(self.model)
        filters = in_row((self.search, 1), self.accepted_only, self.above_only)
        in_column(filters, (self.view, 1), of=self, spacing=3).setContentsMargins(0, 4, 0, 0)
        self._marked = np.zeros(0, np.int64)
        self._narrowed: tuple[float | None, bool] = (None, False)
        self.search.textChanged.connect(self._filter)
        self.accepted_only.toggled.connect(self._filter)
        self.above_only.toggled.connect(self._filter)
        self.model.modelReset.connect(self._mark_again)
        self.view.selectionModel().selectionChanged.connect(self._tell)

    def show_ranking(self, ranking: Ranking | None, colors: np.ndarray | None = None) -> None:
        """Show another table."""
        before = self.model.ranking.titles if self.model.ranking else ()
        self.model.show_ranking(ranking, colors)
        if ranking is not None and ranking.titles != before:
            self.view.size_columns()

    def narrow(self, q_limit: float | None, *, stable_only: bool = False) -> None:
        """Show only cells with a q up to a limit (None for all), or on which all seeds agree."""
        if (q_limit, stable_only) != self._narrowed:
            self._narrowed = (q_limit, stable_only)
            self._filter()

    def mark(self, cells: np.ndarray) -> None:
        """Mark rows, and scroll to the first; nothing is reported."""
        if np.array_equal(cells, self._marked):
            return
        self._marked = np.asarray(cells, np.int64)
        rows = self._mark_again()
        if len(rows):
            first = self.model.rows_of(self._marked[:1])
            row = int(first[0]) if len(first) else int(rows[0])
            self.view.scrollTo(self.model.index(row, 0))

    @property
    def current_cell(self) -> int | None:
        """Position of the cell whose row was marked last."""
        row = self.view.currentIndex().row()
        return int(self.model.cells[row]) if 0 <= row < len(self.model.cells) else None

    def _filter(self) -> None:
        accepted, above = self.accepted_only.isChecked(), self.above_only.isChecked()
        self.model.filter(RowFilter(self.search.text(), accepted, above, *self._narrowed))

    def _mark_again(self) -> np.ndarray:
        """Mark the rows of the marked cells again after rows or cells changed."""
        rows = self.model.rows_of(self._marked)
        last = max(0, self.model.columnCount() - 1)
        marks = QItemSelection()
        for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
            if len(run):
                ends = self.model.index(int(run[0]), 0), self.model.index(int(run[-1]), last)
                marks.select(*ends)
        selection = self.view.selectionModel()
        with signals_blocked(selection):
            selection.select(marks, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.view.viewport().update()
        return rows

    def _tell(self) -> None:
        self._marked = self.view.marked_cells()
        self.marked.emit(self._marked)


class _RankedView(QTableView):
    """The table itself: rows are marked whole, and copied as text."""

    def __init__(self, model: _CellModel) -> None:
        super().__init__()
        self._model = model
        self.setModel(model)
        self.setItemDelegate(_BarDelegate(self))
        self.setToolTip("Click a row to show the cell; click a column title to sort.")
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setShowGrid(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.setMinimumHeight(150)
        self.horizontalHeader().setStyleSheet("QHeaderView::section { font-weight: normal; }")
        rows = self.verticalHeader()
        rows.hide()
        # one height for all: measuring 10,000 rows would take seconds
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(self.fontMetrics().height() + 4)
        self.setSortingEnabled(True)
        self.horizontalHeader().setSortIndicator(0, Qt.SortOrder.AscendingOrder)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)

    def size_columns(self) -> None:
        """Make each column wide enough for its title and numbers, and the last for what is left."""
        header, wide = self.horizontalHeader(), self.fontMetrics().horizontalAdvance
        header.setMinimumSectionSize(5 * self.fontMetrics().averageCharWidth())
        header.setStretchLastSection(True)
        ranking = self._model.ranking
        for i, column in enumerate(ranking.columns.values() if ranking else ()):
            title = str(self._model.headerData(i, Qt.Orientation.Horizontal))
            swatch = self.verticalHeader().defaultSectionSize() if column.name == SWATCH else 0
            words = [wide(line) + ARROW for line in title.splitlines()]
            numbers = [wide(text) + swatch for text in column.longest()]
            header.resizeSection(i, max([*words, *numbers], default=0) + MARGIN)

    def marked_cells(self) -> np.ndarray:
        """Positions of the cells whose rows are marked, from top to bottom."""
        ranges = self.selectionModel().selection()
        rows = [
            row
            for i in range(len(ranges))
            for row in range(ranges[i].top(), ranges[i].bottom() + 1)
        ]
        return self._model.cells[np.unique(np.array(rows, np.int64))]

    def copy(self, cells: np.ndarray) -> None:
        """Copy rows to the clipboard; all visible ones if none is given."""
        clipboard, ranking = QApplication.clipboard(), self._model.ranking
        if clipboard is not None and ranking is not None:
            clipboard.setText(ranking.as_tsv(cells if len(cells) else self._model.cells))

    def keyPressEvent(self, event: Any) -> None:
        """Copy on Ctrl+C; the rest is Qt's."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy(self.marked_cells())
        else:
            super().keyPressEvent(event)

    def _open_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        marked = self.marked_cells()
        if len(marked):
            menu.addAction(f"Copy {counted(len(marked), 'selected row')}").triggered.connect(
                lambda _=False: self.copy(marked)
            )
        menu.addAction("Copy the whole table").triggered.connect(
            lambda _=False: self.copy(self._model.cells)
        )
        menu.exec(self.viewport().mapToGlobal(at))


SWATCH = "rank"
"""Column that shows the colour of the cell."""
MARKS = {"yes": "✓", "no": ""}
BAR = Qt.ItemDataRole.UserRole
"""Role of the bar under an entry's text: its start, mark and end, between 0 and 1."""
SIDES = {"U": Qt.AlignmentFlag.AlignLeft, "b": Qt.AlignmentFlag.AlignHCenter}
"""Alignment of words, and of yes and no; numbers are right-aligned."""


class _CellModel(QAbstractTableModel):
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
            if name == "q" and text:
                return chance_text(column.values[cell])
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
