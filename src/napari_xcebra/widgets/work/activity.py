"""Shows background work in napari's activity dock, beside the bars of the docks."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

from napari.utils import progress


class Activity:
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
