"""Shows which cells carry a factor: painted, ranked, thresholded, exported; and statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import QTimer, Signal
from qtpy.QtGui import QAction
from qtpy.QtWidgets import QMenu, QPushButton, QWidget

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.attribution.ranking import help_on
from napari_xcebra.attribution.score_map import ScoreMap, attribution_of
from napari_xcebra.attribution.single_cell import STATISTICS, applicable
from napari_xcebra.curation.order import properties_of
from napari_xcebra.report import exports
from napari_xcebra.report.figures.paper import FORMATS, Colors
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.controls.boxes import WindowButton, menu_of
from napari_xcebra.widgets.controls.layouts import (
    VerticalScroll,
    give_room,
    in_column,
    in_row,
    spare_from_wheel,
)
from napari_xcebra.widgets.controls.napari_window import Presence, end_with_dock, follow
from napari_xcebra.widgets.controls.notice import NextStep, Notice, VerdictRows
from napari_xcebra.widgets.docks.attribution.panels import FactorChoice, ScorePanel, ShownChoice
from napari_xcebra.widgets.docks.attribution.windows import BLIND, MethodsWindow
from napari_xcebra.widgets.docks.attribution.work_rows import ComputeRow, no_scores_by
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.run_jobs import HELP as REPORT
from napari_xcebra.widgets.services.run_jobs import NWB_HELP, RunWriter, chosen_target
from napari_xcebra.widgets.state.shown import (
    best_factor,
    best_method,
    chosen_map,
    painted_map,
    shown_map,
)
from napari_xcebra.widgets.window import Services, services_of

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
        self.statistics_button = _StatisticsButton(self.services)
        self.methods_button = WindowButton(
            "Methods",
            "Compare all methods and statistics: how well they agree, and on which cells.",
            lambda parent: MethodsWindow(self.services, parent),
        )
        self.export = _ExportButton(self.services)
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


KINDS = tuple(f".{each}" for each in FORMATS)
"""Endings of figures."""
Write = Callable[[Path], Path]


class _ExportButton(QPushButton):
    """A button with a menu; every entry asks for a path, and writes in the background."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, services: Services) -> None:
        super().__init__("Export")
        self._services, self._state = services, services.state
        self._writer = RunWriter(services, self.said.emit, self)
        self.setToolTip("Write the scores, or a picture of them, to a file.")
        entries = (
            ("Report (HTML) …", REPORT, self.export_report),
            ("Recording and results (NWB) …", NWB_HELP, self.export_nwb),
            ("Table of all factors (CSV) …",
             "Score, z and whether it is above the current threshold, for every cell and factor.",
             self.export_table),
            ("Scores of every latent (npz) …",
             "For Python: Attribution.load reads it.", self.export_scores),
            ("Painted field, this map (PDF, SVG, PNG) …",
             "For a paper: with colour bar, scale bar (if the size of a pixel is known), and text "
             "as text. Cells above the threshold are outlined.", self.export_factor),
            ("Painted field, all factors (PDF, SVG, PNG) …",
             "The same with one panel per factor.", self.export_picture),
            ("Colours for suite2p (npy) …",
             "To open in suite2p: Visualizations, Load custom hue for ROIs.", self.export_hue),
            ("Methods side by side (CSV) …",
             "Score and rank by every computed method and statistic.",
             self.export_comparison),
            ("Methods side by side (PDF, SVG, PNG) …",
             "How well the rankings agree, and where they differ.", self.export_agreement),
            ("Screenshot of the canvas (PNG) …",
             "The image as shown on screen.", self.export_screenshot),
        )  # fmt: skip
        self.setMenu(menu_of(self, entries))

    def export_report(self, path: str | Path | None = None) -> None:
        """Write a page about the painted run, and open it in the browser."""
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            self._writer.report(opened, run, path)

    def export_nwb(self, path: str | Path | None = None) -> None:
        """Write the recording with the painted run as NWB."""
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            self._writer.nwb(opened, run, path)

    def export_table(self, path: str | Path | None = None) -> None:
        """Write a table of all factors."""
        painted, threshold = shown_map(self._state), self._state.shown.threshold
        if painted is not None:
            attribution, run = painted.attribution, self._state.shown_run
            made = (attribution_of(run, method, self._state.recording) for method in FIRST)
            # the other maps made for every run, as on the command line
            beside = [map_ for map_ in made if map_ and map_.method != attribution.method]
            write = partial(exports.write_table, attribution, threshold=threshold, beside=beside)
            self._export(path, write, ".csv", "attribution")

    def export_scores(self, path: str | Path | None = None) -> None:
        """Write the scores of all latents."""
        if (painted := shown_map(self._state)) is not None:
            write = partial(exports.write_scores, painted.attribution)
            self._export(path, write, ".npz", "attribution", painted.attribution.method)

    def export_factor(self, path: str | Path | None = None) -> None:
        """Write a figure of the field, painted as on the canvas."""
        if (painted := shown_map(self._state)) is not None:
            table = ensure_colormap(self._state.shown.colormap).map(np.linspace(0, 1, 256))
            colors = Colors(*self._services.painter.limits, table)
            how = {"factors": [painted.factor], "latent": painted.latent, "colors": colors}
            self._export_field(path, _title(painted), **how)

    def export_picture(self, path: str | Path | None = None) -> None:
        """Write a figure of the field with a panel for each factor."""
        self._export_field(path)

    def _export_field(self, path: str | Path | None, *words: str, **how: Any) -> None:
        painted, recording = shown_map(self._state), self._state.recording
        if painted is not None and recording is not None:
            write = partial(
                exports.write_picture,
                recording,
                painted.attribution,
                threshold=self._state.shown.threshold,
                **how,
            )
            self._export(path, write, KINDS, *words, "painted")

    def export_hue(self, path: str | Path | None = None) -> None:
        """Write colours for suite2p."""
        painted, recording = shown_map(self._state), self._state.recording
        if painted is not None and recording is not None:
            write = partial(exports.write_hue, recording, painted.scores)
            self._export(path, write, ".npy", _title(painted), "hue")

    def export_comparison(self, path: str | Path | None = None) -> None:
        """Write scores and ranks by all methods and statistics as a table."""
        if (comparison := self._services.statistics.comparison()) is not None:
            self._export(path, partial(exports.write_comparison, comparison), ".csv", "methods")

    def export_agreement(self, path: str | Path | None = None) -> None:
        """Draw how well all methods and statistics agree."""
        if (comparison := self._services.statistics.comparison()) is not None:
            write = partial(exports.write_comparison_picture, comparison)
            self._export(path, write, KINDS, "methods")

    def export_screenshot(self, path: str | Path | None = None) -> None:
        """Write the canvas as shown on screen."""
        pixels = self._state.viewer.screenshot(canvas_only=True, flash=False)
        if (painted := shown_map(self._state)) is not None:
            write = partial(exports.write_pixels, pixels)
            self._export(path, write, ".png", _title(painted), "canvas")

    def _export(
        self, path: str | Path | None, write: Write, suffix: str | tuple[str, ...], *words: str
    ) -> None:
        suffixes = (suffix,) if isinstance(suffix, str) else suffix
        recording, run = self._state.recording, self._state.shown.run
        if recording is None:
            return
        start = exports.default_path(recording, run, *words, suffix=suffixes[0])
        target = chosen_target(self, "Export", start, suffixes, path)
        if target is None:
            return
        in_background(
            lambda: write(target),
            lambda written: self.said.emit(f"Wrote {written}.", "good", ""),
            lambda sentence, details: self.said.emit(sentence, "problem", details),
            self,
        )


