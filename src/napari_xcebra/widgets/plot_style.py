"""Colours of the plots: those of napari's theme, lines by Okabe and Ito, and colour maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyqtgraph
from napari.utils.theme import get_theme
from qtpy.QtCore import Qt
from qtpy.QtGui import QPen
from qtpy.QtWidgets import QWidget

from napari_xcebra.tuning import Column

# Okabe and Ito: told apart with any colour vision; each theme leaves out what would not show
ON_DARK = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#3C8FD0")
ON_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

SEQUENTIAL = "viridis"
CYCLIC = "CET-C2"
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
        """Line of a cell, by its place in the selection; dashed once the colours begin anew."""
        again = number >= len(self.lines)
        style = Qt.PenStyle.DashLine if again else Qt.PenStyle.SolidLine
        return pyqtgraph.mkPen(self.line(number), width=2, style=style)

    def line(self, number: int) -> str:
        """Colour of a cell, by its place in the selection."""
        return self.lines[number % len(self.lines)]


def style_of(theme: str) -> PlotStyle:
    """Colours that go with a theme of napari."""
    colors = get_theme(theme)
    background = colors.background.as_hex(format="long")
    dark = _lightness(background) < 0.5
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

    A circular column has a map that closes; a discrete one with few values a colour each.
    """
    if column.kind == "circular":
        return _map(CYCLIC)
    if column.kind == "discrete":
        values = np.unique(column.values[~np.isnan(column.values)])
        if len(values) <= len(style.lines):
            colors = [pyqtgraph.mkColor(line).getRgb()[:3] for line in style.lines]
            return np.array(colors[: max(1, len(values))], np.uint8)
    # the end that would vanish in the background is cut off
    whole = _map(SEQUENTIAL)
    return whole[LEVELS // 6 :] if style.dark else whole[: -LEVELS // 10]


def limits_of(column: Column) -> tuple[float, float]:
    """Values at the two ends of its palette; a few that lie far out do not count."""
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
    """Which of so many colours each frame has; −1 where the value is not known: (n,) int64."""
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
    """Do without the menus of a plot, and let them go together with a widget.

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


def _lightness(color: str) -> float:
    return pyqtgraph.mkColor(color).lightnessF()
