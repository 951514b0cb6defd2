"""Runs work in child processes or a thread, and handles its outcome in the thread of the window.

napari remembers every worker that it made for as long as its window is open, and asks before the
window is closed on a running one, in the names of functions. So it does not know of ours: they
end before napari does, and `AskBeforeClosing` asks where work would be lost. What a worker needed,
which may be a recording or a whole state, is let go when it has finished.
"""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import ref

from napari.qt.threading import FunctionWorker, GeneratorWorker
from napari.utils import progress
from qtpy.compat import isalive
from qtpy.QtCore import QThreadPool

from napari_xcebra.errors import InputError, Stopped, is_refusal, refusal
from napari_xcebra.jobs import Advanced, Call, Cancelled, Failed, Finished, Job, Started
from napari_xcebra.jobs.events import Event, Outcome
from napari_xcebra.jobs.worker import GRACE
from napari_xcebra.support.logs import LOGGER
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.jobs import Worker


Which = Literal["worker", "second_worker"]
SEVERAL = 5.0
"""Seconds that a task of several trainings has to return the finished ones."""


class Processes:
    """Starts the background processes when they are first needed, and ends them together."""

    closed = False

    def __init__(self) -> None:
        self.activity = _Activity()

    @cached_property
    def worker(self) -> Worker:
        """The process that trains and scores."""
        return _started()

    @cached_property
    def second_worker(self) -> Worker:
        """The process for long work that nothing else should wait for."""
        return _started()

    def warm_up(self) -> None:
        """Start the first process ahead of its first task: importing torch takes seconds."""
        _ = self.worker

    def ready(self, which: Which = "worker") -> bool:
        """Whether a process has started, so that work begins at once."""
        return which in self.__dict__ and self.__dict__[which].ready

    def close(self) -> None:
        """End the processes; their last messages are dropped."""
        self.closed = True
        self.activity.close()
        for which in ("worker", "second_worker"):
            if which in self.__dict__:
                self.__dict__.pop(which).close()


def _started() -> Worker:
    from napari_xcebra.jobs import Worker

    worker = Worker()
    worker.start()
    return worker


@dataclass(frozen=True, eq=False)
class Work:
    """A call, and what to do with its result.

    Parameters
    ----------
    title : str
        What it is, to be read after "Computing".
    call : Call
    keep : callable
        Called with the result.
    key : hashable
        By which `JobQueue.awaits` knows it.
    say : callable, optional
        Told what goes wrong (sentence, tone, details), in place of the listeners of the queue.
    heard : callable, optional
        Called with every event, in place of `keep` and `say`.
    long : bool
        Several trainings: in the second process.
    grace : float
        Seconds to hand over what is finished when it is stopped.
    at_stake : str
        What would be lost with the window, as a sentence.
    """

    title: str
    call: Call
    keep: Callable[[Any], object] = lambda _: None
    key: Hashable = None
    say: Callable[[str, str, str], object] | None = None
    heard: Callable[[Event], object] | None = None
    long: bool = False
    grace: float = GRACE
    at_stake: str = ""

    @property
    def process(self) -> Which:
        """Where it runs."""
        return "second_worker" if self.long else "worker"


