"""Forks processes that say what they have done, and ends them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable

import psutil

from napari_xcebra.errors import InputError

Tell = Callable[[str], None]
_WRITE = os.write  # before anybody lets it fail
PATIENCE = 30.0
"""Seconds of its own after which a process hangs: 20, and 10 to wait for a lock."""


class OwnTime:
    """Seconds that a process and its children had for themselves: computing, or waiting.

    Time in which others had the cores does not count, or a busy machine would make everything
    seem to hang.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._last, self._computed = time.monotonic(), self._computing()[0]
        self.seconds = 0.0

    def look(self) -> float:
        """Seconds until now; to be asked often."""
        now, (computed, ready) = time.monotonic(), self._computing()
        used = max(0.0, computed - self._computed)
        self.seconds += used if ready else max(used, now - self._last)
        self._last, self._computed = now, computed
        return self.seconds

    def _computing(self) -> tuple[float, bool]:
        """Seconds of computing so far, and whether any of them could go on."""
        seconds, ready = 0.0, False
        for process in family_of(self._pid):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                seconds += times.user + times.system
                ready = ready or process.status() == psutil.STATUS_RUNNING
        return seconds, ready


def family_of(pid: int) -> list[psutil.Process]:
    """A process and its children."""
    try:
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process]
    except psutil.Error:
        return []


class Fork:
    """A copy of this process that runs a function, which is given a way to tell lines.

    Parameters
    ----------
    work : function of Tell
    """

    def __init__(self, work: Callable[[Tell], None]) -> None:
        self._source, sink = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._source)
            code = 1
            try:
                work(lambda line: _written(sink, line))
                code = 0
            except BaseException as error:
                _written(sink, failure_of(error))
            finally:
                os._exit(code)
        os.close(sink)
        self._text = b""
        self._ended = False

    def wait_for_line(self, seconds: float = PATIENCE) -> None:
        """Wait until it has told something, or ended."""
        select.select([self._source], [], [], seconds)

    def kill(self) -> list[str]:
        """End it at once; the lines it told."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return self.lines()[0]

    def lines(
        self, seconds: float = PATIENCE, *, each: float | None = None
    ) -> tuple[list[str], bool]:
        """What it told until its end, and whether it ended in time; if not, it is killed.

        Time is that of the whole, or of each line. A crash is told in a last line.
        """
        own, in_time = OwnTime(self.pid), True
        seconds = each or seconds
        while True:
            if not select.select([self._source], [], [], 0.05)[0]:
                if in_time and own.look() > seconds:
                    in_time = False
                    os.kill(self.pid, signal.SIGKILL)
                continue
            more = os.read(self._source, 65536)
            if not more:
                break
            self._text += more
            own = OwnTime(self.pid) if each else own
        os.close(self._source)
        ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if ended < 0 and ended != -signal.SIGKILL:
            self._text += f"!crash: {signal.Signals(-ended).name}\n".encode()
        return self._text.decode().split("\n")[:-1], in_time


def failure_of(error: BaseException) -> str:
    """Line that tells an exception; those that users are meant to see begin with a dash."""
    mark = "-" if isinstance(error, InputError) else "!"
    return f"{mark}{type(error).__name__}: {' '.join(str(error).split())[:500]}"


def _written(sink: int, line: str) -> None:
    _WRITE(sink, line.encode() + b"\n")
