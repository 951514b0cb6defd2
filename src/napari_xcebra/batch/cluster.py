"""Runs calls on a Dask cluster, checks what it has, and starts its workers as SLURM jobs.

Dask gives a call whose worker dies to another worker. What was under way when its scheduler is lost
it forgets: these calls fail, and a sweep that is started again does them. Data that Dask was asked
to spread does not stay where it was put, so recordings travel as plugins. Workers hand their
results back, so they need not share a disk with this process.

SLURM jobs are described by a dask-jobqueue configuration in YAML:

    jobqueue:
      slurm:
        queue: normal            # every key but `jobs` is one of dask-jobqueue's SLURMCluster
        account: imaging
        cores: 8                 # per job
        memory: 32GB             # per job
        walltime: "04:00:00"
        job_script_prologue: ["source ~/venv/bin/activate"]
        jobs: 4                  # number of jobs; 1 if left out
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, wait
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_xcebra.errors import InputError
from napari_xcebra.files import read_text
from napari_xcebra.jobs.calls import SPARING, Call, Running
from napari_xcebra.jobs.events import Advanced, Cancelled, Failed, Outcome, Sketched
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from distributed import Client, Future, Worker


BUSY = 30.0
"""Seconds that a call waits for another one on its worker before Dask may move it elsewhere."""
PORT = 8786
"""Where Dask's scheduler listens unless told otherwise."""
_CONNECTION = (OSError, CancelledError, asyncio.CancelledError)
"""What a lost connection is raised as."""


def _connect(address: str, timeout: float = 10.0) -> Client:
    """Client of the scheduler at an address, or a sentence why there is none."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "Clusters need Dask, which is not installed: pip install 'napari-xcebra[cluster]'."
        ) from error
    try:
        return Client(
            _with_port(address), timeout=timeout, set_as_default=False, name="napari-xcebra"
        )
    except (OSError, ValueError, TimeoutError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        raise InputError(
            f"No Dask scheduler answers at {_with_port(address)} ({first}): check the address, "
            "that the scheduler runs, and that this computer may reach it."
        ) from error


def _with_port(address: str) -> str:
    """Address with a port and a protocol, those of Dask if it has none.

    >>> _with_port("cluster"), _with_port("tls://10.0.0.1:9000")
    ('tcp://cluster:8786', 'tls://10.0.0.1:9000')
    """
    protocol, _, place = address.strip().rpartition("://")
    has_port = place.rpartition(":")[2].isdecimal() and ":" in place
    return f"{protocol or 'tcp'}://{place}" + ("" if has_port else f":{PORT}")


class Cluster(Executor):
    """Calls on the workers of a Dask cluster, one at a time on each of them.

    Parameters
    ----------
    address : str
        Of the scheduler.
    """

    def __init__(self, address: str) -> None:
        self.address, self._client = _with_port(address), _connect(address)
        self._topic = f"napari-xcebra-{self._client.id}"
        self._parcels: dict[int, tuple[Recording, _Parcel]] = {}
        self._numbers = itertools.count()
        # both futures of each call: the cluster forgets what nobody here holds
        self._under_way: dict[int, tuple[Running, Future]] = {}
        self._closed = False
        self._client.subscribe_topic(self._topic, self._heard)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Running:
        """Hand in a call; recordings among its arguments are sent to each worker once."""
        if self._closed:
            raise RuntimeError("This cluster is closed: connect again.")
        future, number = Running(), next(self._numbers)
        future.set_running_or_notify_cancel()
        if self._client.status != "running":
            future.settle(_SCHEDULER_LOST)
            return future
        try:
            given = (function, [self._sent(each) for each in args], kwargs, number, self._topic)
            there = self._client.submit(_on_worker, *given, pure=False)
        except Exception as error:  # it cannot be sent, or workers cannot read it
            future.settle(_as_failure(error))
            return future
        self._under_way[number] = future, there
        there.add_done_callback(partial(self._take, number))
        future.stopped_by(partial(self._stop, number))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls; with `cancel_futures`, stop also those that are under way."""
        self._closed = True
        if cancel_futures:
            for future, _ in list(self._under_way.values()):
                future.stop()
        closing = threading.Thread(target=self._close, name="napari-xcebra closing", daemon=True)
        closing.start()
        if wait:
            closing.join()

    def __exit__(self, *raised: Any) -> None:
        # whoever leaves by an exception does not want to wait for the rest
        self.shutdown(cancel_futures=raised[0] is not None)

    def _close(self) -> None:
        wait([future for future, _ in list(self._under_way.values())])
        with contextlib.suppress(Exception):
            if self._client.status == "running":
                for _, parcel in self._parcels.values():
                    self._client.unregister_worker_plugin(parcel.name)
            self._client.close(timeout=2)

    def _stop(self, number: int) -> None:
        there = self._settle(number, Cancelled())
        if there is not None:
            with contextlib.suppress(Exception):
                there.cancel()

    def _settle(self, number: int, outcome: Outcome) -> Future | None:
        """Tell how a call ended, if it has not been told; the first of two at a time is heard."""
        future, there = self._under_way.pop(number, (None, None))
        if future is not None:
            future.settle(outcome)
        return there

    def _heard(self, event: tuple[float, Mapping[str, Any]]) -> None:
        future, _ = self._under_way.get(event[1]["number"], (None, None))
        if future is not None:
            future.progress = max(future.progress, event[1]["share"])

    def _sent(self, value: Any) -> Any:
        """What stands for a value in a call: a recording is sent to every worker once."""
        if not isinstance(value, Recording):
            return value
        if id(value) not in self._parcels:
            parcel = _Parcel(f"napari-xcebra-{id(value)}-{self._client.id}")
            self._client.register_plugin(_carrier(value), name=parcel.name)
            # the recording is kept as well, so that its id serves no other meanwhile
            self._parcels[id(value)] = value, parcel
        return self._parcels[id(value)][1]

    def _take(self, number: int, there: Future) -> None:
        """Take what came of a call; Dask calls this in a thread of its own."""
        try:
            if there.status == "error":
                outcome: Outcome = _as_failure(there.exception(timeout=60))
            else:
                outcome = (
                    there.result(timeout=60) if there.status == "finished" else _SCHEDULER_LOST
                )
        except Exception as error:  # nobody is to wait for ever
            outcome = _SCHEDULER_LOST if isinstance(error, _CONNECTION) else _as_failure(error)
        self._settle(number, outcome)


