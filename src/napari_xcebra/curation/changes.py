"""Reads the lines of a journal, whatever state its file is in, applies and undoes what they say.

The file only ever grows. The first line says what it is and which recording it belongs to; each
opening and each action adds a line, also undo and redo. A line that was cut off by a crash stays
where it is: the next opening adds a line that says so, and reading passes over it.

Each line ends with a check (CRC-32) of what stands before it: a line that no longer agrees with its
check counts as damaged. Lines without a check are read all the same.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import MOST_TEXT, read_bytes
from napari_xcebra.text import counted

Status = Literal["undecided", "accepted", "rejected"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""Names of the numbers in `Curation.status`."""
UNDECIDED, ACCEPTED, REJECTED = range(3)

BY = ("", "threshold", "hand", "extractor", "proposal")
"""Who decided: nobody, a threshold, a person, the extractor, what was learned from decisions."""
NOBODY, THRESHOLD, HAND, EXTRACTOR, PROPOSAL = range(5)

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
        status, by, note, curator, time, merged, summed, and one for each tag.
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
            # id of the cell that takes up this one, its own for that cell itself; -1 for none
            "merged": np.full(len(self), -1, np.int64),
            "summed": np.zeros(len(self), bool),
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


def _is_step(entry: Entry) -> bool:
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


