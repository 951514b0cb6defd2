"""Which cells are more than chance: offers the test, says how it goes, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.widgets.computation import computation_of
from napari_xcebra.widgets.number_box import NumberBox
from napari_xcebra.widgets.score_map import ScoreMap, shown_map
from napari_xcebra.widgets.session import Session
from napari_xcebra.widgets.testing import testing_of
from napari_xcebra.widgets.work_bar import WorkBar, takes

QUESTION = "Which cells beat chance?"
HELP = (
    "Compare what every cell says of every factor with the same traces shifted in time, in the "
    "background. Each cell gets a q, whichever method is shown."
)
ONLY = "Show only these cells in the table, and let the others fade in the image."


class SignificanceRow(QWidget):
    """One line: a question with a button, then progress, then a count with a limit to it.

    Parameters
    ----------
    session : Session
    """

    asked = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._testing = testing_of(session)
        self._computation = computation_of(session)
        self._make_parts()
        self._lay_out()
        self.test.clicked.connect(lambda _=False: self.start())
        self.stop.clicked.connect(lambda _=False: self._computation.cancel())
        self.limit.valueChanged.connect(lambda limit: self._change(q_limit=limit))
        self.only.toggled.connect(lambda only: self._change(q_only=only))

    def _make_parts(self) -> None:
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)  # many cells must not widen the dock
        self.test = QPushButton("Test")
        self.test.setToolTip(HELP)
        self.progress = WorkBar("How far the test is, and the time left.")
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip("Stop testing; nothing is kept.")
        self.limit = NumberBox(
            "Largest q that counts: at 0.1, a tenth of these cells is expected to be there by "
            "chance."
        )
        self.limit.setRange(0, 1)
        self.limit.setSingleStep(0.01)
        self.limit.setDecimals(3)
        self.only = QCheckBox("only these")
        self.only.setToolTip(ONLY)
        self.how = QLabel()
        self.how.setWordWrap(True)

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.progress, 4)
        for part in (self.limit, self.test, self.stop, self.only):
            row.addWidget(part)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(row)
        layout.addWidget(self.how)
        # never all at once, which would widen the dock
        for part in (self.limit, self.only, self.progress, self.stop, self.how):
            part.hide()

    def start(self) -> None:
        """Test the run that is shown."""
        opened, run = self._session.current, self._session.shown_run
        if opened is not None and run is not None:
            self.asked.emit()
            self._testing.start(opened, run)

    def _change(self, **what: Any) -> None:
        self._session.shown = replace(self._session.shown, **what)

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
            self._show_progress()
        elif tested:
            self._show_result(painted)
        else:
            self.sentence.setText(QUESTION)
            seconds = self._testing.seconds(opened, run)
            self.test.setText(f"Test{takes(seconds, ready=self._session.ready())}")

    def _show_progress(self) -> None:
        running = self._testing.running
        words = self.progress.show_work(self._computation, running=running, doing="Testing")
        self.sentence.setText(words)

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
        self.only.blockSignals(True)
        self.only.setChecked(shown.q_only)
        self.only.blockSignals(False)
