"""Plots over the clock of a recording, with a cursor at a frame and trials shaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QRectF, Qt, Signal
from qtpy.QtGui import QColor, QPainter

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import ColorKey, PlotStyle, own_menus

NARROWEST = 10
"""Frames that one can zoom in to."""
OPENING = 60.0
"""Seconds in view at first: enough to see single transients."""
MARGIN = 0.05
"""Share of the view between its edge and the cursor after a page was turned."""
MOST_BANDS = 100
"""Trials in view above which their shading would be a blur."""
LONG_GAP = 5.0
"""Frame intervals without a frame over which no line is drawn."""


class TimePlot(pyqtgraph.PlotWidget):
    """Scrolls and zooms over time; subclasses draw.

    Signals
    -------
    frame_chosen(int)
        The user clicked on this frame, or dragged the cursor to it.
    view_changed
        Another stretch of time is in view.
    """

    frame_chosen = Signal(int)
    view_changed = Signal()

    def __init__(self, **axes: pyqtgraph.AxisItem) -> None:
        super().__init__(axisItems={"bottom": SecondsAxis("bottom"), **axes})
        self._times = np.arange(2.0)
        self._part = np.zeros(2, np.int64)
        self._trials = _Bands()
        self._excluded = _Bands()
        self._cursor = pyqtgraph.InfiniteLine(angle=90, movable=True)
        self._cursor.setZValue(10)
        self._cursor.on_paper = False
        for item in (self._trials, self._excluded, self._cursor):
            self.addItem(item, ignoreBounds=True)
        own_menus(self.getPlotItem(), self)
        self.key: ColorKey | None = None
        """Which explains the colours, if there is one."""
        self.figure_menu = FigureMenu(self, "activity")
        self.setMouseEnabled(x=True, y=False)
        self.getViewBox().setDefaultPadding(0)
        self._cursor.sigDragged.connect(lambda *_: self.frame_chosen.emit(self.frame))
        self.scene().sigMouseClicked.connect(self._click)
        self.sigXRangeChanged.connect(self._on_view)

    def show_recording(self, recording: Recording) -> None:
        """Take the clock, the trials and the excluded frames of a recording.

        Of another clock, the first minute comes into view; of the same one, what is in view stays.
        """
        times, interval = np.asarray(recording.times), 1 / recording.rate
        ends = np.append(times, times[-1] + interval)
        starts = np.append(np.asarray(recording.starts), recording.n_frames)
        self._trials.cover(ends[starts[1:-1:2]], ends[starts[2::2]])
        self._excluded.cover(*(ends[edges] for edges in _stretches(np.asarray(recording.excluded))))
        if np.array_equal(times, self._times):
            return
        self._times = times
        self._part = np.cumsum(np.diff(times, prepend=times[0]) > LONG_GAP * interval)
        first, last = float(ends[0]), float(ends[-1])
        self.getViewBox().setLimits(xMin=first, xMax=last, minXRange=NARROWEST * interval)
        self._cursor.setValue(first)
        self.show_around(OPENING)

    # ------------------------------------------------------------ the stretch in view

    @property
    def seconds(self) -> tuple[float, float]:
        """What is in view, in seconds."""
        low, high = self.getViewBox().viewRange()[0]
        return low, high

    def show_seconds(self, low: float, high: float) -> None:
        """Bring a stretch of time into view, moved to where there are frames."""
        first, last = self.getViewBox().state["limits"]["xLimits"]
        width = min(high - low, last - first)
        low = float(np.clip(low, first, last - width))
        self.setXRange(low, low + width, padding=0)

    def show_around(self, seconds: float) -> None:
        """Bring some seconds around the cursor into view; all frames if there are no more."""
        seconds = min(seconds, self._times[-1] - self._times[0] + 1.0)
        low = self._cursor.value() - seconds / 2
        self.show_seconds(low, low + seconds)

    @property
    def frames(self) -> tuple[int, int]:
        """First frame in view, and the one after the last."""
        first, last = np.searchsorted(self._times, self.seconds)
        # one more at either end, so that lines reach the edge
        return max(0, int(first) - 1), min(len(self._times), int(last) + 1)

    # ------------------------------------------------------------ the cursor

    @property
    def frame(self) -> int:
        """Frame under the cursor."""
        return self._nearest(self._cursor.value())

    def move_cursor(self, frame: int) -> None:
        """Put the cursor on a frame, and turn the page if it left the view."""
        time = float(self._times[np.clip(frame, 0, len(self._times) - 1)])
        self._cursor.setValue(time)
        low, high = self.seconds
        if low <= time <= high:
            return
        width = high - low
        if high < time <= high + width:
            share = MARGIN
        elif low - width <= time < low:
            share = 1 - MARGIN
        else:
            share = 0.5
        low = time - share * width
        self.show_seconds(low, low + width)

    def _nearest(self, time: float) -> int:
        after = int(np.clip(np.searchsorted(self._times, time), 1, len(self._times) - 1))
        before = self._times[after] - time > time - self._times[after - 1]
        return after - 1 if before else after

    def _click(self, event: Any) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._clicked(event, self.getViewBox().mapSceneToView(event.scenePos()))

    def _clicked(self, event: Any, at: Any) -> None:
        """Go to where the left button was clicked."""
        self.frame_chosen.emit(self._nearest(at.x()))

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
        if self.isVisible():
            self._draw()
        self.view_changed.emit()

    def showEvent(self, ev: Any) -> None:
        """Draw what came into view while the plot was hidden."""
        super().showEvent(ev)
        self._draw()

    def _draw(self) -> None:
        """Draw what is in view."""


class SecondsAxis(pyqtgraph.AxisItem):
    """Time, with the unit after each number: a label below would cost a lane."""

    def tickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        """Seconds."""
        return [f"{text} s" for text in super().tickStrings(values, scale, spacing)]


class _Bands(pyqtgraph.GraphicsObject):
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

    def bands(self) -> np.ndarray:
        """Start and stop of those in view, unless they are too many: (n, 2) float, seconds."""
        view = self.boundingRect()
        first = np.searchsorted(self._stops, view.left())
        last = np.searchsorted(self._starts, view.right())
        shown = slice(first, last if last - first <= MOST_BANDS else first)
        return np.stack([self._starts[shown], self._stops[shown]], axis=1)

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
