"""Writes a journal: each entry is on disk before it counts, and nobody else writes to it."""

from __future__ import annotations

import contextlib
import errno
import getpass
import os
import platform
import sys
import weakref
from pathlib import Path

from napari_xcebra.curation.changes import Entry
from napari_xcebra.curation.lines import FORMAT, KIND, Contents, line_of, now, read_journal, when
from napari_xcebra.curation.places import FOLDER
from napari_xcebra.errors import InputError
from napari_xcebra.files import flush, refuse_link, sync_folder

_HELD = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}
_FAR = 2**30
"""Byte to lock on Windows, where a locked byte cannot be read: beyond what a journal holds."""


def lock(file: int) -> bool:
    """Lock an open file; never waits.

    Parameters
    ----------
    file : int
        File descriptor. Closing it, or the end of the process, releases the lock.

    Returns
    -------
    bool
        False if another process, or another opening in this one, holds it.

    Raises
    ------
    OSError
        The drive knows no locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, _FAR, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


_ATTEMPTS = 10
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND
_FLAGS |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


class JournalInUse(InputError):
    """Another window has the journal: who, since when, and what to do."""


class Journal:
    """A journal open for writing here and nowhere else, or read-only.

    Parameters
    ----------
    path : path
        Made if it is not there.
    header : mapping
        What to say in the first line of a new journal: source, fingerprint.
    curator : str
        Who decides.
    read_only : bool
        Only read, even while another window is writing.

    Attributes
    ----------
    header : mapping or None
        First line of the file.
    entries : sequence of mapping
        What was in the file when it was opened.
    n_steps : int
        Actions in it by now.
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
        self.notes: list[str] = []
        self._file: int | None = None
        self._failed = False
        if not read_only:
            self._own(self._locked())
        try:
            contents = read_journal(self.path)
            self.notes += contents.notes(self.path)
            self.header, self.entries = contents.header, contents.entries
            self.n_steps = len(contents.steps)
            self._empty = not self.n_steps and contents.sound
            if not read_only:
                self._begin(contents, {"kind": KIND, "format": FORMAT, **(header or {})})
        except BaseException:
            self._release()
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry; when this returns, it is on the disk."""
        if self._file is None:
            raise InputError(
                f"{self.path} was opened read-only: no decision can be made here."
                if self.read_only
                else f"{self.path} is closed: reopen the curation to continue."
            )
        self._write(self._checked_place(self._file), line_of(entry))
        self.n_steps += 1
        self._empty = False

    def close(self) -> None:
        """Release the journal; one without decisions is removed."""
        if self._file is None:
            return
        # where there are no locks, somebody else may have written to it
        alone = os.fstat(self._file).st_size == self._length and _is_at(self._file, self.path)
        if sys.platform == "win32":  # where an open file cannot be removed
            self._release()
        if self._empty and alone:
            with contextlib.suppress(OSError):
                self.path.unlink()
                if self.path.parent.name == FOLDER:
                    self.path.parent.rmdir()  # unless it holds others
        self._release()

    def move(self, path: Path) -> None:
        """Close the journal and keep it under another name."""
        if sys.platform == "win32":  # where an open file cannot be renamed
            self._release()
        self.path.rename(path)
        sync_folder(path.parent)
        self._release()

    # ------------------------------------------------------------ the file

    def _locked(self) -> int:
        """Open the file and lock it; one that was removed in between is opened again."""
        refuse_link(self.path)
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path} is a pipe or a device: decisions need a file.")
        for _ in range(_ATTEMPTS):
            file = os.open(self.path, _FLAGS, 0o666)
            try:
                if not lock(file):
                    raise JournalInUse(_in_use(self.path))
            except JournalInUse:
                os.close(file)
                raise
            except OSError:
                self.notes.append(
                    f"The drive of {self.path} does not support file locks: do not curate this "
                    "recording in two windows at once."
                )
            if _is_at(file, self.path):
                return file
            os.close(file)
        raise JournalInUse(_in_use(self.path))

    def _own(self, file: int) -> None:
        self._file = file
        # also where nobody closes it
        self._close_file = weakref.finalize(self, os.close, file)

    def _release(self) -> None:
        if self._file is not None:
            self._file = None
            self._close_file()

    def _begin(self, contents: Contents, header: Entry) -> None:
        assert self._file is not None
        self._length = os.fstat(self._file).st_size
        lines = b"" if contents.complete else b"\n"
        if contents.header is None:
            lines += line_of(header)
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
        self._write(self._file, lines + line_of(opened))
        sync_folder(self.path.parent)

    def _checked_place(self, file: int) -> int:
        """The file, if it is still where it was; put back if somebody removed it."""
        if _is_at(file, self.path):
            return file
        if sys.platform == "win32" or self.path.exists() or not self.path.parent.is_dir():
            raise InputError(
                f"{self.path} was replaced or moved while in use: this decision was not made. "
                "Put it back, or reopen the curation to continue with what is there now."
            )
        written = os.pread(file, self._length, 0)
        again = os.open(self.path, _FLAGS | os.O_EXCL, 0o666)
        with contextlib.suppress(OSError):
            lock(again)
        self._release()
        self._own(again)
        self._length = 0
        self._write(again, written)
        sync_folder(self.path.parent)
        self.notes.append(f"{self.path} was removed while in use and has been written again.")
        return again

    def _write(self, file: int, lines: bytes) -> None:
        try:
            size = os.fstat(file).st_size
            if size != self._length and not self._failed:
                # only where there are no locks
                raise JournalInUse(_in_use(self.path))
            if size != self._length:
                os.ftruncate(file, self._length)
            self._failed = True
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(file, rest) :]
            flush(file)
        except OSError as error:
            # half a line, or one that may not last, is taken away now or before the next
            with contextlib.suppress(OSError):
                os.ftruncate(file, self._length)
            raise InputError(
                f"This could not be written to {self.path} ({error.strerror or error}) and was not "
                "done. Free some space or reconnect the drive, then try again."
            ) from error
        self._failed = False
        self._length += len(lines)


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _in_use(path: Path) -> str:
    who = ""
    with contextlib.suppress(InputError):
        openings = [entry for entry in read_journal(path).entries if entry["do"] == "opened"]
        if openings:
            last = openings[-1]
            name = last["curator"] or last.get("user") or "someone"
            here = last.get("process") == os.getpid() and last.get("host") == platform.node()
            place = "this napari" if here else f"process {last.get('process')}"
            who = f" by {name} ({place} on {last.get('host')}, since {when(last['time'])})"
    return (
        f"{path} is in use in another window{who}. Close that one, view its decisions read-only, "
        "or keep your own decisions under another name."
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return ""
