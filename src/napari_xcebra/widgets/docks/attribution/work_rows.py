"""Offers to compute scores, and to test them against chance and across seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QPushButton,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.attribution.methods import EVERY, method_named, title_of_method
from napari_xcebra.text import about, two
from napari_xcebra.widgets.controls.boxes import (
    SMALL,
    NumberBox,
    PlainLabel,
    WholeBox,
    plain,
    primary_button,
    slim,
)
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import WorkBar, takes
from napari_xcebra.widgets.services.run_jobs import Kind, seconds_to_repeat
from napari_xcebra.widgets.state.shown import shown_map

if TYPE_CHECKING:
    from napari_xcebra.attribution.score_map import ScoreMap
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.services.jobs import JobQueue
    from napari_xcebra.widgets.window import Services
    from napari_xcebra.workspace_file import Opened


class ComputeRow(QWidget):
    """What is missing, with a button to compute it; then its progress, with a button to stop."""

    asked = Signal()
    stopped = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.sentence = PlainLabel(wrap=True)
        self.start = primary_button("Compute")
        self.start.setToolTip("Compute these scores in the background.")
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("Stop; partial results are discarded.")
        self.progress = WorkBar("Progress, and the time left.")
        in_column(self.sentence, in_row((self.progress, 1), (self.start, 1), self.stop), of=self)
        self.start.clicked.connect(lambda _=False: self.asked.emit())
        self.stop.clicked.connect(lambda _=False: self.stopped.emit())

    def show_state(self, missing: str, jobs: JobQueue) -> None:
        """Show a sentence about what is missing, or what is being computed."""
        busy = jobs.busy
        then = f" ({jobs.waiting} more queued)" if jobs.waiting else ""
        doing = f"Computing {jobs.title} …{then}"
        self.sentence.setText(doing if busy else missing)
        self.start.setVisible(not busy)
        self.stop.setVisible(busy)
        self.progress.setVisible(busy)
        if busy:
            self.progress.show_progress(jobs.progress, counts=True)
            if jobs.progress is None:
                self.sentence.setText(f"{self.sentence.text()} {jobs.waits_for}")


def no_scores_by(method: str, run: str) -> str:
    """Say that a run has no scores by a method, and what computing them involves."""
    more = f" This method is slow, so it uses every {EVERY}th frame."
    sentence = f"{run} has no scores by {title_of_method(method)} yet."
    return sentence + more if method_named(method).slow else sentence


class _QuestionRow(QWidget):
    """Answers a question about the painted run, and can show only the cells it picks out.

    `progress`, `stop` and `only` are the tooltips of the bar, the Cancel button and the check box.
    """

    asked = Signal()

    def __init__(self, services: Services, *, progress: str, stop: str, only: str) -> None:
        super().__init__()
        self._state, self._processes = services.state, services.processes
        self._computation, self._run_jobs = services.jobs, services.run_jobs
        self.sentence = PlainLabel(wrap=True)  # many cells must not widen the dock
        self.progress = WorkBar(progress)
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip(stop)
        self.stop.clicked.connect(lambda _=False: self._computation.cancel())
        self.only = QCheckBox("only these")
        self.only.setToolTip(only)

    def _lay_out(self, number: QWidget, button: QPushButton) -> None:
        """Put the parts in a row; subclasses may add more below it."""
        rest = (number, button, self.stop, self.only)
        for quiet in (button, self.stop):
            quiet.setStyleSheet(SMALL)
        line = in_row((self.sentence, 1), (self.progress, 4), *rest, spacing=4)
        self._column = in_column(line, of=self, spacing=2)
        # never all at once, which would widen the dock
        for part in (self.progress, self.stop, self.only):
            part.hide()
        button.clicked.connect(lambda _=False: self.start())

    def start(self) -> None:
        """Answer the question for the painted run."""
        opened, run = self._state.current, self._state.shown_run
        if opened is not None and run is not None:
            self.asked.emit()
            self._ask(opened, run)

    def _ask(self, opened: Opened, run: Run) -> None:
        raise NotImplementedError

    def _change(self, **what: Any) -> None:
        self._state.shown = replace(self._state.shown, **what)

    def _awaits(self, kind: Kind, run: Run, doing: str) -> bool:
        """Whether the answer is being computed; if so, show how far it is."""
        jobs, awaited = self._computation, self._run_jobs.awaits(kind, run)
        self.progress.setVisible(awaited)
        # what comes before it can be stopped where it is shown
        self.stop.setVisible(awaited and jobs.runs(kind))
        if awaited:
            at = jobs.progress if jobs.runs(kind) else None
            self.progress.show_progress(at)
            self.sentence.setText(doing if at else jobs.waits_for.capitalize())
        return awaited

    def _tick_only(self, only: bool) -> None:
        with signals_blocked(self.only):
            self.only.setChecked(only)


CHANCE_QUESTION = "Which cells beat chance?"
CHANCE_HELP = (
    "Compare how much every cell tells about each factor with how much it tells about control "
    "labels: the same labels shifted in time or in another order. Runs in the background. Each "
    "cell gets a q-value, whichever method is shown."
)
CHANCE_ONLY = "Show only these cells in the table, and dim the others in the image."


class SignificanceRow(_QuestionRow):
    """Asks which cells beat chance, then counts them, with a limit for q."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services,
            progress="Progress of the test, and the time left.",
            stop="Stop; partial results are discarded.",
            only=CHANCE_ONLY,
        )
        self.test = QPushButton("Test")
        self.test.setToolTip(CHANCE_HELP)
        self.limit = NumberBox(
            "Largest q to accept: at 0.1, about a tenth of these cells are expected to be "
            "there by chance."
        )
        self.limit.setRange(0, 1)
        self.limit.setSingleStep(0.01)
        self.limit.setDecimals(3)
        self.how = PlainLabel(wrap=True)
        self._lay_out(self.limit, self.test)
        self._column.addWidget(self.how)
        for part in (self.limit, self.how):
            part.hide()
        self.limit.valueChanged.connect(lambda limit: self._change(q_limit=limit))
        self.only.toggled.connect(lambda only: self._change(q_only=only))

    def _ask(self, opened: Opened, run: Run) -> None:
        self._run_jobs.test(opened, run)

    # ------------------------------------------------------------ what is shown

    def show_shown(self) -> None:
        """Show the state of the painted run."""
        opened, run = self._state.current, self._state.shown_run
        painted = shown_map(self._state)
        if opened is None or run is None or painted is None:
            return
        awaited = self._awaits("test", run, "Testing")
        tested = painted.attribution.significance is not None and not awaited
        counted = tested and painted.q is not None
        for part in (self.limit, self.only):
            part.setVisible(counted)
        self.test.setVisible(not awaited and not tested)
        self.how.setVisible(tested)
        self.sentence.setVisible(not tested or counted)
        if tested:
            self._show_result(painted)
        elif not awaited:
            self.sentence.setText(CHANCE_QUESTION)
            seconds = self._run_jobs.seconds_to_test(opened, run)
            self.test.setText(f"Test{takes(seconds, ready=self._processes.ready())}")

    def _show_result(self, painted: ScoreMap) -> None:
        shown, tested = self._state.shown, painted.attribution.significance
        assert tested is not None
        how = tested.how(painted.factor)
        self.how.setText(tested.in_short(painted.factor) or how)
        for part in (self.sentence, self.how):
            part.setToolTip(plain(how))
        if painted.q is None:
            return
        found = int(painted.significant(shown.q_limit).sum())
        self.sentence.setText(f"{found} of {int(np.isfinite(painted.q).sum())} cells with q ≤")
        self.limit.show_number(shown.q_limit)
        self._tick_only(shown.q_only)


