"""Draws a colour bar and a scale bar on the canvas, readable on any image.

Small widgets in its lower corners, which let the mouse through: coordinates of layers stay pixels,
and the same code serves every version of napari.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import QEvent, QObject, QRect, QSize, Qt
from qtpy.QtGui import QColor, QImage, QPainter
from qtpy.QtWidgets import QWidget

from napari_xcebra.text import brief
from napari_xcebra.widgets.controls.lifetime import follow
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.state.of_state import OfState

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State

EDGE, INSIDE = 8, 6
"""Pixels from the edge of the canvas to a box, and from that to what is in it."""
WIDTH, STRIP = 180, 10
"""Pixels of the colour bar; a longer title makes it wider."""
MOST = 0.25
"""Share of the width of the canvas that a scale bar takes at most."""
BOX, INK = QColor(0, 0, 0, 165), QColor(255, 255, 255)


class _Corner(QWidget):
    """Keeps its place in a lower corner of the canvas, left or right."""

    def __init__(self, canvas: QWidget, *, right: bool) -> None:
        super().__init__(canvas)
        self._right = right
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        canvas.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Follow the size of the canvas."""
        if event is not None and event.type() == QEvent.Type.Resize and watched is self.parent():
            self.place()
        return False

    def place(self) -> None:
        """Take the size that is needed now, in its corner."""
        canvas, size = self.parentWidget(), self.sizeHint()
        if canvas is None:
            return
        x = canvas.width() - EDGE - size.width() if self._right else EDGE
        self.setGeometry(QRect(x, canvas.height() - EDGE - size.height(), *_pair(size)))
        self.update()

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(BOX)
        painter.drawRoundedRect(self.rect(), 4, 4)
        painter.setPen(INK)
        self._draw(painter, self.rect().adjusted(INSIDE, INSIDE, -INSIDE, -INSIDE))
        painter.end()

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        raise NotImplementedError


class ColorBar(_Corner):
    """What is painted and by which method, the colours, their limits and unit."""

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas, right=False)
        self.lines: tuple[str, ...] = ()
        """Title, method, then the low limit, the unit and the high limit."""
        self._strip = QImage()

    def show_scale(
        self, title: str, method: str, unit: str, colormap: str, limits: tuple[float, float]
    ) -> None:
        """Show a scale; see `work.color_scale.Scale`."""
        self.lines = (title, method, brief(limits[0]), unit, brief(limits[1]))
        colors = 255 * ensure_colormap(colormap).map(np.linspace(0, 1, 256))
        row = np.ascontiguousarray(colors.astype(np.uint8))
        self._strip = QImage(row.tobytes(), 256, 1, 4 * 256, QImage.Format.Format_RGBA8888).copy()
        self.place()
        self.show()

    def sizeHint(self) -> QSize:
        """Room for its words."""
        if not self.lines:
            return QSize(0, 0)
        title, method, low, unit, high = self.lines
        wide = self.fontMetrics().horizontalAdvance
        # the unit stands in the middle
        limits = wide(unit) + 2 * (max(wide(low), wide(high)) + 2 * INSIDE)
        width = max(WIDTH, round(1.1 * wide(title)), wide(method), limits)
        most = (self.parentWidget() or self).width() - 2 * EDGE
        height = 3 * self.fontMetrics().height() + STRIP + 4
        return QSize(min(width + 2 * INSIDE, most), height + 2 * INSIDE)

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        title, method, low, unit, high = self.lines
        line = self.fontMetrics().height()
        sides = Qt.AlignmentFlag

        def write(y: int, text: str, side: Any) -> None:
            place = QRect(inside.left(), inside.top() + y, inside.width(), line)
            short = self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
            painter.drawText(place, int(side), short)

        font = painter.font()
        font.setBold(True)
        painter.setFont(font)
        write(0, title, sides.AlignLeft)
        font.setBold(False)
        painter.setFont(font)
        write(line, method, sides.AlignLeft)
        strip = QRect(inside.left(), inside.top() + 2 * line + 2, inside.width(), STRIP)
        painter.drawImage(strip, self._strip)
        below = 2 * line + STRIP + 4
        for text, side in (
            (low, sides.AlignLeft), (unit, sides.AlignHCenter), (high, sides.AlignRight)
        ):  # fmt: skip
            write(below, text, side)


class ScaleBar(_Corner):
    """A length in micrometres; hidden where the size of a pixel is not known."""

    def __init__(self, state: State, canvas: QWidget) -> None:
        super().__init__(canvas, right=True)
        self._of = OfState(state)
        self.micrometres = 0.0
        self._length = 0.0
        follow(self, state.recording_changed, self.measure)
        follow(self, camera_of(state.viewer).events.zoom, self.measure)
        self.measure()

    def measure(self, *_: Any) -> None:
        """Show a round length that suits the zoom."""
        if not self._of.state_open:
            return
        state, canvas = self._of.state, self.parentWidget()
        recording = state.recording
        size = recording.pixel_size if recording is not None and recording.footprints else None
        if size is None or canvas is None:
            self.hide()
            return
        screen = camera_of(state.viewer).zoom / size
        self.micrometres = round_length(MOST * canvas.width() / screen)
        self._length = self.micrometres * screen
        self.place()
        self.show()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Follow the size of the canvas."""
        if event is not None and event.type() == QEvent.Type.Resize and watched is self.parent():
            self.measure()
        return False

    @property
    def text(self) -> str:
        """The length in words."""
        if self.micrometres >= 1000:
            return f"{self.micrometres / 1000:g} mm"
        return f"{self.micrometres:g} µm"

    def sizeHint(self) -> QSize:
        """Room for bar and length."""
        metrics = self.fontMetrics()
        width = max(round(self._length), metrics.horizontalAdvance(self.text))
        return QSize(width + 2 * INSIDE, metrics.height() + 5 + 2 * INSIDE)

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        line = self.fontMetrics().height()
        words = QRect(inside.left(), inside.top(), inside.width(), line)
        painter.drawText(words, int(Qt.AlignmentFlag.AlignHCenter), self.text)
        left = inside.center().x() - round(self._length) // 2
        painter.fillRect(QRect(left, inside.bottom() - 2, round(self._length), 3), INK)


def round_length(most: float) -> float:
    """The longest of 1, 2, 5, 10, 20 … that is no longer than a length.

    >>> round_length(73.0), round_length(0.3)
    (50.0, 0.2)
    """
    power = 10.0 ** math.floor(math.log10(most))
    return round(max(step for step in (1, 2, 5) if step * power <= most * (1 + 1e-9)) * power, 12)


def _pair(size: QSize) -> tuple[int, int]:
    return size.width(), size.height()
