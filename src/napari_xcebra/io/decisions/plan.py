"""What will be written where: shown first, then written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions import backups
from napari_xcebra.io.decisions.together import (
    put_together,
    remove_names,
    second_name,
    sync,
    temporary_beside,
)

Action = Literal["replace", "new file", "copy", "remove"]


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
    before : (size, nanoseconds) or None
        The file as it was when the plan was made.
    """

    path: Path
    action: Action
    what: str
    make: Callable[[Path], None] | None = field(default=None, repr=False, compare=False)
    backup: Path | None = None
    uses_up: Path | None = None
    ours: bool = True
    size: int = 0
    before: tuple[int, int] | None = None

    @property
    def sentence(self) -> str:
        """What happens to the file, for the preview."""
        if self.backup is not None:
            return f"{self.what} The present file is kept as {self.backup.name}."
        if self.action == "replace":
            return f"{self.what} The present version, written here, is not kept, as it is large."
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
    """

    kind: str
    files: tuple[FileChange, ...]
    summary: str = ""
    warnings: tuple[str, ...] = ()

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
        for change in self.files:
            if stamp(change.path) != change.before:
                raise InputError(
                    f"{change.path} was changed by another program since the preview: nothing was "
                    "written. Look at the preview again."
                )
        if not self.files:
            return Written(self.kind, ())
        check_space(self.files)
        staged: dict[Path, Path | None] = {}
        with _in_a_sentence(staged):
            for change in self.files:
                _stage(change, staged)
            put_together(_backups_first(self.files, staged))
        return Written(self.kind, tuple(change.path for change in self.files))


def plan_together(plans: Sequence[Plan]) -> Plan:
    """Several outputs as one plan, which writes the files of all of them or none.

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
    return Plan(kinds, tuple(files), " ".join(plan.summary for plan in plans), warnings)


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
    """A file that is to be made or replaced, after a check that it can be.

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
    action: Action = "replace" if path.exists() else "copy" if copy else "new file"
    return FileChange(
        path, action, what, make, backups.backup_for(path), size=size, before=stamp(path)
    )


def target_of(default: Path, destination: Path | None) -> Path:
    """Where to write: the default, a file, or the default's name in a folder."""
    if destination is None:
        return default
    is_folder = destination.is_dir() or not destination.suffix
    return destination / default.name if is_folder else destination


def check_writable(path: Path) -> None:
    """Raise with a sentence unless the file can be made or replaced."""
    folder = next(parent for parent in path.parents if parent.exists())
    if path.is_dir():
        raise InputError(f"{path} is a folder: a file is needed.")
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: {folder} is a file.")
    protected = next((p for p in (folder, path) if p.exists() and not os.access(p, os.W_OK)), None)
    if protected is not None:
        raise InputError(
            f"{protected} is read-only, so that {path.name} cannot be written there: choose "
            "another destination, or allow writing to it."
        )


def check_space(files: Sequence[FileChange]) -> None:
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


def stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of a file, by which a change is noticed; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _stage(change: FileChange, staged: dict[Path, Path | None]) -> None:
    """Everything a change needs, complete under temporary names."""
    path, note = change.path, backups.record_of(change.path)
    if change.backup is not None:
        staged[change.backup] = second_name(path, change.backup)
    staged[path] = staged[note] = None
    if change.make is not None:
        staged[path] = content = temporary_beside(path)
        change.make(content)
        _finish(content, like=path)
    if change.make is not None and change.ours:
        staged[note] = written = temporary_beside(note)
        written.write_text(backups.record(content), encoding="utf-8")
        _finish(written, like=note)
    if change.uses_up is not None and change.uses_up not in staged:
        staged[change.uses_up] = None


def _finish(temporary: Path, like: Path) -> None:
    """Access as the file that is replaced has, and on disk."""
    if like.exists():
        shutil.copymode(like, temporary)
    else:
        temporary.chmod(0o666 & ~_umask())
    sync(temporary)


def _backups_first(
    files: Sequence[FileChange], staged: dict[Path, Path | None]
) -> dict[Path, Path | None]:
    kept = [change.backup for change in files if change.backup is not None]
    return {path: staged[path] for path in (*kept, *(p for p in staged if p not in kept))}


@contextmanager
def _in_a_sentence(staged: dict[Path, Path | None]) -> Iterator[None]:
    """Leave no temporary file behind, and say in a sentence why nothing was written."""
    try:
        yield
    except OSError as error:
        name = error.filename or next(iter(staged), Path())
        raise InputError(
            f"{name} could not be written ({error.strerror or error}); all files are as they were. "
            "Choose another destination, make room, or close the program that has it open."
        ) from error
    finally:
        remove_names(name for name in staged.values() if name is not None)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
