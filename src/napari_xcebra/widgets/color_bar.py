"""The colours of the scores: which, and from where to where."""

from __future__ import annotations

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import QSize, Signal
from qtpy.QtGui import QImage, QPainter, QPaintEvent
from qtpy.QtWidgets import QComboBox, QGridLayout, QLabel, QPushButton, QWidget

from napari_xcebra.widgets.number_box import NumberBox
from napari_xcebra.widgets.painting import COLORMAPS


class ColorBar(QWidget):
    """A strip of a colour map, low scores on the left."""

    def __init__(self) -> None:
        super().__init__()
        self._colormap = COLORMAPS[0]
        self.setMinimumWidth(60)
        self.setToolTip("Colours from low to high scores.")

    def show_colormap(self, colormap: str) -> None:
        """Draw another colour map."""
        self._colormap = colormap
        self.update()

    def sizeHint(self) -> QSize:
        """As high as a box beside it."""
        return QSize(140, 20)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the strip."""
        row = ensure_colormap(self._colormap).map(np.linspace(0, 1, 256))
        pixels = np.ascontiguousarray(255 * row, np.uint8)
        image = QImage(pixels.tobytes(), 256, 1, 4 * 256, QImage.Format.Format_RGBA8888)
        painter = QPainter(self)
        painter.drawImage(self.rect().adjusted(0, 3, 0, -3), image)
        painter.end()


class ColorRow(QWidget):
    """Colour map, colour bar, and the scores at its two ends."""

    colormap_changed = Signal(str)
    limits_changed = Signal(object)
    """(low, high), or None for those made from the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.colormap = QComboBox()
        self.colormap.addItems(list(COLORMAPS))
        self.colormap.setToolTip("Colour map of the scores.")
        self.automatic = QPushButton("Auto limits")
        self.automatic.setToolTip(
            "From the lowest score to the 99th percentile, so that a single cell does not darken "
            "all others."
        )
        self.low = NumberBox("Score at the lower end of the colours.")
        self.high = NumberBox("Score at the upper end of the colours.")
        self.bar = ColorBar()
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(QLabel("Colours"), 0, 0)
        layout.addWidget(self.colormap, 0, 1)
        layout.addWidget(self.automatic, 0, 2)
        layout.addWidget(self.low, 1, 0)
        layout.addWidget(self.bar, 1, 1)
        layout.addWidget(self.high, 1, 2)
        layout.setColumnStretch(1, 1)
        self.colormap.currentTextChanged.connect(self.colormap_changed)
        self.automatic.clicked.connect(lambda _=False: self.limits_changed.emit(None))
        self.low.valueChanged.connect(self._tell)
        self.high.valueChanged.connect(self._tell)

    def show_colors(self, colormap: str, limits: tuple[float, float], *, chosen: bool) -> None:
        """Show a colour map and limits, which the user may have chosen."""
        self.colormap.blockSignals(True)
        self.colormap.setCurrentText(colormap)
        self.colormap.blockSignals(False)
        self.bar.show_colormap(colormap)
        for box, limit in ((self.low, limits[0]), (self.high, limits[1])):
            box.suit(*limits)
            box.show_number(limit)
        self.automatic.setEnabled(chosen)

    def _tell(self) -> None:
        low, high = self.low.value(), self.high.value()
        if high > low:
            self.limits_changed.emit((low, high))
