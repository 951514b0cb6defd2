"""What is computed for a run after training, one thing after the other.

It goes on when the dock is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from napari_xcebra.attribution.method_notes import frames_for, title_of_method
from napari_xcebra.jobs import (
    Advanced,
    AttributeTask,
    Cancelled,
    Failed,
    Job,
    Sketched,
    Started,
    Task,
)
from napari_xcebra.jobs.job import GRACE
from napari_xcebra.widgets.at_work import AtWork
from napari_xcebra.widgets.background import listen
from napari_xcebra.widgets.per_session import one_per_session

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.jobs import Event, Worker
    from napari_xcebra.learn import Fit
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.processes import Which
    from napari_xcebra.widgets.session import Opened, Session

SEVERAL = 5.0
"""Grace of several trainings, in seconds, to hand over those that are finished."""


@dataclass(frozen=True, eq=False)
class Work:
    """Something to compute.

    Parameters
    ----------
    title : str
        What it is, to be read after "Computing".
    task : Task
    keep : callable
        Called with what came of it.
    say : callable, optional
        Told what goes wrong, in place of those who listen to the computation.
    long : bool
        Several trainings: in the process that nothing else waits for, with the time to hand over
        those that are finished when it is stopped.
    """

    title: str
    task: Task
    keep: Callable[[Any], object]
    say: Callable[[str, str, str], object] | None = None
    long: bool = False

    @property
    def process(self) -> Which:
        """Where it is computed."""
        return "second_worker" if self.long else "worker"


class Computation(AtWork):
    """Computes one thing at a time, and keeps each as soon as it is there.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._waiting: list[Work] = []
        self.current: Work | None = None
        self.title = ""
        self.started = False
        self.progress: Advanced | None = None

    def awaits(self, work: Work | None) -> bool:
        """Whether this is under way, or waits for its turn."""
        return work is not None and (work is self.current or work in self._waiting)

    @property
    def waits_for(self) -> str:
        """What it waits for before it can tell how far it is, in a word or two."""
        if self.started:
            return "starting"
        ready = self.current is None or self.session.ready(self.current.process)
        return "waiting for its turn" if ready else "starting the background process"

    @property
    def waiting(self) -> int:
        """Things that come after what is being computed."""
        return len(self._waiting)

    @property
    def at_stake(self) -> str:
        """What is being computed."""
        return f"Computing {self.title}. It will be lost."

    def start(self, opened: Opened, run: Run, *methods: str) -> Job | None:
        """Compute attributions of a run by some methods; None if something else is under way."""
        return None if self.busy else self.add(opened, run, *methods)

    def add(self, opened: Opened, run: Run, *methods: str) -> Job | None:
        """Compute attributions of a run after what is under way."""
        return self.ask(_attribution(self.session, opened, run.fit, method) for method in methods)

    def ask(self, works: Iterable[Work]) -> Job | None:
        """Compute these after what is under way; the job that is."""
        self._waiting += works
        if self.busy:
            self.changed.emit()
        else:
            self._begin()
        return self._job

    def cancel(self) -> None:
        """Stop, and forget what is waiting; what came before is kept."""
        self._waiting.clear()
        if self._job is not None and self.current is not None:
            self._job.cancel(SEVERAL if self.current.long else GRACE)

    def _begin(self) -> None:
        if self._waiting:
            self.current = work = self._waiting.pop(0)
            self.title, self.started, self.progress = work.title, False, None
            process: Worker = getattr(self.session, work.process)
            self._job = process.submit(work.task)
            listen(self._job.events(), lambda event: self._on(event, work), session=self.session)
        self.changed.emit()

    def _on(self, event: Event, work: Work) -> None:
        if isinstance(event, Started):
            self.started = True
        elif isinstance(event, Advanced):
            self.progress = event
        if isinstance(event, Started | Advanced | Sketched):
            self.changed.emit()
            return
        self._job = self.current = None
        say = work.say or self.said.emit
        if isinstance(event, Failed):
            say(event.sentence, "problem", event.details)
        elif event.result is not None:
            work.keep(event.result)
        if isinstance(event, Cancelled):
            kept = "nothing was kept" if event.result is None else "what was finished is kept"
            say(f"Stopped: {kept} of {work.title}.", "plain", "")
        if not self.busy:  # what was kept may have led to more
            self._begin()


def _attribution(session: Session, opened: Opened, fit: Fit, method: str) -> Work:
    """Attribution of a run, which may be renamed or removed meanwhile."""

    def keep(attribution: Attribution) -> None:
        run = opened.run_of(fit)
        if run is not None:
            session.replace_run(run.name, run.with_attribution(attribution))

    task = AttributeTask(fit, opened.recording, method, frames_for(method))
    return Work(title_of_method(method), task, keep)


computation_of = one_per_session(Computation)
"""The computation of a session; made when first asked for."""
