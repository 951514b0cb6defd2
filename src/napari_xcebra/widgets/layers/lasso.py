"""Selects many cells at once, with a lasso or a rectangle drawn on the image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from qtpy.QtCore import QPointF, Qt
from qtpy.QtGui import QColor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QWidget
from skimage.measure import points_in_poly

from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.camera import camera_of, labels_layer
from napari_xcebra.widgets.layers.picking import STILL
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State

Form = Literal["lasso", "rectangle"]


class Lasso(OfState):
    """Once armed, the next drag draws around cells instead of moving the image."""

    changed = Signal()
    """It was armed or disarmed."""
    drawn = Signal(object, bool)
    """Positions of the cells inside, and whether to add them to the selection."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._form: Form | None = None
        self._before: tuple[bool, str] = (True, "standard")
        state.viewer.mouse_drag_callbacks.append(self._on_press)

    @property
    def form(self) -> Form | None:
        """What the next drag draws; None if it moves the image."""
        return self._form

    def arm(self, form: Form | None) -> None:
        """Let the next drag draw this; None puts it down."""
        if form == self._form:
            return
        viewer = self.state.viewer
        camera = camera_of(viewer)
        if self._form is None:
            self._before = camera.mouse_pan, viewer.cursor.style
            camera.mouse_pan, viewer.cursor.style = False, "cross"
        elif form is None:
            camera.mouse_pan, viewer.cursor.style = self._before
        self._form = form
        self.changed.emit()

    def put_down(self) -> None:
        """Let drags move the image again."""
        if self._form is not None and self._state() is not None:
            self.arm(None)

    def _on_press(self, viewer: Any, event: Any) -> Iterator[None]:
        if self._form is None or event.button != 1:
            return
        world = [np.asarray(event.position, float)]
        screen = [np.asarray(event.pos, float)]
        line = _Line(canvas_of(viewer))
        try:
            yield
            while event.type == "mouse_move":
                world.append(np.asarray(event.position, float))
                screen.append(np.asarray(event.pos, float))
                line.show_points(corners(screen, self._form))
                yield
        finally:
            line.close()
            line.deleteLater()
        if np.ptp(screen, axis=0).max() > STILL and self._form is not None:
            add = "Shift" in event.modifiers or "Control" in event.modifiers
            cells = self.cells_within(corners(world, self._form))
            self.arm(None)
            self.drawn.emit(cells, add)

    def cells_within(self, around: np.ndarray) -> np.ndarray:
        """Positions of the cells whose centre lies in a polygon, (corners, axes) float.

        It is in world coordinates; if the field has planes, only cells of its plane count.
        """
        opened, layer = self.state.current, labels_layer(self.state)
        if opened is None or layer is None or len(around) < 3:
            return np.zeros(0, np.int64)
        places = np.array([layer.world_to_data(corner)[-layer.ndim :] for corner in around])
        centers = opened.centers
        inside = points_in_poly(np.nan_to_num(centers[:, -2:], nan=-1e9), places[:, -2:])
        if layer.ndim > 2:
            inside &= np.round(centers[:, 0]) == np.round(places[0, 0])
        return np.flatnonzero(inside)


def corners(points: list[np.ndarray], form: Form | None) -> np.ndarray:
    """Corners of what was drawn: all points of a lasso, four of a rectangle.

    >>> corners([np.array([0.0, 0.0]), np.array([2.0, 1.0])], "rectangle").tolist()
    [[0.0, 0.0], [0.0, 1.0], [2.0, 1.0], [2.0, 0.0]]
    """
    if form != "rectangle":
        return np.stack(points)
    first, last = points[0], points[-1]
    around = np.stack([first, first, last, last])
    around[1, -1], around[3, -1] = last[-1], first[-1]
    return around


class _Line(QWidget):
    """Draws the outline over the canvas; mouse events pass through."""

    def __init__(self, canvas: QWidget | None) -> None:
        super().__init__(canvas)
        self._points = np.zeros((0, 2))
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        if canvas is not None:
            self.setGeometry(canvas.rect())

    def show_points(self, points: np.ndarray) -> None:
        self._points = points
        self.show()
        self.update()

    def paintEvent(self, event: Any) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        around = QPolygonF([QPointF(*map(float, point[:2])) for point in self._points])
        painter.setBrush(QColor(255, 255, 255, 30))
        # a dark line below a bright one can be seen on any image
        for color, width in ((QColor(0, 0, 0, 160), 3.0), (QColor(255, 255, 255), 1.4)):
            painter.setPen(QPen(color, width))
            painter.drawPolygon(around)
        painter.end()
