"""Counts the decisions, and has the buttons to decide, step and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QLabel, QProgressBar, QPushButton, QSizePolicy, QWidget

from napari_xcebra.widgets.controls.boxes import SMALL, PlainLabel
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.docks.curate.curation_keys import Keys, readable
from napari_xcebra.widgets.layers.outlines import ACCEPTED, REJECTED

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.cell_queue import CellQueue


class Tally(QWidget):
    """A line, and a thin bar below it."""

    def __init__(self, saved: QWidget) -> None:
        super().__init__()
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.counts = QLabel()
        self.counts.setToolTip(
            "Counts over all cells, in the colours of the outlines in the image."
        )
        in_column(in_row((self.counts, 1), saved), self.progress, of=self, spacing=3)

    def show_decisions(self, queue: CellQueue) -> None:
        """Count the decisions on the current recording."""
        done, of = queue.progress
        self.progress.setRange(0, max(of, 1))
        self.progress.setValue(done)
        self.progress.setToolTip(f"{done} of {of} cells of the queue are decided.")
        undecided, accepted, rejected = np.bincount(queue.status, minlength=3)
        self.counts.setText(in_words(accepted, rejected, undecided))


def in_words(accepted: int, rejected: int, undecided: int) -> str:
    """How many there are of each, in the colours of the image."""
    counts = {"accepted": accepted, "rejected": rejected, "undecided": undecided}
    return "&nbsp;&nbsp; ".join(
        f"<span style='color: {COLORS[status]}'><b>{MARKS[status]}</b></span> {count} {status}"
        for status, count in counts.items()
    )


COLORS = {"accepted": ACCEPTED, "rejected": REJECTED, "undecided": "#909090", "": "#909090"}
MARKS = {"accepted": "✓", "rejected": "✗", "undecided": "○", "": ""}
"""A sign in addition to the colour."""


LARGE = (
    "QPushButton {{ background-color: {0}; color: white; font-weight: bold; font-size: 15px;"
    " padding: 9px 4px; }} QPushButton:hover {{ background-color: {1}; }}"
    "QPushButton:disabled {{ background-color: rgba(128, 128, 128, 50); color: #909090; }}"
)
ACCEPT, REJECT = LARGE.format("#1F6FB2", "#2A80C7"), LARGE.format("#A84300", "#C05000")
"""Darker than the outlines, so that white text is read on them."""


class DecisionRow(QWidget):
    """Two large buttons to decide, and a row to step through cells and undo."""

    asked = Signal(str)
    """Name of an action of the table of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, QPushButton] = {}
        self._keys: Keys = {}
        self.place = PlainLabel()
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.place.setToolTip("Position of the cell in the queue.")
        large = {"accept": ACCEPT, "reject": REJECT}
        first = in_row(*((self._button(name, style), 1) for name, style in large.items()))
        steps = in_row(self._button("previous"), (self.place, 1), self._button("next"), spacing=4)
        after = [self._button(name) for name in ("undecided", "undo", "redo", "close up")]
        self.buttons["close up"].setCheckable(True)
        in_column(first, in_row((steps, 1), *after, spacing=4), of=self, spacing=5)

    def _button(self, name: str, style: str = SMALL) -> QPushButton:
        button = QPushButton()
        button.setStyleSheet(style)
        if style != SMALL:
            button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda _=False: self.asked.emit(name))
        self.buttons[name] = button
        return button

    def show_keys(self, keys: Keys) -> None:
        """Write the keys on the buttons."""
        self._keys = keys
        for name, text, help in (
            ("previous", "◀", "Go to the previous cell without deciding."),
            ("next", "▶", "Go to the next cell without deciding."),
            ("undo", "Undo", "Undo the last step; repeat to go further back."),
            ("redo", "Redo", "Redo the step that was undone."),
            ("close up", "Close-up", "Show the cell close up, or the whole field with its map."),
        ):
            self.buttons[name].setText(text)
            self.buttons[name].setToolTip(f"{help} Key: {readable(keys[name])}")
        self.show_meant(1)

    def show_meant(self, cells: int) -> None:
        """Say how many cells would be decided on."""
        many, these = (f" {cells} cells", "these cells") if cells > 1 else ("", "this cell")
        for name, text, help in (
            ("accept", f"✓ Accept{many}", f"Accept {these} and go to the next one."),
            ("reject", f"✗ Reject{many}", f"Reject {these} and go to the next one."),
            ("undecided", "○", f"Withdraw decisions on {these} and go to the next one."),
        ):
            key = readable(self._keys[name])
            self.buttons[name].setText(text if name == "undecided" else f"{text}   {key}")
            self.buttons[name].setToolTip(f"{help} Key: {key}")

    def show_place(self, number: int, total: int) -> None:
        """Show the position in the queue, counted from 1; 0 if the cell is not in the queue."""
        self.place.setText(f"{number or '–'} of {total}")

    def allow(self, *, deciding: bool, undo: bool, redo: bool) -> None:
        """Enable or disable the buttons."""
        for name in ("accept", "reject", "undecided"):
            self.buttons[name].setEnabled(deciding)
        self.buttons["undo"].setEnabled(undo)
        self.buttons["redo"].setEnabled(redo)
