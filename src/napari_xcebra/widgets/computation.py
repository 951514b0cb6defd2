"""An attribution that is being computed; it goes on when the dock is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psygnal import Signal

from napari_xcebra.attribution.method_notes import frames_for
from napari_xcebra.jobs import (
    Advanced,
    AttributeTask,
    Cancelled,
    Failed,
    Finished,
    Job,
    Started,
)
from napari_xcebra.widgets.background import listen
from napari_xcebra.widgets.per_session import OfSession, one_per_session

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.jobs import Event
    from napari_xcebra.learn import Fit
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Opened, Session


class Computation(OfSession):
    """Computes one attribution at a time and adds it to its run.

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
        self.method = ""
        self.started = False
        self.progress: Advanced | None = None

    @property
    def busy(self) -> bool:
        """Whether it is under way, or waits for its turn."""
        return self._job is not None

    def start(self, opened: Opened, run: Run, method: str) -> Job | None:
        """Compute an attribution of a run; None if another is under way."""
        if self.busy:
            return None
        task = AttributeTask(run.fit, opened.recording, method, frames_for(method))
        self.method, self.started, self.progress = method, False, None
        self._job = job = self.session.worker.submit(task)
        listen(job.events(), lambda event: self._on(event, opened, run.fit))
        self.changed.emit()
        return job

    def cancel(self) -> None:
        """Stop; nothing is kept."""
        if self._job is not None:
            self._job.cancel()

    def _on(self, event: Event, opened: Opened, fit: Fit) -> None:
        if isinstance(event, Started):
            self.started = True
        elif isinstance(event, Advanced):
            self.progress = event
        else:
            self._job = None
        if isinstance(event, Finished):
            self._keep(event.result, opened, fit)
        elif isinstance(event, Failed):
            self.said.emit(event.sentence, "problem", event.details)
        elif isinstance(event, Cancelled):
            self.said.emit("Stopped: no scores were kept.", "plain", "")
        self.changed.emit()

    def _keep(self, attribution: Attribution | None, opened: Opened, fit: Fit) -> None:
        """Add it to the run, which may have been renamed or removed meanwhile."""
        run = opened.run_of(fit)
        if run is not None and attribution is not None:
            self.session.replace_run(run.name, run.with_attribution(attribution))


computation_of = one_per_session(Computation)
"""The computation of a session; made when first asked for."""
