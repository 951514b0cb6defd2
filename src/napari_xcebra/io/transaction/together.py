"""Replaces several files at once: all of them, or none.

New contents lie complete on disk under temporary names, and what they replace is held under names
of its own, before the first file is touched. A list says which name is which, and the new files
count from the moment it is given up. If anything fails before, or the machine stops, what is held
is put back: at once, or when somebody next has the folders to themselves.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.files import TEMPORARY_NAME, sync, sync_folder, temporary_name
from napari_xcebra.io.transaction.unfinished import (
    Place,
    Unfinished,
    begin,
    has_notes,
    stamp,
    unfinished_in,
)
from napari_xcebra.locks import locked

ABANDONED = 3600
"""Seconds after which a temporary file that no list names is of no use to anybody."""


@contextlib.contextmanager
def alone_in(folders: Iterable[Path]) -> Iterator[list[Path]]:
    """Have folders to ourselves, with what was interrupted there undone.

    Yields
    ------
    list of Path
        Files that were put back.
    """
    wanted = set(folders)
    while True:
        wanted |= _folders_of(_ours_in(wanted))
        with contextlib.ExitStack() as held:
            for folder in sorted(wanted):  # all in one order, so that no two wait for each other
                held.enter_context(locked(folder))
            writes = _ours_in(wanted)
            if _folders_of(writes) <= wanted:
                undone = [path for write in writes for path in _undo(write)]
                for folder in wanted:
                    _sweep(folder)
                yield undone
                return


def put_together(staged: Mapping[Path, Path | None], check: Callable[[], None]) -> None:
    """Let each staged file take its place, all or none; the folders must be ours alone.

    Parameters
    ----------
    staged : mapping of Path to Path or None
        Final name to a complete file in the same folder, in the order in which they take their
        places; None removes the file. The staged names are gone afterwards.
    check : function
        Raises if a file was changed by another program meanwhile.
    """
    names = [name for name in staged.values() if name is not None]
    try:
        places = [_held(path, new, names) for path, new in staged.items()]
        check()
        write = begin(places)
    except BaseException:
        remove_names(names)
        raise
    try:
        for place in places:
            if place.staged is None:
                place.path.unlink(missing_ok=True)
            else:
                place.staged.replace(place.path)
        _sync_folders(places)
        write.end()
    except BaseException as error:
        try:
            _put_back(places)
            write.end()
        except OSError as another:
            raise InputError(
                f"{places[0].path} could not be written, and not all files could be put back "
                f"({another.strerror or another}): that is done when decisions are next written or "
                "restored there."
            ) from error
        remove_names(names)
        raise
    remove_names(names)


def second_name(path: Path, beside: Path) -> Path:
    """The file under a temporary name as well: a hard link, or a copy where there are none."""
    name = temporary_name(beside)
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


def remove_names(names: Iterable[Path]) -> None:
    """Take away names that are needed no more; one that stays does no harm."""
    for name in names:
        with contextlib.suppress(OSError):
            name.unlink(missing_ok=True)


def _ours_in(folders: Iterable[Path]) -> list[Unfinished]:
    return [write for write in unfinished_in(folders) if write.kept is not None]


def _folders_of(writes: Iterable[Unfinished]) -> set[Path]:
    return {folder for write in writes for folder in write.folders}


def _undo(write: Unfinished) -> list[Path]:
    """Put back what a write that was cut short had replaced; the files concerned."""
    where = write.notes[-1]
    for place in write.places:
        held = place.held is not None and place.held.is_file() and not place.held.is_symlink()
        if place.old is not None and _is_new(place) and not held:
            raise InputError(
                f"A write to {where.parent} was interrupted and cannot be undone, because a "
                f"temporary file is gone: check {place.path}, whose original is beside it, and "
                f"remove {where}."
            )
    try:
        _put_back(write.places)
        write.end()
    except OSError as error:
        raise InputError(
            f"A write to {where.parent} was interrupted and cannot be undone now "
            f"({error.strerror or error}): allow writing there and try again."
        ) from error
    remove_names(name for place in write.places for name in (place.staged, place.held) if name)
    return [place.path for place in write.places]


def _put_back(places: Sequence[Place]) -> None:
    """What was there before, in reverse; what others wrote since is left alone."""
    # what they found may be kept under a name that was made here, so then nothing is removed
    others = any(stamp(place.path) not in (place.old, place.new) for place in places)
    for place in reversed(places):
        if not _is_new(place):
            continue
        if place.held is not None:
            place.held.replace(place.path)
        elif not others:
            place.path.unlink(missing_ok=True)
    _sync_folders(places)


def _is_new(place: Place) -> bool:
    """Whether the new content is in place, rather than the old or that of another program."""
    return stamp(place.path) == place.new != place.old


def _held(path: Path, staged: Path | None, names: list[Path]) -> Place:
    """The place of a file, with what is there now under a second name."""
    old = stamp(path)
    held = None
    if old is not None:
        held = second_name(path, path)
        names.append(held)
    return Place(path, staged, held, old, None if staged is None else stamp(staged))


def _sync_folders(places: Iterable[Place]) -> None:
    for folder in {place.path.parent for place in places}:
        sync_folder(folder)


def _sweep(folder: Path) -> None:
    """Remove temporary files of a write that was cut short before it counted."""
    if has_notes(folder):
        return
    with contextlib.suppress(OSError):
        for file in folder.glob(".napari-xcebra-*"):
            match = TEMPORARY_NAME.fullmatch(file.name)
            if match and time.time() - int(match[1]) > ABANDONED:
                remove_names([file])
