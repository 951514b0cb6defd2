"""Plots lanes over time with a cursor, scrolled and zoomed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QRectF, Qt, Signal
from qtpy.QtGui import QColor, QFont, QPainter

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.plots.plot_style import PlotStyle, own_menus
from napari_xcebra.widgets.plots.trace_lanes import Lane, Placed, placed

NARROWEST = 10
"""Frames that one can zoom in to."""
MOST_BANDS = 100
"""Trials in view above which their shading would be a blur."""
TEXT = 13
"""Pixels that a line of text needs."""
SMALLEST = 9
"""Pixels of the smallest text that can be read."""
LONG_GAP = 5.0
"""Frame intervals without a frame over which no line is drawn."""


class TracePlot(pyqtgraph.PlotWidget):
    """Lanes over one axis of time, with a cursor at a frame."""

    frame_chosen = Signal(int)
    """The user clicked on this frame, or dragged the cursor to it."""
    view_changed = Signal()

    def __init__(self) -> None:
        self._names = LaneAxis("left")
        self._numbers = LaneAxis("right")
        clock = SecondsAxis("bottom")
        super().__init__(axisItems={"left": self._names, "right": self._numbers, "bottom": clock})
        self._times = np.arange(2.0)
        self._part = np.zeros(2, np.int64)
        self._lanes: list[Placed] = []
        self._curves: list[pyqtgraph.PlotCurveItem] = []
        self._trials = Bands()
        self._excluded = Bands()
        self._cursor = pyqtgraph.InfiniteLine(angle=90, movable=True)
        self._cursor.setZValue(10)
        for item in (self._trials, self._excluded, self._cursor):
            self.addItem(item, ignoreBounds=True)
        own_menus(self.getPlotItem(), self)
        self.showAxis("right")
        self.setMouseEnabled(x=True, y=False)
        self.getViewBox().setDefaultPadding(0)
        self._cursor.sigDragged.connect(self._drag)
        self.scene().sigMouseClicked.connect(self._click)
        self.sigXRangeChanged.connect(self._on_view)
        self.getViewBox().sigResized.connect(self._on_size)

    # ------------------------------------------------------------ what is shown

    def show_recording(self, recording: Recording) -> None:
        """Take the clock, the trials and the excluded frames of a recording, all in view."""
        self._times = np.asarray(recording.times)
        interval = 1 / recording.rate
        self._part = np.cumsum(np.diff(self._times, prepend=self._times[0]) > LONG_GAP * interval)
        ends = np.append(self._times, self._times[-1] + interval)
        starts = np.append(np.asarray(recording.starts), recording.n_frames)
        self._trials.cover(ends[starts[1:-1:2]], ends[starts[2::2]])
        self._excluded.cover(*(ends[edges] for edges in _stretches(np.asarray(recording.excluded))))
        first, last = float(ends[0]), float(ends[-1])
        self.getViewBox().setLimits(xMin=first, xMax=last, minXRange=NARROWEST * interval)
        self.setXRange(first, last, padding=0)

    def show_lanes(self, lanes: Sequence[Lane]) -> None:
        """Replace the lanes; the stretch in view stays."""
        self._lanes = placed(lanes)
        for curve in self._curves:
            self.removeItem(curve)
        self._curves = []
        for lane in lanes:
            for line in lane.lines:
                curve = pyqtgraph.PlotCurveItem(pen=line.pen, skipFiniteCheck=True)
                curve.setSegmentedLineMode("off")
                self.addItem(curve, ignoreBounds=True)
                self._curves.append(curve)
        self._names.write({p.middle: (p.lane.title, p.lane.color) for p in self._lanes})
        low = self._lanes[-1].bottom if self._lanes else -1.0
        self.setYRange(low - 0.06, 0.06, padding=0)
        self._on_size()

    def show_whole(self) -> None:
        """All frames in view."""
        self.setXRange(*self.getViewBox().state["limits"]["xLimits"], padding=0)

    @property
    def frames(self) -> tuple[int, int]:
        """First frame in view, and the one after the last."""
        low, high = self.getViewBox().viewRange()[0]
        first, last = np.searchsorted(self._times, (low, high))
        # one more at either end, so that lines reach the edge
        return max(0, int(first) - 1), min(len(self._times), int(last) + 1)

    def show_stretch(self, first: int, last: int) -> None:
        """Bring the frames from first to last (without it) into view."""
        last = min(last, len(self._times) - 1)
        self.setXRange(self._times[first], self._times[last], padding=0)

    # ------------------------------------------------------------ the cursor

    @property
    def frame(self) -> int:
        """Frame under the cursor."""
        return self._nearest(self._cursor.value())

    def move_cursor(self, frame: int) -> None:
        """Put the cursor on a frame, and turn the page if it left the view."""
        time = self._times[min(frame, len(self._times) - 1)]
        self._cursor.setValue(time)
        low, high = self.getViewBox().viewRange()[0]
        if not low <= time <= high:
            width = high - low
            self.setXRange(time - 0.1 * width, time + 0.9 * width, padding=0)

    def _nearest(self, time: float) -> int:
        after = int(np.clip(np.searchsorted(self._times, time), 1, len(self._times) - 1))
        before = self._times[after] - time > time - self._times[after - 1]
        return after - 1 if before else after

    def _drag(self) -> None:
        self.frame_chosen.emit(self.frame)

    def _click(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            time = self.getViewBox().mapSceneToView(event.scenePos()).x()
            self.frame_chosen.emit(self._nearest(time))

    # ------------------------------------------------------------ drawing

    def follow_style(self, style: PlotStyle) -> None:
        """Use the colours of a theme."""
        self.setBackground(style.background)
        for side in ("left", "right", "bottom"):
            self.getAxis(side).setPen(style.faint)
            self.getAxis(side).setTextPen(style.ink)
        self._cursor.setPen(pyqtgraph.mkPen(style.accent, width=1))
        self._cursor.setHoverPen(pyqtgraph.mkPen(style.lines[1], width=3))
        self._trials.color = _mixed(style.background, style.ink, 0.08)
        self._excluded.color = _mixed(style.background, style.lines[5 if style.dark else 1], 0.3)

    def _on_view(self) -> None:
        self._draw()
        self.view_changed.emit()

    def _on_size(self) -> None:
        (low, high), pixels = self.getViewBox().viewRange()[1], self.getViewBox().height()
        unit = (high - low) / max(pixels, 1)
        lowest = min((p.top - p.bottom for p in self._lanes), default=1.0) / unit
        self._names.write_small(int(np.clip(lowest, SMALLEST, TEXT - 1)))
        self._write_numbers(unit)
        self._draw()

    def _write_numbers(self, unit: float) -> None:
        """Label lanes that are tall enough with their lowest and highest value.

        `unit` is the height of a pixel in the plot.
        """
        half = unit * TEXT / 2
        texts = {}
        for place in self._lanes:
            if place.top - place.bottom < 4 * half:
                continue
            for value, text in place.lane.ticks.items():
                # inside the lane, not half in the next one
                height = np.clip(place.height_of(value), place.bottom + half, place.top - half)
                texts[float(height)] = (text, place.lane.color)
        self._numbers.write(texts)

    def _draw(self) -> None:
        first, last = self.frames
        points = max(50, int(self.getViewBox().width() / 2))
        curves = iter(self._curves)
        for place in self._lanes:
            for line in place.lane.lines:
                times, values, lines = line.visible(first, last, points, self._times, self._part)
                heights = place.height_of(values)
                next(curves).setData(times, heights, connect=lines, skipFiniteCheck=True)


class LaneAxis(pyqtgraph.AxisItem):
    """Names or numbers of the lanes, each in the colour of its lane."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self._colors: list[str] = []
        self.setStyle(tickLength=0, autoExpandTextSpace=True, hideOverlappingLabels=False)

    def write(self, texts: dict[float, tuple[str, str]]) -> None:
        """Write texts in their colours at some heights."""
        self._colors = [color for _, color in texts.values()]
        self.setTicks([[(height, text) for height, (text, _) in texts.items()]])

    def write_small(self, pixels: int) -> None:
        """Write in a size that fits."""
        font = QFont()
        font.setPixelSize(pixels)
        self.setTickFont(font)

    def drawPicture(self, p: QPainter, axis: Any, ticks: Any, texts: Any) -> None:
        """Draw the axis; pyqtgraph has one colour for all texts."""
        super().drawPicture(p, axis, ticks, [])
        # all texts are in view, in the order they were given in
        for (rectangle, flags, text), color in zip(texts, self._colors, strict=False):
            p.setPen(pyqtgraph.mkPen(color))
            p.drawText(rectangle, int(flags), text)


