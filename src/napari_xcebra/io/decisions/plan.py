"""Plans what is written where: shown first, then written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from napari_xcebra.errors import InputError
from napari_xcebra.files import (
    TEMPORARY_NAME,
    in_a_sentence,
    sync,
    sync_folder,
    temporary_beside,
    temporary_name,
    usual_mode,
)
from napari_xcebra.io.decisions import backups
from napari_xcebra.io.decisions.backups import (
    Place,
    Stamp,
    Unfinished,
    begin,
    has_notes,
    stamp,
    unfinished_in,
)
from napari_xcebra.locks import locked

Action = Literal["replace", "new file", "copy", "remove"]
Seen = Mapping[Path, Stamp | None]
"""Files as they were when they were read."""


@dataclass(frozen=True)
class FileChange:
    """One file of a plan.

    Parameters
    ----------
    path : Path
    action : {"replace", "new file", "copy", "remove"}
    what : str
        A sentence: what changes in it, or what it holds.
    make : function of Path, or None
        Writes the new content to the path it is given; None for "remove".
    backup : Path or None
        Where the present file is kept.
    uses_up : Path or None
        A backup that takes the place of the file, and is then gone.
    ours : bool
        Whether the new content is of our making, rather than what another program wrote.
    size : int
        Bytes it will take, about.
    before : mapping of Path to (size, nanoseconds) or None
        The file, and all that decides how it is kept, as they were when the plan was made.
    """

    path: Path
    action: Action
    what: str
    make: Callable[[Path], None] | None = field(default=None, repr=False, compare=False)
    backup: Path | None = None
    uses_up: Path | None = None
    ours: bool = True
    size: int = 0
    before: Seen = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What happens to the file, for the preview."""
        if self.backup is not None:
            return f"{self.what} The current file is kept as {self.backup.name}."
        if self.action == "replace":
            return f"{self.what} The current version, written here, is too large to keep."
        return self.what


@dataclass(frozen=True)
class Plan:
    """Files that belong together: `write` writes all of them, or none.

    Parameters
    ----------
    kind : str
        One of the outputs, or "restore".
    files : tuple of FileChange
    summary : str
        A sentence on the whole.
    warnings : tuple of str
        What the user should know before writing.
    read : mapping of Path to (size, nanoseconds) or None
        Files that the plan was made from, as they were then.
    """

    kind: str
    files: tuple[FileChange, ...]
    summary: str = ""
    warnings: tuple[str, ...] = ()
    read: Seen = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The preview: summary, one line a file, warnings."""
        files = [f"{change.path} ({change.action}): {change.sentence}" for change in self.files]
        return [line for line in (self.summary, *files, *self.warnings) if line]

    def write(self) -> Written:
        """Do what the plan says.

        Raises
        ------
        InputError
            If a file could not be written or is no longer as it was when the plan was made; all
            files are then as they were.
        """
        if not self.files:
            return Written(self.kind, ())
        staged: dict[Path, Path | None] = {}
        with in_a_sentence(self.files[0].path), alone_in(self._folders()) as undone:
            self._check(undone)
            _check_space(self.files)
            try:
                for change in self.files:
                    _stage(change, staged)
                _put_together(_backups_first(self.files, staged), self._check)
            finally:
                _remove_names(name for name in staged.values() if name is not None)
        return Written(self.kind, tuple(change.path for change in self.files))

    def _folders(self) -> set[Path]:
        """Folders that nobody else may write to meanwhile; a source may be read-only."""
        sources = {path.parent for path in self.read if os.access(path.parent, os.W_OK)}
        return sources | {change.path.parent for change in self.files}

    def _check(self, undone: Sequence[Path] = ()) -> None:
        """Raise unless all files are as they were when the plan was made."""
        seen = [(path, path, before) for path, before in self.read.items()]
        for change in self.files:
            seen += [(change.path, path, before) for path, before in change.before.items()]
        for file, path, before in seen:
            if stamp(path) == before:
                continue
            if undone:
                raise InputError(
                    f"An earlier write to {file.parent} had been interrupted and has now been "
                    "undone; nothing else was written. Reopen the recording, then check the "
                    "preview again."
                )
            raise InputError(
                f"{file} has been changed by another program since the preview: nothing was "
                "written. Check the preview again."
            )


def plan_together(plans: Sequence[Plan]) -> Plan:
    """Several outputs as one plan, which writes all of their files or none.

    Raises
    ------
    InputError
        If two of them write the same file.
    """
    files = [change for plan in plans for change in plan.files]
    paths = [change.path for change in files]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"Two outputs write {twice}: choose one of them.")
    if len(plans) == 1:
        return plans[0]
    warnings = tuple(warning for plan in plans for warning in plan.warnings)
    kinds = " and ".join(plan.kind for plan in plans)
    summary = " ".join(plan.summary for plan in plans)
    # of two readings the first counts: what was planned on it is as old
    read = {path: seen for plan in reversed(plans) for path, seen in plan.read.items()}
    return Plan(kinds, tuple(files), summary, tuple(dict.fromkeys(warnings)), read)


@dataclass(frozen=True)
class Written:
    """What was written; `restore` puts the originals back."""

    kind: str
    files: tuple[Path, ...]

    def restore(self) -> Written:
        """Put all files back as they were before the first time they were written here."""
        from napari_xcebra.io.decisions.restoring import plan_for

        return plan_for(self.files).write()


def change_to(
    path: Path, what: str, make: Callable[[Path], None], *, size: int = 0, copy: bool = False
) -> FileChange:
    """Change that makes or replaces a file, after a check that this is possible.

    Parameters
    ----------
    path : Path
    what : str
        See `FileChange`.
    make : function of Path
    size : int
    copy : bool
        Whether the new file is a copy of another with changes.
    """
    path = path.resolve()  # a link stays a link: what it points at is replaced
    check_writable(path)
    before = seen(path, backups.record_of(path))  # first: what is decided below relies on it
    action: Action = "replace" if path.exists() else "copy" if copy else "new file"
    with in_a_sentence(path):
        backup = backups.backup_for(path)
    if backup is not None:
        before |= seen(backup)
    return FileChange(path, action, what, make, backup, size=size, before=before)


def seen(*paths: Path) -> dict[Path, Stamp | None]:
    """Files as they are now, to notice later that they are not."""
    return {path: stamp(path) for path in (each.resolve() for each in paths)}


def target_of(default: Path, destination: Path | None) -> Path:
    """Where to write: the default, a file, or the default's name in a folder."""
    if destination is None:
        return default
    is_folder = destination.is_dir() or not destination.suffix
    return destination / default.name if is_folder else destination


