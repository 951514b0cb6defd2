"""Asks before a window is closed on work that would be lost, and gives back its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

from qtpy.QtCore import QEvent, QObject, Qt, QTimer
from qtpy.QtWidgets import QMessageBox

from napari_xcebra.support.memory import give_back_memory
from napari_xcebra.widgets.controls.napari_window import viewer_part

LATER = 1000
"""Milliseconds after which what is deleted with a window is gone."""


class AskBeforeClosing(QObject):
    """Asks once before the user closes a window with work under way or unsaved runs.

    napari also asks whether to close, but does not know what is under way. A script that closes
    its viewer is not asked. `at_stake`, a bound method, returns what would be lost, as sentences.
    """

    def __init__(self, at_stake: Callable[[], list[str]], window: Any) -> None:
        super().__init__(window)
        self._at_stake = WeakMethod(at_stake)
        self._window: Any = window
        self._agreed = False
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Keep the window open if the user says so."""
        if event is None or event.type() != QEvent.Type.Close:
            return False
        QTimer.singleShot(LATER, give_back_memory)
        ask = self._at_stake()
        at_stake = ask() if ask is not None else []
        # a script closes what is in the window before the window
        if self._agreed or not at_stake or not viewer_part(self._window).isVisible():
            return False
        self._agreed = self._ask(at_stake)
        if self._agreed and not event.spontaneous():
            return False
        event.ignore()
        if self._agreed:
            # as a program does it: napari would ask a second time
            QTimer.singleShot(0, self._window.close)
        return True

    def _ask(self, at_stake: list[str]) -> bool:
        question = QMessageBox(self._window)
        question.setIcon(QMessageBox.Icon.Question)
        question.setWindowTitle("Close the window?")
        question.setTextFormat(Qt.TextFormat.PlainText)  # runs are named by users and files
        question.setText("\n".join(at_stake))
        question.setInformativeText("Close the window anyway?")
        close = question.addButton("Close", QMessageBox.ButtonRole.DestructiveRole)
        stay = question.addButton("Keep it open", QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(stay)
        question.exec()
        return question.clickedButton() is close
