"""Defines what a task is, how it ends when stopped, and how it reports its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

from napari_xcebra.errors import Stopped
from napari_xcebra.jobs.events import NAN, Advanced, Sketched, Unit

Found = TypeVar("Found")
Self = TypeVar("Self")


class Report(Protocol):
    """How a running task reports its progress, and learns that it should stop."""

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Report progress, as often as you like; a provisional map always reaches the window."""

    def stop(self) -> bool:
        """Whether it should stop."""


class Task(Protocol):
    """A value that can be pickled, and run elsewhere."""

    @property
    def doing(self) -> str:
        """What it does, as the start of a sentence."""

    @property
    def sparing(self) -> str:
        """What the user can do so that it needs less memory."""

    def run(self, report: Report) -> Any:
        """Do it; None if it was stopped with nothing to show."""


def none_if_stopped(
    run: Callable[[Self, Report], Found],
) -> Callable[[Self, Report], Found | None]:
    """Let `run` return None if it is stopped."""

    @wraps(run)
    def running(self: Self, report: Report) -> Found | None:
        try:
            return run(self, report)
        except Stopped:
            return None

    return running


class Pace:
    """Estimates the time left from the pace since the first report."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def seconds_left(self, done: int, total: int) -> float:
        """Seconds; NaN at the first report."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, done
        began, before = self._first
        return (now - began) / (done - before) * (total - done) if done > before else NAN


class FrameCount:
    """Reports how many frames, cells or steps are done."""

    def __init__(self, report: Report, unit: Unit = "frame") -> None:
        self._report, self._unit, self._pace = report, unit, Pace()

    def __call__(self, done: int, total: int) -> None:
        """Called as `on_progress`."""
        self._report(Advanced(done, total, self._unit, self._pace.seconds_left(done, total)))
