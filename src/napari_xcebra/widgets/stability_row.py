"""Which scores stay with other seeds: offers to train again, and says what came of it."""

from __future__ import annotations

from qtpy.QtWidgets import QPushButton, QSpinBox

from napari_xcebra.runs import Run
from napari_xcebra.widgets.number_box import slim
from napari_xcebra.widgets.question_row import QuestionRow
from napari_xcebra.widgets.repeating import repeating_of, seconds_to_repeat
from napari_xcebra.widgets.score_map import ScoreMap, shown_map
from napari_xcebra.widgets.session import Opened, Session
from napari_xcebra.widgets.work_bar import about, takes

QUESTION = "Do other seeds agree?"
HELP = (
    "Train again with {more} other seeds, everything else the same, and score the cells with each, "
    "in the background ({time}). The table then shows how far every score and rank moves, and a "
    "map of what the seeds agree on can be chosen as the method."
)
RESULT = (
    "Stable cells: by every seed on the same side of the threshold, with ranks within a quarter of "
    "the cells. Mean rank correlation between two seeds: {rho}. What they agree on, the consensus, "
    "can be painted: choose it as the method."
)
ONLY = (
    "Show only cells on which all seeds agree, above the threshold or below it; the others fade "
    "in the image."
)
TOGETHER = (
    "Trained together with {others}: to see whether other seeds agree, train them together again "
    "with another Seed (Train, Advanced), and compare the runs."
)
USUAL = 4
"""Seeds beside the one there is."""


class StabilityRow(QuestionRow):
    """Do other seeds agree? Then a count of stable cells, with a button for more seeds.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(
            session,
            progress="How far the trainings are, and the time left.",
            stop="Stop; the seeds that are finished are kept.",
            only=ONLY,
        )
        self._repeating = repeating_of(session)
        self.more = QSpinBox()
        slim(self.more, 28)
        self.more.setRange(1, 50)
        self.more.setValue(USUAL)
        self.more.setToolTip("How many more times to train, each with another seed.")
        self.repeat = QPushButton()
        self._lay_out(self.more, self.repeat)
        self.more.valueChanged.connect(lambda _: self.show_shown())
        self.only.toggled.connect(lambda only: self._change(stable_only=only))

    def _ask(self, opened: Opened, run: Run) -> None:
        self._repeating.start(opened, run, self._session.shown.method, self.more.value())

    # ------------------------------------------------------------ what is shown

    def show_shown(self) -> None:
        """Show where the run that is shown stands."""
        run, painted = self._session.shown_run, shown_map(self._session)
        if run is None or painted is None:
            return
        awaited = self._repeating.awaited(run)
        repeated = painted.over_seeds is not None
        self.progress.setVisible(awaited)
        self.stop.setVisible(awaited and self._repeating.running)
        self.repeat.setVisible(not awaited)
        self.more.setVisible(not awaited and not repeated)
        self.only.setVisible(not awaited and repeated)
        if awaited:
            self._show_progress("Training", running=self._repeating.running)
            return
        self._offer(run, repeated=repeated)
        if repeated:
            self._show_result(painted)

    def _offer(self, run: Run, *, repeated: bool) -> None:
        if run.fit.together:
            # alone it would be another training, whose scores cannot be compared with these
            self.repeat.hide()
            self.more.hide()
            self.sentence.setText(TOGETHER.format(others=", ".join(run.fit.together)))
            self.sentence.setToolTip("")
            return
        more = self.more.value()
        seconds = seconds_to_repeat(run, more)
        self.repeat.setText("More" if repeated else f"Repeat{takes(seconds)}")
        self.repeat.setToolTip(HELP.format(more=more, time=about(seconds)))
        self.sentence.setText(QUESTION)
        self.sentence.setToolTip(self.repeat.toolTip())

    def _show_result(self, painted: ScoreMap) -> None:
        by_seed, shown = painted.over_seeds, self._session.shown
        assert by_seed is not None
        stable, known = int(painted.stable(shown.threshold).sum()), int(painted.known.sum())
        self.sentence.setText(f"{stable} of {known} stable over {len(by_seed.seeds)} seeds")
        rho = f"{by_seed.agreement(painted.factor):.2f}".replace("-", "−")
        self.sentence.setToolTip(RESULT.format(rho=rho))
        self._tick_only(shown.stable_only)
