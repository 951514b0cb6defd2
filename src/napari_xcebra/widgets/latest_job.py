"""One task at a time in the background process, and only the last one asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from napari_xcebra.jobs import Cancelled, Failed, Finished, Job, Started, Task
from napari_xcebra.jobs.events import Event
from napari_xcebra.widgets.background import listen


@dataclass(frozen=True, eq=False)
class Request:
    """A task, and who wants to know its outcome."""

    task: Task
    done: Callable[[Any], object]
    failed: Callable[[str, str], object]


class LatestJob:
    """Runs what was asked for last; what was asked for before it is not run, or not told of.

    Parameters
    ----------
    submit : callable
        `Worker.submit`.
    changed : callable
        Called in the window's thread when a task begins or ends.
    """

    def __init__(self, submit: Callable[[Task], Job], changed: Callable[[], object]) -> None:
        self._submit, self._changed = submit, changed
        self._now: Request | None = None
        self._next: Request | None = None
        self._job: Job | None = None
        self._closed = False
        self.running = False
        """Whether the process has begun with the task; it may still be busy with another one."""

    @property
    def busy(self) -> bool:
        """Whether an outcome is awaited."""
        return self._now is not None

    def ask(self, request: Request) -> None:
        """Run a task as soon as the one before it is through."""
        if self._closed:
            return
        self._next = request
        if not self.busy:
            self._begin()

    def stop(self) -> None:
        """Ask for nothing any more."""
        self._next = None
        if self._job is not None:
            self._job.cancel()

    def close(self) -> None:
        """Stop, and call nobody any more."""
        self._closed = True
        self.stop()

    def _begin(self) -> None:
        self._now, self._next = self._next, None
        if self._now is None:
            return
        self._job = self._submit(self._now.task)
        listen(self._job.events(), self._on_event)

    def _on_event(self, event: Event) -> None:
        if self._closed or self._now is None:
            return
        if isinstance(event, Started):
            self.running = True
            self._changed()
        elif isinstance(event, Finished | Failed | Cancelled):
            request, newer = self._now, self._next is not None
            self._now, self._job, self.running = None, None, False
            self._begin()
            if isinstance(event, Finished) and event.result is not None:
                request.done(event.result)
            elif isinstance(event, Failed) and not newer:
                request.failed(event.sentence, event.details)
            self._changed()
