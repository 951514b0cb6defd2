"""Attribution: which cells carry a factor, painted, ranked, thresholded and exported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_xcebra.verdicts import TONES
from napari_xcebra.widgets.computation import computation_of
from napari_xcebra.widgets.compute_row import ComputeRow, no_scores_by
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.empty_state import EmptyState
from napari_xcebra.widgets.export_menu import ExportButton
from napari_xcebra.widgets.lifetime import Presence, end_with_dock, follow
from napari_xcebra.widgets.methods_window import MethodsButton
from napari_xcebra.widgets.notice import VERDICT_HELP, Notice
from napari_xcebra.widgets.repeating import repeating_of
from napari_xcebra.widgets.run_list import best_factor, best_method
from napari_xcebra.widgets.score_map import chosen_map, painted_map
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.score_panel import ScorePanel
from napari_xcebra.widgets.session import session_of
from napari_xcebra.widgets.shown_choice import FactorChoice, ShownChoice
from napari_xcebra.widgets.statistics_menu import StatisticsButton
from napari_xcebra.widgets.testing import testing_of
from napari_xcebra.widgets.vertical_scroll import VerticalScroll
from napari_xcebra.widgets.wheel import spare_from_wheel
from napari_xcebra.widgets.workspace import open_dock

if TYPE_CHECKING:
    import napari


WIDTH = 350
"""In pixels, from the beginning: the image should not move when there is more to show."""


class AttributionDock(QWidget):
    """Everything about the scores, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.session = session_of(napari_viewer)
        self.painter = painter_of(self.session)
        self.computation = computation_of(self.session)
        self.curations = curations_of(self.session)
        self.testing = testing_of(self.session)
        self.repeating = repeating_of(self.session)
        self._make_parts()
        self._lay_out()
        self._connect_parts()
        self._follow_session()
        self._show_runs()

    def _make_parts(self) -> None:
        self.empty = EmptyState()
        self.choice = ShownChoice()
        self.verdict = Notice()
        self.compute = ComputeRow()
        self.scores = ScorePanel(self.session)
        self.statistics_button = StatisticsButton(self.session)
        self.methods_button = MethodsButton(self.session)
        self.export = ExportButton(self.session)
        self.notice = Notice()

    def _lay_out(self) -> None:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(6, 6, 6, 6)
        for part in (self.empty, self.choice, self.verdict, self.compute):
            column.addWidget(part)
        column.addWidget(self.scores, 1)
        column.addStretch(0)
        self._area = VerticalScroll(inside, WIDTH)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._area, 1)
        layout.addWidget(self._foot())
        spare_from_wheel(self)

    def _foot(self) -> QWidget:
        """Stays in sight however far the rest is scrolled: what can be done with the scores."""
        self._more = QWidget()
        more = QHBoxLayout(self._more)
        more.setContentsMargins(0, 0, 0, 0)
        for button in (self.statistics_button, self.methods_button, self.export):
            more.addWidget(button)
        foot = QWidget()
        column = QVBoxLayout(foot)
        column.setContentsMargins(6, 4, 6, 4)
        column.addWidget(self.notice)
        column.addWidget(self._more)
        return foot

    def _connect_parts(self) -> None:
        self.empty.asked.connect(lambda name: open_dock(self.session.viewer, name))
        self.choice.run_chosen.connect(self._choose_run)
        self.choice.factor_chosen.connect(self._choose_factor)
        self.choice.method_chosen.connect(lambda method: self._change(method=method))
        self.compute.asked.connect(self._compute)
        self.compute.stopped.connect(self.computation.cancel)
        for question in (self.scores.significance, self.scores.stability):
            question.asked.connect(self.notice.clear)
        self.scores.side_by_side.chosen.connect(self.compare)
        self.export.said.connect(self.notice.say)

    def _follow_session(self) -> None:
        session = self.session
        for signal, method in (
            (session.recording_changed, self._show_recording),
            (session.runs_changed, self._show_runs),
            (session.shown_changed, self._show_shown),
            (session.live_changed, self._show_live),
            (self.computation.changed, self._show_computation),
            (self.computation.said, self._say),
            (self.curations.changed, self._show_decisions),
        ):
            follow(self, signal, method)
        end_with_dock(self)
        self.presence = Presence(self)
        self.presence.changed.connect(self._show_decisions)

    # ------------------------------------------------------------ what the user does

    def _change(self, **what: Any) -> None:
        self.session.shown = replace(self.session.shown, **what)

    def _choose_run(self, name: str) -> None:
        run = next((run for run in self.session.runs if run.name == name), None)
        live, factor = self.session.live, self.session.shown.factor
        if live is not None and live.name == name:
            factors = live.attribution.factors
            factor = factor if factor in factors else factors[0]
            self._change(run=name, factor=factor, latent=None, method=live.attribution.method)
        elif run is not None:
            same = factor in run.fit.factors
            self._change(run=name, factor=factor if same else best_factor(run), latent=None)

    def _choose_factor(self, choice: FactorChoice) -> None:
        self.notice.clear()
        self._change(factor=choice[0], latent=choice[1])

    def _compute(self) -> None:
        opened, run = self.session.current, self.session.shown_run
        if opened is not None and run is not None:
            self.notice.clear()
            self.computation.start(opened, run, self.session.shown.method)

    def compare(self, beside: tuple[str, str] | None) -> None:
        """Show the map of another run or factor beside this one."""
        self.painter.beside = beside
        self.scores.show_comparison()
        if beside is not None:
            # once the plot has its place
            QTimer.singleShot(0, self._reveal_comparison)

    def _reveal_computation(self) -> None:
        self._area.ensureWidgetVisible(self.compute)

    def _reveal_comparison(self) -> None:
        self._area.ensureWidgetVisible(self.scores.side_by_side)

    # ------------------------------------------------------------ what is shown

    def _show_recording(self) -> None:
        """The cells may have been accepted or rejected."""
        self.scores.forget()
        self._show_shown()

    def _show_decisions(self, *_: Any) -> None:
        if self.presence.now:
            self.scores.show_decisions()

    def _show_runs(self) -> None:
        runs, shown = self.session.runs, self.session.shown
        # nothing may be painted yet, or what was painted may be gone
        run = next((run for run in runs if run.name == shown.run), runs[-1] if runs else None)
        if self.session.painted_live is not None:
            run = None
        if run is not None and (run.name != shown.run or shown.factor not in run.fit.factors):
            method = best_method(run, shown.method)
            self._change(run=run.name, factor=best_factor(run), latent=None, method=method)
        self._show_shown()

    def _show_shown(self) -> None:
        session, shown = self.session, self.session.shown
        runs, painted = session.runs, painted_map(session)
        self.empty.show_step(*self._first_step())
        self.choice.setVisible((bool(runs) or session.live is not None) and not shown.blind)
        self.choice.show_choice(runs, shown, session.live)
        self._show_verdict()
        self._show_computation()
        self.scores.setVisible(painted is not None)
        self._more.setVisible(painted is not None)
        if painted is None:
            self.scores.forget()
            return
        self.scores.show_map(painted)
        for button in (self.statistics_button, self.methods_button, self.export):
            button.setEnabled(not painted.provisional)  # which need a trained run
        self.statistics_button.show_shown()

    def _show_live(self) -> None:
        """The run that is being trained has another map, which may be what is shown."""
        live, painted = self.session.live, painted_map(self.session)
        if live is None or (painted is not None and painted.provisional):
            self._show_shown()
        else:
            self.choice.show_choice(self.session.runs, self.session.shown, live)

    def _first_step(self) -> tuple[str, str]:
        """What is needed before there is anything to show, and in which dock it is done."""
        if self.session.current is None:
            return "No recording yet: open one in the Recording dock.", "Recording"
        if self.session.shown.blind:
            return "Scores are hidden: cells are being judged blind in the Curate dock.", "Curate"
        there = self.session.runs or self.session.live
        return "" if there else "No run yet: train one in the Train dock.", "Train"

    def _show_verdict(self) -> None:
        run, shown, live = self.session.shown_run, self.session.shown, self.session.painted_live
        goodness = run.fit.goodness.get(shown.factor) if run else None
        if live is not None and not shown.blind:
            self.verdict.say(live.sentence, "warning")
        elif goodness is None:
            self.verdict.clear()
        elif goodness.verdict != self.verdict.text:
            self.verdict.say(goodness.verdict, TONES[goodness.strength], help=VERDICT_HELP)

    def _show_computation(self) -> None:
        run, shown = self.session.shown_run, self.session.shown
        live = self.session.painted_live
        missing = run is not None and live is None and chosen_map(self.session) is None
        # a test, or another seed, is shown where it was asked for
        elsewhere = self.testing.running or self.repeating.running
        begins = self.computation.busy and not elsewhere and self.compute.isHidden()
        self.compute.setVisible(missing or (self.computation.busy and not elsewhere))
        if begins:
            # asked for at the foot of the dock; once it has its place
            QTimer.singleShot(0, self._reveal_computation)
        self.scores.show_questions()
        if run is not None:
            sentence = no_scores_by(shown.method, run.name)
            self.compute.show_state(sentence, self.computation)

    def _say(self, sentence: str, tone: Any, details: str) -> None:
        self.notice.say(sentence, tone, details)
