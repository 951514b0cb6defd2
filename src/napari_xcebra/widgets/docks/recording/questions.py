"""Asks what only the user knows: which recording stays in front, and which axis is cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFrame, QPushButton, QWidget

from napari_xcebra.io.orientation import LayoutUnclear, reading
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import EDGES
from napari_xcebra.widgets.plots.pictures import Sparkline

CELLS_SHOWN, FRAMES_SHOWN = 5, 120
"""Lines of a picture, and the frames along each."""
LAYOUTS = {True: "cells-frames", False: "frames-cells"}
"""Values of the setting `layout`, by whether cells come first."""
Answer = Callable[[bool], None]
"""Called with whether the recording in front is to be replaced."""


class ReplaceOrAdd(QFrame):
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


class WhichAxis(QFrame):
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
        in_column(*map(_line, most_varied(cells)), of=new, spacing=0)
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


def most_varied(cells: np.ndarray) -> np.ndarray:
    """(up to 5, frames) of a block (cells, frames), those that vary most."""
    known = np.where(np.isfinite(cells), cells, 0.0)[:, :FRAMES_SHOWN].astype(np.float64)
    return known[np.sort(np.argsort(-known.var(axis=1), kind="stable")[:CELLS_SHOWN])]


def _line(trace: np.ndarray) -> Sparkline:
    spread = np.ptp(trace)
    heights = (trace - trace.min()) / (spread if spread > 0 else 1.0)
    return Sparkline([np.c_[np.linspace(0, 1, len(trace)), heights]])
