"""Runs calls in several child processes on this computer.

Python's own `ProcessPoolExecutor` breaks as a whole when one process is killed, runs the user's
script a second time unless that is guarded, and sends its arguments with every call. Here each
process is a `Worker`: recordings are sent to it once, and it is replaced when it dies.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from napari_xcebra.errors import InputError
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.calls import Call, Running
from napari_xcebra.jobs.events import Advanced, Outcome
from napari_xcebra.jobs.sending import FILE_FROM
from napari_xcebra.jobs.worker import Worker
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import LazyTraces, NpyTraces
from napari_xcebra.support.diagnostics import cores
from napari_xcebra.support.leftovers import temporary_folder

PROGRAM = 0.6 * 2**30
"""Bytes of a process before it has any data: torch, above all."""
COPIES = 5
"""Copies of the traces at the peak of a run: as read, smoothed, standardised, and on the way."""
GPU_PROGRAM = 0.7 * 2**30
"""Bytes on a GPU that a process takes before it has any data."""


def room_for(recordings: Iterable[Recording], *, device: str = "auto", threads: int = 1) -> int:
    """Number of processes that cores and memory allow, at least 1.

    Parameters
    ----------
    recordings : iterable of Recording
        A process holds one of them at a time; the largest counts.
    device : str
        As of `FitSettings`; on a GPU, its memory counts as well.
    threads : int
        Of each process.
    """
    largest = max((4 * each.n_frames * each.n_cells for each in recordings), default=0)
    fits = [cores() // max(1, threads)]
    fits.append(int(psutil.virtual_memory().available // (PROGRAM + COPIES * largest)))
    if device != "cpu" and (free := _free_on_gpu()) is not None:
        fits.append(int(free // (GPU_PROGRAM + 2 * largest)))
    return max(1, min(fits))


def _free_on_gpu() -> int | None:
    """Bytes free on the GPU that "auto" selects; None without one, or if it shares our memory."""
    import torch

    return torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else None


class ProcessPool(Executor):
    """Child processes that run calls, as many at a time as there are processes.

    Parameters
    ----------
    processes : int
        Each is started when there is work for it.

    Examples
    --------
    >>> import math
    >>> with ProcessPool(2) as pool:
    ...     list(pool.map(math.factorial, [3, 4]))
    [6, 24]
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._queue: queue.SimpleQueue[tuple[Running, Call] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unfinished: set[Running] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._shelf = _Shelf()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Running:
        """Queue a call; recordings among its arguments are sent to each process once."""
        future = Running()
        with self._lock:
            if self._closed:
                raise RuntimeError("This pool is closed: make a new one.")
            call = Call(function, tuple(self._shelf.lent(each) for each in args), kwargs)
            self._unfinished.add(future)
            if len(self._threads) < min(self.processes, len(self._unfinished)):
                thread = threading.Thread(target=self._serve, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._queue.put((future, call))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls; with `cancel_futures`, stop also those that are under way."""
        with self._lock:
            self._closed = True
            unfinished, threads = list(self._unfinished), list(self._threads)
        if cancel_futures:
            for future in unfinished:
                future.stop()
        for _ in threads:
            self._queue.put(None)
        if wait:
            for thread in threads:
                thread.join()
            self._shelf.clear()

    def __exit__(self, *raised: Any) -> None:
        # whoever leaves by an exception does not want to wait for the rest
        self.shutdown(cancel_futures=raised[0] is not None)

    def _serve(self) -> None:
        # a child that holds a large recording is not to be replaced after every call
        with Worker(memory_limit=sys.maxsize) as worker:
            while (item := self._queue.get()) is not None:
                future, call = item
                if future.set_running_or_notify_cancel():
                    self._run(future, call, worker)
                self._unfinished.discard(future)
                del future, call, item

    def _run(self, future: Running, call: Call, worker: Worker) -> None:
        job = worker.submit(call)
        future.stopped_by(job.cancel)
        for event in job.events():
            if isinstance(event, Advanced) and event.total:
                future.progress = event.done / event.total
            elif isinstance(event, Outcome):
                future.settle(event)


class _Shelf:
    """Large recordings in a file that all processes read, rather than one for each of them."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._lent: dict[int, tuple[Recording, Recording]] = {}

    def lent(self, value: Any) -> Any:
        """A recording whose traces are large: the same with traces on disk. Else the value."""
        if not isinstance(value, Recording) or isinstance(value.traces, LazyTraces):
            return value
        if value.traces.nbytes < FILE_FROM:
            return value
        if id(value) not in self._lent:
            path = self._room() / f"{len(self._lent)}.npy"
            try:
                np.save(path, value.traces, allow_pickle=False)
            except OSError as error:
                raise InputError(failures.from_disk(error).sentence) from error
            # a simulated movie would bring the traces along
            stored = replace(value, traces=NpyTraces(path, False), movie=None)
            # the recording is kept as well, so that its id serves no other meanwhile
            self._lent[id(value)] = value, stored
        return self._lent[id(value)][1]

    def clear(self) -> None:
        """Remove the files."""
        self._lent.clear()
        if self._folder is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(self._folder)

    def _room(self) -> Path:
        if self._folder is None:
            self._folder = temporary_folder("sweep-")
            # also where nobody shuts the pool down
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder
