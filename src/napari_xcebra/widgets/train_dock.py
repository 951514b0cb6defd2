"""Train: choose variables, train in the background, read the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.jobs import Advanced, Job
from napari_xcebra.learn.parts import Factor
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.runs import Run, free_name, next_name
from napari_xcebra.widgets.device_label import DeviceLabel
from napari_xcebra.widgets.dimension_search import Latents
from napari_xcebra.widgets.dimension_window import DimensionButton
from napari_xcebra.widgets.factor_table import FactorTable
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.forms import SettingsForm
from napari_xcebra.widgets.kept import keep, kept_text
from napari_xcebra.widgets.learning_plot import LearningPlot
from napari_xcebra.widgets.lifetime import end_with_dock, follow
from napari_xcebra.widgets.next_step import NextStep
from napari_xcebra.widgets.notice import VERDICT_HELP, Notice, Tone
from napari_xcebra.widgets.plot_style import style_of
from napari_xcebra.widgets.preferences import preferred_settings
from napari_xcebra.widgets.run_list import RunList, best_factor
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.session import session_of
from napari_xcebra.widgets.sweep_window import SweepButton
from napari_xcebra.widgets.together import TogetherBox
from napari_xcebra.widgets.trainer import trainer_of
from napari_xcebra.widgets.work_bar import duration
from napari_xcebra.widgets.workspace import open_dock

if TYPE_CHECKING:
    import napari


CHOICE = "What to train"
PHASES = {
    "settling": "learning",
    "raising λ": "learning, λ is raised",
    "holding": "learning, λ is kept",
}
"""How the phases of training are called in the window."""
LIVE = "train/live"
"""Under which it is kept whether maps are painted while a run learns."""


class TrainDock(QWidget):
    """Everything about training a run, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.session = session_of(napari_viewer)
        # scores are painted as they come, whichever docks are open
        painter_of(self.session)
        self.trainer = trainer_of(self.session)
        self._drawn = 0
        self._provisional = ""
        self._judged = False
        self.recording_name = QLabel()
        self.recording_name.setWordWrap(True)
        self.choice = Fold(CHOICE, "What to train, and how.", unfolded=True)
        self.factors = FactorTable()
        self.form: SettingsForm[FitSettings] = SettingsForm(preferred_settings())
        self.dimension = DimensionButton(self.session, self._asked_for)
        self.together = TogetherBox()
        self.name = QLineEdit()
        self.name.setPlaceholderText("name of the run")
        self.name.setToolTip("What the run will be called in the list below; you can rename it.")
        self.train_button = QPushButton("Train")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop; what was learned so far is kept if it can be.")
        self.sweep_button = SweepButton(
            self.session, lambda: (self.factors.factors, self.form.value)
        )
        self.why_not = QLabel()
        self.why_not.setWordWrap(True)
        self.live = QCheckBox("Paint the map while it learns")
        self.live.setToolTip(
            "Show a provisional map every few seconds, over some of the frames; training takes a "
            "little longer. It changes nothing in what is learned."
        )
        self.live.setChecked(kept_text(LIVE) != "no")
        self.progress = QProgressBar()
        self.progress.setToolTip("Steps done, what λ does, and the time left.")
        self.device = DeviceLabel(self.session)
        self.plot = LearningPlot()
        self.notice = Notice()
        self.runs = RunList(self.session)
        self.next = NextStep(self.session, "Attribution")
        self._lay_out()
        self.live.toggled.connect(lambda live: keep(LIVE, "yes" if live else "no"))
        self.train_button.clicked.connect(lambda _=False: self.train())
        self.cancel_button.clicked.connect(lambda _=False: self.cancel())
        self.factors.changed.connect(self._mark_ready)
        self.form.changed.connect(self._mark_ready)
        self.form.changed.connect(self._show_device)
        self.choice.button.clicked.connect(self._sum_up)
        self.dimension.chosen.connect(self._use_latents)
        self.runs.said.connect(self._say)
        self.runs.comparing.connect(self.compare)
        self.runs.carrying.connect(self.carry)
        self.together.changed.connect(self._mark_ready)
        for signal, method in (
            (self.session.recording_changed, self._show_recording),
            (self.session.shown_changed, self._show_live),
            (self.session.runs_changed, self._show_live),
            (self.session.live_changed, self._show_live),
            (self.trainer.changed, self._show_training),
            (self.trainer.said, self._say),
            (self.session.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)
        end_with_dock(self)
        self._show_theme()
        self._show_recording()
        self._show_run()
        self._show_training()
        # torch takes seconds to import: this also lets the child do it while the user chooses
        self._show_device()

    def _lay_out(self) -> None:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.addWidget(self.recording_name)
        self.choice.addWidget(self.factors)
        self.factors.buttons.addWidget(self.dimension)
        self.choice.addWidget(self.together)
        self.choice.addWidget(self.form)
        self.choice.addWidget(self.live)
        column.addWidget(self.choice)
        buttons = QHBoxLayout()
        buttons.addWidget(self.name, 1)
        buttons.addWidget(self.train_button)
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.sweep_button)
        column.addLayout(buttons)
        column.addWidget(self.why_not)
        column.addWidget(self.progress)
        column.addWidget(self.device)
        column.addWidget(self.runs)
        column.addWidget(self.notice)
        column.addWidget(self.plot)
        column.addStretch(1)
        self._area = area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(area)
        layout.addWidget(self.next)
        self.setMinimumWidth(340)

    # ------------------------------------------------------------ training

    def train(self) -> Job | None:
        """Start a run with what is chosen; returns its job."""
        opened = self.session.current
        if opened is None or self.busy:
            return None
        try:
            factors, settings = self.factors.factors, self.form.value
        except InputError as error:
            self._say(str(error), "problem", "")
            return None
        taken, wanted = [run.name for run in opened.runs], self.name.text().strip()
        name = free_name(wanted, taken) if wanted else next_name(taken)
        self.name.clear()
        self.notice.clear()
        # done with: progress, verdict and runs take its place
        self._fold_choice()
        if others := self.together.chosen:
            return self.trainer.start_together(opened, others, name, factors, settings)
        return self.trainer.start(opened, name, factors, settings, live=self.live.isChecked())

    def _asked_for(self) -> tuple[dict[str, Factor], FitSettings]:
        """Factors and settings as they are chosen; raises `InputError` where they do not fit."""
        return self.factors.factors, self.form.value

    def _use_latents(self, latents: Latents) -> None:
        if latents.of_time:
            self.form.value = replace(self.form.value, time_latents=latents.of_time)
        for name, number in latents.of_factors.items():
            self.factors.set_latents(name, number)

    def carry(self, recording: str, run: Run) -> Job | None:
        """Bring a run of another recording to this one; returns its job."""
        opened = self.session.current
        if opened is None or self.busy:
            return None
        self.notice.clear()
        taken = [own.name for own in opened.runs]
        return self.trainer.carry(opened, free_name(f"{run.name} of {recording}", taken), run)

    def cancel(self) -> None:
        """Stop what is running."""
        self.trainer.cancel()

    def compare(self, other: str) -> None:
        """Show another run beside the one that is painted, in the Attribution dock."""
        opened, factor = self.session.current, self.session.shown.factor
        run = opened.run(other) if opened else None
        if run is not None:
            dock: Any = open_dock(self.session.viewer, "Attribution").widget()
            dock.compare((other, factor if factor in run.fit.factors else best_factor(run)))

    @property
    def busy(self) -> bool:
        """Whether something runs."""
        return self.trainer.busy

    def _show_training(self) -> None:
        """Progress and curves of what is being trained, also if it began before this dock."""
        self._mark_ready()
        course = self.trainer.course
        if len(course) < self._drawn or not course:
            self.plot.clear()
            self._drawn = 0
        for at in course[self._drawn :]:
            self.plot.add(at.done, at.loss, at.chance, at.penalty)
        self._drawn = len(course)
        self.plot.setVisible(self.busy or self.session.shown_run is not None)
        at_last = self.trainer.progress
        self.progress.setVisible(self.busy)
        # a bar without an end would move to and fro, but Qt puts no words on it
        self.progress.setRange(0, at_last.total if at_last and self.busy else 1)
        self.progress.setValue(at_last.done if at_last else 0)
        told = at_last is not None and self.trainer.doing != "stopping"
        self.progress.setFormat(_progress_words(at_last) if told else self.trainer.doing)

    # ------------------------------------------------------------ showing

    def _show_recording(self) -> None:
        opened = self.session.current
        self.factors.show_recording(opened.recording if opened else None)
        self.together.show_others([o for o in self.session.opened if o is not opened])
        if opened is None:
            self.recording_name.setText("No recording yet: open one in the Recording dock, or "
                                        "File ▸ Open Sample ▸ napari-xcebra.")  # fmt: skip
        else:
            recording = opened.recording
            accepted = int(np.asarray(recording.accepted).sum())
            self.recording_name.setText(
                f"<b>{opened.name}</b>: {accepted} accepted cells of {recording.n_cells}, "
                f"{recording.n_frames} frames at {recording.rate:g} Hz"
            )
        self._fold_choice(unfolded=opened is None or not opened.runs)
        self._mark_ready()

    def _fold_choice(self, *, unfolded: bool = False) -> None:
        self.choice.unfolded = unfolded
        self._sum_up()

    def _sum_up(self) -> None:
        """Say what is chosen where it is folded away."""
        try:
            names = ", ".join(self.factors.factors)
        except InputError:
            names = ""
        folded = names and not self.choice.unfolded
        self.choice.title = f"{CHOICE}: {names}" if folded else CHOICE

    def _show_device(self) -> None:
        if not self.form.problem():
            self.device.show_device(self.form.value.device, self.form.value.threads)

    def _show_live(self) -> None:
        """That the map is provisional, until there is a verdict."""
        live, before = self.session.painted_live, self._provisional
        self._provisional = live.sentence if live is not None else ""
        if self._provisional:
            self.notice.say(self._provisional, "warning")
        elif before:
            self.notice.clear()
        self._show_run()
        self._mark_ready()

    def _show_run(self) -> None:
        """Curves and verdict of the run that is painted."""
        run = self.session.shown_run
        if self.busy or self.session.painted_live is not None:
            return
        if run is None:
            if self._judged:  # the run was deleted, or another recording has none
                self.notice.clear()
                self.plot.hide()
            self._judged = False
            return
        self._judged = True
        chances = [g.chance for g in run.fit.goodness.values()]
        self.plot.show()
        self.plot.show_history(run.fit.history, chances[0] if chances else np.nan)
        self._say_verdict(run)

    def _show_theme(self) -> None:
        self.plot.follow_theme(style_of(self.session.viewer.theme))

    def _say(self, sentence: str, tone: Tone, details: str) -> None:
        self.notice.say(sentence, tone, details)
        # once it has its place
        QTimer.singleShot(0, self._reveal_notice)

    def _reveal_notice(self) -> None:
        self._area.ensureWidgetVisible(self.notice)

    def _say_verdict(self, run: Run) -> None:
        goodness = run.fit.goodness.values()
        tone = "good" if all(g.above_chance for g in goodness) else "warning"
        lines = run.fit.summary().splitlines()
        if run.fit.notes:
            lines, tone = [*run.fit.notes, *lines], "warning"
        self.notice.say("\n".join(f"• {line}" for line in lines), tone, help=VERDICT_HELP)  # type: ignore[arg-type]

    def _mark_ready(self) -> None:
        reason = self._why_not()
        self.train_button.setEnabled(not reason)
        self.train_button.setToolTip(reason or "Train an encoder on the ticked factors.")
        # that a run is trained, or no recording open, is seen already
        said = bool(reason) and not self.busy and self.session.current is not None
        self.why_not.setText(reason)
        self.why_not.setVisible(said)
        others = len(self.together.chosen)
        self.train_button.setText(f"Train {others + 1} together" if others else "Train")
        self.cancel_button.setEnabled(self.busy)
        self._say_next(ready=not reason)

    def _say_next(self, *, ready: bool) -> None:
        painted = bool(self.session.runs) or self.session.live is not None
        if painted:
            sentence = "Next: see which cells, in Attribution."
        elif self.busy:
            sentence = "The cells are painted as soon as something is learned."
        else:
            sentence = "Next: tick what you ask about, and press Train." if ready else ""
        self.next.say(sentence, there=painted)

    def _why_not(self) -> str:
        """Why training cannot begin; empty if it can."""
        if self.session.current is None:
            return "Open a recording first."
        if self.busy:
            return "A run is being trained."
        if problem := self.form.problem():
            return problem
        try:
            factors = self.factors.factors
        except InputError as error:
            return str(error)
        if factors or self.form.value.mode == "time":
            return ""
        if not self.session.current.recording.behavior:
            return "No behaviour yet: add a behaviour file in the Recording dock."
        return "Tick at least one factor."


def _progress_words(at: Advanced | None) -> str:
    """What runs, how far it is and how long it will take."""
    if at is None:
        return ""
    left = "" if np.isnan(at.seconds_left) else f" · {duration(at.seconds_left)} left"
    doing = PHASES.get(at.phase, at.phase) or "scoring the cells"
    return f"{doing} · {at.unit} {at.done} of {at.total}{left}"
