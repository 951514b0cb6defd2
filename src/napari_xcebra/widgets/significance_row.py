"""Which cells are more than chance: offers the test, says how it goes, and what came of it."""

from __future__ import annotations

import numpy as np
from qtpy.QtWidgets import QLabel, QPushButton

from napari_xcebra.runs import Run
from napari_xcebra.widgets.number_box import NumberBox
from napari_xcebra.widgets.question_row import QuestionRow
from napari_xcebra.widgets.score_map import ScoreMap, shown_map
from napari_xcebra.widgets.session import Opened, Session
from napari_xcebra.widgets.testing import testing_of
from napari_xcebra.widgets.work_bar import takes

QUESTION = "Which cells beat chance?"
HELP = (
    "Compare what every cell says of every factor with what it says of other labels, the same "
    "shifted in time or put in another order, in the background. Each cell gets a q, whichever "
    "method is shown."
)
ONLY = "Show only these cells in the table, and let the others fade in the image."


class SignificanceRow(QuestionRow):
    """Which cells beat chance? Then a count of them, with a limit to it.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(
            session,
            progress="How far the test is, and the time left.",
            stop="Stop testing; nothing is kept.",
            only=ONLY,
        )
        self._testing = testing_of(session)
        self.test = QPushButton("Test")
        self.test.setToolTip(HELP)
        self.limit = NumberBox(
            "Largest q that counts: at 0.1, a tenth of these cells is expected to be there by "
            "chance."
        )
        self.limit.setRange(0, 1)
        self.limit.setSingleStep(0.01)
        self.limit.setDecimals(3)
        self.how = QLabel()
        self.how.setWordWrap(True)
        self._lay_out(self.limit, self.test)
        self._column.addWidget(self.how)
        for part in (self.limit, self.how):
            part.hide()
        self.limit.valueChanged.connect(lambda limit: self._change(q_limit=limit))
        self.only.toggled.connect(lambda only: self._change(q_only=only))

    def _ask(self, opened: Opened, run: Run) -> None:
        self._testing.start(opened, run)

    # ------------------------------------------------------------ what is shown

    def show_shown(self) -> None:
        """Show where the run that is shown stands."""
        opened, run, painted = (
            self._session.current,
            self._session.shown_run,
            shown_map(self._session),
        )
        if opened is None or run is None or painted is None:
            return
        awaited = self._testing.awaited(run)
        tested = painted.attribution.significance is not None and not awaited
        counted = tested and painted.q is not None
        for part in (self.limit, self.only):
            part.setVisible(counted)
        self.test.setVisible(not awaited and not tested)
        self.progress.setVisible(awaited)
        # what comes before it can be stopped where it is shown
        self.stop.setVisible(awaited and self._testing.running)
        self.how.setVisible(tested)
        self.sentence.setVisible(not tested or counted)
        if awaited:
            self._show_progress("Testing", running=self._testing.running)
        elif tested:
            self._show_result(painted)
        else:
            self.sentence.setText(QUESTION)
            seconds = self._testing.seconds(opened, run)
            self.test.setText(f"Test{takes(seconds, ready=self._session.ready())}")

    def _show_result(self, painted: ScoreMap) -> None:
        shown, tested = self._session.shown, painted.attribution.significance
        assert tested is not None
        how = tested.how(painted.factor)
        self.how.setText(tested.in_short(painted.factor) or how)
        for part in (self.sentence, self.how):
            part.setToolTip(how)
        if painted.q is None:
            return
        found = int(painted.significant(shown.q_limit).sum())
        self.sentence.setText(f"{found} of {int(np.isfinite(painted.q).sum())} cells with q ≤")
        self.limit.show_number(shown.q_limit)
        self._tick_only(shown.q_only)
