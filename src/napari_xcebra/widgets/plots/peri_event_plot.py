"""Plots responses to an event: of one cell by group and moment, and the means of many cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QRectF, Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import QGraphicsSimpleTextItem

from napari_xcebra.recording.around_events import PeriEvent
from napari_xcebra.recording.moments import START, STOP
from napari_xcebra.recording.responses import Responses
from napari_xcebra.widgets.controls.boxes import in_markup
from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import (
    PlotStyle,
    add_color_bar,
    diverging_map,
    fill_between,
    group_colors,
    label_axis,
    own_menus,
    painted,
    sequential_map,
)
from napari_xcebra.widgets.plots.time_plot import SecondsAxis
from napari_xcebra.widgets.plots.trace_plot import LaneAxis

AXIS = 46
"""Pixels for the axes on the left, so that the two plots line up."""
LINE = 14
"""Pixels for a line of the key."""
BESIDE = 110
"""Pixels that the key may be wide."""
MOST_KEYS = 8
"""Groups that the key names; there is no room for more."""
STRIP = 0.015
"""Share of the width that has the colours of the groups."""
FAR = (0.5, 99.5)
"""Percentiles at the ends of the colours: a few outliers do not count."""


class PeriEventPlot(pyqtgraph.GraphicsLayoutWidget):
    """Mean and standard error above, a row for each moment below, on one axis of time.

    Signals
    -------
    frame_chosen(int)
        The user clicked on this frame in the image.
    window_dragged(float, float)
        The user moved or zoomed the axis of time to these seconds.
    """

    frame_chosen = Signal(int)
    window_dragged = Signal(float, float)

    def __init__(self) -> None:
        super().__init__()
        self.ci.setContentsMargins(2, 2, 2, 2)
        self.ci.setSpacing(2)
        self.mean, self.rows = (self._add_plot(row) for row in range(2))
        self.rows.setXLink(self.mean)
        self.mean.hideAxis("bottom")
        self.rows.invertY(True)
        self.around: PeriEvent | None = None
        self.order = np.zeros(0, np.int64)
        self._rate, self._frame = 1.0, 0
        self._beside = pyqtgraph.GraphicsWidget()
        self.addItem(self._beside, 0, 1, 2, 1)
        self._key: list[QGraphicsSimpleTextItem] = []
        self._here = pyqtgraph.ScatterPlotItem(size=9, symbol="o", brush=None)
        self._here.setZValue(10)
        self._here.on_paper = False
        self.scene().sigMouseClicked.connect(self._click)
        self.figure_menu = FigureMenu(self, "around-event")

    def _add_plot(self, row: int) -> pyqtgraph.PlotItem:
        plot = pyqtgraph.PlotItem(
            viewBox=pyqtgraph.ViewBox(enableMenu=False),
            axisItems={"bottom": SecondsAxis("bottom")},
        )
        self.addItem(plot, row, 0)
        own_menus(plot, self)
        plot.setMouseEnabled(x=True, y=False)
        plot.getAxis("left").setWidth(AXIS)
        for side in ("left", "bottom"):
            plot.getAxis(side).enableAutoSIPrefix(False)
        plot.vb.setDefaultPadding(0)
        plot.vb.sigRangeChangedManually.connect(
            lambda *_: self.window_dragged.emit(*plot.vb.viewRange()[0])
        )
        return plot

    # ------------------------------------------------------------ drawing

    def show_around(
        self, around: PeriEvent, title: str, unit: str, rate: float, style: PlotStyle
    ) -> None:
        """Draw the only cell of some traces around an event.

        Parameters
        ----------
        around : PeriEvent
        title : str
            Which cell it is.
        unit : str
            What the traces are in.
        rate : float
            Frames per second.
        """
        self.around, self._rate = around, rate
        group = around.moments.group
        # by group, then in time; those of no group last
        self.order = np.argsort(np.where(group < 0, len(around.groups), group), kind="stable")
        colors = group_colors(len(around.groups), style)
        self.setBackground(style.background)
        for plot in (self.mean, self.rows):
            plot.clear()
            for side in ("left", "bottom"):
                plot.getAxis(side).setPen(style.faint)
                plot.getAxis(side).setTextPen(style.ink)
            plot.addItem(_zero(style))
        self._draw_means(around, colors, style)
        self._draw_rows(around, colors, style)
        self._write_key(around, title, colors, style)
        label_axis(self.mean.getAxis("left"), unit, style)
        what = "trial" if around.moments.event in (START, STOP) else "event"
        label_axis(self.rows.getAxis("left"), what, style)
        self._here.setPen(pyqtgraph.mkPen(style.accent, width=2))
        self.mark_frame(self._frame)

    def _draw_means(self, around: PeriEvent, colors: list[str], style: PlotStyle) -> None:
        mean, error = around.mean()[..., 0], np.nan_to_num(around.sem()[..., 0])
        for group, color in enumerate(colors):
            known = np.isfinite(mean[group])
            x, y, e = around.seconds[known], mean[group, known], error[group, known]
            edges = [pyqtgraph.PlotCurveItem(x, y + sign * e) for sign in (-1, 1)]
            fill_between(self.mean, edges, color)
            pen = pyqtgraph.mkPen(color, width=2)
            self.mean.plot(around.seconds, mean[group], pen=pen, connect="finite", antialias=True)
        low = float(np.nanmin(mean - error, initial=np.inf))
        high = float(np.nanmax(mean + error, initial=-np.inf))
        if low < high:
            self.mean.setYRange(low, high, padding=0.05)

    def _draw_rows(self, around: PeriEvent, colors: list[str], style: PlotStyle) -> None:
        values = around.values[self.order, :, 0]
        first, width = _ends(around)
        known = values[np.isfinite(values)]
        low, high = np.percentile(known, FAR) if len(known) else (0.0, 1.0)
        image = pyqtgraph.ImageItem(
            painted(values, low, high, sequential_map()), axisOrder="row-major"
        )
        image.setRect(QRectF(first, 0, width, len(values)))
        image.setZValue(-10)
        self.rows.addItem(image)
        if len(colors) > 1:
            self.rows.addItem(self._strip(around, [*colors, style.faint], first, width))
        self.rows.addItem(self._here)
        self.mean.setXRange(first, first + width, padding=0)
        self.rows.setYRange(0, max(len(values), 1), padding=0)

    def _strip(
        self, around: PeriEvent, colors: list[str], first: float, width: float
    ) -> pyqtgraph.ImageItem:
        """Colour of each row's group along the left edge."""
        table = np.array([pyqtgraph.mkColor(color).getRgb()[:3] for color in colors], np.uint8)
        strip = pyqtgraph.ImageItem(
            table[around.moments.group[self.order]][:, None], axisOrder="row-major"
        )
        strip.setRect(QRectF(first, 0, STRIP * width, len(self.order)))
        return strip

    def _write_key(
        self, around: PeriEvent, title: str, colors: list[str], style: PlotStyle
    ) -> None:
        """Cell, groups and number of moments, as plain text: names come from files."""
        for text in self._key:
            self.scene().removeItem(text)
        self._key = []
        lines = [(line, "", style.ink) for line in title.split(", ")]
        group = around.moments.group
        counts = np.bincount(group[group >= 0], minlength=len(around.groups))
        if around.moments.by:
            named = zip(around.groups, counts, colors, strict=True)
            lines += [(name, f" ({count})", color) for name, count, color in named][:MOST_KEYS]
            if len(around.groups) > MOST_KEYS:
                lines.append((f"… {len(around.groups)} in all", "", style.faint))
        else:
            lines.append((f"mean of {counts.sum()}", "", colors[0]))
        metrics = self.fontMetrics()
        for place, (name, count, color) in enumerate(lines):
            room = BESIDE - metrics.horizontalAdvance(count)
            shown = metrics.elidedText(name, Qt.TextElideMode.ElideRight, room)
            text = QGraphicsSimpleTextItem(shown + count, self._beside)
            text.setBrush(QColor(color))
            text.setPos(2, LINE * place)
            self._key.append(text)
        widest = max(text.boundingRect().width() for text in self._key)
        self._beside.setFixedWidth(widest + 4)

    @property
    def key(self) -> list[str]:
        """What is written in the corner, line by line."""
        return [text.text() for text in self._key]

    # ------------------------------------------------------------ the time slider

    def mark_frame(self, frame: int) -> None:
        """Ring around the current frame, if it lies around one of the moments."""
        self._frame = frame
        spot = self._spot(frame)
        self._here.setData(*(([spot[0]], [spot[1] + 0.5]) if spot else ([], [])))

    @property
    def marked(self) -> tuple[float, int] | None:
        """Seconds and row of the ring."""
        return self._spot(self._frame)

    def _spot(self, frame: int) -> tuple[float, int] | None:
        if self.around is None or len(self.order) == 0:
            return None
        nearest = int(np.abs(self.around.moments.frames - frame).argmin())
        seconds = float(frame - self.around.moments.frames[nearest]) / self._rate
        first, width = _ends(self.around)
        if not first <= seconds <= first + width:
            return None
        return seconds, int(np.flatnonzero(self.order == nearest)[0])

    def _click(self, event: Any) -> None:
        inside = self.rows.vb.sceneBoundingRect().contains(event.scenePos())
        if event.button() != Qt.MouseButton.LeftButton or self.around is None or not inside:
            return
        at = self.rows.vb.mapSceneToView(event.scenePos())
        row = int(at.y())
        if 0 <= row < len(self.order):
            moment = int(self.around.moments.frames[self.order[row]])
            self.frame_chosen.emit(moment + round(at.x() * self._rate))


