"""An executor on a Dask cluster that outlives the loss of its workers and of its scheduler.

Recordings are sent to every worker once. A call whose worker dies is given to another one by
Dask itself; one whose scheduler is gone is handed in again when a scheduler answers at the same
address. Workers hand their results back, so they need not share a disk with this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from napari_xcebra.errors import InputError
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.calls import Call, Running
from napari_xcebra.jobs.events import Advanced, Cancelled, Failed, Outcome, Sketched
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import distributed

    from napari_xcebra.jobs.parcels import Parcel

PATIENCE = 600.0
"""Seconds to wait for a scheduler that was lost."""
ATTEMPTS = 5
"""Times that a call may be lost with its workers or scheduler before it counts as failed."""
LOOK = 0.05
"""Seconds between two looks at calls under way."""
CENSUS = 2.0
"""Seconds between two questions to the scheduler which workers there are."""
ANSWER = 15.0
"""Seconds that the scheduler has to answer."""
PORT = 8786
"""Where Dask's scheduler listens unless told otherwise."""


_CONNECTION = (OSError, RuntimeError, TimeoutError, asyncio.CancelledError, CancelledError)
"""What a lost connection is raised as."""


def connect(address: str, timeout: float = 10.0) -> distributed.Client:
    """Client of the scheduler at an address, or a sentence why there is none."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "Clusters need Dask, which is not installed: pip install 'napari-xcebra[cluster]'."
        ) from error
    try:
        return Client(
            with_port(address), timeout=timeout, set_as_default=False, name="napari-xcebra"
        )
    except (OSError, ValueError, TimeoutError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        raise InputError(
            f"No Dask scheduler answers at {with_port(address)} ({first}): check the address, that "
            "the scheduler runs, and that this computer may reach it."
        ) from error


def with_port(address: str) -> str:
    """Address with a port and a protocol, those of Dask if it has none.

    >>> with_port("cluster"), with_port("tls://10.0.0.1:9000")
    ('tcp://cluster:8786', 'tls://10.0.0.1:9000')
    """
    protocol, _, place = address.strip().rpartition("://")
    has_port = place.rpartition(":")[2].isdecimal() and ":" in place
    return f"{protocol or 'tcp'}://{place}" + ("" if has_port else f":{PORT}")


@dataclass(eq=False)
class _Item:
    """A call, from being handed in to its end."""

    number: int
    future: Running
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 0
    there: Any = None
    """Future of Dask, while it is there."""


class Cluster(Executor):
    """Calls on the workers of a Dask cluster, one at a time on each of them.

    Parameters
    ----------
    address : str
        Of the scheduler.
    patience : float
        Seconds to wait for a scheduler that was lost.
    """

    def __init__(self, address: str, *, patience: float = PATIENCE) -> None:
        self.address, self.patience = with_port(address), patience
        self.workers = 0
        """Those that the scheduler knew of when it was asked last."""
        self._client = connect(address)
        self._handed_in: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._wake = threading.Event()
        self._closed = self._unwanted = False
        # the thread's own
        self._waiting: deque[_Item] = deque()
        self._under_way: dict[int, _Item] = {}
        self._parcels: dict[int, tuple[Recording, Parcel]] = {}
        self._counted = 0.0
        self._thread = threading.Thread(target=self._serve, name="napari-xcebra", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Running:
        """Hand in a call; recordings among its arguments are sent to each worker once."""
        if self._closed:
            raise RuntimeError("This cluster is closed: connect again.")
        future = Running()
        self._handed_in.put(_Item(next(self._numbers), future, function, args, kwargs))
        self._wake.set()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls; with `cancel_futures`, stop also those that are under way."""
        self._closed, self._unwanted = True, cancel_futures
        self._wake.set()
        if wait:
            self._thread.join()

    def __exit__(self, *raised: Any) -> None:
        # whoever leaves by an exception does not want to wait for the rest
        self.shutdown(cancel_futures=raised[0] is not None)

    # what follows runs in the thread

    def _serve(self) -> None:
        try:
            self._listen()
            while self._anything_left():
                try:
                    self._advance()
                except _CONNECTION:
                    self._find_again()  # the connection is lost, in whatever shape that comes
                self._wake.wait(LOOK if self._under_way or self._waiting else 1.0)
                self._wake.clear()
        except Exception as error:  # nobody is to wait for ever
            what = failures.from_exception(error, "Running on the cluster", Call.sparing)
            self._give_up(what.sentence, what.details)
        finally:
            self._disconnect()

    def _anything_left(self) -> bool:
        with contextlib.suppress(queue.Empty):
            while True:
                self._waiting.append(self._handed_in.get_nowait())
        for item in [*self._waiting, *self._under_way.values()]:
            if self._unwanted:
                item.future.stop()
            if item.future.unwanted:
                self._drop(item)
        return bool(not self._closed or self._waiting or self._under_way)

    def _drop(self, item: _Item) -> None:
        """Let go of a call that nobody wants any longer."""
        if item.there is not None:
            with contextlib.suppress(Exception):
                item.there.cancel()
        if item.number in self._under_way:
            self._end(item, Cancelled())
        elif item.attempts:
            self._waiting.remove(item)
            item.future.settle(Cancelled())
        else:
            self._waiting.remove(item)
            item.future.set_running_or_notify_cancel()

    def _advance(self) -> None:
        for item in list(self._under_way.values()):
            self._look_at(item)
        if time.monotonic() - self._counted > CENSUS:
            # which also tells whether a scheduler that said nothing is still there
            self.workers = len(self._client.nthreads(callback_timeout=ANSWER))
            self._counted = time.monotonic()
        while self._waiting and len(self._under_way) < self.workers:
            self._hand_over(self._waiting.popleft())

    def _hand_over(self, item: _Item) -> None:
        # asked once: a call that is handed over again is running already
        if not item.attempts and not item.future.set_running_or_notify_cancel():
            return
        item.attempts += 1
        self._under_way[item.number] = item
        try:
            item.there = self._client.submit(
                _on_worker,
                item.function,
                [self._sent(each) for each in item.arguments],
                dict(item.named),
                item.number,
                self._topic,
                pure=False,
            )
        except _CONNECTION:
            raise
        except Exception as error:  # workers cannot read it, or it cannot be sent
            self._end(item, _as_failure(error))

    def _sent(self, value: Any) -> Any:
        """What stands for a value in a call: a recording is sent to all workers, once."""
        if not isinstance(value, Recording):
            return value
        from napari_xcebra.jobs.parcels import Parcel

        if id(value) not in self._parcels:
            # the recording is kept as well, so that its id serves no other meanwhile
            self._parcels[id(value)] = value, Parcel(self._client, value)
        return self._parcels[id(value)][1]

    def _look_at(self, item: _Item) -> None:
        status = item.there.status
        if status == "finished":
            self._end(item, item.there.result(timeout=60))
        elif status == "error":
            self._end(item, _as_failure(item.there.exception(timeout=60)))
        elif status != "pending" and item.attempts >= ATTEMPTS:
            self._end(item, Failed(f"{Call.doing} was lost {ATTEMPTS} times: {_LOST}"))
        elif status != "pending":
            raise ConnectionError("What was on the cluster is lost.")

    def _end(self, item: _Item, outcome: Outcome) -> None:
        del self._under_way[item.number]
        item.there = None
        item.future.settle(outcome)

    def _find_again(self) -> None:
        """Wait for a scheduler at the same address, and begin again what was under way."""
        for item in sorted(self._under_way.values(), key=lambda each: -each.number):
            item.there = None
            self._waiting.appendleft(item)
        self._under_way.clear()
        self._parcels.clear()
        self._counted = self.workers = 0
        self._disconnect()
        deadline = time.monotonic() + self.patience
        while self._anything_left():
            try:
                self._client = connect(self.address, timeout=2)
                self._listen()
                return
            except InputError as error:
                if time.monotonic() > deadline:
                    self._give_up(f"The scheduler was lost. {error}")
            self._wake.wait(0.5)
            self._wake.clear()

    def _give_up(self, sentence: str, details: str = "") -> None:
        self._closed = True
        self._anything_left()
        for item in [*self._under_way.values(), *self._waiting]:
            if item.attempts or item.future.set_running_or_notify_cancel():
                item.future.settle(Failed(sentence, details))
        self._under_way.clear()
        self._waiting.clear()

    def _disconnect(self) -> None:
        with contextlib.suppress(Exception):
            for _, parcel in self._parcels.values():
                parcel.withdrawn(self._client)
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)

    def _listen(self) -> None:
        """Hear how far calls are."""
        self._topic = f"napari-xcebra-{self._client.id}"
        self._client.subscribe_topic(self._topic, self._heard)

    def _heard(self, event: tuple[float, Mapping[str, Any]]) -> None:
        item = self._under_way.get(event[1]["number"])
        if item is not None:
            item.future.progress = max(item.future.progress, event[1]["share"])


