"""How far a task is, and how long the rest will take."""

from __future__ import annotations

import time

from napari_xcebra.jobs.events import NAN, Advanced, Unit
from napari_xcebra.jobs.tasks.task import Report


class Pace:
    """How long the rest will take, if it goes on as from the first report to the present one."""

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
    """Reports frames, cells or steps, done and in all."""

    def __init__(self, report: Report, unit: Unit = "frame") -> None:
        self._report, self._unit, self._pace = report, unit, Pace()

    def __call__(self, done: int, total: int) -> None:
        """To be called as `on_progress` is."""
        self._report(Advanced(done, total, self._unit, self._pace.seconds_left(done, total)))
