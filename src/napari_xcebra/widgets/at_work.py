"""What the background processes do for a session, as the docks follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psygnal import Signal

from napari_xcebra.widgets.per_session import OfSession

if TYPE_CHECKING:
    from napari_xcebra.jobs import Job
    from napari_xcebra.widgets.session import Session


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

    @property
    def busy(self) -> bool:
        """Whether a job is under way, or waits for its turn."""
        return self._job is not None
