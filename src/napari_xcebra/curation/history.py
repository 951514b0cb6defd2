"""The steps that were taken on the cells: undone and done again without limit."""

from __future__ import annotations

from napari_xcebra.curation.changes import Cells, Change, Entry, is_step


class History:
    """Steps in their order, and those that were undone; puts each onto the cells.

    Parameters
    ----------
    cells : Cells
        What the steps change.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._done: list[Change] = []
        self._undone: list[Change] = []
        self._last_step = 0

    @property
    def last(self) -> Change | None:
        """The step that is undone next."""
        return self._done[-1] if self._done else None

    @property
    def undone(self) -> Change | None:
        """The step that is done again next; None once another was taken."""
        return self._undone[-1] if self._undone else None

    @property
    def next_step(self) -> int:
        """Number of the step to come; a number is never used twice."""
        return self._last_step + 1

    def take(self, change: Change) -> None:
        """Take a step: what was undone before cannot be done again."""
        self._undone.clear()
        self._last_step = max(self._last_step, change.step)
        self._put(change)

    def back(self) -> Change:
        """Undo the last step."""
        change = self._done.pop()
        self._undone.append(change)
        self._cells.put(change.cells, change.before)
        return change

    def forth(self) -> Change:
        """Do the step again that was undone last."""
        change = self._undone.pop()
        self._put(change)
        return change

    def replay(self, entry: Entry) -> None:
        """Carry out an entry; says itself which step it follows, in case lines before are lost."""
        if entry["do"] == "undo":
            self._leave(entry["of"])
        elif entry["do"] == "redo":
            self._reach(entry["of"])
        elif is_step(entry):
            after = entry["after"]
            while self._done and self._done[-1].step > after:
                self.back()
            self._reach(after)
            self.take(self._cells.change(entry))

    def _leave(self, step: int) -> None:
        """Undo a step, and those after it."""
        if any(change.step == step for change in reversed(self._done)):
            while self.back().step != step:
                pass

    def _reach(self, step: int) -> None:
        """Do a step again that was undone, and those before it."""
        if any(change.step == step for change in reversed(self._undone)):
            while self.forth().step != step:
                pass

    def _put(self, change: Change) -> None:
        self._done.append(change)
        self._cells.put(change.cells, change.after)
