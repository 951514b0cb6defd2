"""Compares maps: a second one with the first, cell by cell, and all methods with each other."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QAbstractTableModel, QModelIndex, QSize, Qt, Signal
from qtpy.QtGui import QBrush, QColor
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QSizePolicy,
    QTableView,
    QWidget,
)

from napari_xcebra.attribution.comparison import Comparison, short_number, title_of
from napari_xcebra.attribution.methods import EVERY, method_named
from napari_xcebra.attribution.ranking import CellColumn, Ranking, help_on
from napari_xcebra.attribution.ranks import rank_correlation, ranks_of
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.text import counted, two
from napari_xcebra.widgets.controls.boxes import PlainLabel, choice_box, fill, in_markup
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import ResultWindow
from napari_xcebra.widgets.docks.attribution.cell_table import CellTable
from napari_xcebra.widgets.docks.attribution.work_rows import ComputeRow
from napari_xcebra.widgets.plots.paper import FigureMenu
from napari_xcebra.widgets.plots.plot_style import (
    BLUE,
    ORANGE,
    PlotStyle,
    dress,
    plain_plot,
    style_of,
)
from napari_xcebra.widgets.services.run_jobs import computed

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.layers.scores import Beside
    from napari_xcebra.widgets.state.shown import Shown
    from napari_xcebra.widgets.window import Services


CELL = QSize(36, 20)


class _Model(QAbstractTableModel):
    """Numbers with a colour each."""

    def __init__(self) -> None:
        super().__init__()
        self.values = np.zeros((0, 0))
        self.names: list[str] = []
        self.style: PlotStyle | None = None

    def show_values(self, values: pd.DataFrame) -> None:
        self.beginResetModel()
        self.values = values.to_numpy(np.float64)
        self.names = [str(name) for name in values.index]
        self.endResetModel()

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 -- Qt's signature
        return 0 if parent.isValid() else len(self.values)

    def columnCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008 -- Qt's signature
        return 0 if parent.isValid() else self.values.shape[1]

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        value = float(self.values[index.row(), index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return "" if np.isnan(value) else short_number(value)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignCenter
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._brush(value)
        if role == Qt.ItemDataRole.ToolTipRole:
            row, column = (title_of(self.names[i]) for i in (index.row(), index.column()))
            if np.isnan(value):
                return f"Too few cells are ranked by both {row} and {column}."
            return f"Spearman's ρ between {row} and {column}: {value:.3f}"
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        title = title_of(self.names[section])
        if role == Qt.ItemDataRole.ToolTipRole:
            return title
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        # columns have the numbers of the rows, so that they can be narrow
        short = orientation == Qt.Orientation.Horizontal
        return str(section + 1) if short else f"{section + 1}  {title}"

    def _brush(self, value: float) -> QBrush | None:
        """From the background at 0 to a full colour at −1 and 1."""
        if self.style is None or np.isnan(value):
            return None
        ends = QColor(self.style.background), QColor(ORANGE if value > 0 else BLUE)
        share = 0.85 * min(abs(value), 1)
        mixed = [
            (1 - share) * a + share * b for a, b in zip(*map(QColor.getRgbF, ends), strict=True)
        ]
        return QBrush(QColor.fromRgbF(*mixed[:3]))


class _CorrelationTable(QTableView):
    """One row and column per ranking; hovering over a number explains it."""

    def __init__(self) -> None:
        super().__init__()
        self.model_ = _Model()
        self.setModel(self.model_)
        self.setToolTip("How well each pair of rankings agrees (Spearman's ρ).")
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setShowGrid(False)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        across, down = self.horizontalHeader(), self.verticalHeader()
        for header, size in ((across, CELL.width()), (down, CELL.height())):
            header.setMinimumSectionSize(size)
            header.setDefaultSectionSize(size)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        down.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.setStyleSheet("QHeaderView::section { font-weight: normal; padding: 0 6px 0 2px; }")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def show_correlations(self, values: pd.DataFrame) -> None:
        """Show other numbers: (rankings, rankings)."""
        self.model_.show_values(values)
        self.updateGeometry()

    def follow_theme(self, style: PlotStyle) -> None:
        """Use the colours of a theme."""
        self.model_.style = style
        self.viewport().update()

    def sizeHint(self) -> QSize:
        """Large enough for the whole table."""
        count = self.model_.rowCount()
        names = self.verticalHeader().sizeHint().width()
        heads = self.horizontalHeader().sizeHint().height()
        return QSize(names + count * CELL.width() + 4, heads + count * CELL.height() + 4)


SPREAD = "Disagreement between methods: highest minus lowest rank, as a share of the cells."
BLIND = "Scores are hidden: cells are being judged blind in the Curate dock."
KEPT = ("rank", "cell", "name", "above", "accepted")
"""Columns of the table of cells that are useful here."""


class MethodsWindow(ResultWindow):
    """Follows the painted run and factor; computes missing methods."""

    def __init__(self, services: Services, parent: QWidget) -> None:
        super().__init__("Methods side by side", (1080, 680), parent)
        self.services, self.state = services, services.state
        self.jobs = services.jobs
        self.statistics = services.statistics
        self._correlated: Mapping[str, np.ndarray] = {}
        self._make_parts()
        self._lay_out()
        self._connect()
        self._show_theme()

    def _make_parts(self) -> None:
        self.heading = QLabel()
        self.heading.setWordWrap(True)
        self.compute = ComputeRow()
        self.correlations = _CorrelationTable()
        self.table = CellTable(tall_titles=True)

    def _lay_out(self) -> None:
        beside = in_column(self.heading, self.compute, self.notice, 1)
        self.lay_out(in_row(in_column(self.correlations, 1), (beside, 1)), (self.table, 1))

    def _connect(self) -> None:
        state = self.state
        self.compute.asked.connect(self.compute_missing)
        self.compute.stopped.connect(self.jobs.cancel)
        self.table.marked.connect(state.select)
        self.follow(
            (state.recording_changed, self.refresh),
            (state.runs_changed, self.refresh),
            (state.shown_changed, self.refresh),
            (self.statistics.changed, self.refresh),
            (self.services.curations.changed, self.refresh),
            (state.selection_changed, self._show_selection),
            (self.jobs.changed, self._show_computation),
            (self.jobs.said, self.notice.say),
            (state.viewer.events.theme, self._show_theme),
        )

    def compute_missing(self) -> None:
        """Compute all missing methods and statistics."""
        opened, run = self.state.current, self.state.shown_run
        if opened is None or run is None or self.jobs.busy:
            return
        self.notice.clear()
        methods, statistics = self.statistics.missing()
        self.statistics.ask(opened, run, statistics, again=True)
        self.services.run_jobs.score(opened, run, *methods)

    # ------------------------------------------------------------ what is shown

    def refresh(self) -> None:
        """Show the painted run and factor."""
        if not self.isVisible():
            return
        shown = self.state.shown
        comparison = None if shown.blind else self.statistics.comparison()
        there = comparison is not None and shown.factor in comparison.factors
        self.correlations.setVisible(there)
        self.table.setVisible(there)
        if comparison is None or not there:
            nothing = "No scores yet: compute some in the Attribution dock."
            self.heading.setText(BLIND if shown.blind else nothing)
            self._show_computation()
            return
        chance = "<p>This factor is at chance, so its rankings mean nothing.</p>"
        self.heading.setText(
            f"<p><b>{escape(shown.factor)}</b> · {escape(shown.run)}, as chosen in the Attribution "
            f"dock</p>{chance if comparison.at_chance[shown.factor] else ''}<p>Left: how well "
            "each pair of rankings agrees (Spearman's ρ; 1 means identical). Below: the rank "
            "of every cell by each method.</p>"
        )
        self._show_correlations(comparison)
        self.table.show_ranking(self._ranking(comparison))
        self._show_selection()
        self._show_computation()

    def _show_correlations(self, comparison: Comparison) -> None:
        """Only for new rankings: dragging a threshold should not wait for them."""
        factor = self.state.shown.factor
        scores = comparison.of(factor)
        if not _same(scores, self._correlated):
            self._correlated = scores
            self.correlations.show_correlations(comparison.correlations(factor))

    def _ranking(self, comparison: Comparison) -> Ranking:
        shown, opened = self.state.shown, self.state.current
        assert opened is not None
        there = computed(self.state)
        painted = ScoreMap(there.get(shown.method, next(iter(there.values()))), shown.factor)
        more = [CellColumn("spread", comparison.spread(shown.factor), SPREAD, ".2f", 7)]
        for name, scores in comparison.of(shown.factor).items():
            about = help_on(name) if name in STATISTICS else method_named(name).help
            help = f"Rank by {title_of(name)}; 1 is the highest. {about}"
            more.append(CellColumn(title_of(name), ranks_of(scores), help, "", 12, none=0))
        accepted = self.services.curations.accepted(opened)
        whole = Ranking.of(opened.recording, painted, shown.threshold, accepted)
        return whole.only(KEPT).with_columns(more)

    def _show_computation(self, *_: Any) -> None:
        if not self.isVisible():
            return
        methods, statistics = self.statistics.missing()
        slow = [title_of(name) for name in methods if method_named(name).slow]
        what = [f"{counted(len(methods), 'method')}"] if methods else []
        what += [f"{counted(len(statistics), 'statistic')}"] if statistics else []
        sentence = f"Not computed yet: {' and '.join(what)}."
        if slow:
            sentence += f" The slow ones ({', '.join(slow)}) use every {EVERY}th frame."
        self.compute.setVisible(bool(what) or self.jobs.busy)
        self.compute.show_state(sentence, self.jobs)

    def _show_selection(self) -> None:
        self.table.mark(self.state.selection)

    def _show_theme(self, *_: Any) -> None:
        self.correlations.follow_theme(style_of(self.state.viewer.theme))


def _same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Whether two sets of scores are the same, cell by cell."""
    return list(one) == list(other) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


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
                doubt = attribution.mark_of_doubt(factor) if attribution else ""
                found.append((f"{factor} · {run.name}{doubt}", (run.name, factor)))
    return found
