"""Reads files of others in a limited child process, for the window, Python and commands.

A damaged file may keep a library busy for ever, crash it, or ask for any amount of memory. In a
child, each of these is one sentence, and Ctrl-C or SIGTERM ends the child too. The child of a
Python process is started when the first file is opened and stays for those that follow; large
arrays come back as mapped files. It is a Python of its own, which needs no
``if __name__ == "__main__"`` in scripts and imports neither torch nor napari.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from napari_xcebra.jobs.limits import GUARDED, Limits

if TYPE_CHECKING:
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.jobs import Worker
    from napari_xcebra.jobs.tasks import Report

Result = TypeVar("Result")

AT_ONCE = 10.0
"""Seconds in which a question about a file is to be answered: napari waits for it."""

_DOORS: dict[int, Worker] = {}
"""By process: a fork has no say over the child of its parent."""
_within = False
"""Whether this process is the limited child, and reads."""


@dataclass(frozen=True, eq=False)
class ReadTask:
    """Call of a function that reads files; the result is what it returns.

    Parameters
    ----------
    function : callable
        One that Python can import.
    arguments : tuple
    paths : tuple of Path
        Files and folders it reads, which set the limits.
    seconds : float
        That may pass.
    """

    sparing: ClassVar[str] = "it is damaged or not what it seems"

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    paths: tuple[Path, ...]
    seconds: float = math.inf

    @property
    def doing(self) -> str:
        """What it does, as the start of a sentence."""
        return f"Reading {self.paths[0]}"

    @cached_property
    def limits(self) -> Limits:
        """What it may take."""
        return Limits.of(self.paths, self.seconds)

    def run(self, report: Report) -> Any:
        """Read."""
        global _within
        _within = True
        try:
            return self.function(*self.arguments)
        finally:
            _within = False


def open_task(opening: Opening) -> ReadTask:
    """Open a recording; the result is a `Recording`."""
    return ReadTask(type(opening).open, (opening,), opening.files)


def question(function: Callable[[Path], bool], path: Path) -> ReadTask:
    """Ask whether a file is of some kind."""
    return ReadTask(function, (path,), (path,), AT_ONCE)


def is_guarded(guarded: bool | None = None) -> bool:
    """Whether files are read in the limited child.

    Parameters
    ----------
    guarded : bool, optional
        What the caller asks for; by default, what the environment variable
        ``NAPARI_XCEBRA_GUARDED`` says, of which 0 means no.
    """
    if guarded is None:
        guarded = os.environ.get(GUARDED, "") != "0"
    # a Python that is part of another program cannot be started a second time
    return guarded and not _within and bool(sys.executable)


def read(
    function: Callable[..., Result],
    *arguments: Any,
    paths: Sequence[Path],
    guarded: bool | None = None,
) -> Result:
    """What a function that reads files returns, or the error it raises, from the limited child.

    Parameters
    ----------
    function : callable
        One that Python can import.
    *arguments
    paths : sequence of Path
        Files and folders it reads, which set the limits.
    guarded : bool, optional
        See `is_guarded`; if not, it is called here.

    Raises
    ------
    InputError
        Of the function, unchanged; or a sentence if the file hangs it, crashes it, or asks for
        too much memory.
    """
    if not is_guarded(guarded):
        return function(*arguments)
    job = _door().submit(ReadTask(function, arguments, tuple(paths)))
    try:
        result: Result = job.result()
    except BaseException:
        if job.outcome is None:  # Ctrl-C, or SIGTERM
            job.cancel(0)
        raise
    return result


def start() -> None:
    """Start the child ahead of the first file; returns at once."""
    if is_guarded():
        _door().start()


def _door() -> Worker:
    from napari_xcebra.jobs import Worker

    return _DOORS.setdefault(os.getpid(), Worker(warm_up="reading"))
