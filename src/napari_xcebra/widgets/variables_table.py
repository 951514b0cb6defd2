"""Behaviour variables of a recording: what they are, and what they are taken for."""

from __future__ import annotations

from functools import partial

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QAbstractItemView, QComboBox, QHeaderView, QTableWidget, QTableWidgetItem

from napari_xcebra.recording import KINDS, Recording
from napari_xcebra.widgets.overview import Look, VariableLook, percent
from napari_xcebra.widgets.sparkline import Sparkline
from napari_xcebra.widgets.tab_order import reach_after
from napari_xcebra.widgets.wheel import spare_from_wheel

NAME, KIND, COURSE, KNOWN, RANGE = range(5)
HEADINGS = {
    "Variable": "As the behaviour file calls it.",
    "Kind": "Choose what it is: continuous (speed), circular (an angle), discrete (a condition).",
    "Course": "A minute in the middle of the recording; a colour for each column.",
    "Known": "Share of the frames that have a value.",
    "Range": "Lowest and highest value, and the unit if the name tells it.",
}
MOST_ROWS = 8
ROW = 28
KIND_WIDTH, COURSE_WIDTH = 108, 56


class VariablesTable(QTableWidget):
    """One row a variable, with a box for its kind."""

    kind_chosen = Signal(str, str)

    def __init__(self) -> None:
        super().__init__(0, len(HEADINGS))
        self.setHorizontalHeaderLabels(list(HEADINGS))
        for column, text in enumerate(HEADINGS.values()):
            self.horizontalHeaderItem(column).setToolTip(text)
        self.setToolTip("Behaviour at the frames; change a kind that was guessed wrong.")
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setMinimumSectionSize(40)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)

    def show_recording(self, recording: Recording, look: Look | None = None) -> None:
        """Show the variables; range and course once they were looked at."""
        looks = {look.variable.name: look for look in (look.variables if look else ())}
        self.setRowCount(0)
        self.setRowCount(len(recording.behavior))
        for row, (name, variable) in enumerate(recording.behavior.items()):
            self.setItem(row, NAME, QTableWidgetItem(name))
            self.setCellWidget(row, KIND, self._kind_box(name, variable.kind))
            if variable.name in looks:
                self._show_look(row, looks[variable.name])
        reach_after(self, [self.cellWidget(row, KIND) for row in range(self.rowCount())])
        # usually all are known everywhere, which needs no column
        self.setColumnHidden(KNOWN, all(one.known == 1 for one in looks.values()))
        self._fit_height()

    def kind_box(self, name: str) -> QComboBox:
        """The box that says what a variable is taken for."""
        rows = [row for row in range(self.rowCount()) if self.item(row, NAME).text() == name]
        return self.cellWidget(rows[0], KIND)

    def _kind_box(self, name: str, kind: str) -> QComboBox:
        box = QComboBox()
        box.addItems(KINDS)
        box.setCurrentText(kind)
        box.setToolTip(HEADINGS["Kind"])
        box.setStyleSheet("padding: 1px 4px;")
        box.setFixedWidth(KIND_WIDTH)
        box.textActivated.connect(partial(self.kind_chosen.emit, name))
        spare_from_wheel(box)
        return box

    def _show_look(self, row: int, look: VariableLook) -> None:
        self.setItem(row, RANGE, QTableWidgetItem(look.range))
        known = QTableWidgetItem(percent(look.known))
        known.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setItem(row, KNOWN, known)
        line = Sparkline(look.lines, dots=look.variable.kind == "circular")
        line.setMinimumWidth(COURSE_WIDTH)
        line.setToolTip(HEADINGS["Course"])
        self.setCellWidget(row, COURSE, line)

    def _fit_height(self) -> None:
        """As tall as its rows, up to a point; then it scrolls."""
        rows = min(max(self.rowCount(), 1), MOST_ROWS)
        bar = self.horizontalScrollBar().sizeHint().height()
        header = self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(header + rows * ROW + bar + 2 * self.frameWidth())
