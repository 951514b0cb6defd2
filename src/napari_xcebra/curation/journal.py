"""Writing a journal: each entry is on the disk before it counts, and nobody else writes to it."""

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
from napari_xcebra.curation.lock import lock
from napari_xcebra.errors import InputError

_ATTEMPTS = 10
_NO_FLUSH = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
"""What drives answer that cannot be told to write at once: some shared ones."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class JournalInUse(InputError):
    """Another window has the journal; says who, since when, and what can be done."""


class Journal:
    """A journal that is open for writing here and nowhere else, or only to be read.

    Parameters
    ----------
    path : path
        Made if it is not there.
    header : mapping
        What to say in the first line of a new journal: source, fingerprint.
    curator : str
        Who decides.
    read_only : bool
        Only read, whoever is writing.

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
                f"{self.path} was opened only to be looked at: nothing can be decided here."
                if self.read_only
                else f"{self.path} is closed: open the curation again to go on."
            )
        self._write(self._checked_place(self._file), line_of(entry))
        self.n_steps += 1
        self._empty = False

    def close(self) -> None:
        """Let another window have the journal; one in which nothing was decided is removed."""
        if self._file is None:
            return
        # where there are no locks, somebody else may have written to it
        alone = os.fstat(self._file).st_size == self._length and _is_at(self._file, self.path)
        if sys.platform == "win32":  # where an open file cannot be removed
            self._release()
        if self._empty and alone:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self._release()

    def move(self, path: Path) -> None:
        """Close the journal and keep it under another name."""
        if sys.platform == "win32":  # where an open file cannot be renamed
            self._release()
        self.path.rename(path)
        self._release()

    # ------------------------------------------------------------ the file

    def _locked(self) -> int:
        """Open the file and lock it; one that was removed in between is opened anew."""
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
                    f"The drive of {self.path} knows no locks: do not curate this recording in "
                    "two windows at once."
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
        _flush_folder(self.path.parent)

    def _checked_place(self, file: int) -> int:
        """The file, if it is still where it was; put back if somebody removed it."""
        if _is_at(file, self.path):
            return file
        if sys.platform == "win32" or self.path.exists() or not self.path.parent.is_dir():
            raise InputError(
                f"{self.path} was replaced or moved while it was in use: this was not done. Put "
                "it back, or open the curation again to go on with what is there now."
            )
        written = os.pread(file, self._length, 0)
        again = os.open(self.path, _FLAGS | os.O_EXCL, 0o666)
        with contextlib.suppress(OSError):
            lock(again)
        self._release()
        self._own(again)
        self._length = 0
        self._write(again, written)
        _flush_folder(self.path.parent)
        self.notes.append(f"{self.path} was removed while in use; all of it was written again.")
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
            _flush(file)
        except OSError as error:
            # half a line, or one that may not last, is taken away now or before the next
            with contextlib.suppress(OSError):
                os.ftruncate(file, self._length)
            raise InputError(
                f"This could not be written to {self.path} ({error.strerror or error}), and was "
                "not done. Make room or reconnect the drive, then do it again."
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
        f"{path} is being written in another window{who}. Close that one, look at its decisions "
        "without deciding, or keep decisions of your own under another name."
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in some containers
        return ""


def _flush(file: int) -> None:
    """Wait until a file is on the disk, on a drive that can say so."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise


def _flush_folder(folder: Path) -> None:
    """Make sure that a new file is still in its folder after a power cut."""
    if sys.platform == "win32":  # which does so itself, and cannot open folders
        return
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            _flush(file)
        finally:
            os.close(file)
