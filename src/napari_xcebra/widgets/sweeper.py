"""A sweep that is under way; it goes on when its window is closed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.jobs import Advanced, Cancelled, Failed, Finished, Job
from napari_xcebra.sweeps.task import Place, SweepTask
from napari_xcebra.widgets.at_work import AtWork
from napari_xcebra.widgets.background import listen
from napari_xcebra.widgets.per_session import one_per_session

if TYPE_CHECKING:
    from napari_xcebra.jobs import Event
    from napari_xcebra.sweeps import Sweep
    from napari_xcebra.widgets.session import Session

GRACE = 10.0
"""Seconds in which a sweep that is stopped writes what it has."""
NEXT = "Next: select one in the table and press Open run to see its map, or Report for all."


class Sweeper(AtWork):
    """Runs one sweep at a time, in a process of its own: training and maps need not wait.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.stopping = False
        self.progress: Advanced | None = None
        self.folder: Path | None = None
        """Where the last sweep was written."""

    def start(self, sweep: Sweep, folder: Path, place: Place) -> Job | None:
        """Run a sweep; None if one is under way."""
        if self.busy:
            return None
        self.folder, self.progress, self.stopping = folder, None, False
        self._job = job = self.session.second_worker.submit(SweepTask(sweep, folder, place))
        listen(job.events(), self._on, session=self.session)
        self.changed.emit()
        return job

    @property
    def at_stake(self) -> str:
        """The runs that are under way: the others are on disk."""
        return "A sweep is under way. What is finished is kept; Start goes on with it next time."

    def cancel(self) -> None:
        """Stop; what is finished is kept."""
        if self._job is not None:
            self.stopping = True
            self._job.cancel(GRACE)
            self.changed.emit()

    def _on(self, event: Event) -> None:
        if isinstance(event, Advanced):
            self.progress = event
        elif isinstance(event, Finished | Cancelled | Failed):
            self._job = None
        self.changed.emit()
        if isinstance(event, Failed):
            self.said.emit(event.sentence, "problem", event.details)
        elif isinstance(event, Finished) and self.progress is not None:
            self.said.emit(f"{self.progress.phase} are finished. {NEXT}", "good", "")
        elif isinstance(event, Cancelled):
            self.said.emit(
                "Stopped. What is finished is kept; Start goes on with the rest.", "plain", ""
            )


sweeper_of = one_per_session(Sweeper)
"""The sweeper of a session."""