_SCHEDULER_LOST = Failed(
    "The connection to the Dask scheduler was lost before the run finished: check that the "
    "scheduler runs, and start the sweep again. What is finished is kept."
)


def _as_failure(error: BaseException | None) -> Failed:
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return Failed(
            "The cluster gave up on the run: its workers died each time, most likely because a "
            f"worker ran out of memory: give workers more memory, or {SPARING}.",
            str(error),
        )
    what = f"{type(error).__name__}: {error}"
    return Failed(
        f"The run could not start on the cluster ({what}): check that its workers have the "
        "same versions of Python and napari-xcebra as this computer.",
        what,
    )


# what follows runs on the workers

# a worker may have several threads, but a run has the process to itself
_ALONE = threading.Lock()


def _on_worker(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    number: int,
    topic: str,
) -> Outcome:
    """Run a call, and tell the topic how far it is."""
    from distributed import Reschedule, get_worker

    worker = get_worker()
    report = _WorkerReport(worker, number, topic)
    if not _ALONE.acquire(timeout=BUSY):
        raise Reschedule
    try:
        if report.stop():
            return Cancelled()
        opened = (each.opened(worker) if isinstance(each, _Parcel) else each for each in arguments)
        return Call(function, tuple(opened), named).outcome(report)
    finally:
        _ALONE.release()


@dataclass(frozen=True)
class _Parcel:
    """Stands for a value, in the arguments of a call, that a plugin brought to every worker."""

    name: str

    def opened(self, worker: Worker) -> Any:
        carrier: Any = worker.plugins[self.name]
        return carrier.value


def _carrier(value: Any) -> Any:
    """A plugin that brings a value to every worker, those that come later included."""
    from distributed import WorkerPlugin

    carrier: Any = WorkerPlugin()
    carrier.value = value
    return carrier


