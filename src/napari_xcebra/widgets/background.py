"""Work that must not stop the window: in a thread, its outcome handled in the window's own."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from napari.qt.threading import create_worker
from qtpy.QtCore import QThreadPool

from napari_xcebra.errors import InputError
from napari_xcebra.logs import LOGGER

if TYPE_CHECKING:
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.widgets.session import Session

Result = TypeVar("Result")


def in_background(
    work: Callable[[], Result],
    done: Callable[[Result], object],
    failed: Callable[[str, str], object],
    owner: QWidget | None = None,
) -> Any:
    """Call `work` in a thread, then `done` with its result, or `failed` with sentence and details.

    Both are called in the window's thread, unless the widget `owner` is gone by then.
    """
    exists = while_exists(owner)

    def guarded() -> tuple[bool, Any]:
        # napari's own error signal does not keep what was raised apart from a bug
        try:
            return True, work()
        except Exception as error:
            sentence = str(error) if isinstance(error, InputError) else _unforeseen(error)
            details = "" if isinstance(error, InputError) else traceback.format_exc()
            LOGGER.log(logging.ERROR if details else logging.WARNING, "%s\n%s", sentence, details)
            return False, (sentence, details)

    def returned(outcome: tuple[bool, Any]) -> None:
        good, value = outcome
        if not exists():
            return
        if good:
            done(value)
        else:
            failed(*value)

    return create_worker(guarded, _connect={"returned": returned})


def listen(
    events: Iterable[Any],
    each: Callable[[Any], object],
    owner: QWidget | None = None,
    session: Session | None = None,
) -> Any:
    """Follow messages of a job in a thread and call `each` with them in the window's thread.

    Messages that come after the widget `owner` is gone, or the session closed, are passed over.
    """
    exists = while_exists(owner)

    def follow() -> Iterator[Any]:
        # Qt has a thread a core: those that only wait must not keep files from being read
        pool = QThreadPool.globalInstance()
        pool.releaseThread()
        try:
            yield from events
        finally:
            pool.reserveThread()

    def yielded(event: Any) -> None:
        if exists() and not (session is not None and session.closed):
            each(event)

    return create_worker(follow, _connect={"yielded": yielded})


def while_exists(owner: QWidget | None) -> Callable[[], bool]:
    """Whether a widget still exists, to be asked at any time."""
    gone: list[bool] = []
    if owner is not None:
        owner.destroyed.connect(lambda *_: gone.append(True))
    return lambda: not gone


def _unforeseen(error: BaseException) -> str:
    return f"Something unforeseen went wrong ({type(error).__name__}: {error})."
