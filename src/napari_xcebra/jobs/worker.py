"""Keeps one child process warm, hands it one call after the other, and follows each."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from napari_xcebra.errors import Stopped
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.calls import Call, CallFailed
from napari_xcebra.jobs.events import Cancelled, Event, Failed, Finished, Outcome, Started
from napari_xcebra.jobs.limits import keep_within
from napari_xcebra.jobs.sending import IDLE, JOB, STOP, Channel, Lender
from napari_xcebra.support.leftovers import clear_leftovers, name_owner, temporary_folder
from napari_xcebra.support.logs import LOGGER

MEMORY_LIMIT = 2 * 2**30
"""Bytes that an idle child may hold; torch alone takes 0.4 GB."""


class Worker:
    """Runs calls in a child process, one at a time.

    Parameters
    ----------
    memory_limit : int
        Bytes; a child that holds more after its last job is replaced by a fresh one.
    warm_up : {"computing", "reading"}
        What the child imports ahead of its first call.
    """

    def __init__(self, *, memory_limit: int = MEMORY_LIMIT, warm_up: WarmUp = "computing") -> None:
        self._dispatcher = _Dispatcher(memory_limit, warm_up)
        # also at the end of Python, and when nobody holds the worker any longer
        self._finalizer = weakref.finalize(self, self._dispatcher.close)

    def start(self) -> None:
        """Start the child ahead of the first call; returns at once."""
        self._dispatcher.open()

    def submit(self, call: Call) -> Job:
        """Queue a call; returns at once."""
        return self._dispatcher.submit(call)

    @property
    def pid(self) -> int | None:
        """Id of the child process, if there is one."""
        return self._dispatcher.pid

    @property
    def ready(self) -> bool:
        """Whether the child has started, so that a call begins at once or after those before it."""
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

    def submit(self, call: Call) -> Job:
        job = Job(call)
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
                job.tell(failures.from_exception(error, job.call.doing, job.call.sparing))
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
            job.tell(failures.from_start(error, job.call.sparing))
        process = self._process
        if process is None:
            return
        if not process.wait_until_idle():
            job.tell(failures.from_start(self._bury(), job.call.sparing, process.output()))
        elif job.begin(process):
            self._watch(job, process)

    def _watch(self, job: Job, process: ChildProcess) -> None:
        call, limits = job.call, job.call.limits  # known before the call is sent with them
        try:
            process.send(call)
        except OSError as error:
            job.tell(failures.from_disk(error))
            return
        except Exception as error:
            job.tell(failures.from_exception(error, job.call.doing, job.call.sparing))
            return
        if limits is not None:
            threading.Thread(target=keep_within, args=[limits, job, process], daemon=True).start()
        while (event := process.receive()) is not None:
            if isinstance(event, Failed) and event.details:
                event = replace(event, details=f"{event.details}\n{process.output()}")
            job.tell(event)
            if isinstance(event, Outcome):
                return
        job.tell(failures.from_exit(self._bury(), call.doing, call.sparing, process.output()))


GRACE = 0.7
"""Seconds that a call has to stop by itself."""


class Job:
    """A call given to a worker; made by `Worker.submit`."""

    def __init__(self, call: Call) -> None:
        self.call = call
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
            What the call raised; a `CallFailed` with a sentence if it was none.
        Stopped
            If it was cancelled.
        """
        outcome = self.wait()
        if isinstance(outcome, Finished):
            return outcome.result
        if isinstance(outcome, Failed):
            # a copy: what is raised holds all frames that it passes, a window among them
            raise copy(outcome.error) or CallFailed(outcome.sentence, outcome.details)
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
                LOGGER.info("%s: %s", self.call.doing, type(event).__name__.lower())
        self._events.put(event)


WarmUp = Literal["computing", "reading"]
LINES = 60
"""Last lines of the child's output that are kept for a bug report."""


