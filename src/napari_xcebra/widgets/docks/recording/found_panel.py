"""Shows what was found in a recording: facts, variables, and how it was read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
from qtpy.QtCore import QPointF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.recording import KINDS, Recording
from napari_xcebra.recording.summary import Look, VariableLook, facts, look_into
from napari_xcebra.text import percent
from napari_xcebra.widgets.controls.boxes import slim
from napari_xcebra.widgets.controls.layouts import Fold, in_column, reach_after, spare_from_wheel
from napari_xcebra.widgets.controls.lifetime import follow
from napari_xcebra.widgets.controls.plain_text import PlainLabel
from napari_xcebra.widgets.controls.wording import in_dock
from napari_xcebra.widgets.plots.trials_picture import TrialsPicture
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.work.background import in_background

# Okabe and Ito; visible on napari's dark and light background alike
COLORS = ("#3C8FD0", "#D55E00", "#009E73")
MARGIN = 3


class Sparkline(QWidget):
    """Lines without axes.

    Parameters
    ----------
    lines : sequence of (points, 2) float
        Both axes from 0 to 1; a line is broken where it is NaN.
    dots : bool
        Draw the points alone, for values that have no order or wrap around.
    """

    def __init__(self, lines: Sequence[np.ndarray], dots: bool = False) -> None:
        super().__init__()
        self._lines = lines
        self._dots = dots
        self.setMinimumSize(48, 18)

    def sizeHint(self) -> QSize:
        """Small."""
        return QSize(70, 22)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for line, color in zip(self._lines, COLORS, strict=False):
            painter.setPen(QPen(QColor(color), 2.0 if self._dots else 1.2))
            for piece in _pieces(self._scaled(line)):
                points = QPolygonF([QPointF(x, y) for x, y in piece.tolist()])
                if self._dots or len(piece) == 1:
                    painter.drawPoints(points)
                else:
                    painter.drawPolyline(points)
        painter.end()

    def _scaled(self, line: np.ndarray) -> np.ndarray:
        size = np.array([self.width(), self.height()]) - 2 * MARGIN
        return MARGIN + np.abs([0, 1] - line) * size


def _pieces(line: np.ndarray) -> list[np.ndarray]:
    """Parts of a line between gaps."""
    known = np.isfinite(line).all(axis=1)
    edges = np.flatnonzero(np.diff(known)) + 1
    return [piece for piece in np.split(line, edges) if len(piece) and np.isfinite(piece).all()]


LAST = 99
"""Row below all facts; rows without any take no room."""


class PixelSize(QDoubleSpinBox):
    """Micrometres per pixel; 0 if it is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(
            "Micrometres per pixel: type it for a scale bar on the image and in figures. It is "
            "remembered for this recording."
        )
        self.setRange(0, 1e4)
        self.setDecimals(6)
        self.setSuffix(" µm")
        self.setSpecialValueText("unknown")
        # a half-typed number must not take effect
        self.setKeyboardTracking(False)
        slim(self, 90)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft)

    def textFromValue(self, value: float) -> str:
        """No more digits than it has."""
        return f"{value:g}"

    def show_size(self, size: float | None) -> None:
        """Show a size without a change signal."""
        with signals_blocked(self):
            self.setValue(size or 0)


class FactList(QWidget):
    """Rows of text that can be copied, and last the size of a pixel, which can be changed."""

    def __init__(self) -> None:
        super().__init__()
        # a form would give lines of text that wrap the height of others
        self._rows = QGridLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setColumnStretch(1, 1)
        self._texts: dict[str, tuple[QLabel, QLabel]] = {}
        self.pixel_size = PixelSize()
        self._size_title = QLabel("Pixel size:")
        self._size_title.setBuddy(self.pixel_size)
        self._rows.addWidget(self._size_title, LAST, 0)
        self._rows.addWidget(self.pixel_size, LAST, 1)

    def show_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show these and no others."""
        if [what for what, _ in facts] != list(self._texts):
            for label in (label for row in self._texts.values() for label in row):
                label.hide()
                label.deleteLater()
            self._texts = {what: self._add_row(i, what) for i, (what, _) in enumerate(facts)}
        for what, how_much in facts:
            self._texts[what][1].setText(how_much)
        # longer texts may need more lines
        self.updateGeometry()

    def show_pixel_size(self, recording: Recording) -> None:
        """Show how large a pixel is; cells on a grid have no pixels."""
        self.pixel_size.show_size(recording.pixel_size)
        for part in (self._size_title, self.pixel_size):
            part.setVisible(recording.footprints is not None)

    @property
    def facts(self) -> dict[str, str]:
        """What is shown."""
        return {what: text.text() for what, (_, text) in self._texts.items()}

    def _add_row(self, row: int, what: str) -> tuple[QLabel, QLabel]:
        title, text = QLabel(f"{what}:"), PlainLabel(wrap=True)
        title.setAlignment(Qt.AlignmentFlag.AlignTop)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._rows.addWidget(title, row, 0)
        self._rows.addWidget(text, row, 1)
        return title, text


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
        self._how = Fold("How it was read", "Choices made while reading the files.")
        self._how.addWidget(self.notes)
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
