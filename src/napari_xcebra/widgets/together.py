"""Other open recordings to train together with."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from napari_xcebra.widgets.session import Opened

HELP = (
    "Train one embedding on this recording and the ticked ones, whose cells may differ: each gets "
    "a run of its own. They need the same variables and frame rate."
)


class TogetherBox(QWidget):
    """A box to tick for each other recording; nothing where there is none."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._boxes: list[tuple[QCheckBox, Opened]] = []
        self._title = QLabel("Train together with")
        self._title.setToolTip(HELP)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self._column.addWidget(self._title)
        self.hide()

    @property
    def chosen(self) -> list[Opened]:
        """Recordings that are ticked."""
        return [opened for box, opened in self._boxes if box.isChecked()]

    def choose(self, *names: str) -> None:
        """Tick the recordings of these names, and no others."""
        for box, opened in self._boxes:
            box.setChecked(opened.name in names)

    def show_others(self, others: Sequence[Opened]) -> None:
        """Offer these recordings, none of them ticked."""
        for box, _ in self._boxes:
            self._column.removeWidget(box)
            box.deleteLater()
        self._boxes = []
        for opened in others:
            box = QCheckBox(opened.name)
            box.setToolTip(HELP)
            box.toggled.connect(lambda _: self.changed.emit())
            self._column.addWidget(box)
            self._boxes.append((box, opened))
        self.setVisible(bool(others))
        self.changed.emit()
