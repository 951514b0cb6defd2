"""The journal of a curation: a line of JSON for each action, on disk before it counts.

The file only ever grows. The first line says what it is and which recording it belongs to; each
opening and each action adds a line, also undo and redo. A line that was cut off by a crash stays
where it is: the next opening adds a line that says so, and reading passes over it.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import platform
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from napari_xcebra.curation.changes import STATUSES, Entry
from napari_xcebra.curation.decisions import now
from napari_xcebra.curation.lock import lock
from napari_xcebra.errors import InputError

KIND = "napari-xcebra curation"
FORMAT = 1
_BEGINNING = json.dumps({"kind": KIND}).encode()[:-1]
_ATTEMPTS = 10


class JournalInUse(InputError):
    """Another window has the journal; says who, since when, and what can be done."""


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

    def notes(self, path: Path) -> list[str]:
        """What the user should know about the state of the file, a sentence each."""
        notes = []
        if self.torn:
            what = "The last line" if self.torn == 1 else f"The last {self.torn} lines"
            notes.append(
                f"{what} of {path} was cut off while being written; it is set aside, and "
                "everything before it is kept."
            )
        if self.damaged:
            lines = ", ".join(map(str, self.damaged[:5])) + (" …" if len(self.damaged) > 5 else "")
            notes.append(
                f"{path} is damaged in line {lines}: what was decided there is not known; all "
                f"other {len(self.steps)} actions are kept."
            )
        if self.header is None and self.entries:
            notes.append(
                f"{path} does not say which recording it belongs to, because its first line is "
                "damaged."
            )
        return notes


def read_journal(path: str | os.PathLike[str]) -> Contents:
    """Read a journal, whatever state it is in; a file that is none raises an InputError."""
    path = Path(path)
    try:
        text = path.read_bytes()
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
        raise InputError(f"{path} is not a journal of napari-xcebra.")
    if header is not None and header["format"] > FORMAT:
        raise InputError(f"{path} was written by a later version of napari-xcebra: update it.")
    complete = text.endswith(b"\n") or not text
    return Contents(header, entries, tuple(damaged), len(unread), complete)


class Journal:
    """A journal that is open for writing, and for nobody else.

    Parameters
    ----------
    path : path
        Made if it is not there.
    header : mapping
        What to say in the first line of a new journal: source, fingerprint.
    curator : str
        Who decides.
    read_only : bool
        Only read; needs no lock.

    Attributes
    ----------
    entries : sequence of mapping
        What was in the file when it was opened.
    notes : list of str
        What the user should know, a sentence each.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        header: Entry | None = None,
        curator: str = "",
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self.curator = curator
        self.read_only = read_only
        self._file: int | None = None
        self.notes: list[str] = []
        if not read_only:
            self._file = self._locked()
            self._close_file = weakref.finalize(self, os.close, self._file)
        try:
            contents = read_journal(self.path)
            self.notes += contents.notes(self.path)
            self.header, self.entries = contents.header, contents.entries
            self.n_steps = len(contents.steps)
            if not read_only:
                self._begin(contents, {"kind": KIND, "format": FORMAT, **(header or {})})
        except BaseException:
            self.close(keep=True)
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry; when this returns, it is on the disk."""
        self._write(_line(entry))
        self.n_steps += 1

    def close(self, keep: bool = False) -> None:
        """Let another window have the journal; one without any decision is removed."""
        if self._file is None:
            return
        self._file = None
        if not keep and not self.n_steps:
            # where an open file cannot be removed, it goes after it is closed
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._close_file()
        if not keep and not self.n_steps and os.name == "nt":
            with contextlib.suppress(OSError):
                self.path.unlink()

    def move(self, path: Path) -> None:
        """Close the journal and keep it under another name."""
        if os.name == "nt":  # where an open file cannot be renamed
            self.close(keep=True)
        self.path.rename(path)
        self.close(keep=True)

    def _locked(self) -> int:
        """Open the file and lock it; a file that was removed in between is opened anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        for _ in range(_ATTEMPTS):
            file = os.open(self.path, flags, 0o666)
            try:
                if not lock(file):
                    raise JournalInUse(_in_use(self.path))
            except JournalInUse:
                os.close(file)
                raise
            except OSError:
                self.notes.append(
                    f"The drive of {self.path} does not know locks: do not curate this recording "
                    "in two windows at once."
                )
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(file), os.stat(self.path)):  # noqa: PTH116
                    return file
            os.close(file)
        raise JournalInUse(_in_use(self.path))

    def _begin(self, contents: Contents, header: Entry) -> None:
        self._length = self.path.stat().st_size
        lines = b"" if contents.complete else b"\n"
        if contents.header is None:
            lines += _line(header)
            self.header = header
        opened = {
            "do": "opened",
            "curator": self.curator,
            "time": now(),
            "user": _user(),
            "process": os.getpid(),
            "host": platform.node(),
            "torn": contents.torn,
        }
        self._write(lines + _line(opened))
        _flush_folder(self.path.parent)

    def _write(self, lines: bytes) -> None:
        if self._file is None:
            raise InputError(
                f"{self.path} was opened to be looked at only: nothing can be decided here."
                if self.read_only
                else f"{self.path} is closed: open the curation again to go on."
            )
        try:
            # what a failed write left behind goes first
            if os.fstat(self._file).st_size != self._length:
                os.ftruncate(self._file, self._length)
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise InputError(
                f"This could not be written to {self.path} ({error.strerror or error}) and was "
                "therefore not done. Make room or reconnect the drive, then do it again."
            ) from error
        self._length += len(lines)


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
        count = f"{self.decisions} decision{'' if self.decisions == 1 else 's'}"
        return f"{count}{by}, last on {_when(self.last)}"


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


# ------------------------------------------------------------ lines


def _line(entry: Entry) -> bytes:
    return json.dumps(entry).encode("ascii") + b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Entry or header in a line; None if it is neither, or not whole."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
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


def _may_have_begun(text: bytes) -> bool:
    """Whether this is what is left of a journal whose first line was being written."""
    text = text.strip(b"\0\n")
    return text.startswith(_BEGINNING) or _BEGINNING.startswith(text)


# ------------------------------------------------------------ words and folders


def _in_use(path: Path) -> str:
    who = ""
    with contextlib.suppress(InputError):
        openings = [entry for entry in read_journal(path).entries if entry["do"] == "opened"]
        if openings:
            last = openings[-1]
            name = last["curator"] or last.get("user") or "someone"
            here = last.get("process") == os.getpid() and last.get("host") == platform.node()
            place = "this napari" if here else f"process {last.get('process')}"
            who = f" by {name} ({place} on {last.get('host')}, since {_when(last['time'])})"
    return (
        f"{path} is being written in another window{who}. Close that one, look at its decisions "
        "without deciding, or keep decisions of your own under another name."
    )


def _when(time: str) -> str:
    return datetime.fromisoformat(time).strftime("%Y-%m-%d at %H:%M")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return ""


def _flush_folder(folder: Path) -> None:
    """Make sure that a new file is still in its folder after a power cut."""
    if os.name == "nt":  # which does so itself, and cannot open folders
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(file)
    finally:
        os.close(file)
