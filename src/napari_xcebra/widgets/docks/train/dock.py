"""Trains in the background, and shows how it goes, the verdict, and how it was learned."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QLabel, QPushButton, QScrollArea, QStackedWidget, QWidget

from napari_xcebra.jobs import Job
from napari_xcebra.runs import Run, free_name, next_name
from napari_xcebra.widgets.controls.boxes import PlainLabel, plain, primary_button
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
from napari_xcebra.widgets.docks.train.run_list import RunList
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.training_plots import LearningPlot
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari

    from napari_xcebra.jobs import Advanced
    from napari_xcebra.learn import Fit
    from napari_xcebra.learn.adaptation import How


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
        self.runs = RunList(services)
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
        self.runs.comparing.connect(self.compare)
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
        parts = (self.recording_name, self.choice, self.runs, self.verdict)
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
        factors, settings = self.choice.asked_for()
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
