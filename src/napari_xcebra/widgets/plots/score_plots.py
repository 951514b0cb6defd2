"""Plots the distribution of scores, with a threshold to drag, and where one cell lies in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QBrush, QColor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QCheckBox, QLabel, QPushButton, QSizePolicy, QWidget
from superqt.utils import qthrottled, signals_blocked

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.widgets.controls.boxes import NumberBox, PlainLabel, plain
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import BLUE, ORANGE, PlotStyle, dress, plain_plot

BINS = 40
CROWDED, MANY = 0.5, 10
"""Share of the cells in one bar, and their number, above which heights are logarithms."""
PAUSE = 30
"""Milliseconds between two reports while the threshold is dragged."""


class ScoreHistogram(QWidget):
    """Histogram of the scores of all cells."""

    threshold_changed = Signal(float)
    """The new threshold, as z."""
    dim_changed = Signal(bool)
    brushed = Signal(object)
    """Positions of the cells in the region, highest score first."""

    def __init__(self) -> None:
        super().__init__()
        self._map: ScoreMap | None = None
        self._threshold = 0.0
        self._edges, self._counts = np.zeros(1), np.zeros(0)
        self._log = False
        self._bars: pyqtgraph.BarGraphItem | None = None
        self._colormap, self._limits = "viridis", (0.0, 1.0)
        self._z_axis = _StandardisedAxis()
        self._view = _BrushedView()
        self.plot = plain_plot(self._view, top=self._z_axis)
        self._set_up_plot()
        self.figure_menu = FigureMenu(self.plot, "scores")
        self.z = NumberBox("Threshold as z: standard deviations above the mean score.")
        self.z.setSingleStep(0.1)
        self.score = NumberBox("The same threshold as a score.")
        self.reset = QPushButton("Reset")
        self.reset.setToolTip("Back to z = 0, the mean score.")
        self.count = PlainLabel()
        self.count.setToolTip("Cells above the threshold, of all cells that have a score.")
        self.dim = QCheckBox("Dim the others")
        self.dim.setToolTip("Dim cells below the threshold in the image.")
        self._lay_out()
        self._tell_soon = qthrottled(self._tell, timeout=PAUSE, leading=False, parent=self)
        self.line.sigDragged.connect(lambda _: self._tell_soon())
        self.line.sigPositionChangeFinished.connect(self._tell)
        self.z.valueChanged.connect(self._set_threshold)
        self.score.valueChanged.connect(self._set_score)
        self.reset.clicked.connect(lambda _=False: self._set_threshold(0.0))
        self.dim.toggled.connect(self.dim_changed)
        self._view.moved.connect(self._show_region)
        self._view.brushed.connect(self._select_region)

    def _set_up_plot(self) -> None:
        # it takes what room there is, and asks for none
        self.plot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.plot.setMinimumHeight(110)
        self.plot.setToolTip(
            "Scores of all cells. Drag the line to move the threshold; drag anywhere else to "
            "select the cells in a range of scores."
        )
        self.plot.getAxis("bottom").enableAutoSIPrefix(False)  # scores stand as they are
        self.plot.setLabel("bottom", "score (below), z (above)")
        self.plot.setLabel("left", "cells")
        self.plot.showAxis("top")
        self.line = pyqtgraph.InfiniteLine(
            movable=True,
            pen=pyqtgraph.mkPen(ORANGE, width=2),
            hoverPen=pyqtgraph.mkPen(ORANGE, width=5),
        )
        self.line.setZValue(10)
        self.line.setCursor(Qt.CursorShape.SizeHorCursor)
        self.region = pyqtgraph.LinearRegionItem(brush=(86, 180, 233, 60), movable=False)
        self.region.hide()
        self.marks = pyqtgraph.ScatterPlotItem(
            symbol="t1", size=9, brush=BLUE, pen=pyqtgraph.mkPen("k", width=0.5)
        )
        for item in (self.region, self.line, self.marks):
            self.plot.addItem(item, ignoreBounds=True)

    def _lay_out(self) -> None:
        numbers = (QLabel("Threshold z"), self.z, QLabel("score"), self.score)
        above = in_row(*numbers, 1, self.reset, spacing=4)
        below = in_row((self.count, 1), self.dim)
        in_column((self.plot, 1), above, below, of=self).setContentsMargins(0, 4, 0, 0)

    # ------------------------------------------------------------ showing

    def show_map(self, painted: ScoreMap) -> None:
        """Show the distribution of other scores."""
        self._map = painted
        low, high = painted.span
        width = (high - low) or 1.0
        self._counts, self._edges = np.histogram(
            painted.scores[painted.known], bins=BINS, range=(low, low + width)
        )
        self._z_axis.standardise(painted)
        self._view.setXRange(low, low + width, padding=0.03)
        self._log = bool(self._counts.max(initial=0) > max(CROWDED * self._counts.sum(), MANY))
        self._view.setYRange(0, max(1.0, float(self.heights.max(initial=1))), padding=0.08)
        self._show_counts()
        self.line.setBounds((low - 0.02 * width, low + 1.02 * width))
        self.score.suit(low, low + width)
        self.region.hide()

    def forget_recording(self) -> None:
        """Show nothing."""
        self._map = None
        self.region.hide()
        self.marks.clear()
        self.count.clear()
        if self._bars is not None:
            self.plot.removeItem(self._bars)
            self._bars = None

    @property
    def heights(self) -> np.ndarray:
        """(bars,) float, height of each bar: its cells, or their logarithm if one has most."""
        return np.log10(1 + self._counts) if self._log else self._counts.astype(float)

    def _show_counts(self) -> None:
        """Numbers of cells beside the bars, also where their heights are logarithms."""
        axis = self.plot.getAxis("left")
        ticks = [1, 10, 100, 1000, 10_000]
        axis.setTicks([[(np.log10(1 + n), f"{n:,}") for n in ticks]] if self._log else None)
        self.plot.setLabel("left", "cells (log scale)" if self._log else "cells")

    def show_colors(self, colormap: str, limits: tuple[float, float]) -> None:
        """Give the bars the colours of the cells."""
        self._colormap, self._limits = colormap, limits
        self._draw_bars()

    def show_threshold(self, z: float, *, dim: bool) -> None:
        """Show a threshold, wherever it was set; the bars follow with their colours."""
        self._threshold = z = float(z)  # a script may give a number of numpy
        with signals_blocked(self.dim):
            self.dim.setChecked(dim)
        if self._map is None:
            return
        score = self._map.score_of(z)
        if not self.line.moving:
            with signals_blocked(self.line):
                self.line.setValue(score)
        self.z.show_number(z)
        self.score.show_number(score)
        above = int(self._map.above(z).sum())
        self.count.setText(f"{above} of {int(self._map.known.sum())} cells above threshold")
        self.reset.setEnabled(z != 0)

    def mark(self, cells: np.ndarray) -> None:
        """Point at the scores of some cells."""
        if self._map is None:
            return
        scores = self._map.scores[cells] if len(cells) else np.zeros(0)
        scores = scores[np.isfinite(scores)]
        self.marks.setData(scores, np.zeros(len(scores)))

    def follow_theme(self, style: PlotStyle) -> None:
        """Colours of the plot."""
        dress(self.plot, style)

    def _draw_bars(self) -> None:
        centers = (self._edges[:-1] + self._edges[1:]) / 2
        if self._map is None or not len(centers):
            return
        low, high = self._limits
        place = np.clip((centers - low) / ((high - low) or 1.0), 0, 1)
        colors = 255 * ensure_colormap(self._colormap).map(place)
        colors[centers <= self._map.score_of(self._threshold), 3] = 90
        if self._bars is not None:
            self.plot.removeItem(self._bars)
        self._bars = pyqtgraph.BarGraphItem(
            x=centers,
            height=self.heights,
            width=self._edges[1] - self._edges[0],
            brushes=[QBrush(QColor(*color)) for color in colors.astype(int).tolist()],
            pen=pyqtgraph.mkPen(128, 128, 128, 120),
        )
        self._bars.setZValue(-1)
        self.plot.addItem(self._bars, ignoreBounds=True)

    # ------------------------------------------------------------ the user's part

    def _tell(self) -> None:
        self._tell_soon.cancel()
        if self._map is not None:
            self.threshold_changed.emit(self._map.z_of(float(self.line.value())))

    def _set_threshold(self, z: float) -> None:
        self.threshold_changed.emit(float(z))

    def _set_score(self, score: float) -> None:
        if self._map is not None:
            self.threshold_changed.emit(self._map.z_of(score))

    def _show_region(self, low: float, high: float) -> None:
        self.region.setRegion((low, high))
        self.region.show()

    def _select_region(self, low: float, high: float) -> None:
        """Report the cells in a region; an empty region removes the mark."""
        if self._map is None:
            return
        if low < high:
            self._show_region(low, high)
            self.brushed.emit(self._map.within(low, high))
        elif self.region.isVisible():
            self.region.hide()
            self.brushed.emit(np.zeros(0, np.int64))


class _StandardisedAxis(pyqtgraph.AxisItem):
    """Ticks in z over an axis in scores."""

    def __init__(self) -> None:
        super().__init__("top")
        self._map: ScoreMap | None = None

    def standardise(self, painted: ScoreMap) -> None:
        """Take mean and spread of other scores."""
        self._map = painted
        self.picture = None
        self.update()

    def linkedViewChanged(self, view: Any, newRange: Any = None) -> None:
        """Follow the view, in z."""
        low, high = newRange if newRange is not None else view.viewRange()[0]
        if self._map is not None:
            low, high = self._map.z_of(low), self._map.z_of(high)
        self.setRange(low, high)


class _BrushedView(pyqtgraph.ViewBox):
    """A view in which dragging marks a range instead of moving the plot."""

    moved = Signal(float, float)
    brushed = Signal(float, float)

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        """Mark from where the button went down to where the mouse is."""
        if ev.button() != Qt.MouseButton.LeftButton:
            ev.ignore()
            return
        ev.accept()
        ends = [self.mapToView(at).x() for at in (ev.buttonDownPos(), ev.pos())]
        (self.brushed if ev.isFinish() else self.moved).emit(min(ends), max(ends))

    def mouseClickEvent(self, ev: Any) -> None:
        """Remove the mark."""
        if ev.button() == Qt.MouseButton.LeftButton:
            at = self.mapToView(ev.pos()).x()
            self.brushed.emit(at, at)
            ev.accept()


STRIP_BINS = 80
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
            found = np.histogram(scores, STRIP_BINS, (low, high if high > low else low + 1))[0]
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
        width = room / STRIP_BINS
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