SEEDS_QUESTION = "Do other seeds agree?"
SEEDS_HELP = (
    "Train {more} more times with other seeds and the same settings, in the background "
    "({time}). The table then shows how much every score and rank varies, and the consensus of "
    "the seeds can be chosen as the method."
)
RESULT = (
    "Stable cells: on the same side of the threshold by every seed, with ranks within a "
    "quarter of the cells. Mean rank correlation between two seeds: {rho}. To paint the "
    "consensus of the seeds, choose it as the method."
)
SEEDS_ONLY = (
    "Show only cells on which all seeds agree, above or below the threshold, and dim the "
    "others in the image."
)
TOGETHER = (
    "Trained together with {others}. To see whether other seeds agree, train them together "
    "again with another Seed (Train ▸ Details) and compare the runs."
)
USUAL = 4
"""Additional seeds to suggest."""


class StabilityRow(_QuestionRow):
    """Asks whether other seeds agree, then counts stable cells, with a button for more seeds."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services,
            progress="Progress of the training runs, and the time left.",
            stop="Stop; finished seeds are kept.",
            only=SEEDS_ONLY,
        )
        self.more = WholeBox()
        slim(self.more, 28)
        self.more.setRange(1, 50)
        self.more.setValue(USUAL)
        self.more.setToolTip("How many more times to train, each with another seed.")
        self.repeat = QPushButton()
        self._lay_out(self.more, self.repeat)
        self.more.valueChanged.connect(lambda _: self.show_shown())
        self.only.toggled.connect(lambda only: self._change(stable_only=only))

    def _ask(self, opened: Opened, run: Run) -> None:
        self._run_jobs.repeat(opened, run, self._state.shown.method, self.more.value())

    # ------------------------------------------------------------ what is shown

    def show_shown(self) -> None:
        """Show the state of the painted run."""
        run, painted = self._state.shown_run, shown_map(self._state)
        if run is None or painted is None:
            return
        awaited = self._awaits("repeat", run, "Training")
        repeated = painted.over_seeds is not None
        self.repeat.setVisible(not awaited)
        self.more.setVisible(not awaited and not repeated)
        self.only.setVisible(not awaited and repeated)
        if awaited:
            return
        self._offer(run, repeated=repeated)
        if repeated:
            self._show_result(painted)

    def _offer(self, run: Run, *, repeated: bool) -> None:
        if run.fit.together:
            # trained alone, its scores could not be compared with these
            self.repeat.hide()
            self.more.hide()
            self.sentence.setText(TOGETHER.format(others=", ".join(run.fit.together)))
            self.sentence.setToolTip("")
            return
        more = self.more.value()
        seconds = seconds_to_repeat(run, more)
        self.repeat.setText("More" if repeated else f"Repeat{takes(seconds)}")
        self.repeat.setToolTip(SEEDS_HELP.format(more=more, time=about(seconds)))
        self.sentence.setText(SEEDS_QUESTION)
        self.sentence.setToolTip(self.repeat.toolTip())

    def _show_result(self, painted: ScoreMap) -> None:
        by_seed, shown = painted.over_seeds, self._state.shown
        assert by_seed is not None
        stable, known = int(painted.stable(shown.threshold).sum()), int(painted.known.sum())
        self.sentence.setText(f"{stable} of {known} stable over {len(by_seed.seeds)} seeds")
        self.sentence.setToolTip(RESULT.format(rho=two(by_seed.agreement(painted.factor))))
        self._tick_only(shown.stable_only)
