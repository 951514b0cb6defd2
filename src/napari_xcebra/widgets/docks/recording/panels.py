"""Parts of the Recording dock: what was found, questions, where files are dropped, and the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHeaderView,
    QLabel,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.io.orientation import LayoutUnclear, reading
from napari_xcebra.recording import KINDS, Recording
from napari_xcebra.recording.summary import Look, VariableLook, facts, look_into
from napari_xcebra.text import counted, listed, percent
from napari_xcebra.widgets.controls.boxes import DecimalBox, PlainLabel, plain, primary_button, slim
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.controls.layouts import (
    Fold,
    in_column,
    in_row,
    keep_room,
    reach_after,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import EDGES, NextStep, Notice
from napari_xcebra.widgets.docks.recording.opener import SAMPLES
from napari_xcebra.widgets.plots.pictures import Sparkline, TrialsPicture
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.preferences import recent_paths
from napari_xcebra.widgets.state.state import State
from napari_xcebra.workspace_file import Opened

LAST = 99
"""Row below all facts; rows without any take no room."""


class _PixelSize(DecimalBox):
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


class _FactList(QWidget):
    """Rows of text that can be copied, and last the size of a pixel, which can be changed."""

    def __init__(self) -> None:
        super().__init__()
        # a form would give lines of text that wrap the height of others
        self._rows = QGridLayout(self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setColumnStretch(1, 1)
        self._texts: dict[str, tuple[QLabel, QLabel]] = {}
        self.pixel_size = _PixelSize()
        self._size_title = QLabel("Pixel size:")
        self._size_title.setBuddy(self.pixel_size)
        self._rows.addWidget(self._size_title, LAST, 0)
        # aligned, it does not keep the column as narrow as itself
        self._rows.addWidget(self.pixel_size, LAST, 1, Qt.AlignmentFlag.AlignLeft)

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


class _VariablesTable(QTableWidget):
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
        self.facts = _FactList()
        self.facts.pixel_size.valueChanged.connect(self.pixel_size_chosen)
        self.table = _VariablesTable()
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


RECENT = 8
"""Recordings in the menu that were opened before."""
LONGEST = 60
"""Characters of their paths."""


class DropTarget(QFrame):
    """What there is to do while no recording is open; the dock takes what is dropped on it.

    Parameters
    ----------
    open_sample : callable
        Called with the key of a sample.
    """

    chosen = Signal(str)
    """A path that was browsed for."""

    def __init__(self, open_sample: Callable[[str], None]) -> None:
        super().__init__()
        self.setObjectName("drop")
        self.setStyleSheet("#drop { border: 2px dashed #808080; border-radius: 8px; }")
        title = QLabel("Drop a recording here")
        title.setStyleSheet("font-size: 17px; font-weight: bold;")
        kinds = QLabel("suite2p · CaImAn · NWB · Minian · Inscopix · arrays …")
        for label in (title, kinds):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
        self.browse = primary_button("Browse…")
        self.browse.setToolTip("Choose the folder or file from your extractor.")
        self._menu = QMenu(self.browse)
        self._menu.aboutToShow.connect(self._list_choices)
        self.browse.setMenu(self._menu)
        self.sample = sample_button(open_sample)
        buttons = in_row(1, self.browse, self.sample, 1, spacing=12)
        column = in_column(1, title, kinds, buttons, 1, of=self, spacing=14)
        column.setContentsMargins(12, 24, 12, 24)
        self.setMinimumHeight(220)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self._list_choices()

    def _list_choices(self) -> None:
        """A folder, a file, or what was opened before."""
        self._menu.clear()
        self._menu.addAction("Folder…", self._browse_folder)
        self._menu.addAction("File…", self._browse_file)
        self._menu.addSeparator()
        for path in recent_paths()[:RECENT]:
            self._menu.addAction(_shortened(path), partial(self.chosen.emit, path))

    def _browse_folder(self) -> None:
        self._tell(QFileDialog.getExistingDirectory(self, "Choose the recording"))

    def _browse_file(self) -> None:
        self._tell(QFileDialog.getOpenFileName(self, "Choose the recording")[0])

    def _tell(self, path: str) -> None:
        if path:
            self.chosen.emit(path)


def sample_button(open_sample: Callable[[str], None]) -> QPushButton:
    """Button with a menu of the samples."""
    button = QPushButton("Open a sample")
    button.setToolTip("No data at hand? Try a simulated recording.")
    menu = QMenu(button)
    menu.setToolTipsVisible(True)
    for key, sample in SAMPLES.items():
        action = menu.addAction(sample.title, partial(open_sample, key))
        action.setToolTip(sample.help)
    button.setMenu(menu)
    return button


def _shortened(path: str) -> str:
    """Path for a menu: its end tells recordings apart; Qt would take & for a shortcut."""
    shown = path if len(path) <= LONGEST else f"…{path[-LONGEST:]}"
    return shown.replace("&", "&&")


CELLS_SHOWN, FRAMES_SHOWN = 5, 120
"""Lines of a picture, and the frames along each."""
LAYOUTS = {True: "cells-frames", False: "frames-cells"}
"""Values of the setting `layout`, by whether cells come first."""
Answer = Callable[[bool], None]
"""Called with whether the recording in front is to be replaced."""


class _ReplaceOrAdd(QFrame):
    """A question with three buttons; hidden until something is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("question")
        self.setStyleSheet(f"#question {{ border-left: 3px solid {EDGES['warning']}; }}")
        self._then: Answer | None = None
        self.sentence = PlainLabel(wrap=True)
        self.replace = QPushButton("Replace")
        self.replace.setToolTip("Close the open recording once the new one is read.")
        self.add = QPushButton("Keep both")
        self.add.setToolTip("Add it; choose which one is in front at the top of this dock.")
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Open nothing.")
        buttons = in_row((self.replace, 1), (self.add, 1), self.cancel)
        in_column(self.sentence, buttons, of=self).setContentsMargins(8, 6, 8, 6)
        self.replace.clicked.connect(lambda _=False: self._answer(True))
        self.add.clicked.connect(lambda _=False: self._answer(False))
        self.cancel.clicked.connect(lambda _=False: self.withdraw())
        self.hide()

    def ask(self, name: str, opened: str, unsaved: int, then: Answer) -> None:
        """Ask about opening `name` while `opened` is in front, with so many unsaved runs."""
        self._then = then
        lost = f" Replacing it loses {counted(unsaved, 'unsaved run')}." if unsaved else ""
        self.sentence.setText(f"{opened} is open. Replace it with {name}, or keep both?{lost}")
        self.show()
        (self.add if unsaved else self.replace).setFocus()

    def withdraw(self) -> None:
        """Ask no longer."""
        self._then = None
        self.hide()

    def forget_recording(self) -> None:
        """Ask no longer: the recording that was named is not in front."""
        self.withdraw()

    def _answer(self, replacing: bool) -> None:
        then = self._then
        self.withdraw()
        if then is not None:
            then(replacing)