_LOST = (
    "its workers or their scheduler died each time, most likely because a worker ran out of "
    f"memory: give workers more, or {Call.sparing}."
)


def _as_failure(error: BaseException | None) -> Failed:
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return Failed(f"{Call.doing} was given up by the cluster: {_LOST}", str(error))
    what = f"{type(error).__name__}: {error}"
    return Failed(
        f"{Call.doing} could not be run by the cluster ({what}): check that its workers have the "
        "same versions of Python and napari-xcebra as this computer.",
        what,
    )


# what follows runs on the workers


def _on_worker(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    number: int,
    topic: str,
) -> Outcome:
    """Run a call, and tell the topic how far it is."""
    from napari_xcebra.jobs.parcels import opened

    call = Call(function, tuple(opened(each) for each in arguments), named)
    return call.outcome(_WorkerReport(number, topic))


class _WorkerReport:
    """Passes on about one report a second."""

    def __init__(self, number: int, topic: str) -> None:
        from distributed import get_worker

        self._worker = get_worker()
        self._key = self._worker.get_current_task()
        self._number, self._topic, self._last = number, topic, 0.0

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Tell whoever listens."""
        if advanced.total and time.monotonic() - self._last > 1:
            self._last = time.monotonic()
            share = advanced.done / advanced.total
            self._worker.log_event(self._topic, {"number": self._number, "share": share})

    def stop(self) -> bool:
        """Whether nobody wants the result any longer: it was cancelled, or its client is gone."""
        task = self._worker.state.tasks.get(self._key)
        return task is None or task.state in ("cancelled", "released", "forgotten")
