"""A column of controls that scrolls up and down, and is never too narrow for them."""

from __future__ import annotations

from qtpy.QtCore import QEvent, QObject, QSize, Qt
from qtpy.QtWidgets import QFrame, QScrollArea, QWidget


class VerticalScroll(QScrollArea):
    """As wide as what is inside needs at least, whatever theme and font make of it.

    Parameters
    ----------
    inside : QWidget
    least : int
        Width in pixels, even if less is needed.
    """

    def __init__(self, inside: QWidget, least: int = 0) -> None:
        super().__init__()
        self._least = least
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inside)
        inside.installEventFilter(self)

    def minimumSizeHint(self) -> QSize:
        """Width of what is inside with a scroll bar beside it; no height to speak of."""
        inside, bar = self.widget(), self.verticalScrollBar()
        assert inside is not None and bar is not None
        needed = inside.minimumSizeHint().width() + bar.sizeHint().width()
        return QSize(max(needed, self._least), 120)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Note that what is inside needs another width."""
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
