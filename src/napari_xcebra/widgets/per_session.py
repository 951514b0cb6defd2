"""Things of which each session has one, whichever docks are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session

Made = TypeVar("Made", bound="OfSession")


class OfSession:
    """Belongs to a session, and does not keep it alive.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session = ref(session)

    @property
    def session(self) -> Session:
        """The session it belongs to."""
        session = self._session()
        assert session is not None, "the session is gone"
        return session

    @property
    def session_open(self) -> bool:
        """Whether there still is a session, for what was put off until later."""
        session = self._session()
        return session is not None and not session.closed


def one_per_session(make: Callable[[Session], Made]) -> Callable[[Session], Made]:
    """Function that gives the one of a session, made when first asked for."""
    made: WeakKeyDictionary[Session, Made] = WeakKeyDictionary()

    def of(session: Session) -> Made:
        if session not in made:
            made[session] = make(session)
        return made[session]

    return of
