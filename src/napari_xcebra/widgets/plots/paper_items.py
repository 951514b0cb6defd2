"""Draws the items of pyqtgraph's plots by matplotlib, in the colours of paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyqtgraph
from matplotlib.axes import Axes
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor

POINT = 0.75
"""Points of a pixel."""
MOST_POINTS = 3000
"""Points above which they are drawn as an image: a drawing program should open the file."""
ON_PAPER = {
    "#ffffff": "#000000",
    "#d4d5d8": "#000000",
    "#80858f": "#707070",
    "#f0e442": "#000000",
}
"""Colours on a dark window that white paper would swallow, and what stands for them there."""
_STYLES = {
    Qt.PenStyle.SolidLine: "-",
    Qt.PenStyle.DashLine: "--",
    Qt.PenStyle.DotLine: ":",
    Qt.PenStyle.DashDotLine: "-.",
}
_SYMBOLS = {"t": "v", "t1": "^", "t2": ">", "t3": "<", "s": "s", "d": "D", "+": "P", "x": "X"}
"""matplotlib's names for pyqtgraph's symbols; others are dots."""
Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""


def paper_color(color: Any) -> Color:
    """A colour of the window as it is on paper."""
    color = pyqtgraph.mkColor(color)
    paper = QColor(ON_PAPER.get(color.name().lower(), color.name()))
    return paper.redF(), paper.greenF(), paper.blueF(), color.alphaF()


def draw_item(ax: Axes, item: Any) -> None:
    """Draw an item of a plot; what is none of these is left out."""
    for kind, draw in _DRAWN.items():
        if isinstance(item, kind):
            draw(ax, item)
            return
    if hasattr(item, "bands"):
        for start, stop in item.bands():
            ax.axvspan(start, stop, color=(0.93, 0.93, 0.93), lw=0, zorder=-10)


def _pen(pen: Any) -> dict[str, Any]:
    pen = pyqtgraph.mkPen(pen)
    if pen.style() == Qt.PenStyle.NoPen:
        return {"linestyle": ""}
    style = _STYLES.get(pen.style(), "-")
    return {
        "color": paper_color(pen.color()),
        "linewidth": max(0.5, POINT * pen.widthF() * 0.7),
        "linestyle": style,
    }


def _draw_curve(ax: Axes, item: pyqtgraph.PlotCurveItem) -> None:
    x, y = item.getData()
    if x is None or not len(x) or item.opts["pen"] is None:
        return
    connect = item.opts.get("connect")
    if isinstance(connect, np.ndarray) and len(connect) == len(x):
        ends = np.flatnonzero(~connect.astype(bool)[:-1]) + 1
        x, y = (np.insert(np.asarray(v, float), ends, np.nan) for v in (x, y))
    ax.plot(x, y, solid_joinstyle="round", zorder=2 + item.zValue(), **_pen(item.opts["pen"]))


def _draw_data(ax: Axes, item: pyqtgraph.PlotDataItem) -> None:
    before = len(ax.get_lines())
    if item.curve.isVisible():
        _draw_curve(ax, item.curve)
    if item.scatter.isVisible():
        _draw_points(ax, item.scatter)
    if item.opts.get("name") and len(ax.get_lines()) > before:
        ax.get_lines()[before].set_label(item.opts["name"])


def _draw_points(ax: Axes, item: pyqtgraph.ScatterPlotItem) -> None:
    x, y = item.getData()
    if x is None or not len(x):
        return
    known = np.isfinite(np.asarray(x, float) + np.asarray(y, float))
    points = [point for point, there in zip(item.points(), known, strict=True) if there]
    x, y = np.asarray(x)[known], np.asarray(y)[known]
    brushes, pens = [p.brush() for p in points], [p.pen() for p in points]
    ax.scatter(
        x, y,
        s=[(POINT * p.size()) ** 2 for p in points],
        c=[_fill(b) for b in brushes],
        edgecolors=["none" if p.style() == Qt.PenStyle.NoPen else paper_color(p.color())
                    for p in pens],
        linewidths=[POINT * p.widthF() for p in pens],
        marker=_SYMBOLS.get(item.opts["symbol"], "o"), zorder=3, rasterized=len(x) > MOST_POINTS,
    )  # fmt: skip


def _fill(brush: Any) -> Color | str:
    brush = pyqtgraph.mkBrush(brush)
    return "none" if brush.style() == Qt.BrushStyle.NoBrush else paper_color(brush.color())


def _draw_bars(ax: Axes, item: pyqtgraph.BarGraphItem) -> None:
    opts = item.opts
    brushes = opts["brushes"] if opts.get("brushes") is not None else opts["brush"]
    colors = [_fill(b) for b in brushes] if isinstance(brushes, list) else _fill(brushes)
    ax.bar(opts["x"], opts["height"], opts["width"], color=colors, zorder=1)


def _draw_errors(ax: Axes, item: pyqtgraph.ErrorBarItem) -> None:
    opts = item.opts
    half = np.asarray(opts["height"], float) / 2
    pen = _pen(opts["pen"] or "k")
    ax.errorbar(opts["x"], opts["y"], half, fmt="none", ecolor=pen["color"], elinewidth=0.7)


def _draw_area(ax: Axes, item: pyqtgraph.FillBetweenItem) -> None:
    edges = [curve.getData() for curve in item.curves]
    if any(x is None or not len(x) for x, _ in edges):
        return
    (x, y), (back_x, back_y) = edges
    ax.fill(np.r_[x, back_x[::-1]], np.r_[y, back_y[::-1]], color=_fill(item.brush()), lw=0)


def _draw_image(ax: Axes, item: pyqtgraph.ImageItem) -> None:
    pixels = item.image
    if pixels is None:
        return
    area = item.mapRectToView(item.boundingRect()) if item.getViewBox() else item.boundingRect()
    if pixels.ndim == 2 and isinstance(item.lut, np.ndarray):
        low, high = item.levels if item.levels is not None else (0, len(item.lut) - 1)
        share = np.clip((pixels - low) / ((high - low) or 1), 0, 1)
        pixels = item.lut[(share * (len(item.lut) - 1)).astype(int)]
    if item.axisOrder == "col-major":
        pixels = np.swapaxes(pixels, 0, 1)
    ends = ax.get_xlim(), ax.get_ylim()
    ax.imshow(pixels, extent=(area.left(), area.right(), area.top(), area.bottom()),
              origin="lower", aspect="auto", interpolation="nearest", zorder=0)  # fmt: skip
    ax.set(xlim=ends[0], ylim=ends[1])


def _draw_line(ax: Axes, item: pyqtgraph.InfiniteLine) -> None:
    draw = ax.axvline if item.angle % 180 else ax.axhline
    draw(item.value(), zorder=2, label=item.name(), **_pen(item.pen))


def _draw_region(ax: Axes, item: pyqtgraph.LinearRegionItem) -> None:
    ax.axvspan(*item.getRegion(), color=(0.2, 0.2, 0.2, 0.12), lw=0)


def _draw_text(ax: Axes, item: pyqtgraph.TextItem) -> None:
    across, down = item.anchor
    ax.text(item.pos().x(), item.pos().y(), item.textItem.toPlainText(),
            ha=("left", "center", "right")[round(2 * across)],
            va=("top", "center", "bottom")[round(2 * down)],
            color=paper_color(item.color))  # fmt: skip


_DRAWN: dict[type, Callable[[Axes, Any], None]] = {
    pyqtgraph.PlotDataItem: _draw_data,
    pyqtgraph.PlotCurveItem: _draw_curve,
    pyqtgraph.ScatterPlotItem: _draw_points,
    pyqtgraph.BarGraphItem: _draw_bars,
    pyqtgraph.ErrorBarItem: _draw_errors,
    pyqtgraph.FillBetweenItem: _draw_area,
    pyqtgraph.ImageItem: _draw_image,
    pyqtgraph.LinearRegionItem: _draw_region,
    pyqtgraph.InfiniteLine: _draw_line,
    pyqtgraph.TextItem: _draw_text,
}