class _WhichAxis(QFrame):
    """An array in both readings, side by side, with a button each; hidden until it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("question")
        self.setStyleSheet(f"#question {{ border-left: 3px solid {EDGES['warning']}; }}")
        self._then: Callable[[str], None] | None = None
        self.sentence = PlainLabel(wrap=True)
        self.buttons = {first: QPushButton() for first in LAYOUTS}
        self.pictures = {first: QWidget() for first in LAYOUTS}
        self._reasons = {first: PlainLabel(wrap=True) for first in LAYOUTS}
        halves = []
        for first, button in self.buttons.items():
            button.setToolTip(f"Read it so (layout {LAYOUTS[first]}).")
            button.clicked.connect(lambda _=False, first=first: self._answer(first))
            self._reasons[first].setAlignment(Qt.AlignmentFlag.AlignTop)
            self.pictures[first].setToolTip(
                "Some of the traces in this reading, time from left to right."
            )
            halves.append(in_column(self.pictures[first], button, (self._reasons[first], 1)))
        sides = in_row(*((half, 1) for half in halves), spacing=8)
        in_column(self.sentence, sides, of=self).setContentsMargins(8, 6, 8, 6)
        self.hide()

    def ask(self, unclear: LayoutUnclear, then: Callable[[str], None]) -> None:
        """Ask about an array; `then` is called with the layout that was chosen."""
        self._then = then
        self.sentence.setText(f"{unclear.name}: which picture looks like traces of cells?")
        for first in LAYOUTS:
            self.buttons[first].setText(reading(unclear.shape, first))
            self._reasons[first].setText(unclear.reasons[first])
            self._reasons[first].setVisible(bool(unclear.reasons[first]))
            self._draw(first, unclear.block if first else unclear.block.T)
        self.show()

    def withdraw(self) -> None:
        """Ask no longer."""
        self._then = None
        self.hide()

    def forget_recording(self) -> None:
        """Ask no longer: another recording is in front."""
        self.withdraw()

    def _draw(self, first: bool, cells: np.ndarray) -> None:
        """Draw the most varied of (cells, frames), in their order."""
        old = self.pictures[first]
        new = QWidget()
        new.setToolTip(old.toolTip())
        in_column(*map(_line, _most_varied(cells)), of=new, spacing=0)
        layout = self.layout()
        assert layout is not None
        layout.replaceWidget(old, new)
        old.deleteLater()
        self.pictures[first] = new

    def _answer(self, first: bool) -> None:
        then = self._then
        self.withdraw()
        if then is not None:
            then(LAYOUTS[first])


def _most_varied(cells: np.ndarray) -> np.ndarray:
    """(up to 5, frames) of a block (cells, frames), those that vary most."""
    known = np.where(np.isfinite(cells), cells, 0.0)[:, :FRAMES_SHOWN].astype(np.float64)
    return known[np.sort(np.argsort(-known.var(axis=1), kind="stable")[:CELLS_SHOWN])]


def _line(trace: np.ndarray) -> Sparkline:
    spread = np.ptp(trace)
    heights = (trace - trace.min()) / (spread if spread > 0 else 1.0)
    return Sparkline([np.c_[np.linspace(0, 1, len(trace)), heights]])


class Footer(QWidget):
    """Below the dock, where what is said moves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.question = _ReplaceOrAdd()
        self.which_axis = _WhichAxis()
        self.notice = Notice()
        self.busy = QProgressBar()
        self.busy.setRange(0, 0)
        self.busy.setToolTip("Reading the files; you can keep working.")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop reading the files.")
        self.next = NextStep()
        for part in (self.busy, self.cancel_button):
            keep_room(part)
        waiting = in_row((self.busy, 1), self.cancel_button)
        said = QWidget()
        column = in_column(self.question, self.which_axis, self.notice, waiting, of=said)
        column.setContentsMargins(9, 4, 9, 0)
        in_column(said, self.next, of=self, spacing=0)

    def show_busy(self, busy: bool) -> None:
        """Show that something is being read, with a way to stop it."""
        self.busy.setVisible(busy)
        self.cancel_button.setVisible(busy)

    def say_begun(self, name: str) -> None:
        """Say what is being read."""
        self.which_axis.withdraw()
        self.notice.say(f"Reading {name} …")

    def say_taken(self, name: str) -> None:
        """Say that a table is taken for the recording, as there is no other."""
        self.notice.say(
            f"{name} will be read as cell traces. If it is behaviour, drop the recording as "
            "well: the file then moves to Behaviour."
        )

    def say_cleared(self, name: str) -> None:
        """Say that the form no longer holds what belonged to another recording."""
        self.notice.say(f"Cleared the behaviour and settings of {name}: they belong to it alone.")

    def say_added(self, names: Sequence[str]) -> None:
        """Say which files were added to the recording, and how to undo that."""
        self.notice.say(
            f"Added {listed(names)} to this recording. To undo this, remove it in “Open "
            "or add files”, and press Open again.",
            "good",
        )

    def say_next(self, recording: Recording | None) -> None:
        """Say what to do next."""
        if recording is None:
            text = "Next: drop a recording, or open a sample."
        elif not recording.behavior:
            text = "Next: add a behaviour file and press Open again, or drop it on the image."
        else:
            text = "Next: choose variables in Train."
        self.next.say(text, "Train" if recording is not None else "")

    def may_close(self, opened: Opened) -> bool:
        """Ask whether a recording is closed, if runs would be lost with it."""
        if not opened.runs:
            return True
        runs = counted(len(opened.runs), "trained run")
        answer = QMessageBox.question(
            self,
            "Close recording",
            plain(f"{opened.name} has {runs}. Unsaved results will be lost. Close it anyway?"),
        )
        return answer == QMessageBox.StandardButton.Yes
