"""Draws the embedding as a cloud of points to pan, zoom, rotate and click, with a colour key.

It is projected and painted as pixels in numpy: 20,000 points take a few milliseconds without
OpenGL, so that a cloud turns smoothly on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from qtpy.QtWidgets import QWidget

from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import ColorKey, PlotStyle

if TYPE_CHECKING:
    from matplotlib.figure import Figure


REACH = 25.0
"""Pixels from a point within which a click finds it."""
CLICK = 4.0
"""Pixels that the mouse may move during a click."""
START = (0.6, 0.45)
"""Turn and tilt of a cloud in three dimensions at first, in radians."""

MARGIN, NARROWEST = 4, 56
"""Pixels around the names of axes, and those that a word needs."""
FILLED = 0.86
"""Share of the shorter side that the points fill."""


class EmbeddingPlot(QWidget):
    """Points in two or three dimensions."""

    point_chosen = Signal(int)
    """Index of the point that the user clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.key: ColorKey | None = None
        """Which explains the colours, if there is one."""
        self.figure_menu = FigureMenu(self, "embedding", self.figure)
        self._points = np.zeros((0, 3), np.float32)
        self._names: tuple[str, ...] = ("", "")
        self._colors = np.zeros((0, 3), np.uint8)
        self._marked: int | None = None
        self._style: PlotStyle | None = None
        self._places = np.zeros((0, 2))
        self._picture: QImage | None = None
        self._pressed: QPointF | None = None
        self._held: QPointF | None = None
        self.reset_view()
        self.setMouseTracking(False)
        self.setMinimumSize(60, 60)

    def sizeHint(self) -> QSize:
        """As large as a small plot."""
        return QSize(240, 200)

    # ------------------------------------------------------------ what is shown

    def show_points(self, points: np.ndarray, names: Sequence[str]) -> None:
        """Show fitted points, (points, 3) float, by the names of their two or three axes."""
        if len(names) != len(self._names):
            self._names = tuple(names)
            self.reset_view()
        self._points, self._names = points, tuple(names)
        self._redraw()

    def show_colors(self, colors: np.ndarray) -> None:
        """Colour the points, (points, 3) uint8."""
        self._colors = colors
        self._redraw()

    def mark(self, point: int | None) -> None:
        """Mark a point with a ring."""
        if point != self._marked:
            self._marked = point
            self.update()

    def follow_style(self, style: PlotStyle) -> None:
        """Use the colours of a theme."""
        self._style = style
        self._redraw()

    def reset_view(self) -> None:
        """All points in view."""
        self._zoom, self._shift = 1.0, np.zeros(2)
        self._yaw, self._pitch = START
        self._redraw()

    @property
    def in_three(self) -> bool:
        """Whether there are three axes."""
        return len(self._names) == 3

    @property
    def places(self) -> np.ndarray:
        """Where the points are, in pixels of this widget: (points, 2)."""
        self._paint_picture()
        return self._places

    def figure(self) -> Figure:
        """The points as they are turned now, with the colour key, for a paper."""
        from napari_xcebra.report.figures.paper import cloud_figure

        key = self.key.key if self.key else None
        names, turn = self._names, self._turn
        return cloud_figure(self.places, self._colors, self._area(), names, turn, key)

    # ------------------------------------------------------------ drawing

    @property
    def _turn(self) -> np.ndarray:
        return _rotation(self._yaw, self._pitch) if self.in_three else np.eye(3)

    def _redraw(self) -> None:
        self._picture = None
        self.update()

    def _area(self) -> tuple[int, int]:
        """Width and height for the points."""
        return max(1, self.width()), max(1, self.height())

    def _paint_picture(self) -> QImage | None:
        """Points as an image, made when something changed."""
        if self._picture is None and self._style and len(self._colors) == len(self._points):
            ratio = max(1, round(self.devicePixelRatioF()))
            width, height = self._area()
            places, depth = _projected(
                self._points, self._turn, (width, height), self._zoom, self._shift
            )
            self._places = places
            colors = self._colors
            if self.in_three:
                background = np.array(QColor(self._style.background).getRgb()[:3])
                colors = _faded(colors, np.nan_to_num(depth), background)
            size = (width * ratio, height * ratio)
            pixels = painted(places * ratio, depth if self.in_three else None, colors, size, ratio)
            image = QImage(
                pixels.tobytes(), *size, 4 * size[0], QImage.Format.Format_ARGB32
            ).copy()  # Qt does not keep the bytes alive
            image.setDevicePixelRatio(ratio)
            self._picture = image
        return self._picture

    def paintEvent(self, event: QPaintEvent) -> None:
        """Points, ring and axes."""
        style, picture = self._style, self._paint_picture()
        if style is None:
            return
        p = QPainter(self)
        p.fillRect(self.rect(), QColor(style.background))
        if picture is not None:
            p.drawImage(0, 0, picture)
            self._draw_ring(p, style)
        p.setPen(QColor(style.ink))
        if self.in_three:
            self._draw_triad(p)
        else:
            self._draw_names(p)
        p.end()

    def _draw_ring(self, p: QPainter, style: PlotStyle) -> None:
        if self._marked is None or self._marked >= len(self._places):
            return
        x, y = self._places[self._marked]
        if not np.isfinite([x, y]).all():
            return
        p.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = QPointF(float(x), float(y))
        for color, width in ((style.background, 5), (style.accent, 2)):
            p.setPen(QPen(QColor(color), width))
            p.drawEllipse(middle, 6.0, 6.0)

    def _draw_names(self, p: QPainter) -> None:
        """Beside the points in a wide plot, word by word; else above and below them."""
        width, height = self._area()
        beside = (width - FILLED * min(width, height)) / 2 - 2 * MARGIN
        room = beside if beside >= NARROWEST else width - 2 * MARGIN
        sides = Qt.AlignmentFlag
        self._write(p, f"↑ {self._names[1]}", room, sides.AlignLeft | sides.AlignTop)
        self._write(p, f"{self._names[0]} →", room, sides.AlignRight | sides.AlignBottom)

    def _write(self, p: QPainter, text: str, room: float, corner: Qt.AlignmentFlag) -> None:
        """Write into a corner, readable where points come there."""
        width, height = self._area()
        whole = QRectF(MARGIN, 0, width - 2 * MARGIN, height)
        if corner & Qt.AlignmentFlag.AlignRight:
            whole.setLeft(whole.right() - room)
        else:
            whole.setWidth(room)
        flags = int(corner.value) | int(Qt.TextFlag.TextWordWrap.value)
        p.fillRect(p.boundingRect(whole, flags, text), self._veil)
        p.drawText(whole, flags, text)

    @property
    def _veil(self) -> QColor:
        assert self._style is not None, "nothing is drawn without"
        veil = QColor(self._style.background)
        veil.setAlpha(180)
        return veil

    def _draw_triad(self, p: QPainter) -> None:
        """Where the three axes point."""
        width, height = self._area()
        corner = QPointF(34, height - 34)
        for name, axis in zip(self._names, self._turn.T, strict=True):
            end = corner + QPointF(24 * float(axis[0]), -24 * float(axis[1]))
            p.drawLine(corner, end)
            place = end + QPointF(3, 3)
            room = max(0, int(width - MARGIN - place.x()))
            short = p.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, room)
            box = p.fontMetrics().boundingRect(short).translated(place.toPoint())
            p.fillRect(box, self._veil)
            p.drawText(place, short)

    # ------------------------------------------------------------ mouse

    def resizeEvent(self, event: object) -> None:
        """Fit the new size."""
        self._redraw()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        self._pressed = self._held = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Turn in three dimensions, move in two (or with the right button)."""
        if self._held is None:
            return
        step = event.position() - self._held
        self._held = event.position()
        right = bool(event.buttons() & Qt.MouseButton.RightButton)
        if self.in_three and not right:
            self._yaw += 0.01 * step.x()
            self._pitch = float(np.clip(self._pitch + 0.01 * step.y(), -np.pi / 2, np.pi / 2))
        else:
            scale = self._zoom * FILLED / 2 * min(self._area())
            self._shift = self._shift + np.array([step.x(), -step.y()]) / scale
        self._redraw()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Choose a point, if the mouse was not moved."""
        pressed, self._pressed, self._held = self._pressed, None, None
        if pressed is None or event.button() != Qt.MouseButton.LeftButton:
            return
        here = event.position()
        if (here - pressed).manhattanLength() <= CLICK:
            point = _nearest(self.places, here.x(), here.y(), REACH)
            if point is not None:
                self.point_chosen.emit(point)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """All points in view."""
        self.reset_view()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the mouse."""
        factor = 1.0015 ** event.angleDelta().y()
        width, height = self._area()
        here = event.position()
        away = np.array([here.x() - width / 2, height / 2 - here.y()])
        away /= self._zoom * FILLED / 2 * min(width, height)
        self._shift = self._shift + away * (1 / factor - 1)
        self._zoom *= factor
        self._redraw()


DOT = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))
"""Pixels of a point, around its own."""


def fit_to_view(points: np.ndarray, groups: Sequence[object]) -> np.ndarray:
    """Points brought into −1 … 1, the outermost of them a little outside.

    Parameters
    ----------
    points : (points, axes) float
        NaN is passed on.
    groups : one per column
        Columns of the same group keep their proportion, so that a ring stays a ring.

    Returns
    -------
    (points, 3) float32
        With zeros for missing axes.
    """
    fit = np.zeros((len(points), 3), np.float32)
    known = points[np.isfinite(points).all(1)]
    if len(known) == 0:
        fit[:] = np.nan
        return fit
    low, high = np.percentile(known, [0.5, 99.5], axis=0)
    half = (high - low) / 2
    for axis in range(points.shape[1]):
        together = max(h for h, g in zip(half, groups, strict=True) if g == groups[axis])
        middle = (low[axis] + high[axis]) / 2
        fit[:, axis] = (points[:, axis] - middle) / (together if together > 0 else 1.0)
    return fit


def principal(embedding: np.ndarray, count: int = 3) -> np.ndarray:
    """First principal components: (points, count) float32; NaN rows stay NaN.

    Fewer than `count` latents give columns of zeros.
    """
    known = np.isfinite(embedding).all(1)
    scores = np.full((len(embedding), count), np.nan, np.float32)
    if not known.any():
        return scores
    centred = embedding[known] - embedding[known].mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    scores[known] = 0
    some = min(count, embedding.shape[1])
    scores[known, :some] = centred @ axes[:, ::-1][:, :some]
    return scores


def _rotation(yaw: float, pitch: float) -> np.ndarray:
    """Matrix that turns by yaw around the upright axis, then tilts by pitch: (3, 3)."""
    c, s = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    c, s = np.cos(pitch), np.sin(pitch)
    tilt = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return tilt @ turn


def _projected(
    points: np.ndarray, turn: np.ndarray, size: tuple[int, int], zoom: float, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where fitted points lie on the screen, and how near they are.

    Parameters
    ----------
    points : (points, 3) float32
        Between −1 and 1.
    turn : (3, 3) float
    size : (width, height)
        In pixels.
    zoom : float
        1 fits the unit square into the picture.
    shift : (2,) float
        In units of the picture's half side, upwards positive.

    Returns
    -------
    (points, 2) float
        Pixels from the upper left corner.
    (points,) float
        Depth; larger is nearer.
    """
    turned = points @ turn.T.astype(np.float32)
    scale = zoom * 0.43 * min(size)
    x = size[0] / 2 + (turned[:, 0] + shift[0]) * scale
    y = size[1] / 2 - (turned[:, 1] + shift[1]) * scale
    return np.stack([x, y], axis=1), turned[:, 2]


