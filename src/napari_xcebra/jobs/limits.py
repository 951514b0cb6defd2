"""Bounds the memory and the time that reading a file of others may take.

A damaged file can keep a library busy for ever, and a small one can unpack to any size. The rule:

- memory: 1.2 GB, and three times the size of the files on disk, of which 1 GB counts. Traces up to
  512 MB are read into memory: measured, that many values take 2.2 GB from a .npy file of float64
  (1 GB) and 3.1 GB from a table of text (0.9 GB); what is larger stays on disk.
- computing: 30 s, and a minute for each GB of files. Time in which the child only waits, as for a
  slow network drive, does not count: the user can cancel it.
- time: only where napari itself waits for the answer.

The window looks at the child several times a second and ends it. On Linux the child also asks the
system for no more than that, since a single allocation can be faster than any look.
"""

from __future__ import annotations

import contextlib
import math
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from napari_xcebra.files import GUARDED
from napari_xcebra.jobs.events import Failed

if TYPE_CHECKING:
    from napari_xcebra.jobs.worker import ChildProcess, Job

_LIFT = f"If it is whole, {GUARDED}=0 lets Python and commands open it without limits."

GB = 2**30
MEMORY, MORE_MEMORY = int(1.2 * GB), 3
COMPUTING, MORE_COMPUTING = 30.0, 60.0
COUNTED = GB
"""Bytes of files beyond which the limits do not grow."""
MOST_FILES = 2000
"""Files of a folder whose sizes are added up."""
LOOK = 0.05
"""Seconds between two looks at the child."""


@dataclass(frozen=True)
class Limits:
    """What a call may take.

    Parameters
    ----------
    what : str
        The file, for the sentence.
    memory : int
        Bytes of the whole process.
    computing, seconds : float
        Time on a core, and time that passes.
    """

    what: str
    memory: int
    computing: float
    seconds: float = math.inf

    @classmethod
    def of(cls, paths: Sequence[Path], seconds: float = math.inf) -> Limits:
        """Limits for reading these files and folders."""
        size = min(sum(map(_size, paths)), COUNTED)
        memory, computing = MEMORY + MORE_MEMORY * size, COMPUTING + MORE_COMPUTING * size / GB
        return cls(str(paths[0]) if paths else "The file", memory, computing, seconds)

    def exceeded(self, memory: int, computing: float, seconds: float) -> str:
        """Sentence on the limit that was reached; empty if none was."""
        if memory > self.memory:
            return (
                f"{self.what}, or a file that goes with it, asks for more than "
                f"{self.memory / GB:.1f} GB of memory when it is unpacked: it is damaged or not "
                f"what it seems. It was not opened. {_LIFT}"
            )
        if computing > self.computing or seconds > self.seconds:
            took = self.computing if computing > self.computing else self.seconds
            return (
                f"{self.what} could not be read within {took:.0f} s: it is probably damaged. It "
                f"was not opened. {_LIFT}"
            )
        return ""


def keep_within(limits: Limits, job: Job, process: ChildProcess) -> None:
    """Watch the child until the job is over, and end both where a limit is reached."""
    try:
        child = psutil.Process(process.pid)
        before, began = _computing(child), time.monotonic()
        while job.wait(LOOK) is None:
            used, passed = _computing(child) - before, time.monotonic() - began
            if sentence := limits.exceeded(child.memory_info().rss, used, passed):
                job.tell(Failed(sentence))
                process.end(patience=0)
    except psutil.Error:
        pass  # it ended by itself, which is told elsewhere


@contextlib.contextmanager
def within(limits: Limits | None) -> Iterator[None]:
    """Have the system refuse this process more memory, where it can (Linux)."""
    if limits is None or sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = _private() + limits.memory
    hard = before[1]
    try:
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _private() -> int:
    """Bytes that this process has asked the system for, used or not; stacks of threads count."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return 1024 * int(line.split()[1])
    return 0


def _computing(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _on_disk(about: os.stat_result) -> int:
    """Bytes of a file that are there: a file of holes claims any size and takes none."""
    there = 512 * getattr(about, "st_blocks", about.st_size)
    # drives that compress take less than half for traces
    return min(about.st_size, 4 * there)


def _size(path: Path) -> int:
    """Bytes of a file, or of the files in a folder as far as they count."""
    try:
        if not path.is_dir():
            return _on_disk(path.stat())
        total, seen = 0, 0
        for folder, _, files in os.walk(path):
            for name in files:
                about = (Path(folder) / name).lstat()
                total += _on_disk(about) if stat.S_ISREG(about.st_mode) else 0
                seen += 1
                if total > COUNTED or seen > MOST_FILES:
                    return total
        return total
    except OSError:
        return 0
