"""A line below the scores: a question with a button, then progress, then what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.widgets.computation import computation_of
from napari_xcebra.widgets.work_bar import WorkBar

if TYPE_CHECKING:
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Opened, Session


class QuestionRow(QWidget):
    """Has something computed of the run that is shown, and narrows the cells by the answer.

    Parameters
    ----------
    session : Session
    progress, stop, only : str
        Help on the bar, on the button that stops, and on the box that narrows.
    """

    asked = Signal()

    def __init__(self, session: Session, *, progress: str, stop: str, only: str) -> None:
        super().__init__()
        self._session = session
        self._computation = computation_of(session)
        self.sentence = QLabel()
        self.sentence.setWordWrap(True)  # many cells must not widen the dock
        self.progress = WorkBar(progress)
        self.stop = QPushButton("Cancel")
        self.stop.setToolTip(stop)
        self.stop.clicked.connect(lambda _=False: self._computation.cancel())
        self.only = QCheckBox("only these")
        self.only.setToolTip(only)

    def _lay_out(self, number: QWidget, button: QPushButton) -> None:
        """Put the parts in a line; a row may add more below it."""
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.progress, 4)
        for part in (number, button, self.stop, self.only):
            row.addWidget(part)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self._column.addLayout(row)
        # never all at once, which would widen the dock
        for part in (self.progress, self.stop, self.only):
            part.hide()
        button.clicked.connect(lambda _=False: self.start())

    def start(self) -> None:
        """Have the question answered of the run that is shown."""
        opened, run = self._session.current, self._session.shown_run
        if opened is not None and run is not None:
            self.asked.emit()
            self._ask(opened, run)

    def _ask(self, opened: Opened, run: Run) -> None:
        raise NotImplementedError

    def _change(self, **what: Any) -> None:
        self._session.shown = replace(self._session.shown, **what)

    def _show_progress(self, doing: str, *, running: bool) -> None:
        words = self.progress.show_work(self._computation, running=running, doing=doing)
        self.sentence.setText(words)

    def _tick_only(self, only: bool) -> None:
        self.only.blockSignals(True)
        self.only.setChecked(only)
        self.only.blockSignals(False)
