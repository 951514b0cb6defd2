"""Remembers which runs are on disk, and says which would be lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from napari_xcebra.learn import Fit
    from napari_xcebra.runs import Run
    from napari_xcebra.workspace_file import Opened

NAMED = 3
"""Unsaved runs to name at most; of more, only the number is given."""


class SavedRuns:
    """Knows runs by their fit, which a run keeps when it is renamed or scored once more."""

    def __init__(self) -> None:
        self._fits: WeakValueDictionary[int, Fit] = WeakValueDictionary()

    def mark(self, runs: Iterable[Run]) -> None:
        """Note runs that were just written, or come from a file."""
        for run in runs:
            self._fits[id(run.fit)] = run.fit

    def lacking(self, opened: Opened) -> list[Run]:
        """Runs of a recording that are not on disk."""
        return [run for run in opened.runs if id(run.fit) not in self._fits]

    def sentence(self, recordings: Sequence[Opened]) -> str:
        """The runs that would be lost with the window; empty if there are none."""
        names = [f"{run.name} of {each.name}" for each in recordings for run in self.lacking(each)]
        if not names:
            return ""
        which = ", ".join(names) if len(names) <= NAMED else f"{len(names)} runs"
        are = "is" if len(names) == 1 else "are"
        where = "Save in the Train dock, or File ▸ IO Utilities ▸ Save workspace"
        return f"{which} {are} not saved ({where})."
