"""Starts, feeds and ends the child process, from the window's side."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import BinaryIO, Literal, cast

from napari_xcebra.jobs.events import Event, Started
from napari_xcebra.jobs.sending import IDLE, JOB, STOP, Channel, Lender
from napari_xcebra.jobs.tasks import Task
from napari_xcebra.support.leftovers import name_owner, temporary_folder

WarmUp = Literal["computing", "reading"]
LINES = 60
"""Last lines of the child's output that are kept for a bug report."""


class ChildProcess:
    """A fresh Python that runs tasks.

    It is started by its own command rather than by `multiprocessing`, whose children run the
    user's script a second time unless that is guarded; the import path is handed over instead.
    Its standard input and output are the channel: when this process dies, however it dies, they
    close, and the child leaves; a stopped one is woken up for it.

    Parameters
    ----------
    warm_up : {"computing", "reading"}
        What it imports ahead of its first task.
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
        """Whether it can be given a task."""
        return not self._leaving and self._popen.poll() is None

    @property
    def greeted(self) -> bool:
        """Whether it has started."""
        return self._greeted

    def wait_until_idle(self) -> bool:
        """Wait until it can take a task, the imports at its start included; False if it ended."""
        if not self._greeted:
            self._greeted = self._channel.await_greeting()
        while self._greeted and self.memory is None:
            message = self._channel.receive()
            if message is None:
                return False
            if message[0] == IDLE:
                self.memory = int(message[1])
        return self._greeted

    def send(self, task: Task) -> None:
        """Hand over a task.

        Raises
        ------
        Exception
            If the task cannot be pickled, or its arrays cannot be written to disk.
        """
        with self._sending:  # a request to stop follows the task it is meant for
            payload = self._lender.pack((_here(), task))
            self.memory = None
            with contextlib.suppress(OSError, ValueError):  # if it ended, `receive` will say so
                self._channel.send(JOB, payload)

    def receive(self) -> Event | None:
        """Wait for an event of the running task; None if the process ended."""
        message = self._channel.receive()
        if message is None:
            return None
        event = self._lender.unpack(message[1])
        if isinstance(event, Started):
            self._lender.received()
        return event

    def ask_to_stop(self, timeout: float) -> None:
        """Ask the running task to stop, unless the channel stays busy for `timeout` seconds."""
        if self._sending.acquire(timeout=timeout):
            with contextlib.suppress(OSError, ValueError):
                self._channel.send(STOP)
            self._sending.release()

    def dismiss(self) -> None:
        """Ask it to leave, by closing its input; from now on it takes no task. Returns at once."""
        self._leaving = True
        if self._sending.acquire(blocking=False):
            with contextlib.suppress(OSError):
                self._channel.sink.close()
            self._sending.release()
        else:  # a task is on its way in: there is nothing to clean up yet
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
