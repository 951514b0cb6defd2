"""One sentence to the user inside a dock, with details on demand."""

from __future__ import annotations

from typing import Literal

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout

from napari_xcebra.widgets.diagnosing import copy_diagnostics
from napari_xcebra.widgets.wording import in_dock

Tone = Literal["plain", "good", "warning", "problem"]

# readable on napari's dark and light background alike
EDGES: dict[Tone, str] = {
    "plain": "#808080",
    "good": "#009E73",
    "warning": "#E69F00",
    "problem": "#D55E00",
}


VERDICT_HELP = (
    "Above chance: how much better pairs of moments with similar values are recognised than with "
    "labels shifted in time, on stretches that were not trained on (nats: natural logarithm; 0 is "
    "chance). What is possible: the same if the variable itself were given. R², or accuracy of a "
    "discrete variable: how well it is decoded on these stretches; 1 is perfect. Ridge regression: "
    "how well the simplest decoder does that, from the cells themselves. p: how likely a variable "
    "that has nothing to do with the cells does as well. λ: how strongly the model was kept simple."
)
"""What the numbers in a verdict mean."""


class Notice(QFrame):
    """Hidden until something is said."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("notice")
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._more = QPushButton("Details")
        self._more.setToolTip("Show what went wrong in full, to copy into a report.")
        self._more.setCheckable(True)
        self._copy = QPushButton("Copy diagnostics")
        self._copy.setToolTip(
            "Copy versions, device, settings and this error, to paste into a report: no data, and "
            "no folders of this computer."
        )
        self._copy.clicked.connect(lambda _=False: self.copy_diagnostics())
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setMaximumHeight(160)
        self._details.setToolTip("What went wrong in full; it can be selected and copied.")
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
        self._text.setToolTip(help)
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

    def copy_diagnostics(self) -> None:
        """Put what a report of this error needs on the clipboard."""
        copy_diagnostics(f"{self.text}\n{self._details.toPlainText()}")
        self._copy.setText("Copied")

    @property
    def text(self) -> str:
        """What is being said."""
        return self._text.text()
