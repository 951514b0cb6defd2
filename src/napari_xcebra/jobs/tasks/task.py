"""What a task is, and how it ends when it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

from napari_xcebra.errors import Stopped
from napari_xcebra.jobs.events import Advanced, Sketched

Found = TypeVar("Found")
Self = TypeVar("Self")


class Report(Protocol):
    """How a running task tells where it stands, and learns that it should stop."""

    def __call__(self, advanced: Advanced | Sketched) -> None:
        """Tell where it stands; may be called as often as one likes.

        A provisional map is always passed on to a window.
        """

    def stop(self) -> bool:
        """Whether it should stop."""


class Task(Protocol):
    """A value that can be pickled, and run elsewhere."""

    @property
    def doing(self) -> str:
        """What it does, to begin a sentence with."""

    @property
    def sparing(self) -> str:
        """What the user can change so that it needs less memory."""

    def run(self, report: Report) -> Any:
        """Do it; None if it was stopped and has nothing to show."""


def none_if_stopped(
    run: Callable[[Self, Report], Found],
) -> Callable[[Self, Report], Found | None]:
    """The `run` of a task that has nothing to show before it is finished: None if stopped."""

    @wraps(run)
    def running(self: Self, report: Report) -> Found | None:
        try:
            return run(self, report)
        except Stopped:
            return None

    return running
