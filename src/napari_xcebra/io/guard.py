"""Reads files of others in a limited child process, for the window, Python and commands.

A damaged file may keep a library busy for ever, crash it, or ask for any amount of memory. In a
child, each of these is one sentence, and Ctrl-C or SIGTERM ends the child too. The child of a
Python process is started when the first file is opened and stays for those that follow; large
arrays come back as mapped files. It is a Python of its own, which needs no
``if __name__ == "__main__"`` in scripts and imports neither torch nor napari.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from napari_xcebra.errors import InputError
from napari_xcebra.files import GUARDED
from napari_xcebra.recording.fingerprint import remember_sums, trace_sums
from napari_xcebra.recording.traces import LazyTraces

if TYPE_CHECKING:
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.jobs import Call, Worker
    from napari_xcebra.recording import Recording

Result = TypeVar("Result")

AT_ONCE = 10.0
"""Seconds in which a question about a file is to be answered: napari waits for it."""

_DOORS: dict[int, Worker] = {}
"""By process: a fork has no say over the child of its parent."""
_within = False
"""Whether this process is the limited child, and reads."""


def reading(
    function: Callable[..., Any],
    *arguments: Any,
    paths: Sequence[Path],
    seconds: float = math.inf,
) -> Call:
    """Call of a function that reads files.

    Parameters
    ----------
    function : callable
        One that Python can import.
    *arguments
    paths : sequence of Path
        Files and folders it reads, which set the limits.
    seconds : float
        That may pass.
    """
    from napari_xcebra.jobs import Call

    return Call(
        _read,
        (function, *arguments),
        doing=f"Reading {paths[0]}",
        sparing="it is damaged or not what it seems",
        paths=tuple(paths),
        seconds=seconds,
    )


def _read(function: Callable[..., Any], *arguments: Any) -> Any:
    global _within
    _within = True
    try:
        return function(*arguments)
    finally:
        _within = False


def open_task(opening: Opening) -> Call:
    """Open a recording; the result is a `Recording`."""
    return reading(type(opening).open, opening, paths=opening.files)


def question(function: Callable[[Path], bool], path: Path) -> Call:
    """Ask whether a file is of some kind."""
    return reading(function, path, paths=[path], seconds=AT_ONCE)


def _is_guarded(guarded: bool | None = None) -> bool:
    """Whether files are read in the limited child: as asked for, or as the environment says."""
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
    if not _is_guarded(guarded):
        return function(*arguments)
    job = _door().submit(reading(function, *arguments, paths=paths))
    try:
        result: Result = job.result()
    except BaseException:
        if job.outcome is None:  # Ctrl-C, or SIGTERM
            job.cancel(0)
        raise
    return result


def hash_traces(recording: Recording) -> None:
    """Have the checksums of the traces computed, for `Recording.fingerprint`; takes its time.

    In the child, since a library may be needed to read them; those in memory are summed up here.
    """
    traces = recording.traces
    if isinstance(traces, LazyTraces):
        with contextlib.suppress(InputError):  # whoever needs it is told
            remember_sums(traces, read(trace_sums, traces, paths=[Path(recording.source)]))
    else:
        trace_sums(traces)


def start() -> None:
    """Start the child ahead of the first file; returns at once."""
    if _is_guarded():
        _door().start()


def _door() -> Worker:
    from napari_xcebra.jobs import Worker

    return _DOORS.setdefault(os.getpid(), Worker(warm_up="reading"))
