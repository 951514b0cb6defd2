"""Draws the mean responses of many cells to an event as an image, a row for each cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QRectF, Qt, Signal

from napari_xcebra.recording.responses import Responses
from napari_xcebra.widgets.controls.plain_text import in_markup
from napari_xcebra.widgets.plots.figure_menu import FigureMenu
from napari_xcebra.widgets.plots.plot_style import (
    PlotStyle,
    add_color_bar,
    diverging_map,
    label_axis,
    own_menus,
    painted,
)
from napari_xcebra.widgets.plots.time_plot import SecondsAxis
from napari_xcebra.widgets.plots.trace_plot import LaneAxis

MOST_PANELS = 4
"""Groups that are drawn side by side."""
FAR = 99.5
"""Percentile at the ends of the colours: a few outliers do not count."""
AXIS = 46
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
        limit = float(np.percentile(known, FAR)) if len(known) else 1.0
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
