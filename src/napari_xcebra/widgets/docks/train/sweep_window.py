"""Runs a sweep: asks what it varies and where it runs, and shows what is finished."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPixmap
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFormLayout,
    QGroupBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.batch import Sweep, SweepFolder
from napari_xcebra.batch.folder import decoded_in, found_in
from napari_xcebra.batch.plan import knob_name
from napari_xcebra.batch.running import ComputePlace
from napari_xcebra.errors import InputError
from napari_xcebra.jobs import tasks
from napari_xcebra.report.exports import default_path
from napari_xcebra.support.diagnostics import cores
from napari_xcebra.text import counted, parse_number, two
from napari_xcebra.widgets.controls.boxes import WholeBox, plain
from napari_xcebra.widgets.controls.forms import PathField
from napari_xcebra.widgets.controls.layouts import in_row, keep_room, spare_from_wheel
from napari_xcebra.widgets.controls.notice import EDGES, Notice, ResultWindow, WorkBar, time_left
from napari_xcebra.widgets.docks.train.windows import AskedFor, CohortWindow
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work, in_background
from napari_xcebra.widgets.state.preferences import keep, kept_text
from napari_xcebra.widgets.state.shown import best_factor

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.batch.cluster import ClusterFound
    from napari_xcebra.learn.data.factors import Factor
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.window import Services


HERE, CLUSTER = range(2)
ADDRESS = "cluster address"


class _SweepPlace(QGroupBox):
    """A number of processes on this computer, or a Dask cluster by its address; and the folder."""

    changed = Signal()

    def __init__(self, processes: Processes) -> None:
        super().__init__("Where")
        self.where = QComboBox()
        self.where.addItems(["This computer", "Dask cluster"])
        self.where.setToolTip(
            "Where runs are computed; results are saved on this computer either way."
        )
        spare_from_wheel(self.where)
        self.processes = WholeBox()
        self.processes.setRange(1, max(1, cores()))
        self.processes.setValue(max(1, cores()))
        self.processes.setToolTip("Runs at the same time; each uses one core and its own memory.")
        self.address = QLineEdit(kept_text(ADDRESS))
        self.address.setPlaceholderText("tcp://scheduler:8786")
        self.address.setToolTip(
            "Address of the cluster's Dask scheduler, which can read what is sent there and "
            "run it: use only a cluster you trust."
        )
        self.test = QPushButton("Test")
        self.test.setToolTip("Check what the cluster has, and whether it can run this.")
        self.found = Notice(lasting=True)
        self._suggested: Path | None = None
        self.folder = PathField(
            "a folder for the sweep",
            "Results of each run are saved here. An unfinished sweep in this folder continues.",
            "folder to write to",
            folders=True,
        )
        self._lay_out()
        self._jobs = jobs = JobQueue(processes, latest=True)
        jobs.changed.connect(self._show_test)
        self.destroyed.connect(lambda *_: jobs.close())
        self.where.currentIndexChanged.connect(self._show_where)
        self.address.textChanged.connect(lambda _: self._address_changed())
        self.test.clicked.connect(lambda _=False: self.look())
        self.folder.changed.connect(self.changed)
        self._show_where()

    def _lay_out(self) -> None:
        here, there = QWidget(), QWidget()
        in_row(self.processes, (QLabel("processes"), 1), of=here)
        in_row((self.address, 1), self.test, of=there)
        self._stack = QStackedWidget()
        for page in (here, there):
            self._stack.addWidget(page)
        layout = QVBoxLayout(self)
        layout.addLayout(in_row(QLabel("Run on"), self.where, (self._stack, 1)))
        layout.addWidget(self.found)
        layout.addLayout(in_row(QLabel("Folder"), (self.folder, 1)))
        layout.addStretch(1)

    @property
    def place(self) -> ComputePlace:
        """What is chosen."""
        if self.where.currentIndex() == CLUSTER:
            return ComputePlace(address=self.address.text().strip())
        return ComputePlace(self.processes.value())

    def suggest(self, recording: Recording) -> None:
        """Name a folder beside the recording, unless the user named one."""
        if self.folder.path in (None, self._suggested):
            self._suggested = default_path(recording, "sweep", suffix="")
            self.folder.path = self._suggested

    def why_not(self) -> str:
        """Why nothing can be run there; empty if it can."""
        if self.where.currentIndex() == CLUSTER and not self.address.text().strip():
            return "Enter the address of the cluster's scheduler."
        return "" if self.folder.path else "Choose a folder to write to."

    def look(self) -> None:
        """Ask the cluster what it has."""
        address = self.address.text().strip()
        if not address:
            self.found.say("Enter the address of the cluster's scheduler.", "problem")
            return
        keep(ADDRESS, address)
        self.found.say(f"Asking {address} …")
        self._jobs.ask(Work("the cluster", tasks.CLUSTER(address), self._looked, say=self._failed))
        self._show_test()

    def _looked(self, found: ClusterFound) -> None:
        if not found.usable:
            tone = "problem"
        else:
            tone = "warning" if found.differing or found.without else "good"
        self.found.say(found.sentence, tone)  # type: ignore[arg-type]

    def _failed(self, sentence: str, _tone: str, details: str) -> None:
        self.found.say(sentence, "problem", details)

    def _address_changed(self) -> None:
        self.found.clear()
        self.changed.emit()

    def _show_where(self) -> None:
        self._stack.setCurrentIndex(self.where.currentIndex())
        if self.where.currentIndex() == HERE:
            self.found.clear()
        self.changed.emit()

    def _show_test(self) -> None:
        self.test.setEnabled(not self._jobs.busy)


SEEDS = "0-4"


class _SweepForm(QGroupBox):
    """Seeds, latents, λ and shifts of the labels; an empty line is as in the Train dock."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__("What to vary")
        self.seed = _line("Other seeds show which scores vary by chance: 0-4, or 0, 1, 7.")
        self.seed.setText(SEEDS)
        self.time_latents = _line("Numbers of time latents: 1-4, or 1, 2, 4.")
        self.lambda_ = _line("Weights of the Jacobian penalty: auto, 0.1, 1.")
        self.shifts = _line(
            "Seconds by which the labels are shifted against the traces, wrapping around: 0 is "
            "as recorded; the others show the chance level."
        )
        self.shifts.setPlaceholderText("0")
        self._latents: dict[str, QLineEdit] = {}
        self._form = QFormLayout(self)
        for title, line in (
            ("Seeds", self.seed),
            ("λ", self.lambda_),
            ("Time latents", self.time_latents),
            ("Label shifts (s)", self.shifts),
        ):
            self._form.addRow(title, line)
            line.textChanged.connect(lambda _: self.changed.emit())

    def show_common(self, factors: Mapping[str, Factor], settings: FitSettings) -> None:
        """Show the values used where a line is empty."""
        self.seed.setPlaceholderText(str(settings.seed))
        self.lambda_.setPlaceholderText(str(settings.lambda_))
        self.time_latents.setPlaceholderText(str(settings.time_latents))
        if list(self._latents) != list(factors):
            for line in self._latents.values():
                self._form.removeRow(line)
            self._latents = {}
            for name in factors:
                line = _line(f"Numbers of latents of {name}: 1-3, or 1, 2, 4.")
                line.textChanged.connect(lambda _: self.changed.emit())
                self._form.addRow(f"Latents of {name}", line)
                self._latents[name] = line
        for name, factor in factors.items():
            own = "as many as its variables" if factor.latents is None else str(factor.latents)
            self._latents[name].setPlaceholderText(own)

    @property
    def grid(self) -> dict[str, list[Any]]:
        """Knobs and their values; InputError says which line cannot be read."""
        lines = {"seed": self.seed, "lambda_": self.lambda_, "time_latents": self.time_latents}
        titles = {"seed": "Seeds", "lambda_": "λ", "time_latents": "Time latents"}
        return {
            name: _values_of(line.text(), titles[name])
            for name, line in lines.items()
            if line.text().strip()
        }

    @property
    def latents(self) -> dict[str, list[Any]]:
        """Numbers of latents of each factor whose line has some."""
        return {
            name: _values_of(line.text(), f"Latents of {name}")
            for name, line in self._latents.items()
            if line.text().strip()
        }

    @property
    def seconds(self) -> list[Any]:
        """Shifts of the labels."""
        return _values_of(self.shifts.text() or "0", "Label shifts")


