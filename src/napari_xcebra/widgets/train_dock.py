"""Train: choose variables, train in the background, read the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.jobs import Job
from napari_xcebra.runs import Run, free_name, next_name
from napari_xcebra.verdicts import tone_of_all
from napari_xcebra.widgets.device_label import DeviceLabel
from napari_xcebra.widgets.learning_plot import LearningPlot
from napari_xcebra.widgets.lifetime import end_with_dock, follow
from napari_xcebra.widgets.next_step import NextStep
from napari_xcebra.widgets.notice import VERDICT_HELP, Notice, Tone
from napari_xcebra.widgets.plot_style import style_of
from napari_xcebra.widgets.run_list import RunList, best_factor
from napari_xcebra.widgets.score_painter import painter_of
from napari_xcebra.widgets.session import session_of
from napari_xcebra.widgets.sweep_window import SweepButton
from napari_xcebra.widgets.trainer import trainer_of
from napari_xcebra.widgets.training_bar import TrainingBar
from napari_xcebra.widgets.training_choice import TrainingChoice
from napari_xcebra.widgets.workspace import open_dock

if TYPE_CHECKING:
    import napari

    from napari_xcebra.learn.adaptation import How


class TrainDock(QWidget):
    """Everything about training a run, top to bottom."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.session = session_of(napari_viewer)
        # scores are painted as they come, whichever docks are open
        painter_of(self.session)
        self.trainer = trainer_of(self.session)
        self._provisional = ""
        self._judged = False
        self.recording_name = QLabel()
        self.recording_name.setWordWrap(True)
        self.choice = TrainingChoice(self.session)
        self.factors, self.form = self.choice.factors, self.choice.form
        self.name = QLineEdit()
        self.name.setPlaceholderText("name of the run")
        self.name.setToolTip("What the run will be called in the list below; you can rename it.")
        self.train_button = QPushButton("Train")
        self.cancel_button = QPushButton("Cancel")
        self.cancel_button.setToolTip("Stop; what was learned so far is kept if it can be.")
        self.sweep_button = SweepButton(self.session, self.choice.asked_for)
        self.why_not = QLabel()
        self.why_not.setWordWrap(True)
        self.progress = TrainingBar()
        self.device = DeviceLabel(self.session)
        self.plot = LearningPlot()
        self.notice = Notice()
        self.runs = RunList(self.session)
        self.next = NextStep(self.session, "Attribution")
        self._lay_out()
        self.train_button.clicked.connect(lambda _=False: self.train())
        self.cancel_button.clicked.connect(lambda _=False: self.cancel())
        self.choice.changed.connect(self._mark_ready)
        self.form.changed.connect(self._show_device)
        self.runs.said.connect(self._say)
        self.runs.comparing.connect(self.compare)
        self.runs.carrying.connect(self.carry)
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
            factors, settings = self.choice.asked_for()
        except InputError as error:
            self._say(str(error), "problem", "")
            return None
        taken, wanted = [run.name for run in opened.runs], self.name.text().strip()
        name = free_name(wanted, taken) if wanted else next_name(taken)
        self.name.clear()
        self.notice.clear()
        # done with: progress, verdict and runs take its place
        self.choice.fold()
        if others := self.choice.together.chosen:
            return self.trainer.start_together(opened, others, name, factors, settings)
        live = self.choice.live.isChecked()
        return self.trainer.start(opened, name, factors, settings, live=live)

    def carry(self, recording: str, run: Run, how: How = "auto") -> Job | None:
        """Bring a run of another recording to this one; returns its job."""
        opened = self.session.current
        if opened is None or self.busy:
            return None
        self.notice.clear()
        taken = [own.name for own in opened.runs]
        return self.trainer.carry(opened, free_name(f"{run.name} of {recording}", taken), run, how)

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
        self.plot.follow(self.trainer.course)
        self.plot.setVisible(self.busy or self.session.shown_run is not None)
        self.progress.show_training(self.trainer)

    # ------------------------------------------------------------ showing

    def _show_recording(self) -> None:
        opened = self.session.current
        self.choice.show_recording(opened, [o for o in self.session.opened if o is not opened])
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
        self._mark_ready()

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
        tone = tone_of_all(goodness.strength for goodness in run.fit.goodness.values())
        lines = run.fit.summary().splitlines()
        if run.fit.notes:
            lines, tone = [*run.fit.notes, *lines], "warning"
        self.notice.say("\n".join(f"• {line}" for line in lines), tone, help=VERDICT_HELP)

    def _mark_ready(self) -> None:
        reason = self._why_not()
        self.train_button.setEnabled(not reason)
        self.train_button.setToolTip(reason or "Train an encoder on the ticked factors.")
        # that a run is trained, or no recording open, is seen already
        said = bool(reason) and not self.busy and self.session.current is not None
        self.why_not.setText(reason)
        self.why_not.setVisible(said)
        others = len(self.choice.together.chosen)
        self.train_button.setText(f"Train {others + 1} together" if others else "Train")
        self.cancel_button.setEnabled(self.busy)
        self._say_next(ready=not reason)

    def _say_next(self, *, ready: bool) -> None:
        painted = bool(self.session.runs) or self.session.live is not None
        if painted:
            sentence = "Next: see which cells, in Attribution."
        elif self.busy:
            sentence = "The cells are painted as soon as there is a map."
        else:
            sentence = "Next: tick what you ask about, and press Train." if ready else ""
        self.next.say(sentence, there=painted)

    def _why_not(self) -> str:
        """Why training cannot begin; empty if it can."""
        if self.session.current is None:
            return "Open a recording first."
        if self.busy:
            return "A run is being trained."
        return self.choice.why_not(self.session.current.recording)