class JobQueue:
    """Runs one task at a time; it goes on when the dock that asked for it is closed.

    With `latest`, only the task asked for last is run next: an earlier one that still waits is
    dropped, and nothing is said of one that fails after another was asked for, or that is stopped.
    `changed` is then not emitted while a task advances.
    """

    changed = Signal()
    """A task began, advanced or ended."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, processes: Processes, *, latest: bool = False) -> None:
        self._processes = processes
        self._latest = latest
        self._waiting: list[Work] = []
        self._job: Job | None = None
        self._bar: ActivityBar | None = None
        self._closed = False
        self.current: Work | None = None
        self.started = False
        """Whether the process has begun with the task; it may be busy with one of another queue."""
        self._progress: Advanced | None = None

    # ------------------------------------------------------------ what is under way

    @property
    def busy(self) -> bool:
        """Whether a task is under way, or waits for its turn."""
        return self.current is not None

    @property
    def progress(self) -> Advanced | None:
        """The last report of the task under way."""
        return self._progress if self.busy else None

    def awaits(self, key: Hashable) -> bool:
        """Whether the work of that key is under way, or waits for its turn."""
        works = self._waiting if self.current is None else [self.current, *self._waiting]
        return any(work.key == key for work in works)

    def runs(self, kind: str) -> bool:
        """Whether the task under way has this key, or one that begins with it."""
        key = self.current.key if self.current else None
        return key == kind or (isinstance(key, tuple) and key[0] == kind)

    @property
    def title(self) -> str:
        """What is being computed."""
        return self.current.title if self.current else ""

    @property
    def waiting(self) -> int:
        """Tasks that come after the one under way."""
        return len(self._waiting)

    @property
    def waits_for(self) -> str:
        """What it waits for before there is progress to show, in a word or two."""
        if self.started:
            return "starting"
        ready = self.current is None or self._processes.ready(self.current.process)
        return "waiting for its turn" if ready else "starting the background process"

    @property
    def at_stake(self) -> str:
        """What would be lost with the window, as a sentence; empty if nothing is under way."""
        if self.current is None:
            return ""
        return self.current.at_stake or f"Still computing {self.title}: the result will be lost."

    # ------------------------------------------------------------ asking and stopping

    def ask(self, *works: Work) -> Job | None:
        """Run these once earlier work is done; returns the job that runs now."""
        if self._closed or self._processes.closed:
            return None
        self._waiting = [*works] if self._latest else [*self._waiting, *works]
        if self.busy:
            self.changed.emit()
        else:
            self._begin()
        return self._job

    def cancel(self, grace: float | None = None) -> None:
        """Stop, and drop what is waiting; earlier results are kept.

        `grace` is in place of that of the task.
        """
        self._waiting.clear()
        # closed processes have ended their jobs; a widget that is being garbage-collected must not
        # touch a job that is collected with it
        if self._job is not None and self.current is not None and not self._processes.closed:
            self._job.cancel(self.current.grace if grace is None else grace)

    def close(self) -> None:
        """Stop, and make no more calls."""
        self._closed = True
        self.cancel()
        if self._bar is not None:
            self._bar.close()

    # ------------------------------------------------------------ following

    def _begin(self) -> None:
        if self._waiting:
            self.current = work = self._waiting.pop(0)
            self.started, self._progress = False, None
            process: Worker = getattr(self._processes, work.process)
            self._job = process.submit(work.call)
            # what answers at once, or is asked again and again, would only flicker
            self._bar = None if self._latest else self._processes.activity.begin(work.call.doing)
            _listen(self._job.events(), lambda event: self._on(event, work))
        self.changed.emit()

    def _on(self, event: Event, work: Work) -> None:
        if self._processes.closed:
            self._job = self.current = None
        if self._closed or work is not self.current:
            return
        if isinstance(event, Started):
            self.started = True
        elif isinstance(event, Advanced):
            self._progress = event
            if self._bar is not None:
                self._bar.show(event.done, event.total)
        if isinstance(event, Outcome):
            self._end(event, work)
            return
        if work.heard is not None:
            work.heard(event)
        if not (self._latest and isinstance(event, Advanced)):
            self.changed.emit()

    def _end(self, event: Outcome, work: Work) -> None:
        self._job = self.current = None
        if self._bar is not None:
            self._bar.close()
        if self._latest and self._waiting:
            self._begin()
            if isinstance(event, Finished) and event.result is not None:
                work.keep(event.result)
            self.changed.emit()
            return
        if work.heard is not None:
            work.heard(event)
        else:
            self._tell(event, work)
        if not self.busy:  # what was kept may have led to more
            self._begin()

    def _tell(self, event: Outcome, work: Work) -> None:
        say = work.say or self.said.emit
        if isinstance(event, Failed):
            say(event.sentence, "problem", event.details)
        elif event.result is not None and not (self._latest and isinstance(event, Cancelled)):
            work.keep(event.result)
        if isinstance(event, Cancelled) and not self._latest:
            kept = "nothing was kept" if event.result is None else "what was finished is kept"
            say(f"Stopped {work.title}: {kept}.", "plain", "")


Result = TypeVar("Result")


def in_background(
    work: Callable[[], Result],
    done: Callable[[Result], object],
    failed: Callable[[str, str], object],
    owner: QWidget | None = None,
) -> Any:
    """Call `work` in a thread, then `done` with its result, or `failed` with sentence and details.

    Both are called in the window's thread, unless the widget `owner` is gone by then; neither if
    `work` was stopped.
    """
    exists = while_exists(owner)
    needed: dict[str, Any] = {"work": work, "done": done, "failed": failed}
    del work, done, failed

    def guarded() -> tuple[bool, Any] | None:
        # napari's own error signal does not keep what was raised apart from a bug
        try:
            return True, needed["work"]()
        except Stopped:
            return None
        except Exception as error:
            sentence = str(error) if isinstance(error, InputError) else _unforeseen(error)
            # where it failed in another process, that one has the details
            known = getattr(error, "details", "") if isinstance(error, InputError) else None
            details = traceback.format_exc() if known is None else known
            LOGGER.log(logging.ERROR if details else logging.WARNING, "%s\n%s", sentence, details)
            return False, (sentence, details)

    def returned(outcome: tuple[bool, Any] | None) -> None:
        done, failed = needed["done"], needed["failed"]
        needed.clear()
        if outcome is None or not exists():
            return
        good, value = outcome
        if good:
            done(value)
        else:
            failed(*value)

    worker = FunctionWorker(guarded)
    worker.returned.connect(returned)
    worker.start()
    return worker


def _listen(events: Iterable[Any], each: Callable[[Any], object]) -> Any:
    """Follow messages of a job in a thread and call `each` with them in the window's thread."""
    needed: dict[str, Any] = {"events": events, "each": each}
    del events, each

    def follow() -> Iterator[Any]:
        # Qt has a thread a core: those that only wait must not keep files from being read
        pool = QThreadPool.globalInstance()
        pool.releaseThread()
        try:
            yield from needed["events"]
        finally:
            pool.reserveThread()

    def yielded(event: Any) -> None:
        needed["each"](event)

    worker = GeneratorWorker(follow)
    worker.yielded.connect(yielded)
    worker.finished.connect(needed.clear)
    worker.start()
    return worker


