"""Runs work in a thread and handles its outcome in the window's own.

napari remembers every worker that it made for as long as its window is open, and asks before the
window is closed on a running one, in the names of functions. So it does not know of ours: they
end before napari does, and `closing` asks where work would be lost. What a worker needed, which may
be a recording or a whole state, is let go when it has finished.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from napari.qt.threading import FunctionWorker, GeneratorWorker
from qtpy.compat import isalive
from qtpy.QtCore import QThreadPool

from napari_xcebra.errors import InputError, Stopped, is_refusal, refusal
from napari_xcebra.support.logs import LOGGER

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

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


def listen(events: Iterable[Any], each: Callable[[Any], object]) -> Any:
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
