"""Shows where the score of a cell lies among those of all cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QPointF, QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.widgets.controls.plain_text import plain

if TYPE_CHECKING:
    from napari_xcebra.attribution.score_map import ScoreMap

BINS = 80
HEIGHT, TEXT, BARS = 46, 17, 18
"""Of the strip, of its line of text, and of its bars, in pixels."""
THRESHOLD = "#E69F00"


class ScoreStrip(QWidget):
    """A histogram of a few pixels, with the cell and the threshold marked on it."""

    def __init__(self) -> None:
        super().__init__()
        self._map: ScoreMap | None = None
        self._counts = np.zeros(0)
        self._score: float | None = None
        self._threshold = 0.0
        self._left = self._right = ""
        self.setFixedHeight(HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Score of this cell among all cells")

    def sizeHint(self) -> QSize:
        """As wide as the dock."""
        return QSize(200, HEIGHT)

    @property
    def text(self) -> str:
        """The words of the strip."""
        return " · ".join(filter(None, (self._left, self._right)))

    def say(self, words: str, help: str = "") -> None:
        """Show a sentence instead of scores."""
        self._map, self._left, self._right = None, words, ""
        self.setToolTip(plain(help or words))
        self.update()

    def show_cell(
        self, painted: ScoreMap, cell: int, threshold: float, words: tuple[str, str], help: str
    ) -> None:
        """Mark the score of a cell; `words` stand on the left and on the right."""
        if painted is not self._map:
            low, high = painted.span
            scores = painted.scores[painted.known]
            found = np.histogram(scores, BINS, (low, high if high > low else low + 1))[0]
            # a single cell is still seen beside a bar of hundreds
            self._counts = np.sqrt(found / max(1, found.max()))
        self._map, self._threshold = painted, painted.score_of(threshold)
        self._score = float(painted.scores[cell]) if painted.known[cell] else None
        self._left, self._right = words
        self.setToolTip(plain(help))
        self.update()

    def paintEvent(self, event: Any) -> None:
        """Draw bars, threshold, mark and words."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().windowText().color()
        painter.setPen(ink)
        words = QRectF(0, 0, self.width(), TEXT)
        shown = painter.fontMetrics().elidedText(
            self._left, Qt.TextElideMode.ElideRight, self.width()
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignLeft, shown)
        painter.drawText(words, Qt.AlignmentFlag.AlignRight, self._right)
        if self._map is not None:
            self._draw_scale(painter, ink)
        painter.end()

    def _draw_scale(self, painter: QPainter, ink: QColor) -> None:
        low, high = self._map.span if self._map else (0.0, 1.0)
        room, floor = self.width() - 12, TEXT + BARS

        def place(score: float) -> float:
            return 6 + room * float(np.clip((score - low) / ((high - low) or 1), 0, 1))

        faint = QColor(ink)
        faint.setAlpha(110)
        width = room / BINS
        for i in np.flatnonzero(self._counts):
            bar = BARS * self._counts[i]
            painter.fillRect(QRectF(6 + i * width, floor - bar, width - 0.5, bar), faint)
        painter.setPen(QPen(faint, 1))
        painter.drawLine(QPointF(6, floor), QPointF(6 + room, floor))
        painter.setPen(QPen(QColor(THRESHOLD), 2))
        at = place(self._threshold)
        painter.drawLine(QPointF(at, TEXT), QPointF(at, floor + 2))
        if self._score is not None:
            at = place(self._score)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink)
            mark = [
                QPointF(at, floor + 1),
                QPointF(at - 5, HEIGHT - 1),
                QPointF(at + 5, HEIGHT - 1),
            ]
            painter.drawPolygon(QPolygonF(mark))
