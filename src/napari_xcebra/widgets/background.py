"""Work that must not stop the window: in a thread, its outcome handled in the window's own."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from napari.qt.threading import create_worker

from napari_xcebra.errors import InputError

Result = TypeVar("Result")


def in_background(
    work: Callable[[], Result],
    done: Callable[[Result], object],
    failed: Callable[[str, str], object],
) -> Any:
    """Call `work` in a thread, then `done` with its result, or `failed` with sentence and details.

    Both are called in the window's thread.
    """

    def guarded() -> tuple[bool, Any]:
        # napari's own error signal does not keep what was raised apart from a bug
        try:
            return True, work()
        except Exception as error:
            sentence = str(error) if isinstance(error, InputError) else _unforeseen(error)
            details = "" if isinstance(error, InputError) else traceback.format_exc()
            return False, (sentence, details)

    def returned(outcome: tuple[bool, Any]) -> None:
        good, value = outcome
        if good:
            done(value)
        else:
            failed(*value)

    return create_worker(guarded, _connect={"returned": returned})


def listen(events: Iterable[Any], each: Callable[[Any], object]) -> Any:
    """Follow messages of a job in a thread and call `each` with them in the window's thread."""

    def follow() -> Iterator[Any]:
        yield from events

    return create_worker(follow, _connect={"yielded": each})


def _unforeseen(error: BaseException) -> str:
    return f"Something unforeseen went wrong ({type(error).__name__}: {error})."
