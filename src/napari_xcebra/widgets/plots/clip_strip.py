"""Plays the transients of a cell side by side, again and again, with their average at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from qtpy.QtGui import QColor, QImage, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from napari_xcebra.recording.clips import Clips

TILES = 6
GAP = 3
LEAST, MOST = 52, 230
"""Height in pixels: of one row of small pictures, and of two rows of large ones."""
SHORTEST = 50
"""Milliseconds between two frames at least."""


class ClipStrip(QWidget):
    """Five clips and their average image, each with the outline of the cell."""

    chosen = Signal(int)
    """Frame of the recording at the peak of the clip that was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._clips: Clips | None = None
        self._outline: Sequence[np.ndarray] = ()
        self._words = ""
        self._tick = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._play)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(LEAST)
        self.setMaximumHeight(MOST)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(
            "The five largest transients of this cell, from 1 s before to 2 s after their peak, "
            "and their average rise. Click one to go to its time."
        )
        self.setAccessibleName("Largest transients of this cell")

    def sizeHint(self) -> QSize:
        """One row of small pictures, which become larger where there is room."""
        return QSize(200, LEAST)

    @property
    def words(self) -> str:
        """What is said instead of clips."""
        return self._words

    @property
    def clips(self) -> Clips | None:
        """What is played."""
        return self._clips

    def show_clips(self, clips: Clips | None, outline: Sequence[np.ndarray], words: str) -> None:
        """Play other clips; where there are none, say why in a few words."""
        if clips is self._clips and words == self._words:
            return
        self._clips, self._outline, self._words, self._tick = clips, outline, words, 0
        if clips is not None:
            corner = np.array(clips.corner)
            self._outline = [line - corner for line in outline]
            self._limits = _limits(np.concatenate([clip.ravel() for clip in clips.clips]))
        self._run()
        self.update()

    def showEvent(self, event: Any) -> None:
        """Play while it can be seen."""
        super().showEvent(event)
        self._run()

    def hideEvent(self, event: Any) -> None:
        """Rest while it cannot be seen."""
        super().hideEvent(event)
        self._timer.stop()

    def _run(self) -> None:
        if self._clips is None or not self.isVisible():
            self._timer.stop()
        else:
            self._timer.start(max(SHORTEST, round(1000 * self._clips.seconds)))

    def _play(self) -> None:
        self._tick += 1
        self.update()

    # ------------------------------------------------------------ drawing

    def paintEvent(self, event: Any) -> None:
        """Draw the frames of this moment."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        clips = self._clips
        if clips is None:
            painter.setPen(self.palette().windowText().color())
            centered = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect(), int(centered), self._words)
            painter.end()
            return
        for place, clip in zip(self._places(), clips.clips, strict=False):
            self._draw(painter, place, clip[self._tick % len(clip)], self._limits)
        last = self._places()[TILES - 1]
        self._draw(painter, last, clips.average, _limits(clips.average))
        for shift, color in ((1, Qt.GlobalColor.black), (0, Qt.GlobalColor.white)):
            painter.setPen(color)
            painter.drawText(last.adjusted(4 + shift, 2 + shift, 0, 0), "mean")
        painter.end()

    def _places(self) -> list[QRectF]:
        """Where each picture is drawn: in one row or two, as large as there is room."""
        width, height = self.width(), self.height()
        side, across = max(
            (min((width - GAP * (n - 1)) / n, (height - GAP * (TILES // n - 1)) * n / TILES), n)
            for n in (TILES // 2, TILES)
        )
        left = (width - across * side - GAP * (across - 1)) / 2
        return [
            QRectF(left + (i % across) * (side + GAP), (i // across) * (side + GAP), side, side)
            for i in range(TILES)
        ]

    def _draw(
        self, painter: QPainter, place: QRectF, frame: np.ndarray, limits: tuple[float, float]
    ) -> None:
        low, high = limits
        gray = np.ascontiguousarray(255 * np.clip((frame - low) / (high - low), 0, 1), np.uint8)
        rows, columns = gray.shape
        image = QImage(gray.tobytes(), columns, rows, columns, QImage.Format.Format_Grayscale8)
        # what is not square is cut off at the edge of the field
        scale = min(place.width() / columns, place.height() / rows)
        shown = QRectF(place.x(), place.y(), columns * scale, rows * scale)
        painter.drawImage(shown, image)
        painter.setPen(QPen(QColor(255, 255, 255, 130), 1))
        for line in self._outline:
            points = (line + 0.5) * scale
            painter.drawPolygon(QPolygonF([shown.topLeft() + QPointF(x, y) for y, x in points]))

    def mousePressEvent(self, event: Any) -> None:
        """Go to the time of the clip."""
        clips = self._clips
        for place, peak in zip(self._places(), clips.peaks if clips else (), strict=False):
            if place.contains(event.position()):
                self.chosen.emit(int(peak))


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Values shown as black and white."""
    low, high = np.percentile(values, (1, 99.7))
    return (float(low), float(high)) if high > low else (float(low), float(low) + 1)
