"""Trains many runs on the open recording, and lists the results."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDialog, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.runs import Run
from napari_xcebra.sweeps import Sweep, SweepFolder
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.layouts import in_row
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import Notice, WorkBar, time_left
from napari_xcebra.widgets.docks.train.cohort_window import CohortWindow
from napari_xcebra.widgets.docks.train.factor_table import AskedFor
from napari_xcebra.widgets.docks.train.sweep_form import SweepForm, SweepPlace
from napari_xcebra.widgets.docks.train.sweep_table import SweepTable
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.shown import best_factor
from napari_xcebra.widgets.window import Services

if TYPE_CHECKING:
    import pandas as pd


class SweepWindow(QDialog):
    """What to vary and where, the progress, and a table of results."""

    def __init__(self, services: Services, common: AskedFor, parent: QWidget) -> None:
        super().__init__(parent)
        self.state, self._common = services.state, common
        self.sweeper = services.sweeper
        self._done = ""
        self.setWindowTitle("Sweep: many runs")
        self.resize(940, 640)
        self.heading = QLabel()
        self.heading.setWordWrap(True)
        self.form = SweepForm()
        self.place = SweepPlace(services.processes)
        self.start_button = QPushButton("Start")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop. Finished runs are kept; press Start to continue.")
        self.progress = WorkBar("Finished runs, and the time left.")
        # the buttons stay where they are when it comes and goes
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.notice = Notice()
        self.table = SweepTable()
        self.open_button = QPushButton("Open run")
        self.open_button.setToolTip("Add the selected run to the recording, and show it.")
        self.report_button = QPushButton("Report")
        self.report_button.setToolTip("Write a page about the sweep, and open it in the browser.")
        self.cohort_button = QPushButton("Cohort…")
        self.cohort_button.setToolTip("Compare conditions over the animals of the sweep.")
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        start = (self.start_button, self.cancel_button, (self.progress, 1))
        results = (self.cohort_button, self.report_button, self.open_button)
        layout = QVBoxLayout(self)
        layout.addWidget(self.heading)
        layout.addLayout(in_row((self.form, 2), (self.place, 3)))
        layout.addLayout(in_row(*start, *results))
        layout.addWidget(self.notice)
        layout.addWidget(self.table, 1)

    def _connect(self) -> None:
        self.start_button.clicked.connect(lambda _=False: self.start())
        self.cancel_button.clicked.connect(lambda _=False: self.sweeper.cancel())
        self.open_button.clicked.connect(lambda _=False: self.open_run(self.table.selected))
        self.report_button.clicked.connect(lambda _=False: self.report())
        self.cohort_button.clicked.connect(lambda _=False: self.open_cohort())
        self.table.opened.connect(self.open_run)
        self.table.itemSelectionChanged.connect(self._mark_ready)
        self.form.changed.connect(self._mark_ready)
        self.place.changed.connect(self._mark_ready)
        self.place.folder.changed.connect(self._show_folder)
        for signal, method in (
            (self.state.recording_changed, self._show_recording),
            (self.sweeper.changed, self._show_progress),
            (self.sweeper.said, self.notice.say),
        ):
            follow(self, signal, method)

    def showEvent(self, event: Any) -> None:
        """Show the current choices of the dock."""
        super().showEvent(event)
        self._show_recording()
        self._show_progress()

    # ------------------------------------------------------------ running

    def start(self) -> None:
        """Run what is asked for."""
        try:
            sweep = self._sweep()
        except InputError as error:
            self.notice.say(str(error), "problem")
            return
        folder = self.place.folder.path
        if folder is not None and not self.place.why_not():
            self.notice.clear()
            self._done = ""
            self.sweeper.start(sweep, folder, self.place.place)

    def open_run(self, member: str) -> None:
        """Add a run of the sweep to those of the recording, and show it."""
        opened, folder = self.state.current, self.place.folder.path
        if not member or opened is None or folder is None:
            return

        def loaded() -> Run:
            run = SweepFolder(folder).run(member, opened.recording)
            run.fit.inputs.columns(opened.recording)  # says so if it is of another recording
            return run

        def show(run: Run) -> None:
            self.state.saved_runs.mark([run])
            added = self.state.add_run(run, opened)
            method = next(iter(added.attributions), self.state.shown.method)
            if self.state.current is opened:
                self.state.shown = replace(
                    self.state.shown,
                    run=added.name,
                    factor=best_factor(added),
                    latent=None,
                    method=method,
                )
            self.notice.say(f"Added {added.name} to the runs of {opened.name}.", "good")

        in_background(loaded, show, self._say_problem, self)

    def report(self) -> None:
        """Write a page about the sweep into its folder, and open it in the browser."""
        folder = self.place.folder.path
        if folder is not None:
            self.sweeper.report(folder)

    def open_cohort(self) -> CohortWindow | None:
        """Ask for animals and conditions of the finished runs; None without a sweep."""
        folder = self.place.folder.path
        if folder is None:
            return None
        window = CohortWindow(self.sweeper, folder, self)
        window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        window.show()
        return window

    def _sweep(self) -> Sweep:
        opened = self.state.current
        if opened is None:
            raise InputError("Open a recording first.")
        factors, settings = self._common()
        return Sweep(
            {opened.name: opened.recording},
            factors,
            settings,
            grid=self.form.grid,
            latents=self.form.latents,
            shifts=self.form.seconds,
        )

    # ------------------------------------------------------------ showing

    def _show_recording(self) -> None:
        opened = self.state.current
        if opened is not None:
            try:
                factors, settings = self._common()
                self.form.show_common(factors, settings)
                names = ", ".join(factors) or "time alone"
                self.heading.setText(
                    f"<b>{escape(opened.name)}</b>: {escape(names)}. Everything not varied here is "
                    "as chosen in the Train dock."
                )
            except InputError as error:
                self.heading.setText(escape(str(error)))
            self.place.suggest(opened.recording)
        else:
            self.heading.setText("No recording yet: open one in the Recording dock.")
        self._mark_ready()

    def _show_progress(self) -> None:
        busy, at = self.sweeper.busy, self.sweeper.progress
        self.progress.setVisible(busy)
        words = (at.phase, time_left(at)) if at else ("starting processes",)
        self.progress.show_words(at, *(("stopping",) if self.sweeper.stopping else words))
        state = f"{busy} {at.phase if at else ''}"
        if state != self._done:  # one more has ended
            self._done = state
            self._show_folder()
        self._mark_ready()

    def _show_folder(self) -> None:
        """The table of the folder that is named, if a sweep is there."""
        folder = self.place.folder.path
        if folder is None or not (folder / "sweep.json").exists():
            self.table.setRowCount(0)
            return
        in_background(SweepFolder(folder).summary, self._show_summary, lambda *_: None, self)

    def _show_summary(self, summary: pd.DataFrame) -> None:
        self.table.show_summary(summary)
        self._mark_ready()
        failed = int((summary["status"] == "failed").sum())
        if failed and not self.sweeper.busy:
            why = summary.loc[summary["status"] == "failed", "failure"].iloc[0]
            self.notice.say(
                f"{failed} of {len(summary)} runs failed: {why} Press Start to try them again.",
                      "warning")  # fmt: skip

    def _mark_ready(self) -> None:
        reason = self._why_not()
        self.start_button.setEnabled(not reason)
        self.start_button.setToolTip(
            reason or "Start the runs that are not yet finished in this folder."
        )
        self.start_button.setText("Start" if reason else f"Start {counted(self._count(), 'run')}")
        self.cancel_button.setEnabled(self.sweeper.busy and not self.sweeper.stopping)
        self.open_button.setEnabled(bool(self.table.selected))
        self.report_button.setEnabled(self.table.rowCount() > 0)
        self.cohort_button.setEnabled(self.table.any_finished)

    def _why_not(self) -> str:
        if self.sweeper.busy:
            return "A sweep is running."
        try:
            self._count()
        except InputError as error:
            return str(error)
        return self.place.why_not()

    def _count(self) -> int:
        """Number of runs; quick enough for every key press."""
        if self.state.current is None:
            raise InputError("Open a recording first.")
        factors, settings = self._common()
        if not factors and settings.mode != "time":
            raise InputError("Tick at least one factor in the Train dock.")
        lists = [*self.form.grid.values(), *self.form.latents.values(), self.form.seconds]
        return math.prod(len(set(each)) for each in lists)

    def _say_problem(self, sentence: str, details: str) -> None:
        self.notice.say(sentence, "problem", details)