def check_writable(path: Path) -> None:
    """Raise with a sentence unless the file can be made or replaced."""
    with in_a_sentence(path):
        path.exists()  # raises if the name is too long, or the folder closed
    folder = next(parent for parent in path.parents if parent.exists())
    if path.is_dir():
        raise InputError(f"{path} is a folder: a file is needed.")
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: {folder} is a file.")
    protected = next((p for p in (folder, path) if p.exists() and not os.access(p, os.W_OK)), None)
    if protected is not None:
        raise InputError(
            f"{protected} is read-only, so {path.name} cannot be written there: choose "
            "another destination, or allow writing to it."
        )


def _check_space(files: Sequence[FileChange]) -> None:
    """Raise with a sentence unless there is room for the new files."""
    for change in files:
        folder = next(parent for parent in change.path.parents if parent.exists())
        free = shutil.disk_usage(folder).free
        needed = sum(other.size for other in files if other.path.parent == change.path.parent)
        if needed > free:
            raise InputError(
                f"{change.path} takes {needed / 1e9:.1f} GB but {folder} has {free / 1e9:.1f} GB "
                "left: make room, or choose another destination."
            )


def _stage(change: FileChange, staged: dict[Path, Path | None]) -> None:
    """Everything a change needs, complete under temporary names."""
    path, note = change.path, backups.record_of(change.path)
    if change.backup is not None:
        staged[change.backup] = _second_name(path, change.backup)
    staged[path] = staged[note] = None
    if change.make is not None:
        staged[path] = content = temporary_beside(path)
        change.make(content)
        if content.stat().st_nlink == 1:  # drives tell time in ticks in which two may write
            os.utime(content, ns=(time.time_ns(), time.time_ns()))
        _finish(content, like=path)
    if change.make is not None and change.ours:
        staged[note] = written = temporary_beside(note)
        about = backups.record(content, new=backups.is_new(path))
        written.write_text(about, encoding="utf-8")
        _finish(written, like=note)
    if change.uses_up is not None and change.uses_up not in staged:
        staged[change.uses_up] = None


def _finish(temporary: Path, like: Path) -> None:
    """Access as the file that is replaced has, and on disk."""
    if like.exists():
        shutil.copymode(like, temporary)
    else:
        temporary.chmod(usual_mode())
    sync(temporary)


def _backups_first(
    files: Sequence[FileChange], staged: dict[Path, Path | None]
) -> dict[Path, Path | None]:
    kept = [change.backup for change in files if change.backup is not None]
    return {path: staged[path] for path in (*kept, *(p for p in staged if p not in kept))}


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


def _put_together(staged: Mapping[Path, Path | None], check: Callable[[], None]) -> None:
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
        _remove_names(names)
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
        _remove_names(names)
        raise
    _remove_names(names)


def _second_name(path: Path, beside: Path) -> Path:
    """The file under a temporary name as well: a hard link, or a copy where there are none."""
    name = temporary_name(beside)
    try:
        os.link(path, name)
    except OSError:
        try:
            shutil.copy2(path, name)
            sync(name)
        except BaseException:
            _remove_names([name])
            raise
    return name


def _remove_names(names: Iterable[Path]) -> None:
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
    _remove_names(name for place in write.places for name in (place.staged, place.held) if name)
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
        held = _second_name(path, path)
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
                _remove_names([file])
