"""Compares a second map with the first, one point per cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QLabel, QWidget

from napari_xcebra.attribution.ranks import rank_correlation
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.runs import Run
from napari_xcebra.text import two
from napari_xcebra.widgets.controls.boxes import PlainLabel, choice_box, fill, in_markup
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.layers.scores import Beside, doubt_of
from napari_xcebra.widgets.plots.figure_menu import FigureMenu
from napari_xcebra.widgets.plots.plot_style import BLUE, ORANGE, PlotStyle, dress, plain_plot
from napari_xcebra.widgets.state.shown import Shown

GREY = (140, 140, 140, 150)


class SideBySide(QWidget):
    """A box to choose the other map; then a plot with one point per cell."""

    chosen = Signal(object)
    """(run, factor), or None."""
    picked = Signal(object)
    """Positions of the cells whose points were clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.other = choice_box("Show another factor or run next to this one.")
        self.agreement = PlainLabel(wrap=True)
        self.agreement.setToolTip(
            "Spearman's rank correlation of the two scores, over cells that have both."
        )
        self.plot = plain_plot()
        self.plot.setFixedHeight(220)
        self.figure_menu = FigureMenu(self.plot, "comparison")
        self.plot.setToolTip("One point per cell; click a point to show the cell.")
        self.points = pyqtgraph.ScatterPlotItem(size=6, brush=GREY, pen=None, hoverable=True)
        self.points.opts["tip"] = None
        self.marks = pyqtgraph.ScatterPlotItem(
            size=10, brush=None, pen=pyqtgraph.mkPen(BLUE, width=2)
        )
        self.plot.addItem(self.points)
        self.plot.addItem(self.marks, ignoreBounds=True)
        self._both: tuple[ScoreMap, ScoreMap] | None = None
        choice = in_row(QLabel("Compare with"), (self.other, 1))
        in_column(choice, self.agreement, self.plot, of=self)
        self.other.activated.connect(lambda i: self.chosen.emit(self.other.itemData(i)))
        self.points.sigClicked.connect(self._clicked)
        self.show_maps(None, None, "", 0.0)

    def show_choice(self, runs: list[Run], shown: Shown, beside: Beside | None) -> None:
        """Show what there is to compare with."""
        fill(self.other, [("nothing", None), *others(runs, shown)], beside)

    def show_maps(
        self, first: ScoreMap | None, second: ScoreMap | None, title: str, threshold: float
    ) -> None:
        """Show two maps; with one alone there is nothing to see."""
        comparing = first is not None and second is not None
        self._both = (first, second) if first is not None and second is not None else None
        self.plot.setVisible(comparing)
        self.agreement.setVisible(comparing)
        if self._both is None:
            return
        first, second = self._both
        rho = rank_correlation(first.scores, second.scores)
        self.agreement.setText(f"Right: {title}. Rank correlation {two(rho)}.")
        above = first.above(threshold)
        brushes = np.where(above, pyqtgraph.mkBrush(ORANGE), pyqtgraph.mkBrush(*GREY))
        known = np.flatnonzero(first.known & second.known)
        self.points.setData(
            first.scores[known], second.scores[known], brush=list(brushes[known]), data=known
        )
        self.plot.setLabel("bottom", in_markup(first.factor))
        self.plot.setLabel("left", in_markup(title))
        self.plot.autoRange()

    def mark(self, cells: np.ndarray) -> None:
        """Ring the points of some cells."""
        if self._both is not None:
            x, y = (painted.scores[cells] for painted in self._both)
            known = np.isfinite(x) & np.isfinite(y)
            self.marks.setData(x[known], y[known])

    def follow_theme(self, style: PlotStyle) -> None:
        """Colours of the plot."""
        dress(self.plot, style)

    def _clicked(self, _item: Any, points: Any, *_: Any) -> None:
        if len(points):
            self.picked.emit(np.array([points[0].data()], np.int64))


def others(runs: list[Run], shown: Shown) -> list[tuple[str, Beside]]:
    """Maps by the same method to compare with: other factors of the run, then other runs."""
    found: list[tuple[str, Beside]] = []
    this_first = sorted(runs, key=lambda run: run.name != shown.run)
    for run in this_first:
        attribution = run.attributions.get(shown.method)
        for factor in attribution.factors if attribution else ():
            if (run.name, factor) != (shown.run, shown.factor):
                doubt = doubt_of(attribution, factor) if attribution else ""
                found.append((f"{factor} · {run.name}{doubt}", (run.name, factor)))
    return found
