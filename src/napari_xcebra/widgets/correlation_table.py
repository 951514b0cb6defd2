"""Rank correlations between each two of several rankings, as a coloured table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QAbstractTableModel, QModelIndex, QSize, Qt
from qtpy.QtGui import QBrush, QColor
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QSizePolicy, QTableView

from napari_xcebra.attribution.comparison import short_number, title_of
from napari_xcebra.widgets.plain_plot import BLUE, ORANGE
from napari_xcebra.widgets.plot_style import PlotStyle

if TYPE_CHECKING:
    import pandas as pd

CELL = QSize(36, 20)


class _Model(QAbstractTableModel):
    """Numbers with a colour each."""

    def __init__(self) -> None:
        super().__init__()
        self.values = np.zeros((0, 0))
        self.names: list[str] = []
        self.style: PlotStyle | None = None

    def show_values(self, values: pd.DataFrame) -> None:
        self.beginResetModel()
        self.values = values.to_numpy(np.float64)
        self.names = [str(name) for name in values.index]
        self.endResetModel()

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 -- Qt's signature
        return 0 if parent.isValid() else len(self.values)

    def columnCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 -- Qt's signature
        return 0 if parent.isValid() else self.values.shape[1]

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        value = float(self.values[index.row(), index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return "" if np.isnan(value) else short_number(value)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignCenter
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._brush(value)
        if role == Qt.ItemDataRole.ToolTipRole:
            row, column = (title_of(self.names[i]) for i in (index.row(), index.column()))
            if np.isnan(value):
                return f"Too few cells have a rank both by {row} and by {column}."
            return f"Spearman's ρ of the ranking by {row} with that by {column}: {value:.3f}"
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        title = title_of(self.names[section])
        if role == Qt.ItemDataRole.ToolTipRole:
            return title
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        # columns are told by the numbers of the rows, so that they can be narrow
        short = orientation == Qt.Orientation.Horizontal
        return str(section + 1) if short else f"{section + 1}  {title}"

    def _brush(self, value: float) -> QBrush | None:
        """From the background at 0 to a full colour at −1 and 1."""
        if self.style is None or np.isnan(value):
            return None
        ends = QColor(self.style.background), QColor(ORANGE if value > 0 else BLUE)
        share = 0.85 * min(abs(value), 1)
        mixed = [
            (1 - share) * a + share * b for a, b in zip(*map(QColor.getRgbF, ends), strict=True)
        ]
        return QBrush(QColor.fromRgbF(*mixed[:3]))


class CorrelationTable(QTableView):
    """A row and a column a ranking; what a number means is told on hovering over it."""

    def __init__(self) -> None:
        super().__init__()
        self.model_ = _Model()
        self.setModel(self.model_)
        self.setToolTip("How far each two rankings of the cells agree: Spearman's ρ.")
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setShowGrid(False)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        across, down = self.horizontalHeader(), self.verticalHeader()
        for header, size in ((across, CELL.width()), (down, CELL.height())):
            header.setMinimumSectionSize(size)
            header.setDefaultSectionSize(size)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        down.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.setStyleSheet("QHeaderView::section { font-weight: normal; padding: 0 6px 0 2px; }")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def show_correlations(self, values: pd.DataFrame) -> None:
        """Show other numbers: (rankings, rankings)."""
        self.model_.show_values(values)
        self.updateGeometry()

    def follow_theme(self, style: PlotStyle) -> None:
        """Take on the colours of a theme."""
        self.model_.style = style
        self.viewport().update()

    def sizeHint(self) -> QSize:
        """As large as all of it."""
        count = self.model_.rowCount()
        names = self.verticalHeader().sizeHint().width()
        heads = self.horizontalHeader().sizeHint().height()
        return QSize(names + count * CELL.width() + 4, heads + count * CELL.height() + 4)
