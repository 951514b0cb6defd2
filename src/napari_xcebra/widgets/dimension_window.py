"""How many latents? Trains with several numbers of them, and suggests one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.learn.parts import Factor
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.learn.suggestions import latents_for
from napari_xcebra.widgets.computation import computation_of
from napari_xcebra.widgets.dimension_plot import DimensionPlot
from napari_xcebra.widgets.dimension_search import Trial, dimension_search_of
from napari_xcebra.widgets.lifetime import follow
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.plot_style import style_of
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.work_bar import WorkBar, takes

AskedFor = Callable[[], tuple[dict[str, Factor], FitSettings]]
"""Factors and settings as they are chosen; raises `InputError` where they do not fit."""

HELP = (
    "An embedding with too few latents leaves out what is there; with too many, some are free to "
    "differ from seed to seed. So train with several numbers of latents and several seeds each, "
    "and take the most at which the seeds agree best. Factors and settings are those of the "
    "Train dock."
)
MOST = 16
"""Latents to try at most; more than the activity of most recordings tells."""


class DimensionButton(QPushButton):
    """Opens the window.

    Parameters
    ----------
    session : Session
    asked_for : callable
    """

    chosen = Signal(object)
    """`Latents` that the user takes."""

    def __init__(self, session: Session, asked_for: AskedFor) -> None:
        super().__init__("How many latents?")
        self.setToolTip("Train with several numbers of latents, and see at which the seeds agree.")
        self.opened = DimensionWindow(session, asked_for, self)
        self.opened.chosen.connect(self.chosen)
        self.clicked.connect(lambda _=False: self.open())

    def open(self) -> None:
        """Open the window, or bring it to the front."""
        self.opened.show()
        self.opened.raise_()


class Range(QWidget):
    """Two boxes: from, and to.

    Parameters
    ----------
    tooltip : str
    """

    changed = Signal()

    def __init__(self, tooltip: str, first: int, last: int) -> None:
        super().__init__()
        self.first, self.last = QSpinBox(), QSpinBox()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for box, value, word in ((self.first, first, "from"), (self.last, last, "to")):
            box.setRange(1, MOST)
            box.setValue(value)
            box.setToolTip(f"{tooltip} {word.capitalize()} this number.")
            row.addWidget(QLabel(word))
            row.addWidget(box)
            box.valueChanged.connect(lambda _: self.changed.emit())
        row.addStretch(1)

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them."""
        low, high = sorted((self.first.value(), self.last.value()))
        return tuple(range(low, high + 1))


class DimensionWindow(QDialog):
    """What to try, how long that takes, progress, and then a plot with a suggestion.

    Parameters
    ----------
    session : Session
    asked_for : callable
    parent : QWidget
        It closes together with.
    """

    chosen = Signal(object)

    def __init__(self, session: Session, asked_for: AskedFor, parent: QWidget) -> None:
        super().__init__(parent)
        self.session, self._asked_for = session, asked_for
        self.computation = computation_of(session)
        self.search = dimension_search_of(session)
        self._factor = ""
        self.setWindowTitle("How many latents?")
        self.resize(640, 620)
        self._make_parts()
        self._lay_out()
        self._connect()
        self._show_theme()

    def _make_parts(self) -> None:
        self.heading = QLabel(HELP)
        self.heading.setWordWrap(True)
        self.of_time = Range("Latents for what was not observed.", 1, 4)
        self.of_factor = Range("Latents of the one factor that is ticked.", 1, 1)
        self.seeds = QSpinBox()
        self.seeds.setRange(2, 10)
        self.seeds.setValue(3)
        self.seeds.setMaximumWidth(130)
        self.seeds.setToolTip("Trainings at each number of latents, each with another seed.")
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)
        self.start = QPushButton()
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("Stop; the numbers of latents that are finished are kept.")
        self.progress = WorkBar("How far the trainings are, and the time left.")
        self.plot = DimensionPlot()
        self.reason, self.notice = Notice(), Notice()
        self.use = QPushButton()

    def _lay_out(self) -> None:
        self._form = QFormLayout()
        self._form.addRow("Time latents", self.of_time)
        self._form.addRow("Latents of the factor", self.of_factor)
        self._form.addRow("Seeds", self.seeds)
        row = QHBoxLayout()
        row.addWidget(self.sentence, 1)
        row.addWidget(self.progress, 1)
        for button in (self.start, self.stop):
            row.addWidget(button)
        layout = QVBoxLayout(self)
        layout.addWidget(self.heading)
        layout.addLayout(self._form)
        layout.addLayout(row)
        layout.addWidget(self.plot, 1)
        for notice in (self.reason, self.notice):
            layout.addWidget(notice)
        layout.addWidget(self.use, 0, Qt.AlignmentFlag.AlignRight)

    def _connect(self) -> None:
        self.start.clicked.connect(lambda _=False: self.begin())
        self.stop.clicked.connect(lambda _=False: self.computation.cancel())
        self.use.clicked.connect(lambda _=False: self._choose())
        for part in (self.of_time, self.of_factor):
            part.changed.connect(self._show)
        self.seeds.valueChanged.connect(lambda _: self._show())
        for signal, method in (
            (self.session.recording_changed, self._show),
            (self.session.runs_changed, self._show),
            (self.search.changed, self._show_found),
            (self.computation.changed, self._show),
            (self.computation.said, self._say),
            (self.session.viewer.events.theme, self._show_theme),
        ):
            follow(self, signal, method)

    # ------------------------------------------------------------ what the user does

    def begin(self) -> None:
        """Train with the numbers that are chosen."""
        try:
            trial = self.trial()
        except InputError as error:
            self._say(str(error), "problem", "")
            return
        self.notice.clear()
        self.search.start(trial)

    def trial(self) -> Trial:
        """What is to be tried; raises `InputError` where it cannot be."""
        if self.session.recording is None:
            raise InputError("Open a recording first.")
        factors, settings = self._asked_for()
        if not factors and settings.mode != "time":
            raise InputError("Tick at least one factor in the Train dock.")
        has_time = settings.mode in ("hybrid", "time")
        return Trial(
            self.session.recording,
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
        """Catch up with what changed while it was closed."""
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
            running = self.search.running
            words = self.progress.show_work(self.computation, running=running, doing="Training")
            self.sentence.setText(words)
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
            f"{sizes} number{'s' * (sizes != 1)} of latents × {trial.seeds} seeds: "
            f"{sizes * trial.seeds} trainings of {steps} steps."
        )
        opened = self.session.current
        timed = [run.fit for run in opened.runs if run.fit.seconds > 0] if opened else []
        seconds = trial.seconds(timed[-1] if timed else None)
        self.start.setEnabled(True)
        self.start.setText(f"Try{takes(seconds)}")
        self.start.setToolTip("Train in the background; the window can be closed meanwhile.")

    def _suit(self, trial: Trial) -> None:
        """Show the rows that mean something, for the factor that is ticked."""
        one = next(iter(trial.factors)) if len(trial.factors) == 1 else ""
        for row, there in ((self.of_time, bool(trial.time_latents)), (self.of_factor, bool(one))):
            label = self._form.labelForField(row)
            for part in (row, label):
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
        self.use.setToolTip(f"Set the latents of{of_factor} time in the Train dock.")

    def _say(self, sentence: str, tone: Any, details: str) -> None:
        if self.isVisible():
            self.notice.say(sentence, tone, details)

    def _show_theme(self, *_: Any) -> None:
        self.plot.follow_theme(style_of(self.session.viewer.theme))
