"""Wraps a function call as a task, so that it can run in a child process or on a cluster.

The function need not know where it runs: through `current_report` it reports its progress and
learns that it should stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

from napari_xcebra.jobs import failures
from napari_xcebra.jobs.events import Advanced, Cancelled, Finished, Outcome, Sketched
from napari_xcebra.jobs.tasks import FitTask, Report


class CallFailed(RuntimeError):
    """A call that ran elsewhere failed.

    Parameters
    ----------
    sentence : str
        For the user: what happened, and what to do.
    details : str
        Traceback and last output there.
    """

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.details = sentence, details


class CallStopped(RuntimeError):
    """A call was stopped because nobody wants its result any longer."""


class Running(Future[Any]):
    """Future of a call that reports its progress and can be stopped while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = 0.0
        """Share of its work that is done, from 0 to 1."""
        self._stop: Callable[[], object] | None = None
        self.unwanted = False
        """Whether it was asked to stop."""

    def stop(self) -> None:
        """Cancel it if it waits; ask it to stop soon if it runs. Returns at once."""
        self.unwanted = True
        if not self.cancel() and self._stop is not None:
            self._stop()

    def stopped_by(self, stop: Callable[[], object]) -> None:
        """Remember how to stop it, now that it runs; for the executor."""
        self._stop = stop
        if self.unwanted:
            stop()

    def settle(self, outcome: Outcome) -> None:
        """Set the result or the exception."""
        if isinstance(outcome, Finished):
            self.progress = 1.0
            self.set_result(outcome.result)
        elif isinstance(outcome, Cancelled):
            self.set_exception(CallStopped("It was stopped before it finished."))
        else:
            self.set_exception(CallFailed(outcome.sentence, outcome.details))


@dataclass(frozen=True, eq=False)
class Call:
    """Call of a function that Python can import where it runs."""

    doing: ClassVar[str] = "The run"
    sparing: ClassVar[str] = FitTask.sparing

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def run(self, report: Report) -> Any:
        """Call it."""
        with _reporting(report):
            return self.function(*self.arguments, **self.named)

    def outcome(self, report: Report) -> Outcome:
        """Call it, and return how it ended; errors are put into words where they happen."""
        try:
            result = self.run(report)
        except Exception as error:
            failed = failures.from_exception(error, self.doing, self.sparing)
            return Cancelled() if report.stop() else failed
        return Cancelled() if report.stop() else Finished(result)


class Silence:
    """Report to nobody."""

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Nobody listens."""

    def stop(self) -> bool:
        """Never."""
        return False


_REPORT: ContextVar[Report | None] = ContextVar("report", default=None)


def current_report() -> Report:
    """Report of the current call; nobody listens if the function was called directly."""
    return _REPORT.get() or Silence()


@contextmanager
def _reporting(report: Report) -> Iterator[None]:
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)
