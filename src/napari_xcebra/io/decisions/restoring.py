"""Putting back what was there before decisions were written, today or after a restart."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions import backups
from napari_xcebra.io.decisions.plan import FileChange, Plan, Written, check_writable, stamp
from napari_xcebra.io.decisions.suite2p import check_backup, written_near
from napari_xcebra.io.decisions.together import undo_interrupted

Version = Literal["original", "previous"]


def restore(path: str | PathLike[str], version: Version = "original") -> Written:
    """Put the original back in place of what was written; see `plan_restore`."""
    return plan_restore(path, version).write()


def plan_restore(path: str | PathLike[str], version: Version = "original") -> Plan:
    """What `restore` would do.

    Parameters
    ----------
    path : path
        A file that was written, or a folder of suite2p (all of its planes and `combined`, which
        are written together, go back together).
    version : {"original", "previous"}
        As the other program wrote it, or as it was written here the time before.
    """
    path = Path(path).resolve()
    undo_interrupted(folders_near(path))
    files = written_near(path) or [path]
    return plan_for(files, version, path)


def plan_for(
    files: Iterable[Path], version: Version = "original", where: Path | None = None
) -> Plan:
    """Plan that puts back each of the files, which were looked for at `where`."""
    files = list(files)
    changes = [change for file in files if (change := _change(file, version)) is not None]
    if not changes:
        raise InputError(
            f"There is nothing to restore at {where or files[0]}: nothing was written here, or no "
            f"{version} version is kept beside it."
        )
    foreign = [
        f"{change.path} was changed by another program after it was written here."
        for change in changes
        if change.path.exists() and not backups.is_ours(change.path)
    ]
    return Plan("restore", tuple(changes), _summary(changes), tuple(foreign))


def _change(path: Path, version: Version) -> FileChange | None:
    """What restoring does to a file; None if there is nothing to do."""
    path = path.resolve()  # backups are beside what a link points at
    kept = [backups.previous(path)] if version == "previous" else backups.originals(path)
    source = next((file for file in kept if file.is_file()), None)
    if source is not None:
        return _put_back(path, source, ours=version == "previous")
    if version == "previous" or not backups.is_ours(path):
        return None
    check_writable(path)
    return FileChange(
        path,
        "remove",
        "There was no such file before.",
        backup=backups.previous(path),
        before=stamp(path),
    )


def _put_back(path: Path, source: Path, *, ours: bool) -> FileChange:
    """A backup takes the place of the file, which is kept in turn."""
    check_writable(path)
    check_backup(source, path)
    return FileChange(
        path,
        "replace" if path.exists() else "new file",
        f"{source.name} takes its place.",
        lambda temporary: _same_file(source, temporary),
        backup=backups.backup_for(path),
        uses_up=source,
        ours=ours,
        before=stamp(path),
    )


def _same_file(source: Path, temporary: Path) -> None:
    """The backup under a second name, which costs nothing; its first one is removed afterwards."""
    temporary.unlink()
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copy2(source, temporary)


def folders_near(path: Path) -> list[Path]:
    """Folders in which files are written together with those at the path."""
    folder = path if path.is_dir() else path.parent
    below = [child for child in folder.iterdir() if child.is_dir()] if path.is_dir() else []
    beside = [child for child in folder.parent.glob("plane*") if child.is_dir()]
    return [folder, folder.parent, folder.parent / "combined", *beside, *below]


def _summary(changes: Sequence[FileChange]) -> str:
    count = len(changes)
    return "1 file goes back." if count == 1 else f"{count} files go back, together."
