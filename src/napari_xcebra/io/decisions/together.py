"""Several files at once: all of them take their place, or none does.

New contents lie complete on disk under temporary names, and what they replace is held under names
of its own, before the first file is touched. Which name is which stands in a list, and removing the
list is the moment at which the new files count. If anything fails before, or the machine stops,
what is held goes back: at once, or when `undo_interrupted` next comes by.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from napari_xcebra.errors import InputError

LIST = ".napari-xcebra-unfinished.json"
"""Lies in the folder of the files, or the one around theirs, while they take their places."""
TEMPORARY, ABANDONED = ".napari-xcebra-", 3600
"""How temporary names begin, followed by the second they were made in; and after how many seconds
no one can be writing any more. (The time of a second name of a file is that of the file.)"""


@dataclass(frozen=True)
class Place:
    """A file that is about to be replaced, made or removed.

    Parameters
    ----------
    path : Path
    staged : Path or None
        Complete new content, in the same folder; None: the file is to be removed.
    held : Path or None
        Name for what was there; None if nothing was.
    size, modified : int
        Of the new content (nanoseconds), by which it is known again.
    """

    path: Path
    staged: Path | None
    held: Path | None
    size: int = -1
    modified: int = -1

    def is_new_content(self) -> bool:
        """Whether the new content, rather than that of another program, is in place."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return self.staged is None
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.modified)


def temporary_beside(path: Path) -> Path:
    """An empty file in the folder of `path`, which is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beginning = f"{TEMPORARY}{int(time.time())}-"
    handle, name = tempfile.mkstemp(prefix=beginning, suffix=path.suffix, dir=path.parent)
    os.close(handle)
    return Path(name)


def second_name(path: Path, beside: Path) -> Path:
    """The file under a temporary name as well: a hard link, or a copy where there are none."""
    name = beside.with_name(f"{TEMPORARY}{int(time.time())}-{uuid4().hex}{beside.suffix}")
    try:
        os.link(path, name)
    except OSError:
        try:
            shutil.copy2(path, name)
            sync(name)
        except BaseException:
            remove_names([name])
            raise
    return name


def sync(path: Path) -> None:
    """Wait until a file is on disk."""
    with path.open("rb+") as written:
        os.fsync(written.fileno())


def put_together(staged: Mapping[Path, Path | None]) -> None:
    """Let each staged file take its place, all or none.

    Parameters
    ----------
    staged : mapping of Path to Path or None
        Final name to a complete file in the same folder, in the order in which they take their
        places; None removes the file. The staged names are gone afterwards, whatever happens.
    """
    held: list[Path] = []
    try:
        places = [_held(path, new, held) for path, new in staged.items()]
        unfinished = min((path.parent for path in staged), key=lambda p: len(p.parts)) / LIST
        try:
            _write_list(unfinished, places)
            for place in places:
                if place.staged is None:
                    place.path.unlink(missing_ok=True)
                else:
                    place.staged.replace(place.path)
            _sync_folders(staged)
            unfinished.unlink()
        except BaseException:
            _put_back(places)
            unfinished.unlink(missing_ok=True)
            raise
    finally:
        remove_names([*held, *(new for new in staged.values() if new is not None)])


def undo_interrupted(folders: Iterable[Path]) -> list[Path]:
    """Put back what a write that was cut short had replaced; the files concerned."""
    undone = []
    for folder in dict.fromkeys(folders):
        unfinished = folder / LIST
        if not os.path.isfile(unfinished):  # noqa: PTH113 - a folder that is closed has none
            _sweep(folder)
            continue
        places = _read_list(unfinished)
        try:
            _put_back(places)
            unfinished.unlink()
        except OSError as error:
            raise InputError(
                f"Writing to {folder} was cut short before, and cannot be undone now "
                f"({error.strerror or error}): allow writing to it and try again."
            ) from error
        remove_names([name for place in places for name in (place.staged, place.held) if name])
        undone += [place.path for place in places]
    return undone


def _sweep(folder: Path) -> None:
    """Remove temporary files of a write that was cut short before it counted."""
    with contextlib.suppress(OSError):
        for file in folder.glob(f"{TEMPORARY}*"):
            made = file.name.removeprefix(TEMPORARY).split("-")[0]
            if made.isdecimal() and time.time() - int(made) > ABANDONED:
                remove_names([file])


def _held(path: Path, staged: Path | None, held: list[Path]) -> Place:
    """The place of a file, with what is there now under a second name."""
    name = None
    if path.exists():
        name = second_name(path, path)
        held.append(name)
    if staged is None:
        return Place(path, None, name)
    stat = staged.stat()
    return Place(path, staged, name, stat.st_size, stat.st_mtime_ns)


def _put_back(places: Sequence[Place]) -> None:
    """What was there before, in reverse; what others wrote since is left alone."""
    for place in reversed(places):
        if not place.is_new_content():
            continue
        if place.held is None:
            place.path.unlink(missing_ok=True)
        elif place.held.exists():
            place.held.replace(place.path)
    _sync_folders(place.path for place in places)


def remove_names(names: Iterable[Path]) -> None:
    """Take away names that are needed no more; one that stays does no harm."""
    for name in names:
        with contextlib.suppress(OSError):
            name.unlink(missing_ok=True)


def _sync_folders(paths: Iterable[Path]) -> None:
    """Wait until the names in the folders are on disk, where the system can tell."""
    for folder in {path.parent for path in paths}:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _write_list(path: Path, places: Sequence[Place]) -> None:
    def named(file: Path | None) -> str | None:
        # relative, so that a folder that was moved in between is still understood
        return None if file is None else Path(os.path.relpath(file, path.parent)).as_posix()

    about = {
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "host": platform.node(),
        "places": [
            [named(p.path), named(p.staged), named(p.held), p.size, p.modified] for p in places
        ],
    }
    temporary = temporary_beside(path)
    try:
        temporary.write_text(json.dumps(about, indent=1), encoding="utf-8")
        sync(temporary)
        temporary.replace(path)
    finally:
        remove_names([temporary])
    _sync_folders([path])


def _read_list(path: Path) -> list[Place]:
    try:
        about: Any = json.loads(path.read_text(encoding="utf-8"))
        writer = int(about["pid"]), float(about["started"]), str(about["host"])
        places = [
            Place(
                _inside(name, path), _hidden(staged, path), _hidden(held, path), int(size), int(t)
            )
            for name, staged, held, size, t in about["places"]
        ]
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{path} is damaged: a write was cut short here. Look at the files beside it, then "
            "remove it."
        ) from error
    if _is_running(*writer):
        raise InputError(
            f"Another window is writing to {path.parent} at this moment: try again when it is done."
        )
    return places


def _is_running(pid: int, started: float, host: str) -> bool:
    """Whether another program of this machine is still at it; numbers of programs come again."""
    if host != platform.node() or pid == os.getpid():
        return False
    try:
        return abs(psutil.Process(pid).create_time() - started) < 1
    except (psutil.Error, ValueError, OverflowError):
        return False


def _inside(name: str, path: Path) -> Path:
    """A file that the list names: beside it, or in a folder in or beside its own."""
    file = Path(os.path.normpath(path.parent / name))
    if path.parent not in (file.parent, file.parent.parent) and (
        file.parent.parent != path.parent.parent
    ):
        raise ValueError(name)
    return file


def _hidden(name: str | None, path: Path) -> Path | None:
    """A temporary name that the list gives: only such are ever removed."""
    if name is None:
        return None
    file = _inside(name, path)
    if not file.name.startswith("."):
        raise ValueError(name)
    return file
