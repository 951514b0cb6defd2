"""Applies entries to the cells, and undoes and redoes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.text import counted

Status = Literal["undecided", "accepted", "rejected"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""Names of the numbers in `Curation.status`."""
UNDECIDED, ACCEPTED, REJECTED = range(3)

BY = ("", "threshold", "hand")
"""Who decided: nobody, a threshold, a person."""
NOBODY, THRESHOLD, HAND = range(3)

TAG = "tag "
"""Before the name of a tag in the name of its column."""

Entry = Mapping[str, Any]
_Columns = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Change:
    """One step that can be undone; holds what changed and nothing else.

    Parameters
    ----------
    step : int
        Its number in the journal.
    sentence : str
        What was done, for the user.
    cells : (n,) int64
        Positions of the cells that changed.
    before, after : mapping of str to (n,) array
        Values of the columns that changed.
    """

    step: int
    sentence: str
    cells: np.ndarray
    before: Mapping[str, np.ndarray]
    after: Mapping[str, np.ndarray]


class Cells:
    """Columns of all cells, by position, and positions by id.

    Parameters
    ----------
    ids : (cells,) int64

    Attributes
    ----------
    columns : dict of str to (cells,) array
        status, by, note, curator, time, and one for each tag.
    unknown : set of int
        Ids that were asked for and that no cell has.
    """

    def __init__(self, ids: Any) -> None:
        self.ids = np.array(ids, np.int64)
        self.ids.flags.writeable = False
        self._order = np.argsort(self.ids, kind="stable")
        self._sorted = self.ids[self._order]
        self.unknown: set[int] = set()
        self.columns: _Columns = {
            "status": np.zeros(len(self), np.int8),
            "by": np.zeros(len(self), np.int8),
            "note": np.full(len(self), "", object),
            "curator": np.full(len(self), "", object),
            "time": np.full(len(self), "", object),
        }

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> np.ndarray:
        """Column of that name; made if it is a new tag."""
        if name not in self.columns:
            self.columns[name] = np.zeros(len(self), bool)
        return self.columns[name]

    def put(self, cells: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Set columns of some cells."""
        for name, column in values.items():
            self.column(name)[cells] = column

    def ids_of(self, cells: Any) -> list[int]:
        """Ids of cells that are given by position or as a mask; each once."""
        given = np.atleast_1d(np.asarray(cells))
        if given.dtype == bool and given.shape == self.ids.shape:
            given = np.flatnonzero(given)
        if given.size and (given.dtype.kind not in "iu" or given.ndim != 1):
            raise InputError("Positions of cells are needed, as whole numbers.")
        wrong = given[(given < 0) | (given >= len(self))]
        if wrong.size:
            raise InputError(
                f"There is no cell at position {wrong[0]}: positions run from 0 to {len(self) - 1}."
            )
        return self.ids[np.unique(given.astype(np.int64))].tolist()

    def positions_of(self, ids: Iterable[int]) -> np.ndarray:
        """Positions of ids, in their order; unknown ids are left out."""
        wanted = np.array(ids, np.int64)
        place = np.searchsorted(self._sorted, wanted)
        there = np.zeros(len(wanted), bool)
        inside = place < len(self)
        there[inside] = self._sorted[place[inside]] == wanted[inside]
        self.unknown.update(wanted[~there].tolist())
        return self._order[place[there]]

    def change(self, entry: Entry) -> Change:
        """What an entry that is a step would change; nothing is changed yet."""
        cells, after = _EFFECTS[entry["do"]](self, entry)
        before = {name: self.column(name)[cells] for name in after}
        differs = np.zeros(len(cells), bool)
        for name in after:
            # the same decision by the same person, later, is no step
            if name != "time":
                differs |= (before[name] != after[name]).astype(bool)
        cells = cells[differs]
        return Change(
            entry["step"],
            _sentence(entry, self.ids[cells], {n: v[differs] for n, v in after.items()}),
            cells,
            {name: values[differs] for name, values in before.items()},
            {name: values[differs] for name, values in after.items()},
        )


def is_step(entry: Entry) -> bool:
    """Whether an entry changes cells, unlike undo and redo."""
    return entry["do"] in _EFFECTS


# ------------------------------------------------------------ effects: entry → cells, columns


def _decide(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    status = STATUSES.index(entry["status"])
    by = NOBODY if status == UNDECIDED else HAND
    return these, _decisions(entry, np.full(len(these), status), np.full(len(these), by))


def _threshold(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    accepted = cells.positions_of(entry["accepted"])
    undecided = cells.positions_of(entry["undecided"])
    these = np.concatenate([accepted, undecided])
    status = np.repeat([ACCEPTED, UNDECIDED], [len(accepted), len(undecided)])
    # whatever a file says: what was decided by hand stays
    free = cells.columns["by"][these] != HAND
    these, status = these[free], status[free]
    return these, _decisions(entry, status, np.where(status == ACCEPTED, THRESHOLD, NOBODY))


def _tag(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    return these, {TAG + entry["tag"]: np.full(len(these), entry["on"], bool)}


def _note(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    # as an object from the start: numpy's own texts lose zeros at their end
    return these, {"note": np.full(len(these), np.array(entry["text"], object))}


_EFFECTS = {"decide": _decide, "threshold": _threshold, "tag": _tag, "note": _note}


def _decisions(entry: Entry, status: np.ndarray, by: np.ndarray) -> _Columns:
    """Columns of a decision; what is undecided has neither curator nor time."""
    decided = status != UNDECIDED
    return {
        "status": status.astype(np.int8),
        "by": by.astype(np.int8),
        "curator": np.where(decided, np.array(entry["curator"], object), ""),
        "time": np.where(decided, np.array(entry["time"], object), ""),
    }


# ------------------------------------------------------------ sentences


def _sentence(entry: Entry, ids: np.ndarray, after: _Columns) -> str:
    named = f"cell {ids[0]}" if len(ids) == 1 else counted(len(ids), "cell")
    if entry["do"] == "decide":
        status = STATUSES.index(entry["status"])
        verb = {ACCEPTED: "Accepted", REJECTED: "Rejected"}.get(status, "Left undecided:")
        return f"{verb} {named}."
    if entry["do"] == "tag":
        return f"{'Tagged' if entry['on'] else 'Removed tag'} {entry['tag']}: {named}."
    if entry["do"] == "note":
        return f"{'Wrote a' if entry['text'] else 'Removed the'} note on {named}."
    of = f" of {entry['factor']}" if entry["factor"] else ""
    above, below = (int((after["status"] == s).sum()) for s in (ACCEPTED, UNDECIDED))
    said = [f"Accepted {counted(above, 'cell')} above the threshold{of}"] if above else []
    said += [f"took back {counted(below, 'cell')} below the threshold{of}"] if below else []
    sentence = ", ".join(said)
    return f"{sentence[:1].upper()}{sentence[1:]}."


class History:
    """Steps taken and undone, in order; applies each to the cells.

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
        """Apply an entry, which names the step it follows in case earlier lines are lost."""
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
