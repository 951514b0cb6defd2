"""Tells the user one thing: a notice with details to copy, or the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.support.diagnostics import diagnostics
from napari_xcebra.widgets.controls.layouts import TWO_LINES, keep_room
from napari_xcebra.widgets.controls.plain_text import PlainLabel, plain
from napari_xcebra.widgets.controls.wording import in_dock

if TYPE_CHECKING:
    from napari_xcebra.learn.settings import FitSettings


def copy_diagnostics(error: str = "", settings: FitSettings | None = None) -> str:
    """Copy diagnostics to the clipboard, and return them."""
    told = diagnostics(settings, error)
    clipboard = QApplication.clipboard()
    if clipboard is not None:
        clipboard.setText(told)
    return told


Tone = Literal["plain", "good", "warning", "problem"]

# readable on napari's dark and light background alike
EDGES: dict[Tone, str] = {
    "plain": "#808080",
    "good": "#009E73",
    "warning": "#E69F00",
    "problem": "#D55E00",
}


VERDICT_HELP = (
    "Above chance: how much better pairs of moments with similar values are recognised on "
    "held-out stretches than with labels shifted in time (nats: natural logarithm; 0 is "
    "chance). What is possible: the same measure if the variable itself were the input. R², or "
    "accuracy of a discrete variable: how well it is decoded on held-out stretches; 1 is "
    "perfect. Ridge regression: how well the simplest decoder does from the cells themselves. "
    "p: how likely a variable unrelated to the cells would do as well. λ: how strongly the "
    "model was kept simple."
)
"""What the numbers in a verdict mean."""


class Notice(QFrame):
    """Hidden until something is said, which is forgotten when another recording is in front.

    With `lasting`, it speaks of something else than the recording in front, and stays.
    """

    def __init__(self, *, lasting: bool = False) -> None:
        super().__init__()
        self._lasting = lasting
        self.setObjectName("notice")
        self._text = PlainLabel(wrap=True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._more = QPushButton("Details")
        self._more.setToolTip("Show the full error message, to copy into a report.")
        self._more.setCheckable(True)
        self._copy = QPushButton("Copy diagnostics")
        self._copy.setToolTip(
            "Copy versions, device, settings and this error for a report. It contains no data "
            "and no folders of this computer."
        )
        self._copy.clicked.connect(lambda _=False: self.copy_diagnostics())
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setMaximumHeight(160)
        self._details.setToolTip("The full error message, which you can select and copy.")
        self._more.toggled.connect(self._details.setVisible)
        top = QHBoxLayout()
        top.addWidget(self._text, 1)
        top.addWidget(self._more, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.addLayout(top)
        layout.addWidget(self._details)
        layout.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignLeft)
        self.clear()

    def say(self, sentence: str, tone: Tone = "plain", details: str = "", help: str = "") -> None:
        """Show a sentence; `details` open on a click, `help` is its tooltip."""
        self._text.setText(in_dock(sentence))
        self._text.setToolTip(plain(help))
        self._details.setPlainText(details)
        self._more.setChecked(False)
        self._copy.setText("Copy diagnostics")
        self._more.setVisible(bool(details))
        self._copy.setVisible(bool(details))
        self._details.hide()
        style = f"#notice {{ border-left: 3px solid {EDGES[tone]}; }}"
        if style != self.styleSheet():  # which takes Qt milliseconds
            self.setStyleSheet(style)
        self.setVisible(bool(sentence))

    def clear(self) -> None:
        """Show nothing."""
        self.say("")

    def forget_recording(self) -> None:
        """Show nothing that was said of another recording."""
        if not self._lasting:
            self.clear()

    def copy_diagnostics(self) -> None:
        """Copy what a report of this error needs."""
        copy_diagnostics(f"{self.text}\n{self._details.toPlainText()}")
        self._copy.setText("Copied")

    @property
    def text(self) -> str:
        """The sentence shown."""
        return self._text.text()


class NextStep(QWidget):
    """A sentence and a button; hidden if there is nothing to say, but it keeps its place."""

    asked = Signal(str)
    """Name of the dock to open."""

    def __init__(self) -> None:
        super().__init__()
        self._dock = ""
        self.sentence = PlainLabel(wrap=True)
        self.button = QPushButton()
        row = QHBoxLayout(self)
        row.setContentsMargins(9, 4, 9, 4)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.button)
        self.button.clicked.connect(lambda _=False: self.asked.emit(self._dock))
        # what is above must not move when something is said
        keep_room(self)
        self.sentence.setMinimumHeight(TWO_LINES)

    def say(self, sentence: str, dock: str = "") -> None:
        """Say what to do, and in which dock; without one there is no button."""
        self._dock = dock
        self.sentence.setText(sentence)
        self.button.setText(f"{dock} ▸")
        self.button.setToolTip(f"Open the {dock} dock.")
        self.button.setVisible(bool(dock))
        self.setVisible(bool(sentence))
