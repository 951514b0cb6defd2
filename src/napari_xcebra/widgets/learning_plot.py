"""How learning goes: InfoNCE of each factor against chance, and the penalty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_xcebra.widgets.plain_plot import dress, plain_plot
from napari_xcebra.widgets.plot_style import ON_LIGHT, PlotStyle

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced

LINES = ON_LIGHT[:6]
"""Those that show on a dark background, too."""
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
            angle=0, pen=pyqtgraph.mkPen(GREY, style=Qt.PenStyle.DashLine)
        )
        self._lines: dict[str, pyqtgraph.PlotDataItem] = {}
        self._steps: list[int] = []
        self._losses: dict[str, list[float]] = {}
        self._penalties: list[float] = []
        self._followed = 0
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.key)
        for plot, height in zip((self._loss, self._penalty), HEIGHTS, strict=True):
            plot.setFixedHeight(height)
            layout.addWidget(plot)
        self.setToolTip(
            "Loss of each factor on the training frames: the further below chance, the better the "
            "cells tell it. Below: the Jacobian penalty, which makes the map identifiable."
        )

    def clear(self) -> None:
        """Begin anew."""
        self._steps, self._losses, self._penalties = [], {}, []
        for line in self._lines.values():
            self._loss.removeItem(line)
        self._lines = {}
        self.key.clear()
        self._penalty.clear()
        self._loss.removeItem(self._chance)

    def follow(self, course: Sequence[Advanced]) -> None:
        """Go on to the last report of a training, or begin anew where it is another one."""
        if len(course) < self._followed or not course:
            self.clear()
            self._followed = 0
        for at in course[self._followed :]:
            self.add(at.done, at.loss, at.chance, at.penalty)
        self._followed = len(course)

    def add(self, step: int, loss: Mapping[str, float], chance: float, penalty: float) -> None:
        """Go on to a step."""
        self._steps.append(step)
        self._penalties.append(penalty)
        for name, value in loss.items():
            before = [np.nan] * (len(self._steps) - 1)
            self._losses.setdefault(name, before).append(value)
        self._draw(chance)

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
                self._lines[name] = self._loss.plot(pen=pen)
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
        """Say which line is which."""
        lines = [(LINES[n % len(LINES)], "━━", name) for n, name in enumerate(self._losses)]
        lines += [(GREY, "╌╌", "chance")] * chance
        words = [
            f'<span style="color:{color}">{line}</span>\N{NO-BREAK SPACE}'
            + escape(name).replace(" ", "\N{NO-BREAK SPACE}")
            for color, line, name in lines
        ]
        # a label that is told the same again would lay out the dock again
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