class _WorkerReport:
    """Passes on about one report a second."""

    def __init__(self, worker: Worker, number: int, topic: str) -> None:
        self._worker, self._key = worker, worker.get_current_task()
        self._number, self._topic, self._last = number, topic, 0.0

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Tell whoever listens."""
        if advanced.total and time.monotonic() - self._last > 1:
            self._last = time.monotonic()
            share = advanced.done / advanced.total
            self._worker.log_event(self._topic, {"number": self._number, "share": share})

    def stop(self) -> bool:
        """Whether the result is no longer wanted: the call was cancelled, or its client is gone."""
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state in ("cancelled", "released", "forgotten")


PACKAGES = ("napari_xcebra", "torch", "numpy", "scipy")


@dataclass(frozen=True)
class ClusterFound:
    """Workers of a cluster, and whether they can run what this computer sends.

    Parameters
    ----------
    address : str
        Of the scheduler.
    workers : int
    threads : int
        Of all workers together.
    memory : int
        Bytes, of all workers together.
    without : int
        Workers without napari-xcebra.
    differing : tuple of str
        Versions on workers that differ from those here, in words.
    """

    address: str
    workers: int
    threads: int
    memory: int
    without: int = 0
    differing: tuple[str, ...] = field(default=())

    @property
    def usable(self) -> bool:
        """Whether runs can be sent there."""
        return self.workers > self.without

    @property
    def sentence(self) -> str:
        """All of it in words."""
        if not self.workers:
            return f"A scheduler answers at {self.address}, but it has no workers: start some."
        has = [_number(self.workers, "worker"), _number(self.threads, "thread")]
        found = f"{', '.join(has)}, {self.memory / 2**30:.0f} GB of memory."
        if self.without:
            who = "None of them has" if not self.usable else f"{self.without} of them have no"
            found += f" {who} napari-xcebra: install it there."
        elif not self.differing:
            found += " Versions are the same as here."
        if self.differing:
            found += f" Versions differ: {'; '.join(self.differing)}."
        return found


def look_at(address: str, timeout: float = 5.0) -> ClusterFound:
    """Ask a cluster what it has; InputError says why it does not answer.

    Parameters
    ----------
    address : str
        Of the scheduler.
    timeout : float
        Seconds to wait for an answer.
    """
    with _connect(address, timeout) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        versions = client.get_versions(packages=list(PACKAGES))["workers"] if workers else {}
        where = client.scheduler.address
    each = [{**about["packages"], "python": about["host"]["python"]} for about in versions.values()]
    return ClusterFound(
        where,
        len(workers),
        sum(about["nthreads"] for about in workers.values()),
        sum(about["memory_limit"] for about in workers.values()),
        sum(about["napari_xcebra"] in (None, "MISSING") for about in each),
        tuple(_differing(each)),
    )


def _differing(each: list[dict[str, Any]]) -> list[str]:
    """Packages whose version on some worker differs from the one here."""
    words = []
    for name, here in _here().items():
        there = {str(about.get(name)) for about in each if about.get(name)} - {here, "MISSING"}
        if name == "python":
            # what is sent does not depend on the last number
            there = {v for v in there if _minor(v) != _minor(here)}
        if there:
            words.append(f"{name.replace('_', '-')} {', '.join(sorted(there))} there, {here} here")
    return words


def _here() -> dict[str, str]:
    versions = {name: metadata.version(name.replace("_", "-")) for name in PACKAGES}
    return {**versions, "python": platform.python_version()}


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


MOST_ENTRIES = 1000


class SlurmCluster(Cluster):
    """Calls on workers that SLURM starts, and that end with this executor.

    Parameters
    ----------
    path : path
        The configuration.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        asked = _read_slurm(path)
        jobs = asked.pop("jobs")
        self._queue = _slurm_jobs(asked, path)
        try:
            self._queue.scale(jobs=jobs)
            super().__init__(self._queue.scheduler_address)
        except BaseException:
            self._queue.close()
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls, and give the jobs back to SLURM when the last one has ended."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._queue.close()


def _read_slurm(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a configuration asks for, including `jobs`."""
    import yaml

    path = Path(path)
    try:
        asked = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path} is not valid YAML: {error}.") from error
    if not _is_short(asked):
        raise InputError(f"{path} is too long for the description of a job.")
    part = asked.get("jobqueue", {}) if isinstance(asked, Mapping) else {}
    slurm = part.get("slurm") if isinstance(part, Mapping) else None
    if not isinstance(slurm, Mapping):
        raise InputError(f"{path} has no part jobqueue: slurm:, which describes a job.")
    for key in ("cores", "memory"):
        if key not in slurm:
            raise InputError(f"{path} does not say jobqueue.slurm.{key}, which a job needs.")
    jobs = slurm.get("jobs", 1)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"{path} has jobs: {jobs!r}: a whole number of 1 or more is needed.")
    # a process a core, since a run computes on one thread; and a port that is free
    dashboard = {"dashboard_address": ":0"}
    usual = {"processes": slurm["cores"], "scheduler_options": dashboard}
    return {**usual, **slurm, "jobs": jobs}


def _is_short(asked: Any) -> bool:
    """Whether it has few entries: by its aliases, a short file may stand for billions."""
    waiting, seen = [asked], 0
    while waiting and seen <= MOST_ENTRIES:
        entry = waiting.pop()
        seen += 1
        if isinstance(entry, Mapping):
            waiting += [*entry.keys(), *entry.values()]
        elif isinstance(entry, list | tuple | set):
            waiting += entry
    return seen <= MOST_ENTRIES


def _slurm_jobs(asked: Mapping[str, Any], path: str | os.PathLike[str]) -> Any:
    """The cluster of dask-jobqueue, no job of which is submitted yet."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise InputError(
            "SLURM needs dask-jobqueue, which is not installed: pip install "
            "'napari-xcebra[cluster]'."
        ) from error
    try:
        return SLURMCluster(**asked)
    except (TypeError, ValueError) as error:
        first, *_ = str(error).partition(". ")
        raise InputError(f"{path} cannot be used by dask-jobqueue: {first}.") from error
