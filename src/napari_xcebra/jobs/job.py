"""Follows and cancels a task that was given to a worker."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.events import Cancelled, Event, Failed, Finished, Outcome
from napari_xcebra.jobs.process import ChildProcess
from napari_xcebra.jobs.tasks import Task
from napari_xcebra.support.logs import LOGGER

GRACE = 0.7
"""Seconds that a task has to stop by itself."""


class JobFailed(InputError):
    """A job failed: the sentence for the user, and details for a bug report."""

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(sentence)
        self.details = details


class Job:
    """A task given to a worker; made by `Worker.submit`.

    Parameters
    ----------
    task : Task
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._outcome: Outcome | None = None
        self._process: ChildProcess | None = None

    def events(self) -> Iterator[Event]:
        """Events as they happen; the last one is the outcome. Blocks: not for Qt's thread."""
        while True:
            event = self._events.get()
            if isinstance(event, Outcome):
                self._events.put(event)  # whoever else listens comes to an end, too
                yield event
                return
            yield event

    @property
    def outcome(self) -> Outcome | None:
        """`Finished`, `Failed` or `Cancelled`; None until then."""
        return self._outcome

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Wait for the outcome; None if there is none within `timeout` seconds."""
        self._ended.wait(timeout)
        return self._outcome

    def result(self) -> Any:
        """Wait for the result.

        Raises
        ------
        InputError
            What the task raised; a `JobFailed` with a sentence if it was none.
        Stopped
            If it was cancelled.
        """
        outcome = self.wait()
        if isinstance(outcome, Finished):
            return outcome.result
        if isinstance(outcome, Failed):
            raise outcome.error or JobFailed(outcome.sentence, outcome.details)
        raise Stopped

    def cancel(self, grace: float = GRACE) -> None:
        """Ask it to stop, and end it by force after the grace period; returns at once.

        Parameters
        ----------
        grace : float
            Seconds. With more time, training has a better chance to hand over what it learned so
            far.
        """
        threading.Thread(target=self._cancel, args=[grace], daemon=True).start()

    def _cancel(self, grace: float) -> None:
        deadline = time.monotonic() + grace
        with self._lock:
            process = self._process
            if process is None:
                self._add(Cancelled())
                return
        process.ask_to_stop(grace)
        if not self._ended.wait(max(0.0, deadline - time.monotonic())):
            with self._lock:  # the process is not given to another job meanwhile
                if self._ended.is_set():
                    return
                process.dismiss()
                self._add(Cancelled())
            process.end(patience=0.1)

    # what follows is for the worker

    def begin(self, process: ChildProcess) -> bool:
        """Remember the process that runs it; False if it was cancelled before."""
        with self._lock:
            if not self._ended.is_set():
                self._process = process
            return not self._ended.is_set()

    def tell(self, event: Event) -> None:
        """Add an event; nothing follows an outcome."""
        with self._lock:
            self._add(event)

    def _add(self, event: Event) -> None:
        if self._ended.is_set():
            return
        if isinstance(event, Outcome):
            self._outcome = event
            self._ended.set()
            if isinstance(event, Failed):
                failures.log(event)
            else:
                LOGGER.info("%s: %s", self.task.doing, type(event).__name__.lower())
        self._events.put(event)
