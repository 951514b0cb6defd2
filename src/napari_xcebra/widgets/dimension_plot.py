"""Consistency between seeds over numbers of latents, with the suggested one marked."""

from __future__ import annotations

import numpy as np
import pyqtgraph
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_xcebra.learn.consistency import Dimensions
from napari_xcebra.widgets.plain_plot import dress, plain_plot
from napari_xcebra.widgets.plot_style import PlotStyle


class DimensionPlot(QWidget):
    """A point with an error bar for each number of latents; a ring around the suggested one."""

    def __init__(self) -> None:
        super().__init__()
        self.plot = plain_plot()
        # before the label is there: later it would keep the factor of the moment
        self.plot.getAxis("left").enableAutoSIPrefix(False)
        self.plot.setLabel("left", "consistency R² between seeds")
        self.plot.setToolTip(
            "How well the embedding by one seed tells that by another (after an affine map), the "
            "mean over pairs of seeds with its standard error. The ring marks what is suggested."
        )
        self._legend = self.plot.addLegend(offset=(-10, 10), labelTextSize="8pt")
        self._style: PlotStyle | None = None
        self._found: Dimensions | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.plot)

    def show_dimensions(self, found: Dimensions | None) -> None:
        """Draw what was found; if nothing was, axes that show what is to come."""
        self._found = found
        self._draw()

    def follow_theme(self, style: PlotStyle) -> None:
        """Colours of the plot."""
        self._style = style
        dress(self.plot, style)
        self._legend.setLabelTextColor(style.ink)
        self._draw()

    def _draw(self) -> None:
        found, style = self._found, self._style
        self.plot.clear()
        if style is None:
            return
        if found is None:
            self.plot.setLabel("bottom", "time latents")
            self.plot.setXRange(0.5, 4.5)
            self.plot.setYRange(0, 1)
            return
        for number, (name, line) in enumerate(found.lines.items()):
            x, y = np.array([(found.place(d), d.mean) for d in line]).T
            color = style.line(number)
            errors = np.array([2 * d.error for d in line])
            self.plot.addItem(pyqtgraph.ErrorBarItem(x=x, y=y, height=errors, beam=0.05, pen=color))
            title = name if len(found.lines) > 1 else None
            self.plot.plot(x, y, pen=style.pen(number), symbol="o", symbolBrush=color, name=title)
        chosen = found.suggested
        ring = pyqtgraph.ScatterPlotItem(
            [found.place(chosen)], [chosen.mean], size=20, brush=None,
            pen=pyqtgraph.mkPen(style.accent, width=2),
        )  # fmt: skip
        self.plot.addItem(ring)
        self.plot.setLabel("bottom", found.axis)
        places = sorted({found.place(d) for d in found.tried})
        self.plot.getAxis("bottom").setTicks([[(place, str(place)) for place in places]])
        self.plot.setXRange(places[0] - 0.5, places[-1] + 0.5)
        self.plot.enableAutoRange(axis="y")
