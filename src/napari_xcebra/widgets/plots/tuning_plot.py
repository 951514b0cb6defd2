"""Draws the tuning of cells as curves, bars, polar curves or maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QRectF, Qt
from qtpy.QtGui import QColor

from napari_xcebra.attribution.single_cell.tuning import (
    Bins,
    Column,
    Tuning,
    TuningCurve,
    TuningMap,
)
from napari_xcebra.text import round_length
from napari_xcebra.widgets.controls.boxes import in_markup
from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import (
    PlotStyle,
    add_color_bar,
    fill_between,
    label_axis,
    own_menus,
    painted,
    sequential_map,
)

NAME_HEIGHT = 18
"""Pixels for the name above a small map."""
NAME_WIDTH = 120
"""Pixels of a small map that has room for its lowest and highest value beside the name."""
LEFT, BOTTOM, TITLE, BAR = 48, 38, 18, 66
"""Pixels of a map's two axes, of its title, and of its colour bar with its axis."""
EDGES = 4
"""Pixels that pyqtgraph leaves free around and between things."""
LARGEST = 2**24 - 1
"""What Qt takes as no limit of a size."""


class TuningPlot(pyqtgraph.GraphicsLayoutWidget):
    """One drawing at a time: curves or a single map with axes, or several maps without."""

    _of: str
    _area: QRectF | None
    _table: str

    def __init__(self) -> None:
        # pyqtgraph resizes while it is made
        self._of, self._area, self._table = "activity", None, ""
        super().__init__()
        self.ci.setContentsMargins(2, 2, 2, 2)
        self.ci.setSpacing(2)
        # making a plot takes longer than all the rest, so one is reused
        self._plot = pyqtgraph.PlotItem(viewBox=pyqtgraph.ViewBox(enableMenu=False))
        own_menus(self._plot, self)
        self.figure_menu = FigureMenu(self, "tuning")
        self.figure_menu.offer_values(lambda: self._table)
        self._plot.setMouseEnabled(x=False, y=False)
        self._plot.setMenuEnabled(False)
        self.setToolTip("Mean activity of the selected cells at each value of the variable.")
        for side in ("left", "bottom"):
            # before there is a label: later it would freeze the scale factor in use
            self._plot.getAxis(side).enableAutoSIPrefix(False)

    def show_tuning(
        self, tuning: Tuning, names: Sequence[str], style: PlotStyle, of: str = "activity"
    ) -> None:
        """Draw the tuning of some cells, whose names are given; `of` says what was measured."""
        self.clear()
        self._of, self._area, self._table = of, None, _as_table(tuning, names)
        self.setBackground(style.background)
        if isinstance(tuning, TuningMap) and tuning.mean.shape[2] > 1:
            self._draw_maps(tuning, names, style)
            self._spread()
            return
        self._begin(style)
        if isinstance(tuning, TuningMap):
            self._draw_map(tuning, names[0], style)
        elif tuning.bins.column.kind == "circular":
            self._draw_around(tuning, style)
        else:
            self._draw_curves(tuning, style)
        self._spread()

    def _begin(self, style: PlotStyle) -> None:
        """Put the empty plot into the picture, as if it were new."""
        plot = self._plot
        self.addItem(plot, 0, 0)
        plot.clear()
        plot.setTitle(None)
        plot.setAspectLocked(False)
        plot.setMaximumSize(LARGEST, LARGEST)
        for side in ("left", "bottom"):
            plot.showAxis(side)
            axis = plot.getAxis(side)
            axis.setTicks(None)
            axis.setTickSpacing()
            axis.setWidth(None) if side == "left" else axis.setHeight(None)
            axis.setPen(style.faint)
            axis.setTextPen(style.ink)

    def _label(self, bottom: Bins, left: str | Bins, style: PlotStyle) -> None:
        """Say what the axes are."""
        for side, about in (("bottom", bottom), ("left", left)):
            title = about if isinstance(about, str) else about.column.title
            self._plot.setLabel(side, in_markup(title), color=style.ink)
            if isinstance(about, Bins) and about.column.kind == "discrete":
                ticks = list(enumerate(map(about.column.called, about.values)))
                self._plot.getAxis(side).setTicks([ticks])

    # ------------------------------------------------------------ one variable

    def _draw_curves(self, curve: TuningCurve, style: PlotStyle) -> None:
        self._label(curve.bins, f"mean {self._of}", style)
        draw = _bars if curve.bins.column.kind == "discrete" else _curve
        for number in range(curve.mean.shape[1]):
            draw(self._plot, curve, number, style)
        self._plot.autoRange()

    def _draw_around(self, curve: TuningCurve, style: PlotStyle) -> None:
        plot, column = self._plot, curve.bins.column
        plot.setAspectLocked(True)
        for side in ("left", "bottom"):
            plot.hideAxis(side)
        error = np.nan_to_num(curve.error)
        # activity below zero (ΔF/F may be) must not turn up on the opposite side
        inner = min(0.0, float(np.nanmin(curve.mean - error, initial=0)))
        outer = float(np.nanmax(curve.mean + error, initial=inner))
        radius = (outer - inner) or 1.0
        _circle(plot, column, radius, f"{outer:.2g}", style)
        closed = np.append(np.arange(len(curve.bins)), 0)
        angle = curve.bins.values[closed] * (2 * np.pi / column.period)
        for number in range(curve.mean.shape[1]):
            mean = curve.mean[closed, number] - inner
            if np.isfinite(mean).all():
                edges = [
                    pyqtgraph.PlotCurveItem(*_to_plane(angle, np.maximum(mean + e, 0)))
                    for e in (-error[closed, number], error[closed, number])
                ]
                fill_between(plot, edges, style.line(number))
            plot.addItem(_line(*_to_plane(angle, mean), style, number))
        half = 1.25 * radius
        plot.setRange(QRectF(-half, -half, 2 * half, 2 * half), padding=0)

    # ------------------------------------------------------------ two variables

    def _draw_map(self, tuning: TuningMap, name: str, style: PlotStyle) -> None:
        """One map with axes and a colour bar."""
        plot = self._plot
        self._label(tuning.across, tuning.up, style)
        plot.setTitle(in_markup(name), color=style.line(0), size="8pt")
        image, low, high = _image(tuning, 0)
        plot.addItem(image)
        area = _area(tuning)
        plot.setRange(area, padding=0)
        # more numbers would run together below a small map
        for side, span in (("left", area.height()), ("bottom", area.width())):
            plot.getAxis(side).setTickSpacing(levels=[(round_length(span / 2), 0)])
        plot.getAxis("left").setWidth(LEFT)
        plot.getAxis("bottom").setHeight(BOTTOM)
        plot.titleLabel.setMaximumHeight(TITLE)
        plot.layout.setRowFixedHeight(0, TITLE)
        bar = add_color_bar(self, 1, sequential_map(), (low, high), style)
        bar.setWidth(BAR - 16)
        label_axis(bar, f"mean {self._of}", style)
        if _same_unit(tuning.across.column, tuning.up.column):
            self._area = area
            self._fit_map()

    def resizeEvent(self, ev: Any) -> None:
        """Keep the proportions of a map."""
        super().resizeEvent(ev)
        if self._area is not None and not self.closed:
            self._fit_map()

    def _fit_map(self) -> None:
        """Make the plot as large as the map fits in true proportions, so that axes end with it."""
        area = self._area
        assert area is not None
        beside, above = LEFT + EDGES, TITLE + BOTTOM + EDGES
        across, up = self.width() - beside - BAR - EDGES, self.height() - above - EDGES
        pixels = max(min(across / area.width(), up / area.height()), 1e-9)
        self._plot.setMaximumSize(pixels * area.width() + beside, pixels * area.height() + above)
        self._spread()

    def _spread(self) -> None:
        """Let the drawing take all room again; Qt had cut it to the largest size of the last."""
        self.ci.layout.invalidate()
        self.ci.setGeometry(QRectF(self.rect()))

    def _draw_maps(self, tuning: TuningMap, names: Sequence[str], style: PlotStyle) -> None:
        """Small maps side by side, each from its lowest to its highest value."""
        shape = max(self.width(), 1) / max(self.height(), 1)
        in_a_row = max(1, int(np.ceil(np.sqrt(len(names) * shape))))
        area = _area(tuning)
        high = self.height() / -(-len(names) // in_a_row)
        # room for a name, as a share of the height of its map
        above = NAME_HEIGHT / max(high - NAME_HEIGHT, NAME_HEIGHT)
        for number, name in enumerate(names):
            row, column = divmod(number, in_a_row)
            view = self.addViewBox(row, column, enableMenu=False, enableMouse=False)
            view.setAspectLocked(_same_unit(tuning.across.column, tuning.up.column))
            image, lowest, highest = _image(tuning, number)
            view.addItem(image)
            if self.width() / in_a_row > NAME_WIDTH:
                name = f"{name} · {lowest:.2g} to {highest:.2g}"
            text = pyqtgraph.TextItem(name, color=style.line(number), anchor=(0, 0.85))
            text.setPos(area.left(), area.bottom())
            view.addItem(text, ignoreBounds=True)
            view.setRange(area.adjusted(0, 0, 0, above * area.height()), padding=0)


def _curve(plot: pyqtgraph.PlotItem, curve: TuningCurve, number: int, style: PlotStyle) -> None:
    x, mean = curve.bins.values, curve.mean[:, number]
    known = np.isfinite(mean)
    error = np.nan_to_num(curve.error[:, number])
    edges = [pyqtgraph.PlotCurveItem(x[known], mean[known] + e[known]) for e in (-error, error)]
    fill_between(plot, edges, style.line(number))
    plot.addItem(_line(x, mean, style, number))


def _bars(plot: pyqtgraph.PlotItem, curve: TuningCurve, number: int, style: PlotStyle) -> None:
    """Bars of the cells side by side at each value, with error bars."""
    cells = curve.mean.shape[1]
    width = 0.8 / cells
    x = np.arange(len(curve.bins)) + (number - (cells - 1) / 2) * width
    mean = np.nan_to_num(curve.mean[:, number])
    color = QColor(style.line(number))
    plot.addItem(
        pyqtgraph.BarGraphItem(x=x, height=mean, width=0.9 * width, brush=color, pen=color)
    )
    plot.addItem(
        pyqtgraph.ErrorBarItem(
            x=x,
            y=mean,
            height=2 * np.nan_to_num(curve.error[:, number]),
            pen=pyqtgraph.mkPen(style.ink),
        )
    )


def _line(x: np.ndarray, y: np.ndarray, style: PlotStyle, number: int) -> object:
    return pyqtgraph.PlotDataItem(
        x,
        y,
        pen=style.pen(number),
        connect="finite",
        antialias=True,
        # a bin between two that were not visited is seen by its dot
        symbol="o",
        symbolSize=4,
        symbolBrush=style.line(number),
        symbolPen=None,
    )


def _circle(
    plot: pyqtgraph.PlotItem, column: Column, radius: float, label: str, style: PlotStyle
) -> None:
    """Rings and quarter turns to read the angle by."""
    pen = pyqtgraph.mkPen(style.faint, width=1, style=Qt.PenStyle.DotLine)
    angle = np.linspace(0, 2 * np.pi, 97)
    for share in (0.5, 1.0):
        plot.addItem(pyqtgraph.PlotCurveItem(*_to_plane(angle, share * radius), pen=pen))
    for quarter in range(4):
        x, y = _to_plane(np.array([quarter * np.pi / 2]), np.array([radius]))
        plot.addItem(pyqtgraph.PlotCurveItem([0, x[0]], [0, y[0]], pen=pen))
        text = pyqtgraph.TextItem(_turned(column, quarter), color=style.ink, anchor=(0.5, 0.5))
        text.setPos(1.14 * x[0], 1.14 * y[0])
        plot.addItem(text)
    text = pyqtgraph.TextItem(label, color=style.faint, anchor=(0, 1))
    text.setPos(*(axis[0] for axis in _to_plane(np.array([np.pi / 4]), np.array([radius]))))
    plot.addItem(text)


def _turned(column: Column, quarter: int) -> str:
    """What a quarter turn is called in the column's own unit, radians as degrees."""
    if np.isclose(column.period, 2 * np.pi) or np.isclose(column.period, 360):
        return f"{90 * quarter}°"
    return f"{column.period * quarter / 4:.3g}"


def _to_plane(angle: np.ndarray, radius: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    return radius * np.cos(angle), radius * np.sin(angle)


def _image(tuning: TuningMap, number: int) -> tuple[pyqtgraph.ImageItem, float, float]:
    """Picture of a map, unvisited bins clear; lowest and highest value."""
    mean = tuning.mean[..., number]
    low, high = float(np.nanmin(mean)), float(np.nanmax(mean))
    picture = painted(mean, low, high, sequential_map())
    image = pyqtgraph.ImageItem(picture, axisOrder="row-major")
    image.setRect(_area(tuning))
    return image, low, high


def _area(tuning: TuningMap) -> QRectF:
    x, y = tuning.across.edges, tuning.up.edges
    return QRectF(x[0], y[0], x[-1] - x[0], y[-1] - y[0])


def _same_unit(first: Column, second: Column) -> bool:
    """Whether one centimetre up should look as long as one across."""
    return first.unit == second.unit and first.kind == second.kind == "continuous"


def _as_table(tuning: Tuning, names: Sequence[str]) -> str:
    """Tuning as a table, its columns divided by tabs: a row for each bin."""
    if isinstance(tuning, TuningCurve):
        titles = [tuning.bins.column.title, *(f"{n}{what}" for n in names for what in ("", " SE"))]
        both = np.stack([tuning.mean, tuning.error], axis=2).reshape(len(tuning.bins), -1)
        rows = np.column_stack([tuning.bins.values, both])
    else:
        titles = [tuning.across.column.title, tuning.up.column.title, *names]
        x, y = np.meshgrid(tuning.across.values, tuning.up.values)
        rows = np.column_stack([x.ravel(), y.ravel(), tuning.mean.reshape(x.size, -1)])
    texts = [["" if np.isnan(value) else f"{value:.6g}" for value in row] for row in rows]
    return "\n".join("\t".join(row) for row in (titles, *texts))
