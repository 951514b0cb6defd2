"""Many runs of the open recording at once: what to vary, where, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtWidgets import QDialog, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout

from napari_xcebra.errors import InputError
from napari_xcebra.exports import default_path
from napari_xcebra.learn.parts import Factor
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.runs import Run
from napari_xcebra.sweeps import Sweep, SweepFolder
from napari_xcebra.sweeps.estimate import in_words
from napari_xcebra.sweeps.task import SweepReportTask
from napari_xcebra.widgets.background import in_background
from napari_xcebra.widgets.kept_runs import mark_as_kept
from napari_xcebra.widgets.latest_job import LatestJob, Request
from napari_xcebra.widgets.lifetime import follow
from napari_xcebra.widgets.notice import Notice, Tone
from napari_xcebra.widgets.reporting import show_page
from napari_xcebra.widgets.run_list import best_factor
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.sweep_form import SweepForm
from napari_xcebra.widgets.sweep_place import SweepPlace
from napari_xcebra.widgets.sweep_table import SweepTable
from napari_xcebra.widgets.sweeper import sweeper_of

if TYPE_CHECKING:
    import pandas as pd

Common = Callable[[], tuple[Mapping[str, Factor], FitSettings]]
"""Factors and settings that all runs share; InputError says why there are none."""


class SweepButton(QPushButton):
    """Opens the window.

    Parameters
    ----------
    session : Session
    common : callable
        What the dock has chosen.
    """

    def __init__(self, session: Session, common: Common) -> None:
        super().__init__("Sweep…")
        self.setToolTip("Many runs: seeds, latents, λ or label shifts, here or on a cluster.")
        self._session, self._common = session, common
        self.opened: SweepWindow | None = None
        self.clicked.connect(lambda _=False: self.open())

    def open(self) -> SweepWindow:
        """Open the window, or bring it to the front."""
        if self.opened is None:
            self.opened = SweepWindow(self._session, self._common, self)
        self.opened.show()
        self.opened.raise_()
        return self.opened


class SweepWindow(QDialog):
    """What to vary and where, the progress, and a table of what came of it.

    Parameters
    ----------
    session : Session
    common : callable
    parent : QWidget
        It closes together with.
    """

    def __init__(self, session: Session, common: Common, parent: QPushButton) -> None:
        super().__init__(parent)
        self.session, self._common = session, common
        self.sweeper = sweeper_of(session)
        self._done = ""
        self.setWindowTitle("Sweep: many runs")
        self.resize(940, 640)
        self.heading = QLabel()
        self.heading.setWordWrap(True)
        self.form = SweepForm()
        self.place = SweepPlace(session)
        self.start_button = QPushButton("Start")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop; what is finished is kept, and Start goes on.")
        self.progress = QProgressBar()
        self.progress.setToolTip("Runs that are finished, and the time left.")
        # the buttons stay where they are when it comes and goes
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.notice = Notice()
        self.table = SweepTable()
        self.open_button = QPushButton("Open run")
        self.open_button.setToolTip("Add the selected run to those of the recording, and show it.")
        self.report_button = QPushButton("Report")
        self.report_button.setToolTip("One page about the sweep, opened in the browser.")
        self._jobs = jobs = LatestJob(lambda task: session.worker.submit(task), lambda: None)
        self.destroyed.connect(lambda *_: jobs.close())
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        above = QHBoxLayout()
        above.addWidget(self.form, 2)
        above.addWidget(self.place, 3)
        row = QHBoxLayout()
        row.addWidget(self.start_button)
        row.addWidget(self.cancel_button)
        row.addWidget(self.progress, 1)
        row.addWidget(self.report_button)
        row.addWidget(self.open_button)
        layout = QVBoxLayout(self)
        layout.addWidget(self.heading)
        layout.addLayout(above)
        layout.addLayout(row)
        layout.addWidget(self.notice)
        layout.addWidget(self.table, 1)

    def _connect(self) -> None:
        self.start_button.clicked.connect(lambda _=False: self.start())
        self.cancel_button.clicked.connect(lambda _=False: self.sweeper.cancel())
        self.open_button.clicked.connect(lambda _=False: self.open_run(self.table.selected))
        self.report_button.clicked.connect(lambda _=False: self.report())
        self.table.opened.connect(self.open_run)
        self.table.itemSelectionChanged.connect(self._mark_ready)
        self.form.changed.connect(self._mark_ready)
        self.place.changed.connect(self._mark_ready)
        self.place.folder.changed.connect(self._show_folder)
        for signal, method in (
            (self.session.recording_changed, self._show_recording),
            (self.sweeper.changed, self._show_progress),
            (self.sweeper.said, self._say),
        ):
            follow(self, signal, method)

    def showEvent(self, event: Any) -> None:
        """Take up what was chosen in the dock meanwhile."""
        super().showEvent(event)
        self._show_recording()
        self._show_progress()

    # ------------------------------------------------------------ running

    def start(self) -> None:
        """Run what is asked for."""
        try:
            sweep = self._sweep()
        except InputError as error:
            self._say(str(error), "problem", "")
            return
        folder = self.place.folder.path
        if folder is not None and not self.place.why_not():
            self.notice.clear()
            self._done = ""
            self.sweeper.start(sweep, folder, self.place.place)

    def open_run(self, member: str) -> None:
        """Add a run of the sweep to those of the recording, and show it."""
        opened, folder = self.session.current, self.place.folder.path
        if not member or opened is None or folder is None:
            return

        def loaded() -> Run:
            run = SweepFolder(folder).run(member, opened.recording)
            run.fit.inputs.columns(opened.recording)  # says so if it is of another recording
            return run

        def show(run: Run) -> None:
            mark_as_kept([run])
            added = self.session.add_run(run, opened)
            method = next(iter(added.attributions), self.session.shown.method)
            if self.session.current is opened:
                self.session.shown = replace(
                    self.session.shown,
                    run=added.name,
                    factor=best_factor(added),
                    latent=None,
                    method=method,
                )
            self._say(f"{added.name} is now among the runs of {opened.name}.", "good", "")

        in_background(loaded, show, self._say_problem, self)

    def report(self) -> None:
        """Write a page about the sweep into its folder, and open it in the browser."""
        folder = self.place.folder.path
        if folder is None:
            return

        def written(page: Path) -> None:
            self._say(f"Wrote {page}.", "good", "")
            show_page(page)

        self._say("Writing the report …", "plain", "")
        self._jobs.ask(Request(SweepReportTask(folder), written, self._say_problem))

    def _sweep(self) -> Sweep:
        opened = self.session.current
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
        opened = self.session.current
        if opened is not None:
            try:
                factors, settings = self._common()
                self.form.show_common(factors, settings)
                names = ", ".join(factors) or "time alone"
                self.heading.setText(
                    f"<b>{opened.name}</b>, asked about {names}; everything that is not varied is "
                    "as chosen in the Train dock."
                )
            except InputError as error:
                self.heading.setText(str(error))
            if self.place.folder.path is None:
                self.place.folder.path = default_path(opened.recording, "sweep", suffix="")
        else:
            self.heading.setText("No recording yet: open one in the Recording dock.")
        self._mark_ready()

    def _show_progress(self) -> None:
        busy, at = self.sweeper.busy, self.sweeper.progress
        self.progress.setVisible(busy)
        self.progress.setRange(0, at.total if at else 1)  # without an end it would have no words
        self.progress.setValue(at.done if at else 0)
        words = "starting the processes" if at is None else at.phase
        if at is not None and not math.isnan(at.seconds_left):
            words += f" · {in_words(at.seconds_left)} left"
        self.progress.setFormat("stopping" if self.sweeper.stopping else words)
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
        counted = summary["status"].value_counts()
        failed = int(counted.get("failed", 0))
        if failed and not self.sweeper.busy:
            why = summary.loc[summary["status"] == "failed", "failure"].iloc[0]
            self._say(f"{failed} of {len(summary)} runs failed: {why} Start tries them again.",
                      "warning", "")  # fmt: skip

    def _mark_ready(self) -> None:
        reason = self._why_not()
        self.start_button.setEnabled(not reason)
        self.start_button.setToolTip(reason or "Run what is not finished in the folder yet.")
        self.start_button.setText("Start" if reason else self._offer())
        self.cancel_button.setEnabled(self.sweeper.busy and not self.sweeper.stopping)
        self.open_button.setEnabled(bool(self.table.selected))
        self.report_button.setEnabled(self.table.rowCount() > 0)

    def _why_not(self) -> str:
        if self.sweeper.busy:
            return "A sweep is under way."
        try:
            self._count()
        except InputError as error:
            return str(error)
        return self.place.why_not()

    def _offer(self) -> str:
        count = self._count()
        return f"Start {count} runs" if count > 1 else "Start 1 run"

    def _count(self) -> int:
        """Runs that are asked for; quick enough for every key that is typed."""
        if self.session.current is None:
            raise InputError("Open a recording first.")
        factors, settings = self._common()
        if not factors and settings.mode != "time":
            raise InputError("Tick at least one factor in the Train dock.")
        lists = [*self.form.grid.values(), *self.form.latents.values(), self.form.seconds]
        return math.prod(len(set(each)) for each in lists)

    def _say_problem(self, sentence: str, details: str) -> None:
        self._say(sentence, "problem", details)

    def _say(self, sentence: str, tone: Tone, details: str) -> None:
        self.notice.say(sentence, tone, details)
