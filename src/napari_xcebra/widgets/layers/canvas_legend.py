"""Draws a colour bar and a scale bar on the canvas, readable on any image.

They are part of the scene, so that napari's screenshots show them. napari's own would not do: its
colour bar has no title and no unit, and knows no Labels layers; its scale bar needs layers in
micrometres, and coordinates here stay pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import QPoint, QRect, QSize, Qt
from qtpy.QtGui import QColor, QFontMetrics, QImage, QPainter
from superqt.utils import qimage_to_array
from vispy.scene.visuals import Image
from vispy.visuals.transforms import STTransform

from napari_xcebra.text import brief, round_length
from napari_xcebra.widgets.controls.napari_window import canvas_of, scene_of
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
ON_TOP = 10**6
"""Order in the scene, as that of napari's own overlays."""
BOX, INK = QColor(0, 0, 0, 165), QColor(255, 255, 255)


class _Corner:
    """A picture in a lower corner of the canvas, left or right."""

    def __init__(self, viewer: Any, *, right: bool) -> None:
        self._right = right
        # they must not outlive their window
        canvas, scene = canvas_of(viewer), scene_of(viewer)
        self._canvas_of_window = None if canvas is None else ref(canvas)
        self._scene_of_window = None if scene is None else ref(scene)
        self.place = QRect()
        """Where it is on the canvas, in pixels; empty while it is hidden."""
        self._picture: Any = None
        if scene is not None:
            scene.events.resize.connect(self.update)

    @property
    def _canvas(self) -> Any:
        return self._canvas_of_window and self._canvas_of_window()

    @property
    def _scene(self) -> Any:
        return self._scene_of_window and self._scene_of_window()

    @property
    def width(self) -> float:
        """Of the canvas, in pixels."""
        return 0.0 if self._canvas is None else float(self._canvas.width())

    def hide(self) -> None:
        """Take it away."""
        self.place = QRect()
        if self._picture is not None:
            self._picture.visible = False

    def update(self, _: object = None) -> None:
        """Draw it anew, in its corner."""
        if self._scene is None or self._canvas is None:
            return
        size = self.size()
        if size.isEmpty():
            self.hide()
            return
        x = self._canvas.width() - EDGE - size.width() if self._right else EDGE
        self.place = QRect(QPoint(x, self._canvas.height() - EDGE - size.height()), size)
        self._show(self._drawn(size))

    def size(self) -> QSize:
        """What it needs now; empty if there is nothing to show."""
        raise NotImplementedError

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        raise NotImplementedError

    @property
    def _metrics(self) -> QFontMetrics:
        return self._canvas.fontMetrics()

    def _drawn(self, size: QSize) -> np.ndarray:
        """Its pixels, as fine as those of the screen: (height, width, 4) uint8."""
        ratio = self._canvas.devicePixelRatioF()
        image = QImage(size * ratio, QImage.Format.Format_ARGB32)
        image.setDevicePixelRatio(ratio)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        painter.setFont(self._canvas.font())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(BOX)
        box = QRect(QPoint(0, 0), size)
        painter.drawRoundedRect(box, 4, 4)
        painter.setPen(INK)
        self._draw(painter, box.adjusted(INSIDE, INSIDE, -INSIDE, -INSIDE))
        painter.end()
        return qimage_to_array(image).copy()

    def _show(self, pixels: np.ndarray) -> None:
        if self._picture is None:
            self._picture = Image(pixels, parent=self._scene)
            self._picture.order = ON_TOP
            self._picture.set_gl_state("translucent", depth_test=False)
        else:
            self._picture.set_data(pixels)
        fineness = self._canvas.devicePixelRatioF()
        place = self.place.x(), self.place.y()
        self._picture.transform = STTransform((1 / fineness, 1 / fineness), place)
        self._picture.visible = True


class ColorBar(_Corner):
    """What is painted and by which method, the colours, their limits and unit."""

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, right=False)
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
        self.update()

    def hide(self) -> None:
        """Take it away."""
        self.lines = ()
        super().hide()

    def size(self) -> QSize:
        """Room for its words."""
        if not self.lines:
            return QSize()
        title, method, low, unit, high = self.lines
        wide = self._metrics.horizontalAdvance
        # the unit stands in the middle
        limits = wide(unit) + 2 * (max(wide(low), wide(high)) + 2 * INSIDE)
        width = max(WIDTH, round(1.1 * wide(title)), wide(method), limits)
        most = int(self.width) - 2 * EDGE
        height = 3 * self._metrics.height() + STRIP + 4
        return QSize(min(width + 2 * INSIDE, most), height + 2 * INSIDE)

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        title, method, low, unit, high = self.lines
        line = self._metrics.height()
        sides = Qt.AlignmentFlag

        def write(y: int, text: str, side: Any) -> None:
            place = QRect(inside.left(), inside.top() + y, inside.width(), line)
            short = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
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

    def __init__(self, state: State) -> None:
        super().__init__(state.viewer, right=True)
        self._of = OfState(state)
        self.micrometres = self.length = 0.0
        """What it stands for, and its length in pixels of the screen."""
        state.recording_changed.connect(self.update)
        camera_of(state.viewer).events.zoom.connect(self.update)
        self.update()

    def size(self) -> QSize:
        """Room for a round length that suits the zoom."""
        recording = self._of.state.recording if self._of.state_open else None
        size = recording.pixel_size if recording is not None and recording.footprints else None
        if size is None or not self.width:
            return QSize()
        screen = camera_of(self._of.state.viewer).zoom / size
        self.micrometres = round_length(MOST * self.width / screen)
        self.length = self.micrometres * screen
        width = max(round(self.length), self._metrics.horizontalAdvance(self.text))
        return QSize(width + 2 * INSIDE, self._metrics.height() + 5 + 2 * INSIDE)

    @property
    def text(self) -> str:
        """The length in words."""
        if self.micrometres >= 1000:
            return f"{self.micrometres / 1000:g} mm"
        return f"{self.micrometres:g} µm"

    def _draw(self, painter: QPainter, inside: QRect) -> None:
        line = self._metrics.height()
        words = QRect(inside.left(), inside.top(), inside.width(), line)
        painter.drawText(words, int(Qt.AlignmentFlag.AlignHCenter), self.text)
        left = inside.center().x() - round(self.length) // 2
        painter.fillRect(QRect(left, inside.bottom() - 2, round(self.length), 3), INK)