class SecondsAxis(pyqtgraph.AxisItem):
    """Time, with the unit after each number: a label below would cost a lane."""

    def tickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        """Seconds."""
        return [f"{text} s" for text in super().tickStrings(values, scale, spacing)]


class Bands(pyqtgraph.GraphicsObject):
    """Stretches of time shaded from top to bottom; only those in view are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(-10)
        self._starts, self._stops = np.zeros(0), np.zeros(0)
        self.color = QColor(128, 128, 128)

    def cover(self, starts: np.ndarray, stops: np.ndarray) -> None:
        """Shade from starts to stops, in seconds, ascending."""
        self._starts, self._stops = starts, stops
        self.update()

    def viewRangeChanged(self, *_: Any) -> None:
        """Redraw."""
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        """The view."""
        view = self.getViewBox()
        return QRectF(view.viewRect()) if view is not None else QRectF()

    def paint(self, p: QPainter, *_: Any) -> None:
        """Shade."""
        view = self.boundingRect()
        first = np.searchsorted(self._stops, view.left())
        last = np.searchsorted(self._starts, view.right())
        if not 0 < last - first <= MOST_BANDS:
            return
        # whole pixels in a plain colour are filled many times quicker
        to_pixels = p.worldTransform()
        edges = np.stack([self._starts[first:last], self._stops[first:last]])
        edges = np.clip(edges, view.left(), view.right()) * to_pixels.m11() + to_pixels.dx()
        whole = to_pixels.mapRect(view).toAlignedRect()
        p.resetTransform()
        for left, right in np.round(edges).astype(int).T.tolist():
            p.fillRect(left, whole.top(), max(1, right - left), whole.height(), self.color)


def _stretches(marked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First frames of marked stretches, and the frames after them."""
    change = np.diff(np.r_[0, marked.astype(np.int8), 0])
    return np.flatnonzero(change == 1), np.flatnonzero(change == -1)


def _mixed(background: str, color: str, share: float) -> QColor:
    """The background with a share of a colour."""
    under, over = (np.array(QColor(c).getRgb()[:3]) for c in (background, color))
    return QColor(*np.round(under * (1 - share) + over * share).astype(int).tolist())