def _zero(style: PlotStyle) -> pyqtgraph.InfiniteLine:
    pen = pyqtgraph.mkPen(style.accent, width=1, style=Qt.PenStyle.DashLine)
    return pyqtgraph.InfiniteLine(0, angle=90, pen=pen)


def _ends(around: PeriEvent) -> tuple[float, float]:
    """First second of the first bin, and seconds to the end of the last."""
    seconds = around.seconds
    step = float(seconds[1] - seconds[0]) if len(seconds) > 1 else 1.0
    return float(seconds[0]) - step / 2, len(seconds) * step


MOST_PANELS = 4
"""Groups that are drawn side by side."""
FAR_VALUE = 99.5
"""Percentile at the ends of the colours: a few outliers do not count."""
TITLE = 16
"""Pixels; pyqtgraph takes twice as many."""


class ResponseMap(pyqtgraph.GraphicsLayoutWidget):
    """One image a group, with the same cells in the same rows and the same colours."""

    cell_chosen = Signal(int, bool)
    """The user clicked on this cell; the flag says whether to add it to the selection."""

    def __init__(self) -> None:
        super().__init__()
        self.ci.setContentsMargins(2, 2, 2, 2)
        self.ci.setSpacing(4)
        self.order = np.zeros(0, np.int64)
        self.marked: list[str] = []
        self._plots: list[pyqtgraph.PlotItem] = []
        self._made: list[pyqtgraph.PlotItem] = []
        self._lines: list[tuple[pyqtgraph.PlotItem, pyqtgraph.InfiniteLine]] = []
        self._names = LaneAxis("left")
        self.scene().sigMouseClicked.connect(self._click)
        self.figure_menu = FigureMenu(self, "responses")

    def show_responses(
        self, responses: Responses, drawn: np.ndarray, order: np.ndarray, style: PlotStyle
    ) -> None:
        """Draw mean responses.

        Parameters
        ----------
        responses : Responses
        drawn : (groups, bins, cells) float
            What is drawn of them.
        order : (n,) int
            Cells to draw, by position, from top to bottom.
        """
        self.clear()
        self._plots, self._lines, self.order = [], [], order
        self.setBackground(style.background)
        drawn = drawn[:MOST_PANELS, :, order]
        known = np.abs(drawn[np.isfinite(drawn)])
        limit = float(np.percentile(known, FAR_VALUE)) if len(known) else 1.0
        for number, name in enumerate(responses.moments.groups[:MOST_PANELS]):
            plot = self._plot(number, style)
            if responses.moments.by:
                plot.setTitle(in_markup(name), color=style.ink, size="8pt")
                plot.titleLabel.setMaximumHeight(TITLE)
                plot.layout.setRowFixedHeight(0, TITLE)
            self._draw(plot, drawn[number].T, responses.seconds, limit, style)
        label_axis(self._names, f"{len(order):,} cells", style)
        bar = add_color_bar(self, len(self._plots), diverging_map(), (-limit, limit), style)
        label_axis(bar, "z", style)

    def _plot(self, number: int, style: PlotStyle) -> pyqtgraph.PlotItem:
        """The plot at a place, empty; making one takes longer than all the rest."""
        if number == len(self._made):
            self._made.append(self._make(first=number == 0))
        plot = self._made[number]
        plot.clear()
        plot.setTitle(None)
        self.addItem(plot, 0, number)
        for side in ("left", "bottom"):
            plot.getAxis(side).setPen(style.faint)
            plot.getAxis(side).setTextPen(style.ink)
        self._plots.append(plot)
        return plot

    def _make(self, *, first: bool) -> pyqtgraph.PlotItem:
        plot = pyqtgraph.PlotItem(
            viewBox=pyqtgraph.ViewBox(enableMenu=False),
            axisItems={"bottom": SecondsAxis("bottom"), **({"left": self._names} if first else {})},
        )
        own_menus(plot, self)
        plot.setMouseEnabled(x=False, y=False)
        plot.invertY(True)
        plot.vb.setDefaultPadding(0)
        plot.getAxis("bottom").enableAutoSIPrefix(False)
        if first:
            plot.getAxis("left").setWidth(AXIS)
        else:
            plot.hideAxis("left")
        return plot

    def _draw(
        self,
        plot: pyqtgraph.PlotItem,
        rows: np.ndarray,
        seconds: np.ndarray,
        limit: float,
        style: PlotStyle,
    ) -> None:
        step = float(seconds[1] - seconds[0]) if len(seconds) > 1 else 1.0
        area = QRectF(float(seconds[0]) - step / 2, 0, len(seconds) * step, max(len(rows), 1))
        picture = painted(rows, -limit, limit, diverging_map())
        image = pyqtgraph.ImageItem(picture, axisOrder="row-major")
        image.setRect(area)
        plot.addItem(image)
        pen = pyqtgraph.mkPen("#000000", width=1, style=Qt.PenStyle.DashLine)
        plot.addItem(pyqtgraph.InfiniteLine(0, angle=90, pen=pen))
        plot.setRange(area, padding=0)

    def mark_cells(self, cells: Sequence[int], names: Sequence[str], style: PlotStyle) -> None:
        """Name the selected cells at their rows, and draw a line through them."""
        for plot, line in self._lines:
            plot.removeItem(line)
        self._lines = []
        texts = {}
        for number, (cell, name) in enumerate(zip(cells, names, strict=True)):
            rows = np.flatnonzero(self.order == cell)
            if not len(rows):
                continue
            at = float(rows[0]) + 0.5
            texts[at] = (name, style.line(number))
            for plot in self._plots:
                line = pyqtgraph.InfiniteLine(at, angle=0, pen=pyqtgraph.mkPen("#000000", width=1))
                plot.addItem(line)
                self._lines.append((plot, line))
        # the axis colours its texts in the order it is given them
        self._names.write(dict(sorted(texts.items())))
        self.marked = [name for _, (name, _) in sorted(texts.items())]

    def _click(self, event: Any) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        for plot in self._plots:
            if plot.vb.sceneBoundingRect().contains(event.scenePos()):
                row = int(plot.vb.mapSceneToView(event.scenePos()).y())
                if 0 <= row < len(self.order):
                    more = event.modifiers() & Qt.KeyboardModifier.ControlModifier
                    self.cell_chosen.emit(int(self.order[row]), bool(more))
