"""Shows which cells carry a factor: painted, ranked, thresholded and exported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QWidget

from napari_xcebra.widgets.controls.boxes import WindowButton
from napari_xcebra.widgets.controls.layouts import (
    VerticalScroll,
    give_room,
    in_column,
    in_row,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import Presence, end_with_dock, follow
from napari_xcebra.widgets.controls.notice import NextStep, Notice, VerdictRows
from napari_xcebra.widgets.docks.attribution.menus import ExportButton, StatisticsButton
from napari_xcebra.widgets.docks.attribution.methods_window import BLIND, MethodsWindow
from napari_xcebra.widgets.docks.attribution.score_panel import ScorePanel
from napari_xcebra.widgets.docks.attribution.shown_choice import FactorChoice, ShownChoice
from napari_xcebra.widgets.docks.attribution.work_rows import ComputeRow, no_scores_by
from napari_xcebra.widgets.state.shown import best_factor, best_method, chosen_map, painted_map
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari


WIDTH = 350
"""In pixels, from the start: the image should not move when more is shown."""


class AttributionDock(QWidget):
    """Everything about the scores, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.services = services_of(napari_viewer)
        self.state = self.services.state
        self.painter = self.services.painter
        self.jobs = self.services.jobs
        self.curations = self.services.curations
        self._make_parts()
        self._lay_out()
        self._connect_parts()
        self._follow_state()
        self._show_runs()

    def _make_parts(self) -> None:
        self.empty = NextStep()
        self.choice = ShownChoice()
        self.verdict = VerdictRows()
        self.provisional = Notice()
        self.compute = ComputeRow()
        self.scores = ScorePanel(self.services)
        self.statistics_button = StatisticsButton(self.services)
        self.methods_button = WindowButton(
            "Methods",
            "Compare all methods and statistics: how well they agree, and on which cells.",
            lambda parent: MethodsWindow(self.services, parent),
        )
        self.export = ExportButton(self.services)
        self.notice = Notice()

    def _lay_out(self) -> None:
        inside = QWidget()
        above = (self.empty, self.choice, self.verdict, self.provisional)
        # below the scores, where nothing moves when a computation begins
        parts = (*above, (self.scores, 1), self.compute, 0)
        in_column(*parts, of=inside, spacing=4).setContentsMargins(6, 4, 6, 4)
        give_room(self.empty)
        self._area = VerticalScroll(inside, WIDTH)
        in_column((self._area, 1), self._foot(), of=self, spacing=0)
        spare_from_wheel(self)

    def _foot(self) -> QWidget:
        """What can be done with the scores; it stays in sight while the rest scrolls."""
        self._more = QWidget()
        in_row(self.statistics_button, self.methods_button, self.export, of=self._more)
        foot = QWidget()
        in_column(self.notice, self._more, of=foot).setContentsMargins(6, 4, 6, 4)
        return foot

    def _connect_parts(self) -> None:
        self.empty.asked.connect(self.services.open_dock)
        self.choice.run_chosen.connect(self._choose_run)
        self.choice.factor_chosen.connect(self._choose_factor)
        self.choice.method_chosen.connect(lambda method: self._change(method=method))
        self.compute.asked.connect(self._compute)
        self.compute.stopped.connect(self.jobs.cancel)
        for question in (self.scores.significance, self.scores.stability):
            question.asked.connect(self.notice.clear)
        self.scores.side_by_side.chosen.connect(self.compare)
        self.export.said.connect(self.notice.say)

    def _follow_state(self) -> None:
        state = self.state
        for signal, method in (
            (state.recording_changed, self._show_recording),
            (state.runs_changed, self._show_runs),
            (state.shown_changed, self._show_shown),
            (state.live_changed, self._show_live),
            (self.jobs.changed, self._show_computation),
            (self.jobs.said, self.notice.say),
            (self.curations.changed, self._show_decisions),
        ):
            follow(self, signal, method)
        end_with_dock(self)
        self.presence = Presence(self)
        self.presence.changed.connect(self._show_decisions)

    # ------------------------------------------------------------ what the user does

    def _change(self, **what: Any) -> None:
        self.state.shown = replace(self.state.shown, **what)

    def _choose_run(self, name: str) -> None:
        run = next((run for run in self.state.runs if run.name == name), None)
        live, factor = self.state.live, self.state.shown.factor
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
        opened, run = self.state.current, self.state.shown_run
        if opened is not None and run is not None:
            self.notice.clear()
            if not self.jobs.busy:
                self.services.run_jobs.score(opened, run, self.state.shown.method)

    def compare_run(self, name: str) -> None:
        """Show another run beside this one, by the same factor if it has it."""
        run = next((run for run in self.state.runs if run.name == name), None)
        factor = self.state.shown.factor
        if run is not None:
            self.compare((name, factor if factor in run.fit.factors else best_factor(run)))

    def compare(self, beside: tuple[str, str] | None) -> None:
        """Show the map of another run or factor next to this one."""
        self.painter.beside = beside
        self.scores.show_comparison()
        if beside is not None:
            self.scores.reveal_comparison()

    def _reveal_computation(self) -> None:
        self._area.ensureWidgetVisible(self.compute)

    # ------------------------------------------------------------ what is shown

    def _show_recording(self) -> None:
        """The cells may have been accepted or rejected."""
        self.scores.forget()
        self._show_shown()

    def _show_decisions(self, *_: Any) -> None:
        if self.presence.now:
            self.scores.show_decisions()

    def _show_runs(self) -> None:
        runs, shown = self.state.runs, self.state.shown
        # nothing may be painted yet, or what was painted may be gone
        run = next((run for run in runs if run.name == shown.run), runs[-1] if runs else None)
        if self.state.painted_live is not None:
            run = None
        if run is not None and (run.name != shown.run or shown.factor not in run.fit.factors):
            method = best_method(run, shown.method)
            self._change(run=run.name, factor=best_factor(run), latent=None, method=method)
        self._show_shown()

    def _show_shown(self) -> None:
        state, shown = self.state, self.state.shown
        runs, painted = state.runs, painted_map(state)
        self.empty.say(*self._first_step())
        self.choice.setVisible((bool(runs) or state.live is not None) and not shown.blind)
        self.choice.show_choice(runs, shown, state.live)
        self._show_verdict()
        self._show_computation()
        self.scores.setVisible(painted is not None)
        self._more.setVisible(painted is not None)
        if painted is None:
            self.scores.forget_recording()
            return
        self.scores.show_map(painted)
        for button in (self.statistics_button, self.methods_button, self.export):
            button.setEnabled(not painted.provisional)  # which need a trained run
        self.statistics_button.show_shown()

    def _show_live(self) -> None:
        """Show the newest map of the run in training, if that is painted."""
        live, painted = self.state.live, painted_map(self.state)
        if live is None or (painted is not None and painted.provisional):
            self._show_shown()
        else:
            self.choice.show_choice(self.state.runs, self.state.shown, live)

    def _first_step(self) -> tuple[str, str]:
        """The step before there is anything to show, and the dock for it."""
        if self.state.current is None:
            return "No recording yet: open one in the Recording dock.", "Recording"
        if self.state.shown.blind:
            return BLIND, "Curate"
        there = self.state.runs or self.state.live
        return "" if there else "No run yet: train one in the Train dock.", "Train"

    def _show_verdict(self) -> None:
        run, shown, live = self.state.shown_run, self.state.shown, self.state.painted_live
        goodness = run.fit.goodness.get(shown.factor) if run else None
        provisional = live is not None and not shown.blind
        self.provisional.say(live.sentence if live and provisional else "", "warning")
        known = goodness is not None and not provisional
        self.verdict.show_verdicts([goodness] if goodness and known else [])

    def _show_computation(self) -> None:
        run, shown = self.state.shown_run, self.state.shown
        live = self.state.painted_live
        missing = run is not None and live is None and chosen_map(self.state) is None
        # a test, or another seed, is shown where it was asked for
        elsewhere = self.jobs.runs("test") or self.jobs.runs("repeat")
        begins = self.jobs.busy and not elsewhere and self.compute.isHidden()
        self.compute.setVisible(missing or (self.jobs.busy and not elsewhere))
        if begins:
            # asked for at the foot of the dock; once it has its place
            QTimer.singleShot(0, self._reveal_computation)
        self.scores.show_questions()
        if run is not None:
            sentence = no_scores_by(shown.method, run.name)
            self.compute.show_state(sentence, self.jobs)
