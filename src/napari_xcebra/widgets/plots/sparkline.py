"""Draws the course of a variable as small lines without axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from qtpy.QtCore import QPointF, QSize
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QWidget

# Okabe and Ito; visible on napari's dark and light background alike
COLORS = ("#3C8FD0", "#D55E00", "#009E73")
MARGIN = 3


class Sparkline(QWidget):
    """Lines without axes.

    Parameters
    ----------
    lines : sequence of (points, 2) float
        Both axes from 0 to 1; a line is broken where it is NaN.
    dots : bool
        Draw the points alone, for values that have no order or wrap around.
    """

    def __init__(self, lines: Sequence[np.ndarray], dots: bool = False) -> None:
        super().__init__()
        self._lines = lines
        self._dots = dots
        self.setMinimumSize(48, 18)

    def sizeHint(self) -> QSize:
        """Small."""
        return QSize(70, 22)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for line, color in zip(self._lines, COLORS, strict=False):
            painter.setPen(QPen(QColor(color), 2.0 if self._dots else 1.2))
            for piece in _pieces(self._scaled(line)):
                points = QPolygonF([QPointF(x, y) for x, y in piece.tolist()])
                if self._dots or len(piece) == 1:
                    painter.drawPoints(points)
                else:
                    painter.drawPolyline(points)
        painter.end()

    def _scaled(self, line: np.ndarray) -> np.ndarray:
        size = np.array([self.width(), self.height()]) - 2 * MARGIN
        return MARGIN + np.abs([0, 1] - line) * size


def _pieces(line: np.ndarray) -> list[np.ndarray]:
    """Parts of a line between gaps."""
    known = np.isfinite(line).all(axis=1)
    edges = np.flatnonzero(np.diff(known)) + 1
    return [piece for piece in np.split(line, edges) if len(piece) and np.isfinite(piece).all()]
