"""Reads everything that can be read from a journal, whatever state its file is in.

The file only ever grows. The first line says what it is and which recording it belongs to; each
opening and each action adds a line, also undo and redo. A line that was cut off by a crash stays
where it is: the next opening adds a line that says so, and reading passes over it.

Each line ends with a check (CRC-32) of what stands before it: a line that no longer agrees with its
check counts as damaged. Lines of earlier versions have none, and are read all the same.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from napari_xcebra.curation.changes import STATUSES, Entry
from napari_xcebra.errors import InputError
from napari_xcebra.files import MOST_TEXT, read_bytes
from napari_xcebra.text import counted

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
