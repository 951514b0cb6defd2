"""How many cells are decided: of the queue as a bar, of all cells in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtWidgets import QLabel, QProgressBar, QVBoxLayout, QWidget

from napari_xcebra.widgets.cell_card import COLORS, MARKS

if TYPE_CHECKING:
    from napari_xcebra.widgets.walk import Walk


class Tally(QWidget):
    """A bar, and a line below it."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = QProgressBar()
        self.progress.setToolTip("How many cells of the queue are decided.")
        self.counts = QLabel()
        self.counts.setToolTip("Of all cells, with the colours of the lines in the image.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self.progress)
        layout.addWidget(self.counts)

    def show_decisions(self, walk: Walk) -> None:
        """Count those on the current recording that may be seen."""
        done, of = walk.progress
        self.progress.setRange(0, max(of, 1))
        self.progress.setValue(done)
        self.progress.setFormat(f"{done} of {of} decided")
        undecided, accepted, rejected = np.bincount(walk.status, minlength=3)
        self.counts.setText(in_words(accepted, rejected, undecided))


def in_words(accepted: int, rejected: int, undecided: int) -> str:
    """How many there are of each, in the colours of the image."""
    counts = {"accepted": accepted, "rejected": rejected, "undecided": undecided}
    return "&nbsp;&nbsp; ".join(
        f"<span style='color: {COLORS[status]}'><b>{MARKS[status]}</b></span> {count} {status}"
        for status, count in counts.items()
    )
