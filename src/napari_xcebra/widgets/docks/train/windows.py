"""Windows of the Train dock: numbers of latents, matched cells over days, conditions of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtGui import QPixmap
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from napari_xcebra.attribution.methods import METHODS, title_of_method
from napari_xcebra.errors import InputError
from napari_xcebra.io.guard import reading
from napari_xcebra.io.sessions import session_names
from napari_xcebra.jobs import tasks
from napari_xcebra.learn.data.factors import Factor, latents_for
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording.matching import MISSING, Matching
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import PlainLabel, WholeBox, plain
from napari_xcebra.widgets.controls.forms import PathField
from napari_xcebra.widgets.controls.layouts import in_form, in_row
from napari_xcebra.widgets.controls.notice import Notice, ResultWindow, WorkBar, takes
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.training_plots import DimensionPlot
from napari_xcebra.widgets.services.jobs import in_background, while_exists
from napari_xcebra.widgets.services.reading import reader_of, result_of
from napari_xcebra.widgets.services.run_jobs import Sweeper, Trial

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.comparison import MatchedScores
    from napari_xcebra.widgets.window import Services
    from napari_xcebra.workspace_file import Opened


AskedFor = Callable[[], tuple[dict[str, Factor], FitSettings]]
"""Chosen factors and settings; raises `InputError` if they are invalid."""
DIMENSION_HELP = (
    "Too few latents miss part of the signal; with too many, some differ from seed to seed. "
    "This trains several numbers of latents with several seeds each, and suggests the largest "
    "number at which the seeds agree best. Factors and settings come from the Train dock."
)
MOST = 16
"""Latents to try at most; more than the activity of most recordings tells."""


class _Range(QWidget):
    """Two boxes: from, and to."""

    changed = Signal()

    def __init__(self, tooltip: str, first: int, last: int) -> None:
        super().__init__()
        self.first, self.last = WholeBox(), WholeBox()
        line = in_row(of=self)
        for box, value, word in ((self.first, first, "from"), (self.last, last, "to")):
            box.setRange(1, MOST)
            box.setValue(value)
            box.setToolTip(f"{tooltip}: {word} this number.")
            line.addWidget(QLabel(word))
            line.addWidget(box)
            box.valueChanged.connect(lambda _: self.changed.emit())
        line.addStretch(1)

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them."""
        low, high = sorted((self.first.value(), self.last.value()))
        return tuple(range(low, high + 1))


