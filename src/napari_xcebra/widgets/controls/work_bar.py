"""Shows the progress of background work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from qtpy.QtWidgets import QProgressBar

from napari_xcebra.text import about, left

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced


class WorkBar(QProgressBar):
    """Progress with the time left."""

    def __init__(self, tooltip: str) -> None:
        super().__init__()
        self.setToolTip(tooltip)

    def show_progress(self, at: Advanced | None, *, counts: bool = False) -> None:
        """Show a percentage, or counts of frames or steps; animated while `at` is None."""
        done = f"{at.unit} {at.done} of {at.total}" if at and counts else "%p %"
        self._show(at, 0, ", ".join(filter(None, [done, time_left(at)])))

    def show_words(self, at: Advanced | None, *words: str) -> None:
        """Show words in place of a percentage; Qt would put none on an animated bar."""
        self._show(at, 1, " · ".join(filter(None, words)))

    def _show(self, at: Advanced | None, total: int, text: str) -> None:
        self.setRange(0, at.total if at else total)
        self.setValue(at.done if at else 0)
        self.setFormat(text)


def time_left(at: Advanced | None) -> str:
    """Such as "2 min left"; empty if unknown."""
    return "" if at is None or math.isnan(at.seconds_left) else f"{left(at.seconds_left)} left"


def takes(seconds: float, *, ready: bool = True) -> str:
    """How long something takes, to append to a button's text; empty if unknown.

    Until it is `ready`, the background process takes some seconds to start.

    >>> takes(2.3), takes(2.3, ready=False), takes(float("nan"))
    (' (about 5 s)', ' (after start-up, about 5 s)', '')
    """
    words = [] if ready else ["after start-up"]
    words += [] if math.isnan(seconds) else [about(seconds)]
    return f" ({', '.join(words)})" if words else ""
