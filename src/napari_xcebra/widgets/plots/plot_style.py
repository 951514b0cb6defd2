"""Gives plots the colours of napari's theme, and a strip that says what its colours stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyqtgraph
from napari.utils.theme import get_theme
from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.attribution.single_cell.tuning import Column
from napari_xcebra.report.figures.paper import Key
from napari_xcebra.widgets.controls.boxes import in_markup, plain

# Okabe and Ito, and a violet: distinct with any colour vision. Each theme leaves out what would not
# show; all show on the image as well, where selected cells are outlined in the colours of traces.
# The last three are as far from these as can be, with normal vision and without red or green cones
ON_DARK = (
    "#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#A98BE0",
    "#5070F0", "#D8D8A0", "#8FE3C8",
)  # fmt: skip
ON_LIGHT = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A63C9",
    "#1F1FC8", "#800000", "#800060",
)  # fmt: skip
GROUPS = (2, 4, 3, 5, 6, 0, 1)
"""Which of them groups of trials have, in this order."""

SEQUENTIAL = "viridis"
CYCLIC = "CET-C2"
DIVERGING = "CET-D1"
LEVELS = 256


@dataclass(frozen=True)
class PlotStyle:
    """Colours on one of napari's themes.

    Parameters
    ----------
    dark : bool
    background, ink, faint : str
        Of the dock, of text and axes, and of what stands back.
    accent : str
        Of the cursor.
    lines : tuple of str
    """

    dark: bool
    background: str
    ink: str
    faint: str
    accent: str
    lines: tuple[str, ...]

    def pen(self, number: int) -> QPen:
        """Line of a cell, by its place in the selection; dashed once the colours repeat."""
        again = number >= len(self.lines)
        style = Qt.PenStyle.DashLine if again else Qt.PenStyle.SolidLine
        return pyqtgraph.mkPen(self.line(number), width=2, style=style)

    def line(self, number: int) -> str:
        """Colour of a cell, by its place in the selection: of its trace, tuning and outline."""
        return self.lines[number % len(self.lines)]


def style_of(theme: str) -> PlotStyle:
    """Colours that go with a theme of napari."""
    colors = get_theme(theme)
    background = colors.background.as_hex(format="long")
    dark = pyqtgraph.mkColor(background).lightnessF() < 0.5
    return PlotStyle(
        dark=dark,
        background=background,
        ink="#d4d5d8" if dark else "#28282c",
        faint="#80858f" if dark else "#85827e",
        accent="#ffffff" if dark else "#000000",
        lines=ON_DARK if dark else ON_LIGHT,
    )


def palette(column: Column, style: PlotStyle) -> np.ndarray:
    """Colours for the values of a column, from its lowest to its highest: (levels, 3) uint8.

    A circular column has a cyclic map; a discrete one with few values has one colour each.
    """
    if column.kind == "circular":
        return _map(CYCLIC)
    if column.kind == "discrete":
        values = np.unique(column.values[~np.isnan(column.values)])
        if len(values) <= len(style.lines):
            colors = [pyqtgraph.mkColor(line).getRgb()[:3] for line in style.lines]
            return np.array(colors[: max(1, len(values))], np.uint8)
    return _visible_map(style)


def _visible_map(style: PlotStyle) -> np.ndarray:
    """The sequential map without the end that would vanish in the background: (levels, 3) uint8."""
    whole = _map(SEQUENTIAL)
    return whole[LEVELS // 6 :] if style.dark else whole[: -LEVELS // 10]


def limits_of(column: Column) -> tuple[float, float]:
    """Values at the two ends of its palette; a few outliers do not count."""
    if column.kind == "circular":
        return 0.0, column.period
    known = column.values[~np.isnan(column.values)]
    if len(known) == 0:
        return 0.0, 1.0
    lowest, low, high, highest = np.percentile(known, [0, 0.5, 99.5, 100])
    if column.kind == "discrete" or highest - lowest < 1.2 * (high - low):
        low, high = lowest, highest
    return float(low), float(high if high > low else low + 1)


def levels_of(column: Column, frames: np.ndarray, levels: int) -> np.ndarray:
    """Index of each frame's colour; −1 where the value is unknown: (n,) int64."""
    values = column.values[frames]
    known = ~np.isnan(values)
    place = np.full(len(frames), -1, np.int64)
    if column.kind == "discrete" and levels < LEVELS // 2:
        different = np.unique(column.values[~np.isnan(column.values)])
        place[known] = np.searchsorted(different, values[known]) % levels
        return place
    low, high = limits_of(column)
    turned = values[known] % column.period if column.kind == "circular" else values[known]
    share = np.clip((turned - low) / (high - low), 0, 1)
    place[known] = np.minimum((share * levels).astype(np.int64), levels - 1)
    return place


