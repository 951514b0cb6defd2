"""Draws a strip of colours with the values they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter, QPaintEvent
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.report.figures.cloud import Key
from napari_xcebra.widgets.controls.plain_text import plain
from napari_xcebra.widgets.plots.plot_style import PlotStyle

STRIP = 8
TEXT = 15


class ColorKey(QWidget):
    """A strip; below it the two ends (and what lies between them), or one value per colour."""

    def __init__(self) -> None:
        super().__init__()
        self._colors = np.zeros((0, 3), np.uint8)
        self._labels: tuple[str, ...] = ()
        self._ink = "#808080"
        self._title = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Tall enough for the strip and a line of text."""
        return QSize(120, STRIP + TEXT + 2)

    def show_key(
        self, title: str, colors: np.ndarray, labels: Sequence[str], style: PlotStyle
    ) -> None:
        """Show colours, (levels, 3) uint8, from the lowest to the highest value."""
        self._colors, self._labels, self._ink = colors, tuple(labels), style.ink
        self._title = title
        self.setToolTip(plain(f"{title}; grey where unknown."))
        self.update()

    @property
    def key(self) -> Key:
        """What the colours mean, for a figure."""
        return Key(self._title, self._colors, self._labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """What is written below the strip."""
        return self._labels

    def paintEvent(self, event: QPaintEvent) -> None:
        """Strip and labels."""
        if not len(self._colors):
            return
        p = QPainter(self)
        one = self.width() / len(self._colors)
        for place, color in enumerate(self._colors):
            p.fillRect(QRectF(place * one, 1, one + 0.6, STRIP), QColor(*map(int, color)))
        p.setPen(QColor(self._ink))
        for label, rectangle, align in self._texts():
            p.drawText(rectangle, int(align | Qt.AlignmentFlag.AlignVCenter), label)
        p.end()

    def _texts(self) -> list[tuple[str, QRectF, Qt.AlignmentFlag]]:
        whole = QRectF(0, STRIP + 1, self.width(), TEXT)
        if len(self._labels) == len(self._colors):
            part = whole.width() / len(self._labels)
            middle = Qt.AlignmentFlag.AlignHCenter
            return [
                (label, QRectF(place * part, whole.top(), part, TEXT), middle)
                for place, label in enumerate(self._labels)
            ]
        sides = [Qt.AlignmentFlag.AlignHCenter] * len(self._labels)
        sides[0], sides[-1] = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        return [(label, whole, side) for label, side in zip(self._labels, sides, strict=True)]
