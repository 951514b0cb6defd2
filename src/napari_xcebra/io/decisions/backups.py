"""Keeps what a file held before it was replaced, and can undo a write that was cut short.

=========================  ========================================================================
``iscell.npy.original``    what another program wrote, as found before it was first replaced here;
                           never overwritten. A file that another program rewrote after that is
                           kept as ``.original-2``, and so on: the last one is what is restored.
``iscell.npy.previous``    what was written here the time before
``.iscell.npy.written``    checksum of what was written here last, which tells the two apart
=========================  ========================================================================

The list of what is replaced lies in the user's own folder, where nobody else writes. Every folder
that is written to has a note meanwhile, so that others see that a write was begun there, and by
whom. A note is believed in nothing else: one without a list of ours is only reported.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from napari_xcebra.files import MOST_TEXT, TEMPORARY_NAME, open_file, read_bytes, sync_folder, whole

ORIGINAL, PREVIOUS = ".original", ".previous"
_NO_RECORD = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EFBIG, errno.ELOOP)
"""There is none, or what is in its place is none; a disk that fails says nothing about it."""
LARGE = 2**28
"""Bytes of a file past which the previous version is not kept: it differs from the original in a
few numbers, and decisions are in the journal."""


def originals(path: Path) -> list[Path]:
    """Files of other programs that were replaced here, the last one first."""
    numbered = _numbered(path)
    return [numbered[number] for number in sorted(numbered, reverse=True)]


def previous(path: Path) -> Path:
    """Name of the version that was written here before the last."""
    return path.with_name(path.name + PREVIOUS)


def record_of(path: Path) -> Path:
    """Name of the file that says what was written last."""
    return path.with_name(f".{path.name}.written")


def record(content: Path, *, new: bool) -> str:
    """What to note about a file that is about to be written, where none was before or one was."""
    about = {
        "kind": "napari-xcebra written",
        "format": 1,
        "new": new,
        "sha256": _checksum(content),
        "size": content.stat().st_size,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(about, indent=1)


def is_ours(path: Path) -> bool:
    """Whether the file is as it was last written here."""
    return _ours(path) is not None


def is_new(path: Path) -> bool:
    """Whether the file was made here, or is to be: another program never wrote one."""
    ours = _ours(path)
    return not path.exists() if ours is None else bool(ours.get("new", not originals(path)))


def _ours(path: Path) -> dict[str, Any] | None:
    """What was noted about the file, if it is still the one that was written here."""
    try:
        about: Any = json.loads(read_bytes(record_of(path), MOST_TEXT))
        same = path.stat().st_size == about["size"] and _checksum(path) == about["sha256"]
        return dict(about) if same else None
    except OSError as error:
        if error.errno in _NO_RECORD:
            return None
        raise
    except (ValueError, KeyError, TypeError):
        return None


def backup_for(path: Path) -> Path | None:
    """Name to keep the present file under before it is replaced; None: it is not kept."""
    if not path.exists():
        return None
    if is_ours(path):
        return previous(path) if path.stat().st_size <= LARGE else None
    number = max(_numbered(path), default=0) + 1
    return path.with_name(f"{path.name}{ORIGINAL}" + (f"-{number}" if number > 1 else ""))


def _numbered(path: Path) -> dict[int, Path]:
    pattern = re.compile(re.escape(path.name + ORIGINAL) + r"(?:-(\d{1,6}))?")
    matches = [(pattern.fullmatch(file.name), file) for file in path.parent.glob("*.original*")]
    return {
        int(match.group(1) or 1): file
        for match, file in matches
        if match and not file.is_symlink()  # what is restored is what was kept here
    }


def _checksum(path: Path) -> str:
    stat = path.stat()
    return _checksum_of(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _checksum_of(path: Path, size: int, modified: int) -> str:
    """Of a file as it is at that time: a preview asks often, and a file may have gigabytes."""
    with open_file(path) as file:
        stat = os.fstat(file.fileno())
        if (stat.st_size, stat.st_mtime_ns) != (size, modified):
            raise OSError(f"{path} has just been replaced")
        return hashlib.file_digest(file, "sha256").hexdigest()


NOTES = ".napari-xcebra-unfinished*.json"
_NOTE = re.compile(r"\.napari-xcebra-unfinished-([0-9a-f]{32})\.json")
ABANDONED = 30 * 24 * 3600.0
"""Seconds after which nobody still begins the write that a list is of."""
_MOST = 4096
"""Bytes of a note that are read, at most."""

Stamp = tuple[int, int]
"""Size and time (nanoseconds) of a file, by which a change is noticed."""


def stamp(path: Path) -> Stamp | None:
    """Of a file as it is now; None if there is none."""
    try:
        stat = path.lstat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


@dataclass(frozen=True)
class Place:
    """A file that is about to be replaced, made or removed.

    Parameters
    ----------
    path : Path
    staged : Path or None
        Complete new content, in the same folder; None to remove the file.
    held : Path or None
        Second name of what was there; None if nothing was.
    old, new : (size, nanoseconds) or None
        The file as it was, and as it will be.
    """

    path: Path
    staged: Path | None
    held: Path | None
    old: Stamp | None
    new: Stamp | None


@dataclass(frozen=True)
class Unfinished:
    """A write that was begun and has not been completed.

    Parameters
    ----------
    notes : tuple of Path
        One in each folder. The write counts once the last of them is gone.
    places : tuple of Place
    kept : Path or None
        The list; None for a write of somebody else, or one that cannot be understood.
    """

    notes: tuple[Path, ...]
    places: tuple[Place, ...] = ()
    kept: Path | None = None

    @property
    def folders(self) -> set[Path]:
        """Where it writes."""
        return {place.path.parent for place in self.places}

    @property
    def sentence(self) -> str:
        """For whoever opens the recording or is about to write to it."""
        note = self.notes[-1]
        if self.kept is not None:
            return (
                f"A write to {note.parent} was interrupted, or another window is still at it: "
                "decisions there may be incomplete. An interrupted write is undone when decisions "
                "are next written or restored here; reopen the recording after that."
            )
        return (
            f"{_owner(note)} began to write to {note.parent}{_host(note)} and did not finish: "
            "decisions there may be incomplete. Ask them to open the recording and write or "
            f"restore again, or check the files there and remove {note.name}."
        )

    def end(self) -> None:
        """Forget it: the files count as they are now."""
        for note in self.notes:
            note.unlink(missing_ok=True)
            sync_folder(note.parent)
        if self.kept is not None:
            self.kept.unlink(missing_ok=True)


def begin(places: Sequence[Place]) -> Unfinished:
    """Remember what is about to be replaced; on disk when this returns."""
    name = uuid4().hex
    folders = sorted({place.path.parent for place in places}, key=lambda path: -len(path.parts))
    notes = tuple(folder / _note_name(name) for folder in folders)
    write = Unfinished(notes, tuple(places), _lists() / f"{name}.json")
    assert write.kept is not None
    write.kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = {
        "folders": [str(folder) for folder in folders],
        "places": [
            [str(p.path), *(n and str(n) for n in (p.staged, p.held)), p.old, p.new] for p in places
        ],
    }
    try:
        with whole(write.kept) as file:
            file.write_text(json.dumps(about, indent=1), encoding="utf-8")
        for note in reversed(notes):
            with whole(note) as file:
                file.write_text(json.dumps({"host": platform.node()}), encoding="utf-8")
    except BaseException:
        with contextlib.suppress(OSError):
            write.end()
        raise
    return write


def unfinished_in(folders: Iterable[Path]) -> list[Unfinished]:
    """Writes to the folders that were begun and not completed."""
    asked = dict.fromkeys(folders)
    found: dict[str, Unfinished] = {}
    for kept in sorted(_lists().glob("*.json")):
        about, name = _read_list(kept), _note_name(kept.stem)
        # the last note is the one that counts
        if about and asked.keys() & set(about[0]) and (about[0][-1] / name).is_file():
            notes = tuple(folder / name for folder in about[0])
            found[name] = Unfinished(notes, about[1], kept)
        elif about and _is_abandoned(kept, [folder / name for folder in about[0]]):
            kept.unlink(missing_ok=True)
    for note in _notes_in(asked):
        if note.name not in found:
            found[note.name] = _moved(note) or Unfinished((note,))
    return list(found.values())


def has_notes(folder: Path) -> bool:
    """Whether somebody may still need the temporary files in a folder."""
    return next(_notes_in([folder]), None) is not None


def _is_abandoned(kept: Path, notes: Sequence[Path]) -> bool:
    """Whether a list is of a program that ended before it noted anything in a folder."""
    try:
        old = time.time() - kept.stat().st_mtime > ABANDONED
        # a folder that is gone may be on a drive that will be back
        return old and all(n.parent.is_dir() and not n.exists() for n in notes)
    except OSError:
        return False


def _notes_in(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        with contextlib.suppress(OSError):
            yield from (note for note in sorted(folder.glob(NOTES)) if _is_plain(note))


def _note_name(name: str) -> str:
    return f".napari-xcebra-unfinished-{name}.json"


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _moved(note: Path) -> Unfinished | None:
    """The write of ours that a note is of, if all of its folders were moved together."""
    match = _NOTE.fullmatch(note.name)
    about = _read_list(_lists() / f"{match[1]}.json") if match else None
    if match is None or about is None or any((f / note.name).exists() for f in about[0]):
        return None
    for folder in about[0]:
        with contextlib.suppress(ValueError):  # another drive
            now = {f: _beside(note.parent, os.path.relpath(f, folder)) for f in about[0]}
            notes = tuple(each / note.name for each in now.values())
            # each in a folder of its own that has the note, and is not a link to another
            if len(set(notes)) == len(notes) and all(
                _is_plain(n) and n.parent.resolve() == n.parent for n in notes
            ):
                places = tuple(_at(place, now[place.path.parent]) for place in about[1])
                return Unfinished(notes, places, _lists() / f"{match[1]}.json")
    return None


def _beside(folder: Path, name: str) -> Path:
    return Path(os.path.normpath(folder / name))


def _at(place: Place, folder: Path) -> Place:
    path, staged, held = (
        name and folder / name.name for name in (place.path, place.staged, place.held)
    )
    assert path is not None
    return Place(path, staged, held, place.old, place.new)


def _read_list(path: Path) -> tuple[list[Path], tuple[Place, ...]] | None:
    """Folders and places; None if there is no such list, or it is damaged."""
    try:
        about: Any = json.loads(read_bytes(path, MOST_TEXT))
        folders = [Path(folder) for folder in about["folders"]]
        return folders, tuple(_place(*each) for each in about["places"])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def _place(path: str, staged: str | None, held: str | None, old: Any, new: Any) -> Place:
    for name in (staged, held):
        if name is not None and not TEMPORARY_NAME.fullmatch(Path(name).name):
            raise ValueError(name)
    first, second = (None if name is None else Path(name) for name in (staged, held))
    return Place(Path(path), first, second, old and tuple(old), new and tuple(new))


def _lists() -> Path:
    """Folder of the user's own lists."""
    from platformdirs import user_state_path

    return user_state_path("napari-xcebra", appauthor=False) / "unfinished"


def _owner(note: Path) -> str:
    try:
        return note.owner()
    except (OSError, KeyError, NotImplementedError):  # Windows does not say
        return "Another user"


def _host(note: Path) -> str:
    """Where a note says that it was written; anybody may have written that."""
    try:
        with open_file(note) as file:
            said = json.loads(file.read(_MOST))["host"]
        plain = re.sub(r"[^\w.-]", "", str(said))[:64]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" on {plain}" if plain else ""
