"""Plots signals over time in lanes below each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QPointF
from qtpy.QtGui import QFont, QPainter

from napari_xcebra.widgets.plots.time_plot import TimePlot
from napari_xcebra.widgets.plots.trace_lanes import Lane, Placed, placed

TEXT = 13
"""Pixels that a line of text needs."""
SMALLEST = 9
"""Pixels of the smallest text that can be read."""
EDGE = 0.06
"""Room above and below the lanes, in lanes."""


class TracePlot(TimePlot):
    """Lanes over one axis of time: names at the left, numbers and scale bars at the right."""

    def __init__(self) -> None:
        self._names = LaneAxis("left")
        self._numbers = LaneAxis("right")
        self._lanes: list[Placed] = []
        self._curves: list[pyqtgraph.PlotCurveItem] = []
        super().__init__(left=self._names, right=self._numbers)
        self.showAxis("right")
        self.figure_menu.offer_values(self.values_in_view)
        self.getViewBox().sigResized.connect(self._on_size)

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
        self._on_size()

    def values_in_view(self) -> str:
        """The lanes in view as a table: a row for each frame, a column for each line."""
        first, last = self.frames
        frames = np.arange(first, last)
        columns = {
            "frame": frames.astype(str),
            "time (s)": [f"{t:.4f}" for t in self._times[frames]],
        }
        for place in self._lanes:
            for number, line in enumerate(place.lane.lines):
                title = place.lane.title.replace("\n", ", ")
                columns[title if number == 0 else f"{title} {number + 1}"] = line.texts(frames)
        rows = zip(*columns.values(), strict=True)
        return "\n".join(["\t".join(columns), *map("\t".join, rows)])

    @property
    def _lowest(self) -> float:
        """Where the lowest lane ends."""
        return self._lanes[-1].bottom if self._lanes else -1.0

    def _on_size(self) -> None:
        low, pixels = self._lowest, self.getViewBox().height()
        self.setYRange(low - EDGE, EDGE, padding=0)
        unit = (2 * EDGE - low) / max(pixels, 1)
        lowest = min((p.top - p.bottom for p in self._lanes), default=1.0) / unit
        for axis in (self._names, self._numbers):
            axis.write_small(int(np.clip(lowest, SMALLEST, TEXT - 1)))
        self._write(unit)
        self._draw()

    def _write(self, unit: float) -> None:
        """Name the lanes, and put numbers beside those that are tall enough.

        `unit` is the height of a pixel in the plot.
        """
        self._names.write(self._named(unit))
        half = unit * TEXT / 2
        texts, bars = {}, []
        for place in self._lanes:
            lane, height = place.lane, place.top - place.bottom
            if lane.bar is not None and height >= SMALLEST * unit:
                ends = place.height_of([lane.low, lane.low + lane.bar[0]])
                bars.append((*ends.tolist(), lane.color))
                at = place.middle if height < 4 * half else ends.mean()
                texts[float(at)] = (f" {lane.bar[1]}", lane.color)
            if height < 4 * half:
                continue
            for value, text in lane.ticks.items():
                # inside the lane, not half in the next one
                at = np.clip(place.height_of(value), place.bottom + half, place.top - half)
                texts[float(at)] = (text, lane.color)
        self._numbers.write(texts, bars)

    def _named(self, unit: float) -> dict[float, tuple[str, str]]:
        """What is written at the left, with its colour, by height."""
        return {p.middle: (p.lane.title, p.lane.color) for p in self._lanes}

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
    """Names, numbers or scale bars of the lanes, each in the colour of its lane."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self._colors: list[str] = []
        self._bars: Sequence[tuple[float, float, str]] = ()
        self.setStyle(tickLength=0, autoExpandTextSpace=True, hideOverlappingLabels=False)

    def write(
        self,
        texts: dict[float, tuple[str, str]],
        bars: Sequence[tuple[float, float, str]] = (),
    ) -> None:
        """Write texts in their colours at some heights, and draw bars from one to another."""
        self._colors, self._bars = [color for _, color in texts.values()], bars
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
        view = self.linkedView()
        for low, high, color in self._bars:
            p.setPen(pyqtgraph.mkPen(color, width=3))
            ends = [self.mapFromScene(view.mapViewToScene(QPointF(0, end))) for end in (low, high)]
            p.drawLine(*(QPointF(2, end.y()) for end in ends))
