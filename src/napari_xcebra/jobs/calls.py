"""Defines the call of a function in another process: how it runs there, and how it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.jobs import failures
from napari_xcebra.jobs.events import (
    Cancelled,
    Counter,
    Finished,
    Outcome,
    Report,
    Silence,
    Unit,
)
from napari_xcebra.jobs.limits import Limits

SPARING = "lower `batch_size` or `window`, use fewer cells or frames, or set `device` to cpu"
"""What the user can do so that a training needs less memory."""


@dataclass(frozen=True, eq=False)
class Call:
    """Call of a function that Python can import where it runs.

    One without arguments is made one with them by calling it: ``ATTRIBUTE(fit, recording)``.

    Parameters
    ----------
    function : callable or str
        Or "module:function", which is imported where it runs.
    arguments : tuple
    named : mapping
        Arguments by name.
    doing : str
        What it does, as the start of a sentence.
    sparing : str
        What the user can do so that it needs less memory.
    counts : {"step", "frame", "cell"} or ""
        What it counts as it goes on: it then takes `on_progress` and `stop`.
    paths : tuple of Path
        Files and folders of others that it reads, which limit what it may take.
    seconds : float
        In which it is to have read them.
    """

    function: Callable[..., Any] | str
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    doing: str = "The run"
    sparing: str = SPARING
    counts: Unit | Literal[""] = ""
    paths: tuple[Path, ...] = ()
    seconds: float = math.inf

    def __call__(self, *arguments: Any, **named: Any) -> Call:
        """The call with these arguments."""
        return replace(self, arguments=arguments, named=named)

    @cached_property
    def limits(self) -> Limits | None:
        """What it may take; sizes of files are asked for, which may take a while."""
        return Limits.of(self.paths, self.seconds) if self.paths else None

    def run(self, report: Report) -> Any:
        """Call it."""
        function, named = self.function, dict(self.named)
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = getattr(import_module(module), name)
        if self.counts:
            named |= {"on_progress": Counter(report, self.counts), "stop": report.stop}
        with _reporting(report):
            return function(*self.arguments, **named)

    def outcome(self, report: Report) -> Outcome:
        """Call it, and return how it ended; errors are put into words where they happen."""
        try:
            result = self.run(report)
        except BrokenPipeError:  # nobody is there to be told
            raise
        except Stopped:
            return Cancelled()
        except Exception as error:
            if report.stop():
                return Cancelled()
            failed = failures.from_exception(error, self.doing, self.sparing)
            failures.log(failed)
            return failed
        return Cancelled(result) if report.stop() else Finished(result)


class CallFailed(InputError):
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
            self.set_exception(Stopped("It was stopped before it finished."))
        else:
            self.set_exception(CallFailed(outcome.sentence, outcome.details))


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
