"""Progress bars, and Ctrl-C as a request to stop."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan
from types import FrameType
from typing import TYPE_CHECKING

from tqdm import tqdm

from napari_xcebra.errors import Stopped
from napari_xcebra.text import left

if TYPE_CHECKING:
    from napari_xcebra.batch import SweepProgress
    from napari_xcebra.learn import Progress


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C; says what was kept."""


@contextmanager
def interrupt_as_request() -> Iterator[Callable[[], bool]]:
    """Treat the first Ctrl-C as a request to stop at the next report; the second ends at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)
        print("\nStopping at the next report (Ctrl-C again: at once) …", file=sys.stderr)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def stoppable(lost: str) -> Iterator[Callable[[], bool]]:
    """As `interrupt_as_request`, for work that has nothing to show if stopped."""
    with interrupt_as_request() as request:
        try:
            yield request
        except Stopped as stopped:
            raise Interrupted(f"{stopped} {lost}") from stopped


@contextmanager
def training_bar(arguments: argparse.Namespace, steps: int) -> Iterator[Callable[[Progress], None]]:
    """Progress bar of a training run: phase, losses and λ."""
    with _bar(arguments, steps, "step") as bar:

        def show(progress: Progress) -> None:
            losses = " ".join(f"{name} {loss:.2f}" for name, loss in progress.loss.items())
            bar.set_description(progress.phase, refresh=False)
            bar.set_postfix_str(f"{losses} λ ≤ {progress.lambda_:.3g}", refresh=False)
            bar.total = progress.steps  # fewer than asked for, if it stops by itself
            bar.update(progress.step - bar.n)

        yield show


@contextmanager
def count_bar(
    arguments: argparse.Namespace, unit: str, doing: str
) -> Iterator[Callable[[int, int], None]]:
    """Progress bar of frames or steps."""
    with _bar(arguments, None, unit, doing) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show


@contextmanager
def sweep_bar(
    arguments: argparse.Namespace, members: int
) -> Iterator[Callable[[SweepProgress], None]]:
    """Progress bar of a sweep, in runs; those under way count in part."""
    with _bar(arguments, members, "run") as bar:
        bar.bar_format = "{percentage:3.0f}%|{bar}| {desc}"

        def show(at: SweepProgress) -> None:
            rest = "" if isnan(at.seconds_left) else f", {left(at.seconds_left)} left"
            failed = f", {at.failed} failed" if at.failed else ""
            words = f"{at.finished} of {at.total} runs{failed}{rest}"
            bar.set_description_str(words, refresh=False)
            bar.n = at.share * members
            bar.refresh()

        yield show


@contextmanager
def comparison_bar(arguments: argparse.Namespace) -> Iterator[Callable[[str, int, int], None]]:
    """Progress bar of one attribution after the other, in frames."""
    with _bar(arguments, None, "frame") as bar:

        def show(method: str, done: int, total: int) -> None:
            if done < bar.n or bar.n == 0:
                bar.reset(total)
            bar.set_description(method, refresh=False)
            bar.update(done - bar.n)

        yield show


def _bar(arguments: argparse.Namespace, total: int | None, unit: str, text: str = "") -> tqdm:
    shown = not arguments.quiet and (arguments.progress or sys.stderr.isatty())
    return tqdm(total=total, unit=unit, desc=text, disable=not shown, dynamic_ncols=True)
