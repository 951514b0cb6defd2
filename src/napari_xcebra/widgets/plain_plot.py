"""Plots that look as if they belonged to napari."""

from __future__ import annotations

from typing import Any

import pyqtgraph

from napari_xcebra.widgets.plot_style import PlotStyle

ORANGE, BLUE = "#E69F00", "#56B4E9"
"""Okabe and Ito: told apart with any colour vision."""


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