def _title(painted: ScoreMap) -> str:
    if painted.latent is None:
        return painted.factor
    part = painted.latent if isinstance(painted.latent, str) else painted.latent + 1
    return f"{painted.factor}-{part}"


STATISTICS_HELP = (
    "Add table columns: common single-cell statistics for the same variables, and properties of "
    "the cells."
)


class _StatisticsButton(QPushButton):
    """Button with a menu of statistics; the ticked ones are computed."""

    def __init__(self, services: Services) -> None:
        super().__init__("Statistics")
        self._state, self._statistics = services.state, services.statistics
        self.setToolTip(STATISTICS_HELP)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.entries = {}
        for name, statistic in STATISTICS.items():
            unit = f", {statistic.unit}" if statistic.unit else ""
            title = f"{name.replace('_', ' ').capitalize()} ({statistic.title}{unit})"
            action = menu.addAction(title)
            action.setCheckable(True)
            action.setToolTip(help_on(name))
            action.triggered.connect(lambda _=False: self._choose())
            self.entries[name] = action
        menu.addSeparator()
        self.properties: dict[str, QAction] = {}
        self._menu = menu
        self.setMenu(menu)

    def show_shown(self) -> None:
        """Show which statistics are ticked and which apply to the painted factor.

        Ticked ones are computed for every run painted.
        """
        opened, run, shown = self._state.current, self._state.shown_run, self._state.shown
        if opened is None or run is None:
            return
        possible = applicable(opened.recording, run.fit.part(shown.factor).variables)
        for name, action in self.entries.items():
            action.setChecked(name in shown.statistics)
            action.setEnabled(name in possible)
        self._show_properties(list(properties_of(opened.recording)), shown.properties)
        self.setEnabled(bool(possible) or bool(self.properties))
        why = "" if possible else " This factor has no variable to compute statistics for."
        self.setToolTip(STATISTICS_HELP + why)
        self._statistics.ask(opened, run, shown.statistics)

    def _show_properties(self, names: list[str], ticked: tuple[str, ...]) -> None:
        """List the properties of the cells below the statistics."""
        if list(self.properties) != names:
            for action in self.properties.values():
                self._menu.removeAction(action)
            self.properties = {name: self._menu.addAction(unmarked(name)) for name in names}
            for action in self.properties.values():
                action.setCheckable(True)
                action.triggered.connect(lambda _=False: self._choose_properties())
        for name, action in self.properties.items():
            action.setChecked(name in ticked)

    def _choose_properties(self) -> None:
        names = tuple(name for name, action in self.properties.items() if action.isChecked())
        self._state.shown = replace(self._state.shown, properties=names)

    def _choose(self) -> None:
        names = tuple(name for name, action in self.entries.items() if action.isChecked())
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            # also what was stopped before
            self._statistics.ask(opened, run, names, again=True)
        self._state.shown = replace(self._state.shown, statistics=names)