class DimensionWindow(ResultWindow):
    """What to try, how long that takes, progress, and then a plot with a suggestion."""

    chosen = Signal(object)
    """`Latents` that the user chose."""

    def __init__(self, services: Services, asked_for: AskedFor, parent: QWidget) -> None:
        super().__init__("How many latents?", (640, 620), parent)
        self.state, self._asked_for = services.state, asked_for
        self.jobs = services.jobs
        self.search = services.dimension_search
        self._factor = ""
        self._make_parts()
        self._lay_out()
        self._connect()
        self._show_theme()

    def _make_parts(self) -> None:
        self.heading = PlainLabel(DIMENSION_HELP, wrap=True)
        self.of_time = _Range("Latents for what was not observed", 1, 4)
        self.of_factor = _Range("Latents of the ticked factor", 1, 1)
        self.seeds = WholeBox()
        self.seeds.setRange(2, 10)
        self.seeds.setValue(3)
        self.seeds.setMaximumWidth(130)
        self.seeds.setToolTip("Training runs at each number of latents, each with its own seed.")
        self.sentence = PlainLabel(wrap=True)
        self.start = QPushButton()
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("Stop; finished numbers of latents are kept.")
        self.progress = WorkBar("Progress of the training runs, and the time left.")
        self.plot = DimensionPlot()
        self.reason = Notice()
        self.use = QPushButton()

    def _lay_out(self) -> None:
        self._form = in_form(
            ("Time latents", self.of_time),
            ("Latents of the factor", self.of_factor),
            ("Seeds", self.seeds),
        )
        start = in_row((self.sentence, 1), (self.progress, 1), self.start, self.stop)
        use = in_row(1, self.use)
        self.lay_out(self.heading, self._form, start, (self.plot, 1), self.reason, self.notice, use)

    def _connect(self) -> None:
        self.start.clicked.connect(lambda _=False: self.begin())
        self.stop.clicked.connect(lambda _=False: self.jobs.cancel())
        self.use.clicked.connect(lambda _=False: self._choose())
        for part in (self.of_time, self.of_factor):
            part.changed.connect(self._show)
        self.seeds.valueChanged.connect(lambda _: self._show())
        self.follow(
            (self.state.recording_changed, self.refresh),
            (self.state.runs_changed, self._show),
            (self.search.changed, self._show_found),
            (self.jobs.changed, self._show),
            (self.jobs.said, self._say),
            (self.state.viewer.events.theme, self._show_theme),
        )

    # ------------------------------------------------------------ what the user does

    def begin(self) -> None:
        """Train with the chosen numbers."""
        try:
            trial = self.trial()
        except InputError as error:
            self.say_problem(str(error))
            return
        self.notice.clear()
        self.search.start(trial)

    def trial(self) -> Trial:
        """What to try; raises `InputError` if that is impossible."""
        if self.state.recording is None:
            raise InputError("Open a recording first.")
        factors, settings = self._asked_for()
        if not factors and settings.mode != "time":
            raise InputError("Tick at least one factor in the Train dock.")
        has_time = settings.mode in ("hybrid", "time")
        return Trial(
            self.state.recording,
            factors if settings.mode != "time" else {},
            settings,
            self.of_time.numbers if has_time else (),
            self.of_factor.numbers if len(factors) == 1 and settings.mode != "time" else (),
            self.seeds.value(),
        )

    def _choose(self) -> None:
        if self.search.found is not None:
            trial, found = self.search.found
            self.chosen.emit(trial.latents(found))

    # ------------------------------------------------------------ what is shown

    def refresh(self) -> None:
        """Show what can be tried, and what was found."""
        self._show()
        self._show_found()

    def _show(self, *_: Any) -> None:
        if not self.isVisible():
            return
        awaited = self.search.awaited
        self.progress.setVisible(awaited)
        self.stop.setVisible(awaited and self.search.running)
        self.start.setVisible(not awaited)
        if awaited:
            at = self.jobs.progress if self.search.running else None
            self.progress.show_progress(at)
            self.sentence.setText("Training" if at else self.jobs.waits_for.capitalize())
            return
        try:
            trial = self.trial()
        except InputError as error:
            self.sentence.setText(str(error))
            self.start.setEnabled(False)
            self.start.setText("Try")
            return
        self._offer(trial)

    def _offer(self, trial: Trial) -> None:
        """Say what would be tried, and for how long."""
        self._suit(trial)
        sizes, steps = len(trial.sizes), trial.settings.steps
        self.sentence.setText(
            f"{counted(sizes, 'number')} of latents × {trial.seeds} seeds: "
            f"{sizes * trial.seeds} training runs of {steps} steps."
        )
        opened = self.state.current
        timed = [run.fit for run in opened.runs if run.fit.seconds > 0] if opened else []
        seconds = trial.seconds(timed[-1] if timed else None)
        self.start.setEnabled(True)
        self.start.setText(f"Try{takes(seconds)}")
        self.start.setToolTip("Train in the background; you can close this window.")

    def _suit(self, trial: Trial) -> None:
        """Show the rows that apply to the ticked factor."""
        one = next(iter(trial.factors)) if len(trial.factors) == 1 else ""
        for box, there in ((self.of_time, bool(trial.time_latents)), (self.of_factor, bool(one))):
            label = self._form.labelForField(box)
            for part in (box, label):
                part.setVisible(there)
        if one and one != self._factor:
            usual = trial.factors[one].latents
            usual = usual or latents_for(trial.recording, trial.factors[one].variables)
            for box in (self.of_factor.first, self.of_factor.last):
                box.setValue(usual)
            self._form.labelForField(self.of_factor).setText(f"Latents of {one}")
        self._factor = one

    def _show_found(self) -> None:
        found = self.search.found
        for part in (self.reason, self.use):
            part.setVisible(found is not None)
        self.plot.show_dimensions(found[1] if found else None)
        if found is None:
            return
        trial, dimensions = found
        self.reason.say(dimensions.reason, "good")
        words = dimensions.suggested.words
        self.use.setText(f"Use {words}")
        of_factor = f" {', '.join(trial.factors)} and" if trial.factor_latents else ""
        self.use.setToolTip(plain(f"Set the latents of{of_factor} time in the Train dock."))

    def _say(self, sentence: str, tone: Any, details: str) -> None:
        if self.isVisible():
            self.notice.say(sentence, tone, details)

    def _show_theme(self, *_: Any) -> None:
        self.plot.follow_theme(style_of(self.state.viewer.theme))


