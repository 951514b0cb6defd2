"""Trains with several numbers of latents, and suggests one."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QDialog,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.suggestions import latents_for
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import PlainLabel, WholeBox, plain
from napari_xcebra.widgets.controls.layouts import in_form, in_row
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.controls.notice import Notice, WorkBar, takes
from napari_xcebra.widgets.docks.train.factor_table import AskedFor
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.training_plots import DimensionPlot
from napari_xcebra.widgets.services.sweeps import Trial
from napari_xcebra.widgets.window import Services

HELP = (
    "Too few latents miss part of the signal; with too many, some differ from seed to seed. "
    "This trains several numbers of latents with several seeds each, and suggests the largest "
    "number at which the seeds agree best. Factors and settings come from the Train dock."
)
MOST = 16
"""Latents to try at most; more than the activity of most recordings tells."""


class Range(QWidget):
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


class DimensionWindow(QDialog):
    """What to try, how long that takes, progress, and then a plot with a suggestion."""

    chosen = Signal(object)
    """`Latents` that the user chose."""

    def __init__(self, services: Services, asked_for: AskedFor, parent: QWidget) -> None:
        super().__init__(parent)
        self.state, self._asked_for = services.state, asked_for
        self.jobs = services.jobs
        self.search = services.dimension_search
        self._factor = ""
        self.setWindowTitle("How many latents?")
        self.resize(640, 620)
        self._make_parts()
        self._lay_out()
        self._connect()
        self._show_theme()

    def _make_parts(self) -> None:
        self.heading = PlainLabel(HELP, wrap=True)
        self.of_time = Range("Latents for what was not observed", 1, 4)
        self.of_factor = Range("Latents of the ticked factor", 1, 1)
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
        self.reason, self.notice = Notice(), Notice()
        self.use = QPushButton()

    def _lay_out(self) -> None:
        self._form = in_form(
            ("Time latents", self.of_time),
            ("Latents of the factor", self.of_factor),
            ("Seeds", self.seeds),
        )
        layout = QVBoxLayout(self)
        layout.addWidget(self.heading)
        layout.addLayout(self._form)
        layout.addLayout(in_row((self.sentence, 1), (self.progress, 1), self.start, self.stop))
        layout.addWidget(self.plot, 1)
        for notice in (self.reason, self.notice):
            layout.addWidget(notice)
        layout.addWidget(self.use, 0, Qt.AlignmentFlag.AlignRight)

    def _connect(self) -> None:
        self.start.clicked.connect(lambda _=False: self.begin())
        self.stop.clicked.connect(lambda _=False: self.jobs.cancel())
        self.use.clicked.connect(lambda _=False: self._choose())
        for part in (self.of_time, self.of_factor):
            part.changed.connect(self._show)
        self.seeds.valueChanged.connect(lambda _: self._show())
        for signal, method in (
            (self.state.recording_changed, self._show),
            (self.state.recording_changed, self._show_found),
            (self.state.runs_changed, self._show),
            (self.search.changed, self._show_found),
            (self.jobs.changed, self._show),
            (self.jobs.said, self._say),
            (self.state.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)

    # ------------------------------------------------------------ what the user does

    def begin(self) -> None:
        """Train with the chosen numbers."""
        try:
            trial = self.trial()
        except InputError as error:
            self._say(str(error), "problem", "")
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

    def showEvent(self, event: Any) -> None:
        """Show what changed while it was closed."""
        super().showEvent(event)
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