def _values_of(text: str, title: str) -> list[Any]:
    """Values as typed: numbers and words after commas, whole numbers also as a range.

    After semicolons, numbers may have a decimal comma.

    >>> typed = (("0-2, 7", "Seeds"), ("auto, 0.1", "λ"), ("-60; 0,5", "Shifts"))
    >>> [_values_of(text, title) for text, title in typed]
    [[0, 1, 2, 7], ['auto', 0.1], [-60, 0.5]]
    """
    values: list[Any] = []
    for part in filter(None, (each.strip() for each in text.split(";" if ";" in text else ","))):
        first, dash, last = part.rpartition("-")
        if dash and first.strip().isdecimal() and last.strip().isdecimal():
            values += range(int(first), int(last) + 1)
        elif part == "auto":
            values.append(part)
        else:
            try:
                number = parse_number(part)
            except InputError:
                raise InputError(
                    f"{title}: {part!r} is not a number; type values as 1, 2, 4 or 1-4."
                ) from None
            values.append(int(number) if number.is_integer() else number)
    if not values:
        raise InputError(f"{title}: no values in {text!r}.")
    return values


def _line(help: str) -> QLineEdit:
    line = QLineEdit()
    line.setToolTip(help)
    return line


class SweepWindow(ResultWindow):
    """What to vary and where, the progress, and a table of results."""

    def __init__(self, services: Services, common: AskedFor, parent: QWidget) -> None:
        super().__init__("Sweep: many runs", (940, 640), parent)
        self.state, self._common = services.state, common
        self.sweeper = services.sweeper
        self._done = ""
        self.heading = QLabel()
        self.heading.setWordWrap(True)
        self.form = _SweepForm()
        self.place = _SweepPlace(services.processes)
        self.start_button = QPushButton("Start")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop. Finished runs are kept; press Start to continue.")
        self.progress = WorkBar("Finished runs, and the time left.")
        # the buttons stay where they are when it comes and goes
        keep_room(self.progress)
        self.table = _SweepTable()
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
        self.lay_out(
            self.heading,
            in_row((self.form, 2), (self.place, 3)),
            in_row(*start, *results),
            self.notice,
            (self.table, 1),
        )

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
        self.follow(
            (self.state.recording_changed, self._show_recording),
            (self.sweeper.changed, self._show_progress),
            (self.sweeper.said, self.notice.say),
        )

    def refresh(self) -> None:
        """Show the current choices of the dock."""
        self._show_recording()
        self._show_progress()

    # ------------------------------------------------------------ running

    def start(self) -> None:
        """Run what is asked for."""
        try:
            sweep = self._sweep()
        except InputError as error:
            self.say_problem(str(error))
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

        in_background(loaded, show, self.say_problem, self)

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