def while_exists(owner: QWidget | None) -> Callable[[], bool]:
    """Whether a widget still exists, to be asked at any time."""
    if owner is None:
        return lambda: True
    widget = ref(owner)

    def exists() -> bool:
        there = widget()
        return there is not None and isalive(there)

    return exists


def _unforeseen(error: BaseException) -> str:
    if is_refusal(error):
        return f"This failed because {refusal(error)}."
    return f"Something unforeseen went wrong ({type(error).__name__}: {error})."


class _Activity:
    """The bars of a window; those that are left are closed with it."""

    def __init__(self) -> None:
        self._bars: list[ActivityBar] = []

    def begin(self, words: str) -> ActivityBar:
        """Bar for work that has begun, without an end in sight; it is to be closed."""
        self._bars = [*(bar for bar in self._bars if bar.is_open), bar := ActivityBar(words)]
        return bar

    def close(self) -> None:
        """Close all bars."""
        for bar in self._bars:
            bar.close()


class ActivityBar:
    """One bar; napari shows it in whatever window there is, and nothing is printed."""

    def __init__(self, words: str) -> None:
        # without a window, tqdm would write to the terminal
        self._bar: Any = progress(total=0, desc=words, file=io.StringIO())

    @property
    def is_open(self) -> bool:
        """Whether it is still shown."""
        return self._bar is not None

    def show(self, done: int, total: int) -> None:
        """Show how far the work is."""
        if self._bar is None:
            return
        with suppress(RuntimeError):  # the window is being closed
            if self._bar.total != total:
                self._bar.total = total
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Remove it, however the work has ended."""
        bar, self._bar = self._bar, None
        if bar is not None:
            with suppress(RuntimeError):
                bar.close()