def own_menus(plot: pyqtgraph.PlotItem, widget: QWidget) -> None:
    """Switch off the menus of a plot, and let them end with a widget.

    pyqtgraph makes them as windows of their own, which would stay behind.
    """
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.ctrlMenu.setParent(widget, Qt.WindowType.Popup)


@cache
def _map(name: str) -> np.ndarray:
    table = pyqtgraph.colormap.get(name).getLookupTable(nPts=LEVELS)
    return np.ascontiguousarray(table[:, :3], np.uint8)


def sequential_map() -> np.ndarray:
    """The whole sequential map, for images: (levels, 3) uint8."""
    return _map(SEQUENTIAL)


def diverging_map() -> np.ndarray:
    """Blue below, white at and red above the middle, for images: (levels, 3) uint8."""
    return _map(DIVERGING)


def painted(values: np.ndarray, low: float, high: float, table: np.ndarray) -> np.ndarray:
    """Picture of an array, clear where it is NaN: (rows, columns, 4) uint8.

    Parameters
    ----------
    values : (rows, columns) float
    low, high : float
        Values at the two ends of the table.
    table : (levels, 3) uint8
    """
    share = np.clip(np.nan_to_num((values - low) / ((high - low) or 1.0)), 0, 1)
    picture = np.zeros((*values.shape, 4), np.uint8)
    picture[..., :3] = table[np.minimum((share * len(table)).astype(int), len(table) - 1)]
    picture[..., 3] = np.where(np.isnan(values), 0, 255)
    return picture


def add_color_bar(
    layout: pyqtgraph.GraphicsLayoutWidget,
    column: int,
    table: np.ndarray,
    limits: tuple[float, float],
    style: PlotStyle,
) -> pyqtgraph.AxisItem:
    """Put a colour bar and its axis into two columns of the first row."""
    low, high = limits[0], limits[1] if limits[1] > limits[0] else limits[0] + 1
    view = layout.addViewBox(0, column, enableMenu=False, enableMouse=False)
    view.setMaximumWidth(10)
    strip = pyqtgraph.ImageItem(table[:, None], axisOrder="row-major")
    strip.setRect(QRectF(0, low, 1, high - low))
    view.addItem(strip)
    # room for the upper half of the number at its end
    view.setRange(xRange=(0, 1), yRange=(low, high), padding=0.04)
    axis = pyqtgraph.AxisItem("right", linkView=view)
    axis.enableAutoSIPrefix(False)  # "(x0.001)" is no unit
    axis.setTextPen(style.ink)
    axis.setPen(style.faint)
    layout.addItem(axis, 0, column + 1)
    return axis


def label_axis(axis: pyqtgraph.AxisItem, text: str, style: PlotStyle) -> None:
    """Write plain text beside an axis, small and in the middle."""
    axis.setLabel(in_markup(text), color=style.ink, **{"font-size": "8pt"})
    # pyqtgraph leaves it where the text before was in the middle
    axis.resizeEvent()


def group_colors(groups: int, style: PlotStyle) -> list[str]:
    """A colour for each of some groups: distinct ones, or from low to high if there are many.

    They begin where those of cells do not, so that a group is not taken for a cell beside it; a
    single group has the colour of the first cell.
    """
    if groups == 1:
        return [style.line(0)]
    if groups <= len(GROUPS):
        return [style.lines[place] for place in GROUPS[:groups]]
    table = _visible_map(style)
    chosen = table[np.linspace(0, len(table) - 1, groups).astype(int)]
    return [pyqtgraph.mkColor(*map(int, color)).name() for color in chosen]


