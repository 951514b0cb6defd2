"""Which runs are on disk, so that a window is not closed on the others unasked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from napari_xcebra.learn import Fit
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Session

NAMED = 3
"""Runs that are named; of more, their number is told."""

_ON_DISK: WeakValueDictionary[int, Fit] = WeakValueDictionary()
"""Fits by their identity, which a run keeps when it is renamed or attributed once more."""


def mark_as_kept(runs: Iterable[Run]) -> None:
    """Runs that were just written, or come from a file."""
    for run in runs:
        _ON_DISK[id(run.fit)] = run.fit


def unsaved_in(session: Session) -> str:
    """The runs that would be lost with the window, as a sentence; empty if there are none."""
    names = [
        f"{run.name} of {opened.name}"
        for opened in session.opened
        for run in opened.runs
        if id(run.fit) not in _ON_DISK
    ]
    if not names:
        return ""
    which = ", ".join(names) if len(names) <= NAMED else f"{len(names)} runs"
    are = "is" if len(names) == 1 else "are"
    return f"{which} {are} not saved (Save in the Train dock, or File ▸ Save session)."
