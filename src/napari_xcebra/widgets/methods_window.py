"""All methods side by side: how far they agree, and the rank of every cell by each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.attribution.comparison import Comparison, ranks_of, title_of
from napari_xcebra.attribution.method_notes import EVERY, is_slow, note_on
from napari_xcebra.attribution.single_cell import STATISTICS
from napari_xcebra.widgets.cell_table import CellTable
from napari_xcebra.widgets.compared import comparison_of, computed, missing
from napari_xcebra.widgets.computation import computation_of
from napari_xcebra.widgets.compute_row import ComputeRow
from napari_xcebra.widgets.correlation_table import CorrelationTable
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.lifetime import follow
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.plot_style import style_of
from napari_xcebra.widgets.ranking import CellColumn, Ranking
from napari_xcebra.widgets.score_map import ScoreMap
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.statistics_store import help_on, statistics_of

SPREAD = "How far the methods disagree: highest less lowest rank, as a share of the cells."
BLIND = "Scores are hidden: cells are being judged blind in the Curate dock."
KEPT = ("rank", "cell", "name", "selected", "accepted")
"""Columns of the table of cells that are of use here."""


class MethodsButton(QPushButton):
    """Opens the window.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__("Methods")
        self.setToolTip(
            "All methods and statistics side by side: how far they agree, and about which cells."
        )
        self.opened = MethodsWindow(session, self)
        self.clicked.connect(lambda _=False: self.open())

    def open(self) -> None:
        """Open the window, or bring it to the front."""
        self.opened.show()
        self.opened.raise_()


class MethodsWindow(QDialog):
    """Follows the run and the factor that are shown; computes the methods that are missing.

    Parameters
    ----------
    session : Session
    parent : QWidget
        It closes together with.
    """

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self.session = session
        self.computation = computation_of(session)
        self.statistics = statistics_of(session)
        self._correlated: Mapping[str, np.ndarray] = {}
        self.setWindowTitle("Methods side by side")
        self.resize(1080, 680)
        self._make_parts()
        self._lay_out()
        self._connect()
        self._show_theme()

    def _make_parts(self) -> None:
        self.heading = QLabel()
        self.heading.setWordWrap(True)
        self.compute = ComputeRow()
        self.correlations = CorrelationTable()
        self.table = CellTable(tall_titles=True)
        self.notice = Notice()

    def _lay_out(self) -> None:
        beside = QVBoxLayout()
        for part in (self.heading, self.compute, self.notice):
            beside.addWidget(part)
        beside.addStretch(1)
        above = QHBoxLayout()
        above.addWidget(self.correlations, 0, Qt.AlignmentFlag.AlignTop)
        above.addLayout(beside, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(above)
        layout.addWidget(self.table, 1)

    def _connect(self) -> None:
        session = self.session
        self.compute.asked.connect(self.compute_missing)
        self.compute.stopped.connect(self.computation.cancel)
        self.table.marked.connect(session.select)
        for signal, method in (
            (session.recording_changed, self._show),
            (session.runs_changed, self._show),
            (session.shown_changed, self._show),
            (self.statistics.changed, self._show),
            (curations_of(session).changed, self._show),
            (session.selection_changed, self._show_selection),
            (self.computation.changed, self._show_computation),
            (self.computation.said, self._say),
            (session.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)

    def compute_missing(self) -> None:
        """Have all methods and statistics computed that are not there."""
        opened, run = self.session.current, self.session.shown_run
        if opened is None or run is None or self.computation.busy:
            return
        self.notice.clear()
        methods, statistics = missing(self.session)
        self.statistics.ask(opened, run, statistics, again=True)
        self.computation.add(opened, run, *methods)

    # ------------------------------------------------------------ what is shown

    def showEvent(self, event: Any) -> None:
        """Catch up with what changed while it was closed."""
        super().showEvent(event)
        self._show()

    def _show(self, *_: Any) -> None:
        if not self.isVisible():
            return
        shown = self.session.shown
        comparison = None if shown.blind else comparison_of(self.session)
        there = comparison is not None and shown.factor in comparison.factors
        self.correlations.setVisible(there)
        self.table.setVisible(there)
        if comparison is None or not there:
            nothing = "No scores yet: compute some in the Attribution dock."
            self.heading.setText(BLIND if shown.blind else nothing)
            self._show_computation()
            return
        chance = "<p>It is at chance: no ranking by a method means anything.</p>"
        self.heading.setText(
            f"<p><b>{shown.factor}</b> · {shown.run}, as chosen in the Attribution dock</p>"
            f"{chance if comparison.at_chance[shown.factor] else ''}<p>On the left, how far each "
            "two rankings of the cells agree: Spearman's ρ, 1 where they are the same. Below, the "
            "rank of every cell by each.</p>"
        )
        self._show_correlations(comparison)
        self.table.show_ranking(self._ranking(comparison))
        self._show_selection()
        self._show_computation()

    def _show_correlations(self, comparison: Comparison) -> None:
        """Anew only for other rankings: a threshold that is dragged should not wait for them."""
        factor = self.session.shown.factor
        scores = comparison.of(factor)
        if not _same(scores, self._correlated):
            self._correlated = scores
            self.correlations.show_correlations(comparison.correlations(factor))

    def _ranking(self, comparison: Comparison) -> Ranking:
        shown, opened = self.session.shown, self.session.current
        assert opened is not None
        there = computed(self.session)
        painted = ScoreMap(there.get(shown.method, next(iter(there.values()))), shown.factor)
        more = [CellColumn("spread", comparison.spread(shown.factor), SPREAD, ".2f", 7)]
        for name, scores in comparison.of(shown.factor).items():
            about = help_on(name) if name in STATISTICS else note_on(name)
            help = f"Rank by {title_of(name)}, 1 being the highest. {about}"
            more.append(CellColumn(title_of(name), ranks_of(scores), help, "", 12, none=0))
        accepted = curations_of(self.session).accepted(opened)
        whole = Ranking.of(opened.recording, painted, shown.threshold, accepted)
        return whole.only(KEPT).with_columns(more)

    def _show_computation(self, *_: Any) -> None:
        if not self.isVisible():
            return
        methods, statistics = missing(self.session)
        slow = [title_of(name) for name in methods if is_slow(name)]
        what = [f"{len(methods)} methods"] if methods else []
        what += [f"{len(statistics)} statistics"] if statistics else []
        sentence = f"{' and '.join(what)} are not computed yet."
        if slow:
            sentence += f" The slow ones ({', '.join(slow)}) take every {EVERY}th frame."
        self.compute.setVisible(bool(what) or self.computation.busy)
        self.compute.show_state(sentence, self.computation)

    def _show_selection(self) -> None:
        self.table.mark(self.session.selection)

    def _say(self, sentence: str, tone: Any, details: str) -> None:
        self.notice.say(sentence, tone, details)

    def _show_theme(self, *_: Any) -> None:
        self.correlations.follow_theme(style_of(self.session.viewer.theme))


def _same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Whether two sets of scores are the same, cell by cell."""
    return list(one) == list(other) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )
