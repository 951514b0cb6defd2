"""A question before a window is closed on work that would be lost with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtWidgets import QMessageBox

from napari_xcebra.widgets.at_work import at_stake_in
from napari_xcebra.widgets.kept_runs import unsaved_in

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session


class AskBeforeClosing(QObject):
    """Asks once, in words, before the user closes a window with work or runs that are not saved.

    napari asks of its own accord whether to close, but knows nothing of what is under way. A
    script that closes its viewer is not asked.

    Parameters
    ----------
    session : Session
    window : QMainWindow
        napari's.
    """

    def __init__(self, session: Session, window: Any) -> None:
        super().__init__(window)
        self._session = ref(session)
        self._window: Any = window
        self._agreed = False
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Keep the window open where the user wants it to be."""
        if event is None or event.type() != QEvent.Type.Close:
            return False
        session = self._session()
        at_stake = _at_stake_in(session) if session is not None else []
        # a script closes what is in the window before the window
        if self._agreed or not at_stake or not self._window._qt_viewer.isVisible():
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
        question.setText("\n".join(at_stake))
        question.setInformativeText("Close the window all the same?")
        close = question.addButton("Close", QMessageBox.ButtonRole.DestructiveRole)
        stay = question.addButton("Keep it open", QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(stay)
        question.exec()
        return question.clickedButton() is close


def _at_stake_in(session: Session) -> list[str]:
    unsaved = unsaved_in(session)
    return [*at_stake_in(session), *([unsaved] if unsaved else [])]