def painted(
    places: np.ndarray,
    depth: np.ndarray | None,
    colors: np.ndarray,
    size: tuple[int, int],
    thick: int = 1,
) -> np.ndarray:
    """Picture of the points, clear elsewhere: (height, width) uint32, as Qt's ARGB32.

    Parameters
    ----------
    places : (points, 2) float
        NaN is not painted.
    depth : (points,) float, optional
        Nearer points cover others; without it, later ones do.
    colors : (points, 3) uint8
    size : (width, height)
    thick : int
        Pixels of the screen to one of a dot.
    """
    width, height = size
    picture = np.zeros((height, width), np.uint32)
    order = np.arange(len(places)) if depth is None else np.argsort(depth, kind="stable")
    order = order[np.isfinite(places[order]).all(1)]
    x, y = np.round(places[order]).astype(np.int64).T
    red, green, blue = colors[order].astype(np.uint32).T
    color = np.uint32(0xFF000000) | (red << 16) | (green << 8) | blue
    flat = picture.reshape(-1)
    for down, right in DOT:
        for i in range(thick * thick):
            xs, ys = x + right * thick + i % thick, y + down * thick + i // thick
            inside = (0 <= xs) & (xs < width) & (0 <= ys) & (ys < height)
            flat[ys[inside] * width + xs[inside]] = color[inside]
    return picture


def _faded(colors: np.ndarray, depth: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Colours that fade into the background with distance: (points, 3) uint8."""
    share = np.clip((1.2 - depth) / 2.4, 0, 1)[:, None] * 0.6
    return (colors * (1 - share) + background * share).astype(np.uint8)


def _nearest(places: np.ndarray, x: float, y: float, reach: float) -> int | None:
    """Point nearest to a place on the screen, if one is within reach (all in pixels)."""
    distance = np.hypot(places[:, 0] - x, places[:, 1] - y)
    distance[np.isnan(distance)] = np.inf
    best = int(np.argmin(distance)) if len(distance) else 0
    return best if len(distance) and distance[best] <= reach else None
