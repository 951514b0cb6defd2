"""Decides by exception: a range of a property, and what was learned from earlier decisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QPointF, QRectF, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPalette, QPen
from qtpy.QtWidgets import QSizePolicy, QSlider, QWidget
from superqt import QDoubleRangeSlider
from superqt.utils import signals_blocked

from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import (
    NumberBox,
    PlainLabel,
    fill,
    small_box,
    small_button,
)
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.plots.plot_style import BLUE, ORANGE

if TYPE_CHECKING:
    from napari_xcebra.curation.evidence import Proposal
    from napari_xcebra.widgets.services.reading import CallChecks
    from napari_xcebra.widgets.state.cell_queue import CellQueue, Deciding, QueueChoice
    from napari_xcebra.widgets.state.state import State

BARS, HIGH = 40, 34
"""Bars of a histogram, and its pixels."""


class _Histogram(QWidget):
    """Bars of all ROIs, those in the range in colour; as wide as the slider below it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(HIGH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._counts, self._edges = np.zeros(BARS), np.linspace(0, 1, BARS + 1)
        self._range = 0.0, 1.0

    def show_values(self, values: np.ndarray, low: float, high: float) -> None:
        """Show other values, from the lowest to the highest."""
        self._counts, self._edges = np.histogram(values, BARS, (low, high))
        self.update()

    def show_range(self, low: float, high: float) -> None:
        """Colour what lies between two values."""
        self._range = low, high
        self.update()

    def paintEvent(self, event: Any) -> None:
        """Draw the bars."""
        painter = QPainter(self)
        width, most = self.width() / BARS, max(self._counts.max(), 1)
        faint = self.palette().color(QPalette.ColorRole.Text)
        faint.setAlpha(70)
        for i, count in enumerate(self._counts):
            inside = self._edges[i + 1] >= self._range[0] and self._edges[i] <= self._range[1]
            # a single ROI is seen
            high = 0.0 if not count else max(2.0, count / most * self.height())
            bar = QRectF(i * width, self.height() - high, max(width - 1, 1), high)
            painter.fillRect(bar, QColor(BLUE) if inside else faint)
        painter.end()


class PropertyRow(QWidget):
    """A property of the cells: which range of it comes up, and the field in its colours."""

    chosen = Signal(object)
    """A QueueChoice."""
    painted = Signal(str)
    """Name of the property that the field is to be coloured by; empty for none."""

    def __init__(self, state: State, queue: CellQueue) -> None:
        super().__init__()
        self._state, self._queue = state, queue
        self._shown: tuple[Any, ...] = ()
        self.column = small_box("A property of the cells to filter, sort and colour by.")
        self.word = small_box("Only cells with this value.")
        self.histogram = _Histogram()
        self.slider = QDoubleRangeSlider(Qt.Orientation.Horizontal)
        self.slider.setToolTip("Only cells between both handles come up in the queue.")
        self.count = PlainLabel()
        self.select = small_button("Select", "Select these cells, to decide on all of them.")
        self.paint = small_button("Colour", "Colour the field by this property, and back.")
        self.paint.setCheckable(True)
        first = in_row((self.column, 1), (self.word, 1), spacing=4)
        last = in_row((self.count, 1), self.select, self.paint, spacing=4)
        in_column(first, self.histogram, self.slider, last, of=self, spacing=2)
        self.column.activated.connect(lambda i: self._choose(self.column.itemData(i)))
        self.word.activated.connect(lambda i: self._narrow(word=self.word.itemData(i)))
        self.slider.valueChanged.connect(lambda ends: self._narrow(low=ends[0], high=ends[1]))
        self.select.clicked.connect(lambda _=False: state.select(self._queue.in_range()))
        self.paint.clicked.connect(lambda on=False: self._color(on))

    def show_choice(self, choice: QueueChoice) -> None:
        """Show what is chosen, with what there is to choose from."""
        known = self._queue.properties
        name = choice.column if choice.column in known else ""
        fill(self.column, [("any property", ""), *((each, each) for each in known)], name)
        self.column.setEnabled(bool(known))
        values = known.get(name, np.zeros(0))
        words = values.dtype.kind not in "biuf"
        for part in (self.histogram, self.slider):
            part.setVisible(bool(name) and not words)
        self.word.setVisible(bool(name) and words)
        for part in (self.count, self.select, self.paint):
            part.setVisible(bool(name))
        if not name:
            return
        if words:
            found = sorted({str(value) for value in values})
            fill(self.word, [("any value", ""), *((w, w) for w in found)], choice.word)
        else:
            self._show_range(name, values, choice)
        inside = len(self._queue.in_range())
        self.count.setText(f"{inside} of {len(values)} cells{self._limits(choice, words)}")
        self.select.setEnabled(inside > 0)

    def forget_recording(self) -> None:
        """Forget the property, which another recording may not have."""
        self.paint.setChecked(False)
        self._shown = ()

    def _show_range(self, name: str, values: np.ndarray, choice: QueueChoice) -> None:
        numbers = values.astype(np.float64)
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        high = high if high > low else low + 1
        if self._shown != (name, low, high):
            self._shown = name, low, high
            self.histogram.show_values(known, low, high)
            with signals_blocked(self.slider):
                self.slider.setRange(low, high)
        ends = max(choice.low, low), min(choice.high, high)
        with signals_blocked(self.slider):
            self.slider.setValue(ends)
        self.histogram.show_range(*ends)

    def _limits(self, choice: QueueChoice, words: bool) -> str:
        if words or not (np.isfinite(choice.low) or np.isfinite(choice.high)):
            return ""
        low, high = self.slider.value()
        return f", {low:.3g} to {high:.3g}".replace("-", "−")

    def _choose(self, name: str) -> None:
        self.chosen.emit(replace(self._queue.choice, column=name, low=-np.inf, high=np.inf,
                                 word=""))  # fmt: skip
        self._color(self.paint.isChecked() and bool(name), name)

    def _narrow(self, **what: Any) -> None:
        if not self.slider.isHidden() and "low" in what:
            # a handle at its end leaves nothing out, also not what has no value
            _, low, high = self._shown
            what["low"] = -np.inf if what["low"] <= low else what["low"]
            what["high"] = np.inf if what["high"] >= high else what["high"]
        self.chosen.emit(replace(self._queue.choice, **what))

    def _color(self, on: bool, name: str | None = None) -> None:
        self.paint.setChecked(on)
        self.painted.emit((self._queue.choice.column if name is None else name) if on else "")


class _Reliability(QWidget):
    """Held-out probabilities beside the share that was accepted; on the diagonal if they agree."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(96, 96)
        self._points = np.zeros((0, 3))
        self._threshold = 1.0
        self.setToolTip(
            "Of the cells you decided on, in groups: the probability that a proposal made without "
            "them gave (across), and the share that you accepted (up). On the line, both agree. "
            "Shaded: what is sure enough at this threshold."
        )

    def show_proposal(self, proposal: Proposal | None, threshold: float) -> None:
        """Show how far the probabilities can be believed."""
        self._points = np.zeros((0, 3)) if proposal is None else proposal.reliability()
        self._threshold = threshold
        self.update()

    def paintEvent(self, event: Any) -> None:
        """Draw the diagonal, the threshold, and a point for each group."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        text = self.palette().color(QPalette.ColorRole.Text)
        side = float(self.width() - 12)

        def at(x: float, y: float) -> QPointF:
            return QPointF(6 + x * side, 6 + (1 - y) * side)

        sure = QColor(BLUE)
        sure.setAlpha(60)
        width = (1 - self._threshold) * side
        painter.fillRect(QRectF(6, 6, width, side), sure)
        painter.fillRect(QRectF(6 + side - width, 6, width, side), sure)
        painter.setPen(QPen(text, 0.6))
        painter.drawRect(QRectF(6, 6, side, side))
        painter.drawLine(at(0, 0), at(1, 1))
        painter.setPen(QPen(QColor(ORANGE), 1.5))
        painter.setBrush(QColor(ORANGE))
        points = [at(x, y) for x, y, _ in self._points]
        for one, other in pairwise(points):
            painter.drawLine(one, other)
        for point in points:
            painter.drawEllipse(point, 2.5, 2.5)
        painter.end()


SURE = 0.95


class ProposalPanel(QWidget):
    """What was learned from the decisions, how far to believe it, and a button to apply it."""

    grown = Signal()
    """There is a proposal, which takes more room."""

    def __init__(self, checks: CallChecks, deciding: Deciding) -> None:
        super().__init__()
        self._checks, self._deciding = checks, deciding
        self.sentence = PlainLabel(wrap=True)
        self.curve = _Reliability()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(50, 99)
        self.slider.setValue(round(100 * SURE))
        self.slider.setToolTip("How sure a proposed decision must be.")
        self.limit = NumberBox("How sure a proposed decision must be, in %.")
        self.limit.setRange(50, 99)
        self.limit.setDecimals(0)
        self.limit.setValue(100 * SURE)
        self.apply = small_button(
            "Apply", "As proposed, in one step. Decisions that you made yourself stay."
        )
        self.apply.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.expected = PlainLabel(wrap=True)
        limits = in_row(PlainLabel("sure by %"), (self.slider, 1), self.limit, spacing=4)
        self._rest = QWidget()
        beside = in_column(limits, self.expected, self.apply, spacing=4)
        in_row(self.curve, (beside, 1), of=self._rest, spacing=6)
        self._rest.hide()
        in_column(self.sentence, self._rest, of=self, spacing=4)
        self.slider.valueChanged.connect(lambda value: self.limit.setValue(value))
        self.limit.valueChanged.connect(self._take_limit)
        self.apply.clicked.connect(lambda _=False: self._apply())

    @property
    def threshold(self) -> float:
        """Probability from which a proposed decision is taken over."""
        return float(self.limit.value()) / 100

    def show_state(self, status: np.ndarray) -> None:
        """Show what is proposed for cells with these decisions."""
        proposal = self._checks.proposal
        grows = self._rest.isHidden() and proposal is not None
        self._rest.setVisible(proposal is not None)
        if grows:
            self.grown.emit()
        self.curve.show_proposal(proposal, self.threshold)
        if proposal is None:
            self.sentence.setText(self._checks.failed or self._checks.why_none or "Learning …")
            return
        self.sentence.setText(
            f"Learned from {counted(len(proposal.decided), 'decision')} of yours; on these, each "
            f"left out in turn, it tells cells from others in {100 * proposal.area:.0f} % of pairs."
        )
        self._status = status
        accepted, rejected = (int(side.sum()) for side in proposal.sides(self.threshold, status))
        right = proposal.expected_right(self.threshold, status)
        some = accepted + rejected > 0
        self.apply.setText(f"Accept {accepted}, reject {rejected}" if some else "Nothing to change")
        self.apply.setEnabled(some)
        self.expected.setText(
            f"About {100 * right:.0f} % of {counted(accepted + rejected, 'change')} are expected "
            "to be right."
            if some
            else "No other decision is this sure to be another one."
        )

    def _take_limit(self, value: float) -> None:
        with signals_blocked(self.slider):
            self.slider.setValue(round(value))
        if self._checks.proposal is not None:
            self.show_state(self._status)

    def _apply(self) -> None:
        if self._checks.proposal is not None:
            self._deciding.apply_proposal(self._checks.proposal, self.threshold)
