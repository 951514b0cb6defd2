"""Trains in the background: progress, the verdict, how it was learned, and the list of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHeaderView,
    QLabel,
    QMenu,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.analysis_file import Analysis
from napari_xcebra.errors import InputError
from napari_xcebra.io.opening import Opening
from napari_xcebra.jobs import Job
from napari_xcebra.recording import Recording
from napari_xcebra.runs import ANALYSIS, Run, free_name, next_name
from napari_xcebra.widgets.controls.boxes import SMALL, PlainLabel, plain, primary_button
from napari_xcebra.widgets.controls.forms import dropped_paths, model_among
from napari_xcebra.widgets.controls.layouts import TWO_LINES, Fold, in_column, in_row
from napari_xcebra.widgets.controls.napari_window import end_with_dock, follow
from napari_xcebra.widgets.controls.notice import (
    NextStep,
    Notice,
    Tone,
    VerdictRows,
    WorkBar,
    time_left,
)
from napari_xcebra.widgets.docks.train.choice import TrainingChoice
from napari_xcebra.widgets.docks.train.hidden import HiddenPanel
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.training_plots import LearningPlot
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.services.run_jobs import HELP, RunWriter
from napari_xcebra.widgets.state.shown import best_factor, best_method
from napari_xcebra.widgets.window import Services, services_of

if TYPE_CHECKING:
    import napari

    from napari_xcebra.jobs import Advanced
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.adaptation import How


NAME, TIME, VERDICT = range(3)
ROW, MOST_ROWS = 26, 5
OPENS_MODELS = (
    "Open a model that was trained with the cebra package (.pt) on this recording, for the ticked "
    "factors, or for none if it was trained on time alone. You can also drop it here."
)
WAYS = {
    "statistics": (
        "The same cells, under the same ids",
        "No training. Cells are matched by id: right if the days were registered to each "
        "other, wrong if the extractor renumbered the cells.",
    ),
    "input-layer": (
        "Other cells: train the input layer",
        "For another animal, or renumbered cells. All other layers stay as they are.",
    ),
}
"""How a run may be carried over, by the name in the library: title and help."""


class _RunList(QWidget):
    """One row per run; the selected run is painted."""

    said = Signal(str, str, str)
    """A sentence for the dock's notice, its tone, and details."""
    comparing = Signal(str)
    """Name of a run to show next to the selected one."""
    opening = Signal()
    """A model of `cebra` is to be opened."""
    carrying = Signal(str, object, str)
    """A run of another recording to bring to this one, the name of that recording, and how."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._state = services.state
        self._writer = RunWriter(services, self.said.emit, self)
        self._table = QTableWidget(0, 3)
        self._table.setHorizontalHeaderLabels(["Run", "Time", "Verdict"])
        self._table.setToolTip("Click a run to paint it; double-click its name to rename it.")
        self._table.verticalHeader().hide()
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(VERDICT, QHeaderView.ResizeMode.Stretch)
        self._table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self._table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self._table.verticalHeader().setDefaultSectionSize(ROW)
        self._table.itemSelectionChanged.connect(self._chosen)
        self._table.itemChanged.connect(self._renamed)
        self._save = _button("Save…", "Write the selected run to a folder.", self.save)
        self._load = QPushButton("Load")
        ways = QMenu(self._load)
        ways.addAction("Saved run …", lambda: self.load())
        ways.addAction("Model of cebra (.pt) …", self.opening.emit)
        self._load.setToolTip(f"Open a run that you saved. {OPENS_MODELS}")
        self._load.setMenu(ways)
        self._report = _button("Report…", HELP, self.report)
        self._delete = _button("Delete", "Remove the selected run from this list.", self._ask)
        self._compare = QPushButton("Compare")
        self._compare.setToolTip("Show another run next to the selected one.")
        self._others = QMenu(self._compare)
        self._others.triggered.connect(lambda action: self.comparing.emit(action.text()))
        self._compare.setMenu(self._others)
        self._of_runs = (self._compare, self._report, self._save, self._delete)
        for button in (*self._of_runs, self._load):
            button.setStyleSheet(SMALL)  # side by side they must not widen the dock
        self._carry = QPushButton("Carry a run over")
        self._carry.setToolTip(
            "Apply a run from another recording to this one: the same cells on another day, or "
            "other cells. It is evaluated again here."
        )
        self._elsewhere = QMenu(self._carry)
        self._carry.setMenu(self._elsewhere)
        buttons = in_row(*self._of_runs, 1, self._load, spacing=4)
        in_column(self._table, buttons, self._carry, of=self)
        follow(self, self._state.runs_changed, self.refresh)
        follow(self, self._state.shown_changed, self._mark_shown)
        self.refresh()

    @property
    def selected(self) -> Run | None:
        """The run whose row is selected."""
        row, runs = self._table.currentRow(), self._state.runs
        return runs[row] if 0 <= row < len(runs) else None

    def refresh(self) -> None:
        """Show the runs of the current recording."""
        runs = self._state.runs
        with signals_blocked(self._table):
            self._table.setRowCount(len(runs))
            for row, run in enumerate(runs):
                texts = (run.name, run.created[11:16], run.verdict)
                for column, text in enumerate(texts):
                    item = QTableWidgetItem(text)
                    item.setToolTip(plain(_tooltip(run)))
                    if column != NAME:
                        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                    self._table.setItem(row, column, item)
        # as tall as its rows, so that what is below needs no scrolling
        for part in (self._table, *self._of_runs):
            part.setVisible(bool(runs))
        self._load.setText("Load" if runs else "Load a run")
        header = self._table.horizontalHeader().sizeHint().height()
        self._table.setFixedHeight(header + min(len(runs), MOST_ROWS) * ROW + 4)
        self._mark_shown()
        self._load.setEnabled(self._state.current is not None)
        self._list_elsewhere()

    def _list_elsewhere(self) -> None:
        """Runs of other recordings, if there are any."""
        self._elsewhere.clear()
        for opened in self._state.opened:
            if opened is self._state.current:
                continue
            for run in opened.runs:
                ways = self._elsewhere.addMenu(f"{opened.name} · {run.name}")
                ways.setToolTipsVisible(True)
                for how, (title, help) in WAYS.items():
                    action = ways.addAction(title, partial(self._carry_over, opened.name, run, how))
                    action.setToolTip(plain(help))
        self._carry.setVisible(bool(self._elsewhere.actions()))

    def _carry_over(self, recording: str, run: Run, how: str) -> None:
        self.carrying.emit(recording, run, how)

    def save(self, folder: str | Path | None = None) -> None:
        """Write the selected run to a folder that the user names."""
        run, opened = self.selected, self._state.current
        if run is None or opened is None:
            return
        if not folder:
            start = Path(opened.recording.source or ".").parent / f"{opened.name}-{run.name}"
            folder, _ = QFileDialog.getSaveFileName(self, "Save run as a folder", str(start))
        if folder:

            def saved(path: Path) -> None:
                self._state.saved_runs.mark([run])
                self.said.emit(f"Saved {run.name} to {path}.", "good", "")

            in_background(
                lambda: _saved(run, folder, opened.opening, opened.recording),
                saved,
                lambda sentence, details: self.said.emit(sentence, "problem", details),
            )

    def report(self, path: str | Path | None = None) -> None:
        """Write a page about the selected run, and open it in the browser."""
        run, opened = self.selected, self._state.current
        if run is not None and opened is not None:
            self._writer.report(opened, run, path)

    def load(self, folder: str | Path | None = None) -> None:
        """Add a run from a folder that the user names."""
        opened = self._state.current
        if opened is None:
            return
        if not folder:
            folder = QFileDialog.getExistingDirectory(self, "Open a saved run")
        if folder:

            def loaded(run: Run) -> None:
                self._state.saved_runs.mark([run])
                self._state.add_run(run, opened)

            in_background(
                lambda: _fitting_run(folder, opened.recording),
                loaded,
                lambda sentence, details: self.said.emit(sentence, "problem", details),
            )

    def _ask(self) -> None:
        run = self.selected
        if run is None:
            return
        answer = QMessageBox.question(
            self, "Delete run", plain(f"Delete {run.name}? Unsaved results will be lost.")
        )
        if answer == QMessageBox.StandardButton.Yes:
            self.delete()

    def delete(self) -> None:
        """Remove the selected run."""
        if (run := self.selected) is not None:
            self._state.remove_run(run.name)

    def _chosen(self) -> None:
        run, shown = self.selected, self._state.shown
        self._mark_buttons()
        if run is not None and run.name != shown.run:
            factor = shown.factor if shown.factor in run.fit.factors else best_factor(run)
            # runs are compared by one method, except for the first one painted
            first = self._state.shown_run is None
            method = best_method(run, shown.method) if first else shown.method
            self._state.shown = replace(
                shown, run=run.name, factor=factor, latent=None, method=method
            )

    def _renamed(self, item: QTableWidgetItem) -> None:
        runs = self._state.runs
        if item.column() != NAME or item.row() >= len(runs):
            return
        run = runs[item.row()]
        others = [other.name for other in runs if other is not run]
        name = free_name(item.text().strip() or run.name, others)
        if name != run.name:
            self._state.replace_run(run.name, replace(run, name=name))
        else:
            item.setText(name)

    def _mark_shown(self) -> None:
        names = [run.name for run in self._state.runs]
        with signals_blocked(self._table):
            if self._state.shown.run in names:
                self._table.selectRow(names.index(self._state.shown.run))
        self._mark_buttons()

    def _mark_buttons(self) -> None:
        run = self.selected
        for button in (self._report, self._save, self._delete):
            button.setEnabled(run is not None)
        self._others.clear()
        for other in self._state.runs if run is not None else ():
            if other is not run and other.attributions:
                self._others.addAction(other.name)
        self._compare.setEnabled(bool(self._others.actions()))


def _saved(run: Run, folder: str | Path, opening: Opening | None, recording: Recording) -> Path:
    """Folder that a run was written to, with how its recording was opened and how to repeat it."""
    written = run.save(folder)
    if opening is not None:
        opening.save(written)
        if (analysis := Analysis.of_run(run, opening)) is not None:
            analysis.save(written / ANALYSIS, recording)
    return written


def _fitting_run(folder: str | Path, recording: object) -> Run:
    run = Run.load(folder, recording)  # type: ignore[arg-type]
    try:
        run.fit.inputs.columns(recording)  # type: ignore[arg-type]
    except InputError as error:
        raise InputError(f"{Path(folder).name} does not fit this recording. {error}") from error
    return run


def _tooltip(run: Run) -> str:
    lines = [f"{run.name}, {run.created.replace('T', ' ')}"]
    lines += [goodness.verdict for goodness in run.fit.goodness.values()]
    return "\n".join(lines)


def _button(text: str, tooltip: str, clicked: object) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tooltip)
    button.clicked.connect(lambda _=False: clicked())  # type: ignore[operator]
    return button


NOTHING, WHY_NOT, BAR = range(3)
"""Pages of the line above the buttons."""
PHASES = {
    "settling": "learning",
    "raising λ": "learning, raising λ",
    "holding": "learning, holding λ",
}
"""Names of the phases of training in the window."""


class TrainDock(QWidget):
    """Everything about training a run, top to bottom; the buttons stay in their place below."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.services = services = services_of(napari_viewer)
        self.state = services.state
        # which paints scores as they come, whichever docks are open
        self.training = services.training
        self._provisional = ""
        self._judged: Fit | None = None
        self.recording_name = QLabel()
        self.recording_name.setWordWrap(True)
        self.choice = TrainingChoice(services)
        self.factors, self.form = self.choice.factors, self.choice.form
        self.runs = _RunList(services)
        self.hidden = HiddenPanel(services)
        self.notice = Notice()
        self.verdict = VerdictRows()
        self.course = _CourseFold()
        self.train_button = primary_button("Train")
        self.cancel_button = QPushButton("Cancel")
        self.why_not = PlainLabel(wrap=True)
        self.progress = WorkBar("Steps done, the state of λ, and the time left.")
        self.next = NextStep()
        self._lay_out()
        self._connect()
        end_with_dock(self)
        self.setAcceptDrops(True)
        self._show_theme()
        self._show_recording()
        self._show_run()
        self._show_training()
        # torch takes seconds to import: this also lets the child do it while the user chooses
        self.choice.show_device()

    def _connect(self) -> None:
        self.train_button.clicked.connect(lambda _=False: self.train())
        self.cancel_button.clicked.connect(lambda _=False: self.cancel())
        self.choice.changed.connect(self._mark_ready)
        self.next.asked.connect(self.services.open_dock)
        self.runs.said.connect(self._say)
        self.hidden.said.connect(self._say)
        self.hidden.start.clicked.connect(lambda _=False: self.choice.fold())
        self.runs.comparing.connect(self.compare)
        self.runs.opening.connect(self.open_model)
        self.runs.carrying.connect(self.carry)
        for signal, method in (
            (self.state.recording_changed, self._show_recording),
            (self.state.recording_changed, self._show_training),
            (self.state.shown_changed, self._show_live),
            (self.state.runs_changed, self._show_live),
            (self.state.live_changed, self._show_live),
            (self.training.changed, self._show_training),
            (self.training.said, self._say),
            (self.state.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)

    def _lay_out(self) -> None:
        inside = QWidget()
        parts = (self.recording_name, self.choice, self.hidden, self.runs, self.verdict)
        in_column(*parts, self.course, 1, of=inside).setContentsMargins(9, 9, 9, 9)
        self._area = area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        # one line for the bar and for what is missing, so that the button never moves
        self._line = QStackedWidget()
        for part in (QWidget(), self.why_not, self.progress):
            self._line.addWidget(part)
        self._line.setFixedHeight(TWO_LINES)
        buttons = in_row((self.train_button, 1), self.cancel_button)
        footer = QWidget()
        in_column(self.notice, self._line, buttons, of=footer).setContentsMargins(9, 4, 9, 0)
        in_column((area, 1), footer, self.next, of=self, spacing=0)
        self.setMinimumWidth(340)

    # ------------------------------------------------------------ training

    def train(self) -> Job | None:
        """Start a run with what is chosen; returns its job."""
        opened = self.state.current
        if opened is None or self.busy:
            return None
        if reason := self._why_not():
            self._say(reason, "problem", "")
            return None
        factors, settings = self.choice.read_choice()
        taken, wanted = [run.name for run in opened.runs], self.choice.name.text().strip()
        name = free_name(wanted, taken) if wanted else next_name(taken)
        self.choice.name.clear()
        self.notice.clear()
        # done with: progress, verdict and runs take its place
        self.choice.fold()
        if others := self.choice.together.chosen:
            return self.training.start_together(opened, others, name, factors, settings)
        live = self.choice.live.isChecked()
        return self.training.start(opened, name, factors, settings, live=live)

    def carry(self, recording: str, run: Run, how: How = "auto") -> Job | None:
        """Bring a run of another recording to this one; returns its job."""
        opened = self.state.current
        if opened is None or self.busy:
            return None
        self.notice.clear()
        taken = [own.name for own in opened.runs]
        return self.training.carry(opened, free_name(f"{run.name} of {recording}", taken), run, how)

    def open_model(self, path: str | Path | None = None) -> Job | None:
        """Open a model of `cebra` as a run, for the ticked factors; returns its job."""
        opened = self.state.current
        if opened is None or self.busy:
            self._say(self._why_not(), "problem", "")
            return None
        if not path:
            path, _ = QFileDialog.getOpenFileName(
                self, "Open a model of cebra", "", "Models of cebra (*.pt)"
            )
        if not path:
            return None
        self.notice.clear()
        factors, settings = self.choice.read_choice()
        name = free_name(Path(path).stem, [run.name for run in opened.runs])
        return self.training.open_model(opened, name, Path(path), factors, settings)

    def dragEnterEvent(self, event: Any) -> None:
        """Welcome a model of `cebra`."""
        if model_among(dropped_paths(event)):
            event.acceptProposedAction()

    def dropEvent(self, event: Any) -> None:
        """Open it."""
        self.open_model(model_among(dropped_paths(event)))

    def cancel(self) -> None:
        """Stop what is running."""
        self.training.cancel()

    def compare(self, other: str) -> None:
        """Show another run next to the painted one, in the Attribution dock."""
        dock: Any = self.services.open_dock("Attribution").widget()
        dock.compare_run(other)

    @property
    def busy(self) -> bool:
        """Whether something runs."""
        return self.training.busy

    def _show_training(self) -> None:
        """Show progress and curves of the training, even if it began before this dock."""
        self._mark_ready()
        here, elsewhere = self.training.of_front, self.training.elsewhere
        if here:
            self.course.follow(self.training.course, self.training.chance)
        self.course.setVisible(here or self.state.shown_run is not None)
        at, doing = self.training.progress, self.training.doing
        words = (doing,) if self.training.stopping or not at else _in_words(at)
        self.progress.show_words(at, *filter(None, (elsewhere,)), *words)

    # ------------------------------------------------------------ showing

    def _show_recording(self) -> None:
        opened = self.state.current
        self.choice.show_recording(opened, [o for o in self.state.opened if o is not opened])
        if opened is None:
            self.recording_name.setText(
                "No recording yet: open one in the Recording dock, or choose File ▸ Open "
                "Sample ▸ napari-xcebra."
            )  # fmt: skip
        else:
            recording = opened.recording
            accepted = int(np.asarray(recording.accepted).sum())
            self.recording_name.setText(
                f"<b>{escape(opened.name)}</b>: {accepted} of {recording.n_cells} cells accepted, "
                f"{recording.n_frames:,} frames at {recording.rate:g} Hz"
            )
        self._mark_ready()

    def _show_live(self) -> None:
        """Say that the map is provisional, until there is a verdict."""
        live, before = self.state.painted_live, self._provisional
        self._provisional = live.sentence if live is not None else ""
        if self._provisional:
            self.notice.say(self._provisional, "warning")
        elif before:
            self.notice.clear()
        self._show_run()
        self._mark_ready()

    def _show_run(self) -> None:
        """Verdict and curves of the run that is painted."""
        run = self.state.shown_run
        judged = None if run is None or self.state.painted_live is not None else run.fit
        self.verdict.show_verdicts(judged.goodness.values() if judged else ())
        if judged is None:
            if self._judged is not None and not self.busy:
                self.notice.clear()  # the run was deleted
            self.course.setVisible(self.training.of_front)
        elif not self.training.of_front:
            self.course.show_fit(judged)
            if judged is not self._judged:
                self.notice.say("\n".join(judged.notes), "warning")
        self._judged = judged

    def _show_theme(self) -> None:
        self.course.follow_theme(self.state.viewer.theme)
        self.hidden.follow_theme(self.state.viewer.theme)

    def _say(self, sentence: str, tone: Tone, details: str) -> None:
        self.notice.say(sentence, tone, details)

    def _mark_ready(self) -> None:
        reason = self._why_not()
        if self.train_button.hasFocus() and self.busy:
            self._area.setFocus()  # Qt would move it to a button that the next key presses
        self.train_button.setEnabled(not reason)
        self.train_button.setToolTip(plain(reason) or "Train an encoder on the ticked factors.")
        # a missing recording is visible already
        said = bool(reason) and self.state.current is not None
        self.why_not.setText(reason)
        self._line.setCurrentIndex(BAR if self.busy else WHY_NOT if said else NOTHING)
        others = len(self.choice.together.chosen)
        self.train_button.setText(f"Train {others + 1} together" if others else "Train")
        self.cancel_button.setEnabled(self.busy)
        stopping = self.training.stopping
        self.cancel_button.setText("Discard" if stopping else "Cancel")
        self.cancel_button.setToolTip(
            "Stop at once, and throw this run away."
            if stopping
            else "Stop, and keep what was learned so far."
        )
        self._say_next(ready=not reason)

    def _say_next(self, *, ready: bool) -> None:
        painted = bool(self.state.runs) or self.state.live is not None
        if self.training.stopping:
            sentence, painted = "This run is kept; press Discard to throw it away at once.", False
        elif painted:
            sentence = "Next: see which cells carry each factor, in Attribution."
        elif self.training.of_front:
            sentence = "Cells are painted as soon as the first map is ready."
        else:
            sentence = "Next: tick the factors to study, and press Train." if ready else ""
        self.next.say(sentence, "Attribution" if painted else "")

    def _why_not(self) -> str:
        """Why training cannot begin; empty if it can."""
        if self.state.current is None:
            return "Open a recording first."
        if self.busy:
            where = self.training.elsewhere
            return f"A run of {where} is being trained." if where else "A run is being trained."
        return self.choice.why_not(self.state.current)


def _in_words(at: Advanced) -> tuple[str, ...]:
    """What runs, its progress and the time left."""
    doing = PHASES.get(at.phase, at.phase) or "scoring the cells"
    return doing, f"{at.unit} {at.done} of {at.total}", time_left(at)


class _CourseFold(Fold):
    """Unfolded while a run is trained, folded away once there is a verdict."""

    def __init__(self) -> None:
        super().__init__("How it was learned", "Learning curves, λ, and why training ended.")
        self.plot = LearningPlot()
        self.facts = PlainLabel(wrap=True)
        for part in (self.plot, self.facts):
            self.addWidget(part)
        self._training = False
        self._reports = 0
        self.hide()

    def follow_theme(self, theme: str) -> None:
        """Draw in the colours of a theme of napari."""
        self.plot.follow_theme(style_of(theme))

    def follow(self, course: Sequence[Advanced], chance: float) -> None:
        """Draw the curves of a training up to its last report."""
        if len(course) == self._reports:
            return
        self._reports = len(course)
        if not self._training:
            self._training = self.unfolded = True
            self.facts.clear()
        self.plot.follow(course, chance)

    def show_fit(self, fit: Fit) -> None:
        """Show how a finished run was learned."""
        if self._training:
            self._training = self.unfolded = False
        chances = [goodness.chance for goodness in fit.goodness.values()]
        self.plot.show_history(fit.history, chances[0] if chances else np.nan)
        self.facts.setText("\n".join(filter(None, [fit.lambda_reason, fit.stop_reason])))
        self.show()