def fill_between(plot: pyqtgraph.PlotItem, edges: Sequence[object], color: str) -> None:
    """Shade the area between two curves."""
    clear = QColor(color)
    clear.setAlpha(60)
    plot.addItem(pyqtgraph.FillBetweenItem(*edges, brush=clear))


ORANGE, BLUE = "#E69F00", "#56B4E9"
"""Okabe and Ito: distinct with any colour vision."""


def plain_plot(
    view: pyqtgraph.ViewBox | None = None, **axes: pyqtgraph.AxisItem
) -> pyqtgraph.PlotWidget:
    """A plot without menus, that does not move under the mouse."""
    plot = _StillPlot(viewBox=view, axisItems=axes or None)
    plot.setBackground(None)
    plot.setMenuEnabled(False)
    plot.hideButtons()
    plot.setMouseEnabled(x=False, y=False)
    for side in ("left", "bottom", "top", "right"):
        plot.getAxis(side).enableAutoSIPrefix(False)  # "(x0.001)" is no unit of a score
    return plot


def dress(plot: pyqtgraph.PlotWidget, style: PlotStyle) -> None:
    """Give a plot the colours of a theme."""
    plot.setBackground(style.background)
    for side in ("left", "bottom", "top", "right"):
        axis = plot.getAxis(side)
        axis.setPen(style.ink)
        axis.setTextPen(style.ink)


class _StillPlot(pyqtgraph.PlotWidget):
    """Leaves the wheel to the dock, which scrolls."""

    def wheelEvent(self, ev: Any) -> None:
        ev.ignore()


STRIP = 8
TEXT = 15


class ColorKey(QWidget):
    """A strip; below it the two ends (and what lies between them), or one value per colour."""

    def __init__(self) -> None:
        super().__init__()
        self._colors = np.zeros((0, 3), np.uint8)
        self._labels: tuple[str, ...] = ()
        self._ink = "#808080"
        self._title = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Tall enough for the strip and a line of text."""
        return QSize(120, STRIP + TEXT + 2)

    def show_key(
        self, title: str, colors: np.ndarray, labels: Sequence[str], style: PlotStyle
    ) -> None:
        """Show colours, (levels, 3) uint8, from the lowest to the highest value."""
        self._colors, self._labels, self._ink = colors, tuple(labels), style.ink
        self._title = title
        self.setToolTip(plain(f"{title}; grey where unknown."))
        self.update()

    @property
    def key(self) -> Key:
        """What the colours mean, for a figure."""
        return Key(self._title, self._colors, self._labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """What is written below the strip."""
        return self._labels

    def paintEvent(self, event: QPaintEvent) -> None:
        """Strip and labels."""
        if not len(self._colors):
            return
        p = QPainter(self)
        one = self.width() / len(self._colors)
        for place, color in enumerate(self._colors):
            p.fillRect(QRectF(place * one, 1, one + 0.6, STRIP), QColor(*map(int, color)))
        p.setPen(QColor(self._ink))
        for label, rectangle, align in self._texts():
            p.drawText(rectangle, int(align | Qt.AlignmentFlag.AlignVCenter), label)
        p.end()

    def _texts(self) -> list[tuple[str, QRectF, Qt.AlignmentFlag]]:
        whole = QRectF(0, STRIP + 1, self.width(), TEXT)
        if len(self._labels) == len(self._colors):
            part = whole.width() / len(self._labels)
            middle = Qt.AlignmentFlag.AlignHCenter
            return [
                (label, QRectF(place * part, whole.top(), part, TEXT), middle)
                for place, label in enumerate(self._labels)
            ]
        sides = [Qt.AlignmentFlag.AlignHCenter] * len(self._labels)
        sides[0], sides[-1] = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        return [(label, whole, side) for label, side in zip(self._labels, sides, strict=True)]
