"""A run that is being trained; it goes on when the dock is closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from psygnal import Signal

from napari_xcebra.attribution.method_notes import FIRST
from napari_xcebra.jobs import Advanced, AttributeTask, Cancelled, Failed, Finished, FitTask, Job
from napari_xcebra.runs import Run, now
from napari_xcebra.widgets.background import listen
from napari_xcebra.widgets.per_session import OfSession, one_per_session
from napari_xcebra.widgets.run_list import best_factor

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.jobs import Event
    from napari_xcebra.learn.parts import Factor
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.session import Opened, Session


class Trainer(OfSession):
    """Trains one run at a time, scores the cells with it, and shows it.

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
        self._progress: Advanced | None = None
        self.doing = ""
        self.course: list[Advanced] = []
        """Reports of the training so far, for the curves of a dock that opens later."""

    @property
    def busy(self) -> bool:
        """Whether something runs."""
        return self._job is not None

    @property
    def progress(self) -> Advanced | None:
        """The last report of what runs."""
        return self._progress if self.busy else None

    def start(
        self,
        opened: Opened,
        name: str,
        factors: Mapping[str, Factor],
        settings: FitSettings,
        recording: Recording | None = None,
    ) -> Job | None:
        """Train a run of that name; None if one is being trained.

        `recording` is another version of the opened one, such as with other cells accepted.
        """
        if self.busy:
            return None
        self.course = []
        job = self.session.worker.submit(FitTask(recording or opened.recording, factors, settings))
        self._begin(job, "starting")
        listen(
            job.events(),
            lambda event: self._trained(event, opened, name, factors),
            session=self.session,
        )
        return job

    def cancel(self) -> None:
        """Stop what runs."""
        if self._job is not None:
            self.doing = "stopping"
            self._job.cancel()
            self.changed.emit()

    def _begin(self, job: Job, doing: str) -> None:
        self._job, self.doing, self._progress = job, doing, None
        self.changed.emit()

    def _end(self) -> None:
        self._job, self.doing = None, ""
        self.changed.emit()

    def _trained(
        self, event: Event, opened: Opened, name: str, factors: Mapping[str, Factor]
    ) -> None:
        if isinstance(event, Advanced):
            self._progress = event
            self.course.append(event)
            self.changed.emit()
        elif isinstance(event, Failed):
            self._end()
            self.said.emit(event.sentence, "problem", event.details)
        elif isinstance(event, Finished | Cancelled):
            self._end()
            if event.result is None:
                self.said.emit("Stopped before anything was learned.", "plain", "")
                return
            # who looked at a map of another run goes on with the same method
            looked_at = self.session.shown.method if self.session.shown_run else ""
            first = looked_at if looked_at in FIRST else FIRST[0]
            run = self.session.add_run(Run(name, now(), factors, event.result), opened)
            if isinstance(event, Cancelled):
                # who stops wants to go on: maps can still be asked for in the Attribution dock
                self._show(opened, run, None)
                return
            self._score(opened, run.fit, sorted(FIRST, key=lambda method: method != first))

    def _score(
        self, opened: Opened, fit: Fit, methods: Sequence[str], *, show: bool = True
    ) -> None:
        """Make these maps one after the other, and show the first."""
        method, *others = methods
        job = self.session.worker.submit(AttributeTask(fit, opened.recording, method))
        self._begin(job, "scoring the cells")
        listen(
            job.events(),
            lambda event: self._scored(event, opened, fit, others, show=show),
            session=self.session,
        )

    def _scored(
        self, event: Event, opened: Opened, fit: Fit, others: Sequence[str], *, show: bool
    ) -> None:
        if isinstance(event, Advanced):
            self._progress = event
            self.changed.emit()
        elif isinstance(event, Failed):
            self._end()
            self.said.emit(event.sentence, "problem", event.details)
            if others:
                self._score(opened, fit, others, show=show)
        elif isinstance(event, Finished | Cancelled):
            # it may have been renamed or removed meanwhile
            run = opened.run_of(fit)
            if run is not None and event.result is not None:
                run = run.with_attribution(event.result)
                self.session.replace_run(run.name, run)
            self._end()
            if show and run is not None:
                self._show(opened, run, event.result)
            if others and run is not None and isinstance(event, Finished):
                self._score(opened, fit, others, show=False)

    def _show(self, opened: Opened, run: Run, attribution: Attribution | None) -> None:
        """Show a run, unless another recording is looked at meanwhile."""
        if self.session.current is not opened:
            return
        shown = replace(self.session.shown, run=run.name, factor=best_factor(run), latent=None)
        if attribution is not None:
            shown = replace(shown, method=attribution.method)
        self.session.shown = shown


trainer_of = one_per_session(Trainer)
"""The trainer of a session."""
