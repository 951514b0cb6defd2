"""A run that is being trained; it goes on when the dock is closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from qtpy.QtCore import QTimer

from napari_xcebra.attribution.method_notes import FIRST
from napari_xcebra.jobs import (
    AdaptTask,
    Advanced,
    AttributeTask,
    Cancelled,
    Failed,
    Finished,
    FitTask,
    Job,
    JointTask,
    Sketched,
)
from napari_xcebra.learn.joint.result import JointFit
from napari_xcebra.runs import Run
from napari_xcebra.widgets.at_work import AtWork
from napari_xcebra.widgets.background import BREATH, listen
from napari_xcebra.widgets.live_run import Asked
from napari_xcebra.widgets.map_so_far import MapSoFar
from napari_xcebra.widgets.per_session import one_per_session
from napari_xcebra.widgets.run_list import best_factor
from napari_xcebra.widgets.score_painter import painter_of

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.jobs import Event, Task
    from napari_xcebra.learn.adaptation import How
    from napari_xcebra.learn.parts import Factor
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.session import Opened, Session


class Trainer(AtWork):
    """Trains one run at a time, scores the cells with it, and shows it.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._progress: Advanced | None = None
        self._live = MapSoFar(session)
        self._waiting: list[tuple[Opened, Fit]] = []
        self._methods: Sequence[str] = ()
        self.doing = ""
        self.course: list[Advanced] = []
        """Reports of the training so far, for the curves of a dock that opens later."""

    @property
    def progress(self) -> Advanced | None:
        """The last report of what runs."""
        return self._progress if self.busy else None

    @property
    def at_stake(self) -> str:
        """The run."""
        at = self.progress
        far = f" ({at.unit} {at.done} of {at.total})" if at is not None else ""
        return f"A run is being trained{far}. It will be lost."

    def start(
        self,
        opened: Opened,
        name: str,
        factors: Mapping[str, Factor],
        settings: FitSettings,
        recording: Recording | None = None,
        *,
        live: bool = True,
    ) -> Job | None:
        """Train a run of that name; None if one is being trained.

        `recording` is another version of the opened one, such as with other cells accepted.
        With `live`, its map is painted while it learns.
        """
        method = self._method_to_show() if live else ""
        task = FitTask(recording or opened.recording, factors, settings, live=method)
        asked = Asked(opened, name, factors)
        job = self._learn(task, asked)
        if job is not None and live and factors:
            # once Train has been seen to be pressed; the child takes a second to the first map
            QTimer.singleShot(BREATH, lambda: self._prepare_live(asked, method))
        return job

    def start_together(
        self,
        opened: Opened,
        others: Sequence[Opened],
        name: str,
        factors: Mapping[str, Factor],
        settings: FitSettings,
    ) -> Job | None:
        """Train one embedding on several recordings: a run of that name for each."""
        recordings = {each.name: each.recording for each in (opened, *others)}
        task = JointTask(recordings, factors, settings)
        return self._learn(task, Asked(opened, name, factors, others=tuple(others)))

    def carry(self, opened: Opened, name: str, run: Run, how: How = "auto") -> Job | None:
        """Bring a run of another recording to this one."""
        task = AdaptTask(run.fit, opened.recording, how)
        return self._learn(task, Asked(opened, name, run.factors))

    def _learn(self, task: Task, asked: Asked) -> Job | None:
        if self.busy:
            return None
        self.course, self._waiting = [], []
        job = self.session.worker.submit(task)
        self._begin(job, "starting")
        listen(job.events(), lambda event: self._trained(event, asked), session=self.session)
        return job

    def _method_to_show(self) -> str:
        """Who looks at a map of another run goes on with the same method, if it is made at once."""
        looked_at = self.session.shown.method if self.session.shown_run else ""
        return looked_at if looked_at in FIRST else FIRST[0]

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

    def _trained(self, event: Event, asked: Asked) -> None:
        if isinstance(event, Advanced):
            self._progress = event
            self.course.append(event)
            self.changed.emit()
        elif isinstance(event, Sketched):
            self._live.show(event, asked)
        elif isinstance(event, Failed):
            self._end()
            self._live.give_up(asked)
            self.said.emit(event.sentence, "problem", event.details)
        elif isinstance(event, Finished | Cancelled):
            self._end()
            if event.result is None:
                self._live.give_up(asked)
                self.said.emit("Stopped before anything was learned.", "plain", "")
                return
            self._keep(event, asked)

    def _keep(self, event: Finished | Cancelled, asked: Asked) -> None:
        """Add the run to the others, and have its maps made."""
        opened = asked.opened
        first = self._method_to_show()
        if self.session.painted_live is not None:
            first = self.session.painted_live.attribution.method
        found = event.result
        fits = list(found.fits.values()) if isinstance(found, JointFit) else [found]
        run, *others = (
            self.session.add_run(Run(asked.name, asked.created, asked.factors, fit), each)
            for each, fit in zip((opened, *asked.others), fits, strict=True)
        )
        if run.name != asked.name:
            self._live.give_up(asked)  # its layers have the name that was taken meanwhile
        if isinstance(event, Cancelled):
            # who stops wants to go on: maps can still be asked for in the Attribution dock
            self._show(opened, run, None)
            painter_of(self.session).layers.discard(opened, asked)
            return
        self._waiting = [(o, r.fit) for o, r in zip(asked.others, others, strict=True)]
        self._methods = sorted(FIRST, key=lambda method: method != first)
        self._score(opened, run.fit, self._methods)
        # napari takes a turn of the window to insert it; the map is still being made
        QTimer.singleShot(BREATH, lambda: self._prepare(opened, run))

    def _prepare_live(self, asked: Asked, method: str) -> None:
        if self.busy:
            self._live.prepare(asked, method)

    def _prepare(self, opened: Opened, run: Run) -> None:
        if self.session_open and self.session.current is opened:
            factor, _ = self._factor_to_show(run)
            painter_of(self.session).layers.prepare(run, factor, FIRST[0])

    # ------------------------------------------------------------ scoring

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
            else:
                self._live.end()
                self._score_next()
        elif isinstance(event, Finished | Cancelled):
            # it may have been renamed or removed meanwhile
            run = opened.run_of(fit)
            if run is not None and event.result is not None:
                run = run.with_attribution(event.result)
                self.session.replace_run(run.name, run)
            self._end()
            if show and run is not None:
                self._show(opened, run, event.result)
            self._live.end()
            if isinstance(event, Cancelled):
                self._waiting = []
            elif others and run is not None:
                self._score(opened, fit, others, show=False)
            else:
                self._score_next()

    def _score_next(self) -> None:
        """Make the maps of the next run that was trained together with this one, if any."""
        if self._waiting:
            opened, fit = self._waiting.pop(0)
            self._score(opened, fit, self._methods)

    def _show(self, opened: Opened, run: Run, attribution: Attribution | None) -> None:
        """Show a run, unless another recording is looked at meanwhile."""
        session, shown = self.session, self.session.shown
        factor, latent = self._factor_to_show(run)
        self._live.end()
        if session.current is not opened:
            return
        shown = replace(shown, run=run.name, factor=factor, latent=latent)
        if attribution is not None:
            shown = replace(shown, method=attribution.method)
        session.shown = shown

    def _factor_to_show(self, run: Run) -> tuple[str, int | str | None]:
        """Factor and latent that were chosen while it was trained; else the best factor."""
        shown = self.session.shown
        if self.session.painted_live is not None and shown.factor in run.fit.factors:
            chosen = (shown.factor, shown.latent)
            if chosen != (next(iter(run.factors), ""), None):
                return chosen
        return best_factor(run), None


trainer_of = one_per_session(Trainer)
"""The trainer of a session."""