MATCHED_HELP = (
    "Choose the file in which your program says which cells are the same: CellReg "
    "(cellRegistered….mat), ROICaT (….results_clusters.json), or a table with a column for each "
    "session. Without a file, they are proposed from footprints and mean images. Each session is "
    "scored by its newest run."
)
ORDER = (
    "Sessions in the order in which they were matched. Drag to reorder, double-click to rename, "
    "untick to leave one out."
)


class MatchedWindow(ResultWindow):
    """The matching file, the sessions, and a table with a row for each cell found twice or more."""

    def __init__(self, services: Services, parent: QWidget) -> None:
        super().__init__("The same cells, day by day", (720, 640), parent, lasting=True)
        self.state = services.state
        self.found: MatchedScores | None = None
        self._opened: list[Opened] = []
        # the columns of the table, whatever was opened, closed or dragged since
        self._compared: list[Opened] = []
        self.file = PathField("matched cells", MATCHED_HELP, "CellReg, ROICaT or a table")
        self.sessions = QListWidget()
        self.sessions.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.sessions.setToolTip(ORDER)
        self.sessions.setMaximumHeight(120)
        self.compare = QPushButton("Compare")
        self.compare.setToolTip("Match the cells of these sessions, and compare their scores.")
        self.factor = QComboBox()
        self.factor.setToolTip("The factor whose scores are compared.")
        self.summary = PlainLabel(wrap=True)
        self.table = QTableWidget()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setToolTip("Score of each cell and its id; select a row to see it in the image.")
        self.save = QPushButton("Save table…")
        self.save.setToolTip("Write a row for each cell, session and factor as .csv.")
        self._lay_out()
        self.compare.clicked.connect(lambda _=False: self.begin())
        self.save.clicked.connect(lambda _=False: self._save())
        self.factor.currentTextChanged.connect(lambda _: self._show_factor())
        self.table.itemSelectionChanged.connect(self._select)
        self.file.changed.connect(self._show_ready)
        self.follow((self.state.recording_changed, self.show_sessions))
        self.show_sessions()

    def _lay_out(self) -> None:
        self.lay_out(
            PlainLabel(MATCHED_HELP, wrap=True),
            in_form(("Matched cells", self.file), ("Sessions", self.sessions)),
            in_row(QLabel("Factor"), (self.factor, 1), self.compare),
            self.notice,
            self.summary,
            (self.table, 1),
            in_row(1, self.save),
        )
        self._show_ready()

    def show_sessions(self, *_: object) -> None:
        """List the recordings of the window under the names of their days."""
        opened = list(self.state.opened)
        if opened == self._opened:
            return
        self._opened = opened
        self._show_ready()
        self.sessions.clear()
        names = session_names([each.recording.source or each.name for each in opened])
        for name, each in sorted(zip(names, opened, strict=True), key=lambda pair: pair[0]):
            item = QListWidgetItem(name)
            item.setFlags(
                item.flags() | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsEditable
            )
            item.setCheckState(Qt.CheckState.Checked)
            item.setData(Qt.ItemDataRole.UserRole, each.token)
            item.setToolTip(f"{each.name}. {ORDER}")
            self.sessions.addItem(item)

    @property
    def chosen(self) -> dict[str, Opened]:
        """Ticked recordings by the names of their sessions, in their order."""
        by_token = {each.token: each for each in self._opened}
        items = [self.sessions.item(row) for row in range(self.sessions.count())]
        ticked = [item for item in items if item.checkState() == Qt.CheckState.Checked]
        return {item.text(): by_token[item.data(Qt.ItemDataRole.UserRole)] for item in ticked}

    def begin(self) -> None:
        """Read the file, match the cells and compare them."""
        path, chosen = self.file.path, self.chosen
        self.notice.clear()
        self.compare.setEnabled(False)
        show = partial(self._show, list(chosen.values()))
        _compare_days(path, chosen, self.state.viewer, show, self._failed, self)

    def _failed(self, sentence: str, details: str) -> None:
        self.say_problem(sentence, details)
        self.found = None
        self.summary.clear()
        self.table.setRowCount(0)
        self._show_ready()

    def _show(self, compared: list[Opened], found: MatchedScores) -> None:
        self.found, self._compared = found, compared
        self.factor.blockSignals(True)
        self.factor.clear()
        self.factor.addItems(found.factors)
        self.factor.blockSignals(False)
        self._show_ready()
        self._show_factor()

    def _show_ready(self) -> None:
        self.compare.setEnabled(self.file.path is not None or len(self._opened) > 1)
        self.compare.setText("Compare" if self.file.path else "Propose and compare")
        self.save.setEnabled(self.found is not None)

    def _show_factor(self) -> None:
        found, factor = self.found, self.factor.currentText()
        if found is None or not factor:
            return
        self.summary.setText(f"{found.summary()}\nBy {title_of_method(found.method)}.")
        scores, ids = found.scores[factor], found.matching.ids
        order = np.argsort(-np.nan_to_num(scores, nan=0.0).sum(axis=1), kind="stable")
        self.table.setColumnCount(len(found.sessions))
        self.table.setHorizontalHeaderLabels(list(found.sessions))
        self.table.setRowCount(len(ids))
        self.table.setVerticalHeaderLabels([str(match) for match in order])
        for row, match in enumerate(order):
            for column, (cell, score) in enumerate(zip(ids[match], scores[match], strict=True)):
                item = QTableWidgetItem(_cell_text(int(cell), float(score)))
                item.setData(Qt.ItemDataRole.UserRole, int(cell))
                self.table.setItem(row, column, item)
        self.table.resizeColumnsToContents()

    def _select(self) -> None:
        """Select the cells of the chosen rows in the recording that is in front."""
        current = self.state.current
        if current is None or current not in self._compared:
            return
        column = self._compared.index(current)
        rows = sorted({index.row() for index in self.table.selectedIndexes()})
        cells = [self.table.item(row, column).data(Qt.ItemDataRole.UserRole) for row in rows]
        places = {int(cell): i for i, cell in enumerate(np.asarray(current.recording.cell_ids))}
        self.state.select([places[cell] for cell in cells if cell != MISSING])

    def _save(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Save table", "matched.csv", "Tables (*.csv)")
        if path and self.found is not None:
            found = self.found
            in_background(
                lambda: found.to_csv(path),
                lambda _: self.notice.say(f"Saved {path}.", "good"),
                self.say_problem,
                self,
            )


def _cell_text(cell: int, score: float) -> str:
    if cell == MISSING:
        return "–"
    return f"{score:.3f} (cell {cell})" if np.isfinite(score) else f"no score (cell {cell})"


def _compare_days(
    path: Path | None,
    chosen: dict[str, Opened],
    viewer: Any,
    done: Callable[[MatchedScores], object],
    failed: Callable[[str, str], object],
    owner: QWidget,
) -> None:
    """Read the file in another process, then compare the scores of its cells in a thread.

    Parameters
    ----------
    path : Path
        Of CellReg, ROICaT, or a table; without one, cells are matched by where they lie.
    chosen : dict of str to Opened
        By the names of their sessions, in the order in which they were matched.
    """
    # with pandas, which the dock can do without
    from napari_xcebra.attribution.comparison import matched_scores
    from napari_xcebra.io.sessions import read_matching

    if path is None:
        from napari_xcebra.recording.matching import propose_matching

        recordings = {name: each.recording for name, each in chosen.items()}

        def matching() -> Matching:
            return propose_matching(recordings).matching

    else:
        job = reader_of(viewer).submit(reading(read_matching, path, paths=[path]))

        def matching() -> Matching:
            return _matching_of(result_of(job), chosen)

    in_background(lambda: matched_scores(_attributions(chosen), matching()), done, failed, owner)


def _attributions(chosen: dict[str, Opened]) -> dict[str, Attribution]:
    """Map of each session: of its newest run, by the first method that all have."""
    runs: dict[str, Any] = {}
    for name, opened in chosen.items():
        scored = [run for run in opened.runs if run.attributions]
        if not scored:
            raise InputError(f"Session {name} has no map yet: train it, and compute its map first.")
        runs[name] = scored[-1]
    common = [m for m in METHODS if all(m in run.attributions for run in runs.values())]
    if not common:
        raise InputError("No method was computed for all of these sessions: compute one for each.")
    return {name: run.attributions[common[0]] for name, run in runs.items()}


def _matching_of(matching: Matching, chosen: dict[str, Opened]) -> Matching:
    """The matching of these sessions, which the file may call by their names or their files'."""
    keys = {}
    for name, opened in chosen.items():
        source = Path(opened.recording.source)
        known = [n for n in (name, opened.name, source.name, source.stem) if n in matching.sessions]
        keys[known[0] if known else name] = opened.recording
    return replace(matching.of(keys), sessions=tuple(chosen))


COHORT_HELP = (
    "Puts all finished runs of the sweep into one table and compares conditions: the share of "
    "cells that carry each factor, and their scores. The animal is the unit of the test. Without "
    "a table or a pattern, every recording counts as an animal."
)
SHARE = "cohort-share.png"


class CohortWindow(ResultWindow):
    """Which animal, day and condition each recording is; then the comparison and its figure."""

    def __init__(self, sweeper: Sweeper, folder: Path, parent: QWidget) -> None:
        super().__init__("Cohort: compare animals and conditions", (820, 640), parent, lasting=True)
        self._sweeper, self.folder = sweeper, folder
        self.table = PathField(
            "the table of animals",
            "CSV with the columns run (recordings as the sweep names them), animal, day and "
            "condition. With a pattern, animal and condition are enough.",
            "optional: animals.csv",
        )
        self.pattern = QLineEdit()
        self.pattern.setPlaceholderText("optional: {animal} day {day}")
        self.pattern.setToolTip(
            "Finds animal, day and condition in the recordings' names; * stands for anything."
        )
        self.compare_button = QPushButton("Compare")
        self.compare_button.setToolTip(f"Write tables and figures to {folder}, and show the first.")
        self.figure = QLabel()
        self.figure.setMinimumSize(QSize(320, 200))
        self.figure.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._lay_out()
        self.compare_button.clicked.connect(lambda _=False: self.compare())

    def _lay_out(self) -> None:
        self.lay_out(
            PlainLabel(COHORT_HELP, wrap=True),
            in_form(("Table", self.table), ("Pattern", self.pattern)),
            in_row(self.compare_button, 1),
            self.notice,
            (self.figure, 1),
        )

    def compare(self) -> None:
        """Compare in the background, and show what came of it."""
        exists = while_exists(self)

        def show(summary: str) -> None:
            if exists():
                self.notice.say(f"{summary}\nTables and figures are in {self.folder}.", "good")
                self._show_figure()

        def say(sentence: str, _tone: str, details: str) -> None:
            if exists():
                self.say_problem(sentence, details)

        self.figure.clear()
        self.notice.say("Comparing …")
        call = tasks.COHORT(self.folder, self.table.path, self.pattern.text().strip())
        self._sweeper.compare(call, show, say)

    def _show_figure(self) -> None:
        picture = QPixmap(str(self.folder / SHARE))
        self.figure.setPixmap(
            picture.scaled(
                self.figure.size(),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        )
