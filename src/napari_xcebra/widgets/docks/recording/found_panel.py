"""Shows what was found in a recording: facts, variables, and how it was read."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from napari_xcebra.recording import KINDS, Recording
from napari_xcebra.recording.summary import Look, VariableLook, facts, look_into
from napari_xcebra.text import percent
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.controls.layouts import Fold, in_column, reach_after, spare_from_wheel
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.docks.recording.fact_list import FactList
from napari_xcebra.widgets.plots.pictures import Sparkline, TrialsPicture
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.state import State

NAME, KIND, COURSE, KNOWN, RANGE = range(5)
HEADINGS = {
    "Variable": "Name in the behaviour file.",
    "Kind": "Choose what it is: continuous (speed), circular (an angle), discrete (a condition).",
    "Course": "One minute from the middle of the recording; one colour per column.",
    "Known": "Share of frames with a value.",
    "Range": "Lowest and highest value, with the unit if the name gives it.",
}
MOST_ROWS = 8
ROW = 28
KIND_WIDTH, COURSE_WIDTH = 108, 56


class VariablesTable(QTableWidget):
    """One row per variable, with a box for its kind."""

    kind_chosen = Signal(str, str)

    def __init__(self) -> None:
        super().__init__(0, len(HEADINGS))
        self.setHorizontalHeaderLabels(list(HEADINGS))
        for place, text in enumerate(HEADINGS.values()):
            self.horizontalHeaderItem(place).setToolTip(text)
        self.setToolTip("Behaviour at each frame; correct the kind where the guess is wrong.")
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
        # usually all values are known, and the column is not needed
        self.setColumnHidden(KNOWN, all(one.known == 1 for one in looks.values()))
        self._fit_height()

    def kind_box(self, name: str) -> QComboBox:
        """The box with the kind of a variable."""
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


class FoundPanel(QWidget):
    """What was found; hidden until there is a recording.

    Facts that need all values are filled in once they were read in the background.
    """

    kind_chosen = Signal(str, str)
    pixel_size_chosen = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self._recording: Recording | None = None
        self.facts = FactList()
        self.facts.pixel_size.valueChanged.connect(self.pixel_size_chosen)
        self.table = VariablesTable()
        self.table.kind_chosen.connect(self.kind_chosen)
        self.trials = TrialsPicture()
        self.notes = QLabel()
        self.notes.setWordWrap(True)
        self.notes.setTextFormat(Qt.TextFormat.RichText)
        self.notes.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._how = Fold("How it was read", "Choices made while reading the files.", self.notes)
        in_column(self.facts, self.trials, self.table, self._how, of=self)

    def show_recording(self, recording: Recording | None) -> None:
        """Show what is known at once, then look at all values."""
        self._recording = recording
        self.setVisible(recording is not None)
        if recording is None:
            return
        self._describe(recording)
        self.trials.show_recording(recording)
        in_background(
            partial(look_into, recording),
            partial(self._describe_if_shown, recording),
            self._cannot_look,
            owner=self,
        )

    def _describe_if_shown(self, recording: Recording, look: Look) -> None:
        if self._recording is recording:
            self._describe(recording, look)

    def _cannot_look(self, sentence: str, details: str) -> None:
        """Traces on disk may have been moved since."""
        self.notes.setText(f"• {escape(in_dock(sentence))}<br>{self.notes.text()}")

    def _describe(self, recording: Recording, look: Look | None = None) -> None:
        self.facts.show_facts(facts(recording, look))
        self.facts.show_pixel_size(recording)
        self.table.setVisible(bool(recording.behavior))
        self.table.show_recording(recording, look)
        notes = (*recording.warnings, *recording.notes)
        self.notes.setText("<br>".join(f"• {escape(in_dock(note))}" for note in notes))
        self._how.setVisible(bool(notes))


class LayersButton(QPushButton):
    """Adds back layers that the user has removed; hidden while none are missing."""

    def __init__(self, state: State) -> None:
        super().__init__("Show layers again")
        self.setToolTip("Add back the image and cell layers that were removed.")
        self._state = state
        self.clicked.connect(self._add)
        follow(self, state.viewer.layers.events.inserted, self.mark)
        follow(self, state.viewer.layers.events.removed, self.mark)
        self.hide()

    def mark(self, event: Any = None) -> None:
        """Show the button if layers are missing."""
        opened = self._state.current
        self.setVisible(bool(opened and self._state.layers.lacks_some(opened)))

    def _add(self) -> None:
        if self._state.current is not None:
            self._state.layers.add(self._state.current)
            self.mark()