MARK = 10
"""Pixels across a mark."""
_KNOBS = {"lambda": "lambda_", "shift_s": "shift"}
_LAST = {
    "lambda found": (
        "λ found",
        "Final λ of the run, given or found; the largest over its factors.",
    ),
    "seconds": ("seconds", "Duration of the run."),
    "failure": ("failure", "Why the run failed."),
}
COLORS = {"clear": EDGES["good"], "weak": EDGES["warning"], "failed": EDGES["problem"]}


@dataclass(frozen=True)
class _SweepColumn:
    """Title, help, and the text and colour of each cell."""

    title: str
    help: str
    cells: list[tuple[str, str]]


class _SweepTable(QTableWidget):
    """What was varied, the status, and goodness and verdict of every factor."""

    opened = Signal(str)
    """Id of the run that was double-clicked."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.setToolTip("Double-click a finished run to open it.")
        self.verticalHeader().hide()
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._ids: list[str] = []
        self._finished: list[bool] = []
        self.itemDoubleClicked.connect(lambda item: self._open(item.row()))

    @property
    def selected(self) -> str:
        """Id of the selected run, if it is finished; else empty."""
        # not the current row: the keyboard's, which Qt sets without selecting it
        rows = {index.row() for index in self.selectedIndexes()}
        found = (self._ids[row] for row in rows if row < len(self._ids) and self._finished[row])
        return next(found, "")

    @property
    def any_finished(self) -> bool:
        """Whether any run shown is finished."""
        return self.rowCount() > 0 and any(self._finished)

    def show_summary(self, summary: pd.DataFrame) -> None:
        """Show the table of `SweepFolder.summary`."""
        selected = self.selected
        self._ids = [str(each) for each in summary["id"]]
        self._finished = [status == "finished" for status in summary["status"]]
        columns = _columns(summary)
        self.setColumnCount(len(columns))
        self.setHorizontalHeaderLabels([column.title for column in columns])
        self.setRowCount(len(summary))
        for place, column in enumerate(columns):
            self.horizontalHeaderItem(place).setToolTip(plain(column.help))
            for row, (text, color) in enumerate(column.cells):
                self.setItem(row, place, _item(text, color))
        if selected in self._ids:
            self.selectRow(self._ids.index(selected))

    def _open(self, row: int) -> None:
        if self._finished[row]:
            self.opened.emit(self._ids[row])


def _columns(summary: pd.DataFrame) -> list[_SweepColumn]:
    names = [str(name) for name in summary]
    before = names[1 : names.index("status")]
    varied = [name for name in before if summary[name].nunique() > 1] or ["recording"]
    columns = [
        _plain(
            summary, name, knob_name(_KNOBS.get(name, name)), "Setting that differs between runs."
        )
        for name in varied
    ]
    status = [(str(value), COLORS.get(str(value), "")) for value in summary["status"]]
    columns.append(_SweepColumn("status", "Failed runs are tried again at the next start.", status))
    for factor in (name.removeprefix("verdict ") for name in names if name.startswith("verdict ")):
        columns.append(_verdicts(summary, factor))
        if f"auroc {factor}" in names:
            help = "How well the scores find the cells known to carry it."
            columns.append(_plain(summary, f"auroc {factor}", f"auROC of {factor}", help))
    for name, (title, help) in _LAST.items():
        if name in names:
            columns.append(_plain(summary, name, title, help))
    return columns


def _plain(summary: pd.DataFrame, name: str, title: str, help: str) -> _SweepColumn:
    return _SweepColumn(title, help, [(_text(value), "") for value in summary[name]])


def _verdicts(summary: pd.DataFrame, factor: str) -> _SweepColumn:
    """Goodness and verdict of a factor; empty where a run has none yet."""
    cells = []
    for _, row in summary.iterrows():
        verdict = row[f"verdict {factor}"]
        known = isinstance(verdict, str)
        nats = f"{two(row[f'goodness {factor}'])} nats"
        words = [nats, decoded_in(row, factor), verdict if known else "", found_in(row, factor)]
        told = ", ".join(filter(None, words)) if known else ""
        cells.append((told, COLORS.get(str(verdict), "")))
    help = (
        f"Goodness of {factor} above chance on held-out blocks, how well it is decoded "
        "(compared with ridge regression on the cells), the verdict, and cells at q ≤ 0.1."
    )
    return _SweepColumn(factor, help, cells)


def _item(text: str, color: str) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    item.setToolTip(plain(text))
    if color:
        # a coloured mark, since the text must be readable on any theme
        item.setData(Qt.ItemDataRole.DecorationRole, _mark(color))
    item.setTextAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
    return item


def _mark(color: str) -> QPixmap:
    """A dot."""
    picture = QPixmap(MARK, MARK)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(QColor(color))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawEllipse(1, 1, MARK - 2, MARK - 2)
    painter.end()
    return picture


def _text(value: Any) -> str:
    import pandas as pd

    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.3g}"
    return "" if value is None else str(value)
