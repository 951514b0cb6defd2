"""Computes the scores that are not there yet, and says how it goes."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.attribution.method_notes import EVERY, is_slow, title_of_method
from napari_xcebra.widgets.computation import Computation
from napari_xcebra.widgets.work_bar import WorkBar


class ComputeRow(QWidget):
    """Says what is missing, with a button to compute it; then progress, with one to stop."""

    asked = Signal()
    stopped = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)
        self.start = QPushButton("Compute")
        self.start.setToolTip("Compute these scores in the background.")
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("Stop computing; nothing is kept.")
        self.progress = WorkBar("What is done, and the time left.")
        row = QHBoxLayout()
        row.addWidget(self.progress, 1)
        row.addWidget(self.start, 1)
        row.addWidget(self.stop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.sentence)
        layout.addLayout(row)
        self.start.clicked.connect(lambda _=False: self.asked.emit())
        self.stop.clicked.connect(lambda _=False: self.stopped.emit())

    def show_state(self, missing: str, computation: Computation) -> None:
        """Show a sentence about what is missing, or what is being computed."""
        busy = computation.busy
        then = f" ({computation.waiting} more to come)" if computation.waiting else ""
        doing = f"Computing {computation.title} …{then}"
        self.sentence.setText(doing if busy else missing)
        self.start.setVisible(not busy)
        self.stop.setVisible(busy)
        self.progress.setVisible(busy)
        if busy:
            self.progress.show_progress(computation, running=True, counts=True)
            if computation.progress is None:
                self.sentence.setText(f"{self.sentence.text()} {computation.waits_for}")


def no_scores_by(method: str, run: str) -> str:
    """That a run has no scores by a method, and what computing them would take."""
    slow = f" It is slow, and takes every {EVERY}th frame." if is_slow(method) else ""
    return f"{run} has no scores by {title_of_method(method)} yet.{slow}"