class ChildProcess:
    """A fresh Python that runs calls.

    It is started by its own command rather than by `multiprocessing`, whose children run the
    user's script a second time unless that is guarded; the import path is handed over instead.
    Its standard input and output are the channel: when this process dies, however it dies, they
    close, and the child leaves; a stopped one is woken up for it.

    Parameters
    ----------
    warm_up : {"computing", "reading"}
        What it imports ahead of its first call.
    """

    def __init__(self, warm_up: WarmUp = "computing") -> None:
        self._folder = temporary_folder()
        try:
            self._popen = _launched(self._folder, warm_up)
        except OSError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        with contextlib.suppress(OSError):  # then it is not found should it outlive this process
            name_owner(self._folder, self._popen.pid)
        sink, source = cast(BinaryIO, self._popen.stdin), cast(BinaryIO, self._popen.stdout)
        self._channel = Channel(source, sink)
        self._lender = Lender(self._folder)
        self._sending = threading.Lock()
        self._leaving = False
        self._greeted = False
        self.memory: int | None = None
        """Bytes held while idle; None while it is busy."""
        self._lines: deque[bytes] = deque(maxlen=LINES)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it can be given a call."""
        return not self._leaving and self._popen.poll() is None

    @property
    def greeted(self) -> bool:
        """Whether it has started."""
        return self._greeted

    def wait_until_idle(self) -> bool:
        """Wait until it can take a call, the imports at its start included; False if it ended."""
        if not self._greeted:
            self._greeted = self._channel.await_greeting()
        while self._greeted and self.memory is None:
            message = self._channel.receive()
            if message is None:
                return False
            if message[0] == IDLE:
                self.memory = int(message[1])
        return self._greeted

    def send(self, call: Call) -> None:
        """Hand over a call.

        Raises
        ------
        Exception
            If the call cannot be pickled, or its arrays cannot be written to disk.
        """
        with self._sending:  # a request to stop follows the call it is meant for
            payload = self._lender.pack((_here(), call))
            self.memory = None
            with contextlib.suppress(OSError, ValueError):  # if it ended, `receive` will say so
                self._channel.send(JOB, payload)

    def receive(self) -> Event | None:
        """Wait for an event of the running call; None if the process ended."""
        message = self._channel.receive()
        if message is None:
            return None
        event = self._lender.unpack(message[1])
        if isinstance(event, Started):
            self._lender.received()
        return event

    def ask_to_stop(self, timeout: float) -> None:
        """Ask the running call to stop, unless the channel stays busy for `timeout` seconds."""
        if self._sending.acquire(timeout=timeout):
            with contextlib.suppress(OSError, ValueError):
                self._channel.send(STOP)
            self._sending.release()

    def dismiss(self) -> None:
        """Ask it to leave, by closing its input; from now on it takes no call. Returns at once."""
        self._leaving = True
        if self._sending.acquire(blocking=False):
            with contextlib.suppress(OSError):
                self._channel.sink.close()
            self._sending.release()
        else:  # a call is on its way in: there is nothing to clean up yet
            self._popen.kill()

    def end(self, patience: float) -> None:
        """Ask it to leave, and after `patience` seconds end it by force; from any thread."""
        self.dismiss()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(patience)
        self._popen.kill()
        self._popen.wait()

    def bury(self) -> int:
        """End it, clear away what belonged to it, and return its exit code.

        Only for the thread that receives from it.
        """
        # one that is about to exit by itself should have the time to say why
        self.end(patience=2)
        self._listener.join(1)
        for file in (self._channel.sink, self._channel.source):
            with contextlib.suppress(OSError):
                file.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return self._popen.returncode

    def output(self) -> str:
        """Last lines it printed, warnings and the trace of a crash among them."""
        return b"".join(self._lines).decode(errors="replace")

    def _listen(self) -> None:
        with cast(BinaryIO, self._popen.stderr) as stream:
            while line := stream.readline(4096):
                self._lines.append(line)


def _launched(folder: Path, warm_up: WarmUp) -> subprocess.Popen[bytes]:
    paths = [str(entry) or _here() for entry in sys.path]
    program = (
        f"import sys; sys.path[:] = {paths!a}; "
        "from napari_xcebra.jobs.child import main; "
        f"main(sys.argv[1], {os.getpid()}, *sys.argv[2:])"
    )
    # -P: no module is to be taken from the folder that the user happens to be in
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program, str(folder), warm_up],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C in the terminal is for the window alone
        start_new_session=os.name == "posix",
        creationflags=_creation_flags(),
    )


def _here() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # the folder was removed
        return tempfile.gettempdir()


def _creation_flags() -> int:
    flags = ("CREATE_NO_WINDOW", "CREATE_NEW_PROCESS_GROUP")  # of Windows only
    return sum(getattr(subprocess, flag, 0) for flag in flags)
