"""Plots how training went: the losses of a run, and how far seeds agree by number of latents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QWidget

from napari_xcebra.learn.quality.consistency import Dimensions
from napari_xcebra.widgets.controls.boxes import in_markup
from napari_xcebra.widgets.controls.layouts import in_column
from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import ON_LIGHT, PlotStyle, dress, plain_plot

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced


LINES = ON_LIGHT[:6]
"""Those that also show on a dark background."""
GREY = "#909090"
HEIGHTS = 138, 92
"""Of the two plots, in pixels."""


class LearningPlot(QWidget):
    """Lines that grow while training goes on, or the history of a finished run."""

    def __init__(self) -> None:
        super().__init__()
        self._loss = _plot("InfoNCE (nats)")
        self._penalty = _plot("penalty")
        self._penalty.setLogMode(y=True)
        self._penalty.setXLink(self._loss)
        self._penalty.setLabel("bottom", "step")
        # above the plot: inside it would cover lines, which may run anywhere
        self.key = QLabel()
        self.key.setWordWrap(True)
        self.key.setTextFormat(Qt.TextFormat.RichText)
        self._chance = pyqtgraph.InfiniteLine(
            angle=0, name="chance", pen=pyqtgraph.mkPen(GREY, style=Qt.PenStyle.DashLine)
        )
        self._lines: dict[str, pyqtgraph.PlotDataItem] = {}
        self._steps: list[int] = []
        self._losses: dict[str, list[float]] = {}
        self._penalties: list[float] = []
        self._followed = 0
        for plot, height in zip((self._loss, self._penalty), HEIGHTS, strict=True):
            plot.setFixedHeight(height)
        in_column(self.key, self._loss, self._penalty, of=self, spacing=0)
        self.figure_menu = FigureMenu(self, "learning")
        self.setToolTip(
            "Loss of each factor on the training frames: the further below chance, the better "
            "the cells encode it. Below: the Jacobian penalty, which makes the map "
            "identifiable."
        )

    def clear(self) -> None:
        """Start over."""
        self._steps, self._losses, self._penalties = [], {}, []
        for line in self._lines.values():
            self._loss.removeItem(line)
        self._lines = {}
        self.key.clear()
        self._penalty.clear()
        self._loss.removeItem(self._chance)

    def follow(self, course: Sequence[Advanced], chance: float) -> None:
        """Draw up to the last report of a training run; start over for a new one.

        `chance` is the loss of an encoder that knows nothing; NaN where there is none.
        """
        if len(course) < self._followed or not course:
            self.clear()
            self._followed = 0
        for at in course[self._followed :]:
            self._add(at.done, at.loss, at.penalty)
        if len(course) > self._followed:
            self._draw(chance)
        self._followed = len(course)

    def _add(self, step: int, loss: Mapping[str, float], penalty: float) -> None:
        self._steps.append(step)
        self._penalties.append(penalty)
        for name, value in loss.items():
            before = [np.nan] * (len(self._steps) - 1)
            self._losses.setdefault(name, before).append(value)

    def show_history(self, history: Mapping[str, np.ndarray], chance: float) -> None:
        """A finished run: `Fit.history`."""
        self.clear()
        self._steps = list(history["step"])
        self._penalties = list(history["penalty"])
        inside = [name for name in history if name not in ("step", "penalty", "lambda")]
        self._losses = {name: list(history[name]) for name in inside}
        self._draw(chance)

    def follow_theme(self, style: PlotStyle) -> None:
        """Colours of the plots."""
        for plot in (self._loss, self._penalty):
            dress(plot, style)

    def _draw(self, chance: float) -> None:
        for number, (name, losses) in enumerate(self._losses.items()):
            if name not in self._lines:
                pen = pyqtgraph.mkPen(LINES[number % len(LINES)], width=2)
                self._lines[name] = self._loss.plot(pen=pen, name=name)
            self._lines[name].setData(self._steps[-len(losses) :], losses, connect="finite")
        if np.isfinite(chance):
            self._chance.setValue(chance)
            if self._chance.scene() is None:
                self._loss.addItem(self._chance)
        self._explain(chance=bool(np.isfinite(chance)))
        steps, values = _positive(self._steps, self._penalties)
        self._penalty.plot(steps, values, clear=True, pen=pyqtgraph.mkPen(GREY, width=2))
        # the plot is low: pyqtgraph's own marks of a logarithmic axis would overlap
        ends = [] if not len(values) else [values.min(), values.max()]
        marks = [(float(np.log10(end)), f"{end:.1g}") for end in ends]
        self._penalty.getAxis("left").setTicks([marks])

    def _explain(self, *, chance: bool) -> None:
        """Label the lines."""
        lines = [(LINES[n % len(LINES)], "━━", name) for n, name in enumerate(self._losses)]
        lines += [(GREY, "╌╌", "chance")] * chance
        words = [
            f'<span style="color:{color}">{line}</span>\N{NO-BREAK SPACE}'
            + escape(name).replace(" ", "\N{NO-BREAK SPACE}")
            for color, line, name in lines
        ]
        # setting the same text again would lay out the dock again
        if (text := " &nbsp; ".join(words)) != self.key.text():
            self.key.setText(text)


def _plot(label: str) -> pyqtgraph.PlotWidget:
    plot = plain_plot()
    plot.getAxis("left").setWidth(52)
    # before the label is there: later it would keep the factor of the moment
    plot.getAxis("left").enableAutoSIPrefix(False)
    plot.setLabel("left", label)
    return plot


def _positive(steps: Sequence[int], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """What a logarithmic axis can show."""
    shown = np.nan_to_num(np.asarray(values, float)) > 0
    return np.asarray(steps)[shown], np.asarray(values, float)[shown]


class DimensionPlot(QWidget):
    """A point with an error bar for each number of latents; a ring around the suggested one."""

    def __init__(self) -> None:
        super().__init__()
        self.plot = plain_plot()
        # before the label is there: later it would keep the factor of the moment
        self.plot.getAxis("left").enableAutoSIPrefix(False)
        self.plot.setLabel("left", "consistency R² between seeds")
        self.plot.setToolTip(
            "How well the embedding from one seed predicts that from another (after an affine "
            "map): mean over pairs of seeds, with standard error. The ring marks the "
            "suggestion."
        )
        self.figure_menu = FigureMenu(self.plot, "latents")
        self._legend = self.plot.addLegend(offset=(-10, 10), labelTextSize="8pt")
        self._style: PlotStyle | None = None
        self._found: Dimensions | None = None
        in_column(self.plot, of=self)

    def show_dimensions(self, found: Dimensions | None) -> None:
        """Draw the result; without one, empty axes."""
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
            title = in_markup(name) if len(found.lines) > 1 else None
            self.plot.plot(x, y, pen=style.pen(number), symbol="o", symbolBrush=color, name=title)
        chosen = found.suggested
        ring = pyqtgraph.ScatterPlotItem(
            [found.place(chosen)], [chosen.mean], size=20, brush=None,
            pen=pyqtgraph.mkPen(style.accent, width=2),
        )  # fmt: skip
        self.plot.addItem(ring)
        self.plot.setLabel("bottom", in_markup(found.axis))
        places = sorted({found.place(d) for d in found.tried})
        self.plot.getAxis("bottom").setTicks([[(place, str(place)) for place in places]])
        self.plot.setXRange(places[0] - 0.5, places[-1] + 0.5)
        self.plot.enableAutoRange(axis="y")
