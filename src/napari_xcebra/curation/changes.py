"""What an entry does to the cells: their columns, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from napari_xcebra.errors import InputError

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
        """Column of that name; that of a new tag is made."""
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
                f"There is no cell at position {wrong[0]}: 0 to {len(self) - 1} is what there is."
            )
        return self.ids[np.unique(given.astype(np.int64))].tolist()

    def positions_of(self, ids: Iterable[int]) -> np.ndarray:
        """Positions of ids, in their order; those that no cell has are left out."""
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
    """Whether an entry changes cells, unlike undo and redo, which go back and forth."""
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
    named = f"cell {ids[0]}" if len(ids) == 1 else f"{len(ids)} cells"
    if entry["do"] == "decide":
        status = STATUSES.index(entry["status"])
        verb = {ACCEPTED: "Accepted", REJECTED: "Rejected"}.get(status, "Left undecided:")
        return f"{verb} {named}."
    if entry["do"] == "tag":
        return f"{'Tagged' if entry['on'] else 'No longer tagged'} {entry['tag']}: {named}."
    if entry["do"] == "note":
        return f"{'Wrote a' if entry['text'] else 'Removed the'} note on {named}."
    of = f" of {entry['factor']}" if entry["factor"] else ""
    above, below = (int((after["status"] == s).sum()) for s in (ACCEPTED, UNDECIDED))
    said = [f"Accepted {_counted(above)} above the threshold{of}"] if above else []
    said += [f"took back {_counted(below)} below the threshold{of}"] if below else []
    sentence = ", ".join(said)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _counted(number: int) -> str:
    return f"{number} cell{'' if number == 1 else 's'}"
