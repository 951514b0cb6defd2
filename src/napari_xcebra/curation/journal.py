"""Finds and writes a journal: each entry is on disk before it counts, and nobody else writes."""

from __future__ import annotations

import contextlib
import errno
import getpass
import os
import platform
import re
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

from napari_xcebra.curation.changes import (
    FORMAT,
    KIND,
    Contents,
    Entry,
    line_of,
    now,
    read_journal,
    summary_of,
    when,
)
from napari_xcebra.errors import InputError
from napari_xcebra.files import flush, refuse_link, sync_folder
from napari_xcebra.recording.fingerprint import name_of_content
from napari_xcebra.recording.recording import Recording

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


DATA_DIRECTORY = "NAPARI_XCEBRA_DATA"
"""Environment variable that names another folder than the user's data directory."""

IN_FOLDER, BESIDE_FILE, ENDING = "napari-xcebra-curation", ".curation", ".jsonl"
FOLDER = "napari-xcebra"
"""Holds the journals of a recording that is a folder: napari opens all files of a folder as one
stack, and would fail on a journal, but it leaves folders alone. Earlier versions wrote them beside
the files; those are continued where they are."""
_OTHER = ".other-cells"


def journal_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path:
    """Where the journal of a recording is, or would be.

    Beside what the recording was opened from: in a folder in it, if that is one. In the user's data
    directory if that cannot be written to, or if the recording did not come from a path. One that
    is already in the data directory is continued, unless there is one beside the recording.

    Parameters
    ----------
    recording : Recording
    path : path, optional
        What the recording was opened from; its `source` if not given.
    name : str
        Name of a separate journal, such as that of a second curator.
    """
    own, near = own_path(recording, path, name=name), near_path(recording, path, name=name)
    if near is not None and _writable(near) and (near.exists() or not own.exists()):
        return near
    return own


def journals_of(recording: Recording, path: str | os.PathLike[str] | None = None) -> list[Path]:
    """All journals of a recording with decisions, under whatever name; the usual ones first."""
    source = _source_of(recording, path)
    return (journals_beside(source) if source else []) + _with_decisions(own_path(recording, path))


def journals_beside(source: str | os.PathLike[str]) -> list[Path]:
    """All journals with decisions beside what a recording was opened from; the usual one first."""
    return _with_decisions(_beside(Path(source)))


def _with_decisions(usual: Path) -> list[Path]:
    like = [file for each in _places(usual) for file in _like(each, "*") if _OTHER not in file.name]
    return sorted(filter(_has_decisions, like), key=lambda file: (file != usual, file.name))


def _has_decisions(file: Path) -> bool:
    try:
        return summary_of(file) is not None
    except InputError:  # a file of another program with a similar name
        return False


def near_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path | None:
    """Journal beside what a recording was opened from; None if that is not there."""
    source = _source_of(recording, path)
    return None if source is None else _beside(source, name)


def _beside(source: Path, name: str = "") -> Path:
    """Journal beside a file, or in a folder.

    >>> _beside(Path("mouse3.nwb"), "Ann").as_posix()
    'mouse3.nwb.curation-Ann.jsonl'
    """
    ending = f"{_named(name)}{ENDING}"
    # a .zarr is a folder only to the file system
    if source.is_dir() and source.suffix.lower() != ".zarr":
        inside = source / FOLDER / f"{IN_FOLDER}{ending}"
        return next((place for place in _places(inside) if place.exists()), inside)
    return source.with_name(f"{source.name}{BESIDE_FILE}{ending}")


def own_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path:
    """Journal in the user's data directory, found again by what the cells are."""
    source = _source_of(recording, path)
    title = re.sub(r"[^\w-]+", "-", source.name if source else "recording").strip("-")
    named = f"{title}-{name_of_content(recording)}{_named(name)}{ENDING}"
    return data_directory() / "curation" / named


def data_directory() -> Path:
    """The user's data directory for this program."""
    import platformdirs

    told = os.environ.get(DATA_DIRECTORY)
    return Path(told or platformdirs.user_data_dir("napari-xcebra", appauthor=False))


def _source_of(recording: Recording, path: str | os.PathLike[str] | None = None) -> Path | None:
    """What a recording was opened from, if that is a file or folder that is there."""
    told = os.fspath(path) if path else recording.source
    return Path(told).absolute() if told and Path(told).exists() else None


def other_cells_path(place: Path, day: str) -> Path:
    """Free name for a journal that turned out to be of other cells."""
    wanted = place.with_name(f"{place.stem}{_OTHER}-{day}{ENDING}")
    free, number = wanted, 2
    while free.exists():
        free = wanted.with_name(f"{wanted.stem}-{number}{ENDING}")
        number += 1
    return free


def of_other_cells(place: Path) -> list[Path]:
    """Journals that were put aside, the latest last."""
    found = (file for each in _places(place) for file in _like(each, f"{_OTHER}*"))
    return sorted(found, key=lambda file: file.stat().st_mtime)


def make_room(place: Path) -> None:
    """Make the folder for a journal in a recording's folder, if there is none."""
    if place.parent.name == FOLDER:
        place.parent.mkdir(exist_ok=True)


def _places(place: Path) -> list[Path]:
    """Where a journal of a recording that is a folder may be, now and in earlier versions."""
    if not place.name.startswith(IN_FOLDER):
        return [place]
    folder = place.parent.parent if place.parent.name == FOLDER else place.parent
    return [folder / FOLDER / place.name, folder / place.name]


def _like(place: Path, pattern: str) -> Iterator[Path]:
    """Files beside a journal whose name has the same beginning."""
    itself = re.sub(r"([*?\[])", r"[\1]", place.stem)
    return place.parent.glob(f"{itself}{pattern}{ENDING}")


def _writable(place: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    folder = place.parent if place.parent.exists() else place.parent.parent
    return all(
        os.access(each, os.W_OK, effective_ids=effective)
        for each in (folder, place)
        if each.exists()
    )


def _named(name: str) -> str:
    """Part of a file name for a journal's name.

    >>> _named("Ann / 2"), _named("")
    ('-Ann-2', '')
    """
    plain = re.sub(r"[^\w-]+", "-", name).strip("-")
    if name and not plain:
        raise InputError(f"{name!r} cannot be part of a file name: letters or numbers are needed.")
    return f"-{plain}" if plain else ""
