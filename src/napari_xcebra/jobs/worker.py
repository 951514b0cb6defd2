"""Keeps one child process warm, and hands it one job after the other."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import weakref
from dataclasses import replace
from typing import Any

from napari_xcebra.jobs import failures
from napari_xcebra.jobs.events import Cancelled, Failed, Outcome
from napari_xcebra.jobs.job import Job
from napari_xcebra.jobs.limits import keep_within
from napari_xcebra.jobs.process import ChildProcess, WarmUp
from napari_xcebra.jobs.tasks import Task
from napari_xcebra.support.leftovers import clear_leftovers

MEMORY_LIMIT = 2 * 2**30
"""Bytes that an idle child may hold; torch alone takes 0.4 GB."""


class Worker:
    """Runs tasks in a child process, one at a time.

    Parameters
    ----------
    memory_limit : int
        Bytes; a child that holds more after its last job is replaced by a fresh one.
    warm_up : {"computing", "reading"}
        What the child imports ahead of its first task.
    """

    def __init__(self, *, memory_limit: int = MEMORY_LIMIT, warm_up: WarmUp = "computing") -> None:
        self._dispatcher = _Dispatcher(memory_limit, warm_up)
        # also at the end of Python, and when nobody holds the worker any longer
        self._finalizer = weakref.finalize(self, self._dispatcher.close)

    def start(self) -> None:
        """Start the child ahead of the first task; returns at once."""
        self._dispatcher.open()

    def submit(self, task: Task) -> Job:
        """Queue a task; returns at once."""
        return self._dispatcher.submit(task)

    @property
    def pid(self) -> int | None:
        """Id of the child process, if there is one."""
        return self._dispatcher.pid

    @property
    def ready(self) -> bool:
        """Whether the child has started, so that a task begins at once or after those before it."""
        return self._dispatcher.ready

    def close(self) -> None:
        """Cancel all jobs and end the child."""
        self._finalizer()

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class _Dispatcher:
    """The thread behind a worker; it holds no reference to it, so that it can be let go."""

    def __init__(self, memory_limit: int, warm_up: WarmUp) -> None:
        self._memory_limit, self._warm_up = memory_limit, warm_up
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process: ChildProcess | None = None
        self._jobs: set[Job] = set()
        self._closed = False
        self._owner = os.getpid()

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None and process.alive else None

    @property
    def ready(self) -> bool:
        process = self._process
        return process is not None and process.alive and process.greeted

    def open(self) -> None:
        with self._lock:
            self._open()

    def submit(self, task: Task) -> Job:
        job = Job(task)
        with self._lock:
            self._open()
            self._jobs.add(job)
        self._queue.put(job)
        return job

    def _open(self) -> None:
        if self._closed:
            raise RuntimeError("This worker is closed: make a new one.")
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name="napari-xcebra jobs", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        if os.getpid() != self._owner:  # a fork has no say over its parent's child
            return
        with self._lock:
            self._closed = True
            process, thread = self._process, self._thread
        self._queue.put(None)
        for job in list(self._jobs):
            job.tell(Cancelled())
        if process is not None:
            process.end(patience=0.5)
        if thread is not None and thread is not threading.current_thread():
            thread.join(2)

    def _serve(self) -> None:
        clear_leftovers()
        with contextlib.suppress(OSError):  # reported to the first job
            self._renew()
        while (job := self._queue.get()) is not None:
            try:
                self._run(job)
            except Exception as error:  # no job should wait for ever
                self._bury()
                job.tell(failures.from_exception(error, job.task.doing, job.task.sparing))
            self._jobs.discard(job)
            del job
            if not self._fit_for_another():
                with contextlib.suppress(OSError):
                    self._renew()
        self._bury()

    def _fit_for_another(self) -> bool:
        """Whether the process can go on: it is alive, and gave back its memory if nothing waits."""
        process = self._process
        if process is None or not process.alive or not process.wait_until_idle():
            return False
        return (process.memory or 0) <= self._memory_limit or not self._queue.empty()

    def _renew(self) -> None:
        """Replace the process by a fresh one."""
        self._bury()
        if self._closed:
            return
        process = ChildProcess(self._warm_up)
        with self._lock:
            if not self._closed:
                self._process = process
                return
        process.bury()

    def _bury(self) -> int | None:
        """End the process, if it has not, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        return process.bury()

    def _run(self, job: Job) -> None:
        """See a job through to its outcome."""
        if job.outcome is not None:
            return
        try:
            if self._process is None or not self._process.alive:
                self._renew()
        except OSError as error:
            job.tell(failures.from_start(error, job.task.sparing))
        process = self._process
        if process is None:
            return
        if not process.wait_until_idle():
            job.tell(failures.from_start(self._bury(), job.task.sparing, process.output()))
        elif job.begin(process):
            self._watch(job, process)

    def _watch(self, job: Job, process: ChildProcess) -> None:
        limits = getattr(job.task, "limits", None)  # known before the task is sent with them
        try:
            process.send(job.task)
        except OSError as error:
            job.tell(failures.from_disk(error))
            return
        except Exception as error:
            job.tell(failures.from_exception(error, job.task.doing, job.task.sparing))
            return
        if limits is not None:
            threading.Thread(target=keep_within, args=[limits, job, process], daemon=True).start()
        while (event := process.receive()) is not None:
            if isinstance(event, Failed) and event.details:
                event = replace(event, details=f"{event.details}\n{process.output()}")
            job.tell(event)
            if isinstance(event, Outcome):
                return
        code, task = self._bury(), job.task
        job.tell(failures.from_exit(code, task.doing, task.sparing, process.output()))