def _adopt(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    sides = [cells.positions_of(entry[side]) for side in ("accepted", "rejected")]
    these = np.concatenate(sides)
    status = np.repeat([ACCEPTED, REJECTED], [len(side) for side in sides])
    free = cells.columns["by"][these] != HAND
    these, status = these[free], status[free]
    return these, _decisions(entry, status, np.full(len(these), BY.index(entry["of"])))


def _merge(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    kept = cells.ids[these] == entry["into"]
    columns = _decisions(entry, np.where(kept, ACCEPTED, REJECTED), np.full(len(these), HAND))
    columns["merged"] = np.full(len(these), entry["into"])
    return these, columns | {"summed": kept & (entry["how"] == "sum")}


def _split(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    columns = _decisions(entry, np.full(len(these), ACCEPTED), np.full(len(these), HAND))
    columns["merged"] = np.full(len(these), -1)
    return these, columns | {"summed": np.zeros(len(these), bool)}


def _tag(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    return these, {TAG + entry["tag"]: np.full(len(these), entry["on"], bool)}


def _note(cells: Cells, entry: Entry) -> tuple[np.ndarray, _Columns]:
    these = cells.positions_of(entry["cells"])
    # as an object from the start: numpy's own texts lose zeros at their end
    return these, {"note": np.full(len(these), np.array(entry["text"], object))}


_EFFECTS = {
    "decide": _decide,
    "threshold": _threshold,
    "adopt": _adopt,
    "merge": _merge,
    "split": _split,
    "tag": _tag,
    "note": _note,
}


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
    if entry["do"] == "adopt":
        kept, not_kept = (int((after["status"] == s).sum()) for s in (ACCEPTED, REJECTED))
        of = {"extractor": "as the extractor has them", "proposal": "as proposed"}[entry["of"]]
        return f"Accepted {counted(kept, 'ROI')} and rejected {not_kept}, {of}."
    if entry["do"] == "merge":
        traces = "summed" if entry["how"] == "sum" else "averaged by size"
        return f"Merged {named} into cell {entry['into']}, traces {traces}."
    if entry["do"] == "split":
        return f"Took {named} apart again."
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
        elif _is_step(entry):
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


KIND = "napari-xcebra curation"
FORMAT = 1
_BEGINNING = json.dumps({"kind": KIND}).encode()[:-1]
_CHECK = b', "check": "'
"""Before the check of a line; in a text of JSON, quotes are escaped."""


@dataclass(frozen=True)
class Contents:
    """What a journal file holds.

    Parameters
    ----------
    header : mapping or None
        None if its line is damaged or not there.
    entries : sequence of mapping
        Everything that can be read, in order.
    damaged : tuple of int
        Numbers of the lines in the middle that cannot be read.
    torn : int
        Lines at the end that cannot be read: what was being written when the program ended.
    complete : bool
        Whether the last line has its end.
    """

    header: Entry | None
    entries: Sequence[Entry]
    damaged: tuple[int, ...] = ()
    torn: int = 0
    complete: bool = True

    @property
    def steps(self) -> list[Entry]:
        """Entries that change something: not openings."""
        return [entry for entry in self.entries if entry["do"] != "opened"]

    @property
    def sound(self) -> bool:
        """Whether every line could be read."""
        return not self.damaged and not self.torn

    def notes(self, path: Path) -> list[str]:
        """What the user should know about the state of the file, a sentence each."""
        notes = []
        if self.torn:
            notes.append(
                f"The end of {path} cannot be read, most likely because it was cut off while "
                "being written (by a crash or a power cut); everything before it is kept."
            )
        if self.damaged:
            lines = ", ".join(map(str, self.damaged[:5])) + (" …" if len(self.damaged) > 5 else "")
            notes.append(
                f"{path} is damaged in line {lines}: what was decided there is lost; all other "
                f"{len(self.steps)} actions are kept."
            )
        if self.header is None and self.entries:
            notes.append(
                f"{path} does not say which recording it belongs to, because its first line is "
                "damaged."
            )
        return notes


def read_journal(path: str | os.PathLike[str]) -> Contents:
    """Read a journal in any state; raises an InputError if the file is not a journal."""
    path = Path(path)
    try:
        text = read_bytes(path, MOST_TEXT)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    header: Entry | None = None
    entries: list[Entry] = []
    damaged: list[int] = []
    unread: list[int] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line:
            continue
        found = _parsed(line)
        if found is None:
            unread.append(number)
        elif "kind" in found:
            header = header or found
        else:
            if found["do"] == "opened":
                del unread[len(unread) - min(found["torn"], len(unread)) :]
            damaged += unread
            unread = []
            entries.append(found)
    if header is None and not entries and not _may_have_begun(text):
        raise InputError(f"{path} is not a napari-xcebra journal.")
    if header is not None and header["format"] > FORMAT:
        raise InputError(f"{path} was written by a later version of napari-xcebra: update it.")
    complete = text.endswith(b"\n") or not text
    return Contents(header, entries, tuple(damaged), len(unread), complete)


@dataclass(frozen=True)
class Summary:
    """What a journal holds, at a glance.

    Parameters
    ----------
    path : Path
    decisions : int
        Actions that were not undone.
    curators : tuple of str
        In the order in which they began.
    last : str
        Time of the last action.
    """

    path: Path
    decisions: int
    curators: tuple[str, ...]
    last: str

    @property
    def sentence(self) -> str:
        """Such as "12 decisions by Ann, last on 2026-11-16 at 09:30"."""
        by = f" by {' and '.join(self.curators)}" if self.curators else ""
        return f"{counted(self.decisions, 'decision')}{by}, last on {when(self.last)}"


def summary_of(path: str | os.PathLike[str]) -> Summary | None:
    """What a journal holds; None if it is not there, or nothing was decided in it."""
    path = Path(path)
    if not path.exists():
        return None
    contents = read_journal(path)
    if not contents.steps:
        return None
    undone = {"undo": -1, "redo": 1}
    count = sum(undone.get(entry["do"], 1) for entry in contents.steps)
    curators = dict.fromkeys(entry["curator"] for entry in contents.steps if entry["curator"])
    return Summary(path, max(count, 0), tuple(curators), contents.steps[-1]["time"])


def now() -> str:
    """Local time with its offset, as in 2026-11-16T09:30:00+01:00."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def when(time: str) -> str:
    """A time in words for the user."""
    return datetime.fromisoformat(time).strftime("%Y-%m-%d at %H:%M")


def line_of(entry: Entry) -> bytes:
    """An entry as a line; in ASCII, so that a line cut short is never valid."""
    text = json.dumps(entry).encode("ascii").removesuffix(b"}")
    return text + _CHECK + _check_of(text) + b"\n"


def _check_of(text: bytes) -> bytes:
    """What follows `_CHECK` in a line that begins with that text."""
    return f'{zlib.crc32(text):08x}"}}'.encode("ascii")


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Entry or header in a line; None if it is neither, not whole, or not as it was written."""
    text, marked, check = line.rpartition(_CHECK)
    if marked and check != _check_of(text):
        return None
    try:
        found = json.loads(text + b"}" if marked else line)
    except (ValueError, RecursionError):
        return None
    # the name of the check itself may be what is damaged: before there were checks, these were all
    if not isinstance(found, dict) or not (marked or _UNCHECKED.issuperset(found)):
        return None
    if "kind" in found:
        return found if found["kind"] == KIND and isinstance(found.get("format"), int) else None
    needed = _NEEDED.get(str(found.get("do")))
    texts = isinstance(found.get("curator"), str) and _is_time(found.get("time"))
    if needed is None or not texts:
        return None
    return found if all(check(found.get(name)) for name, check in needed.items()) else None


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(i) is int and abs(i) < 2**63 for i in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value) is not None
    except (TypeError, ValueError):
        return False


_STEP = {"step": _is_number, "after": _is_number}
_NEEDED: dict[str, dict[str, Any]] = {
    "opened": {"torn": _is_number},
    "undo": {"of": _is_number},
    "redo": {"of": _is_number},
    "decide": {**_STEP, "cells": _are_ids, "status": lambda value: value in STATUSES},
    "threshold": {**_STEP, "accepted": _are_ids, "undecided": _are_ids, "factor": _is_text},
    "adopt": {
        **_STEP,
        "accepted": _are_ids,
        "rejected": _are_ids,
        "of": lambda value: value in BY[EXTRACTOR:],
        "about": lambda value: isinstance(value, dict),
    },
    "merge": {
        **_STEP,
        "cells": _are_ids,
        "into": lambda value: type(value) is int and abs(value) < 2**63,
        "how": lambda value: value in ("mean", "sum"),
    },
    "split": {**_STEP, "cells": _are_ids},
    "tag": {**_STEP, "cells": _are_ids, "tag": _is_text, "on": lambda v: isinstance(v, bool)},
    "note": {**_STEP, "cells": _are_ids, "text": _is_text},
}
"""What each kind of entry must have; a line without it counts as damaged."""
_UNCHECKED = {"do", "curator", "time", "threshold", "user", "process", "host"}
_UNCHECKED |= {"kind", "format", "source", "fingerprint"}
_UNCHECKED |= {name for needed in _NEEDED.values() for name in needed}
"""All that a line without a check may have."""


def _may_have_begun(text: bytes) -> bool:
    """Whether this may be a journal whose first line was cut off by a crash."""
    lines = [line.strip(b"\0") for line in text.split(b"\n")]
    return all(line.startswith(_BEGINNING) or _BEGINNING.startswith(line) for line in lines)
