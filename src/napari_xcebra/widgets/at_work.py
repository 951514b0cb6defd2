"""What the background processes do for a session, as the docks follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from psygnal import Signal

from napari_xcebra.widgets.per_session import OfSession

if TYPE_CHECKING:
    from napari_xcebra.jobs import Job
    from napari_xcebra.widgets.session import Session

_AT_WORK: WeakKeyDictionary[Session, WeakSet[AtWork]] = WeakKeyDictionary()


class AtWork(OfSession):
    """Has one job done at a time, and goes on when the dock that asked for it is closed.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()
    """It began, advanced or ended."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._job: Job | None = None
        _AT_WORK.setdefault(session, WeakSet()).add(self)

    @property
    def at_stake(self) -> str:
        """What is under way and would be lost with the window, as a sentence."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Whether a job is under way, or waits for its turn."""
        return self._job is not None


def at_stake_in(session: Session) -> list[str]:
    """What is under way in a session and would be lost with its window, a sentence each."""
    return sorted(each.at_stake for each in _AT_WORK.get(session, ()) if each.busy)
