"""Whether the scores follow the time slider, and how smoothly."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from napari_xcebra.widgets.number_box import NumberBox
from napari_xcebra.widgets.wording import in_dock

MOST_SECONDS = 60.0
FOLLOW = "Paint the scores at the frame of the time slider instead of their mean over frames."


class OverTimeRow(QWidget):
    """A tick, a number of seconds, and what is being computed."""

    toggled = Signal(bool)
    smoothing_changed = Signal(float)

    def __init__(self) -> None:
        super().__init__()
        self.follow = QCheckBox("Follow the time slider")
        self.follow.setToolTip(FOLLOW)
        self.seconds = NumberBox("Seconds over which the scores are averaged.")
        self.seconds.setRange(0, MOST_SECONDS)
        self.seconds.setSingleStep(0.5)
        self.seconds.setDecimals(1)
        self.seconds.setSuffix(" s")
        self.status = QLabel()
        self.status.setWordWrap(True)
        self._averaged = QLabel("mean over")
        row = QHBoxLayout()
        row.setSpacing(3)
        row.addWidget(self.follow)
        row.addStretch(1)
        row.addWidget(self._averaged)
        row.addWidget(self.seconds)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(row)
        layout.addWidget(self.status)
        self.show_status("")
        self.follow.toggled.connect(self.toggled)
        self.seconds.valueChanged.connect(self.smoothing_changed)

    def show_state(
        self, *, following: bool, smoothing: float, why_not: str, note: str = ""
    ) -> None:
        """Show what is chosen, or why a map cannot be followed; `note` is said of one that can."""
        self.follow.blockSignals(True)
        self.follow.setChecked(following and not why_not)
        self.follow.blockSignals(False)
        self.follow.setEnabled(not why_not)
        self.follow.setToolTip(why_not or f"{FOLLOW} {note}".strip())
        self.seconds.show_number(smoothing)
        self.seconds.setEnabled(following and not why_not)
        self._averaged.setEnabled(following and not why_not)

    def show_status(self, sentence: str) -> None:
        """Say what is being computed."""
        self.status.setText(in_dock(sentence))
        self.status.setVisible(bool(sentence))
