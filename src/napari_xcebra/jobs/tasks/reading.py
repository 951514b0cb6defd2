"""Tasks that read files of others: a damaged one may hang, or ask for any amount of memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from napari_xcebra.jobs.limits import Limits
from napari_xcebra.jobs.tasks.task import Report

if TYPE_CHECKING:
    from napari_xcebra.io.opening import Opening

AT_ONCE = 10.0
"""Seconds in which a question about a file is to be answered: napari waits for it."""


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
        return self.function(*self.arguments)


def open_task(opening: Opening) -> ReadTask:
    """Open a recording; the result is a `Recording`."""
    footprints = () if opening.footprints is None else (opening.footprints,)
    paths = (opening.path, *opening.behavior, *footprints)
    return ReadTask(type(opening).open, (opening,), paths)


def question(function: Callable[[Path], bool], path: Path) -> ReadTask:
    """Ask whether a file is of some kind."""
    return ReadTask(function, (path,), (path,), AT_ONCE)
