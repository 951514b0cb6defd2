"""Restores the files that were there before decisions were written, also after a restart."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Literal

from napari_xcebra.errors import InputError
from napari_xcebra.files import in_a_sentence
from napari_xcebra.io.formats.suite2p.facts import folders_near
from napari_xcebra.io.formats.suite2p.writing import check_backup, written_near
from napari_xcebra.io.transaction import backups
from napari_xcebra.io.transaction.plan import (
    FileChange,
    Plan,
    Seen,
    Written,
    check_writable,
    seen,
)
from napari_xcebra.io.transaction.together import alone_in
from napari_xcebra.io.transaction.unfinished import unfinished_in

Version = Literal["original", "previous"]


def restore(path: str | PathLike[str], version: Version = "original") -> Written:
    """Put the original back in place of what was written; see `plan_restore`.

    A write that was interrupted is undone first, which may be all there is to do.
    """
    undone = repair(path)
    written = plan_restore(path, version, needed=not undone).write()
    return Written("restore", tuple(dict.fromkeys([*undone, *written.files])))


def repair(path: str | PathLike[str]) -> list[Path]:
    """Undo a write to a recording that was interrupted; the files that were put back.

    Parameters
    ----------
    path : path
        What the recording is opened from.
    """
    writes = unfinished_in(folders_near(Path(path).resolve()))
    folders = {folder for write in writes for folder in write.folders}
    if not folders:  # none, or those of others
        return []
    with in_a_sentence(path), alone_in(folders) as undone:
        return undone


def interrupted(path: str | PathLike[str]) -> tuple[str, ...]:
    """Sentences on writes to a recording that were not completed; nothing is changed."""
    writes = unfinished_in(folders_near(Path(path).resolve()))
    return tuple(write.sentence for write in writes)


def plan_restore(
    path: str | PathLike[str], version: Version = "original", *, needed: bool = True
) -> Plan:
    """What `restore` would do.

    Parameters
    ----------
    path : path
        A file that was written, or a folder of suite2p (all of its planes and `combined`, which
        are written together, go back together).
    version : {"original", "previous"}
        As the other program wrote it, or as it was written here the time before.
    needed : bool
        Whether it is an error if there is nothing to restore.
    """
    path = Path(path).resolve()
    with in_a_sentence(path):
        plan = plan_for(written_near(path) or [path], version, path, needed=needed)
        return replace(plan, warnings=(*plan.warnings, *interrupted(path)))


def plan_for(
    files: Iterable[Path],
    version: Version = "original",
    where: Path | None = None,
    *,
    needed: bool = True,
) -> Plan:
    """Plan that restores each of the files, found at `where`."""
    files = list(files)
    changes = [change for file in files if (change := _change(file, version)) is not None]
    if not changes and needed:
        raise InputError(
            f"There is nothing to restore at {where or files[0]}: nothing was written, or no "
            f"{version} version is kept beside it."
        )
    foreign = [
        f"{change.path} was changed by another program after napari-xcebra wrote it."
        for change in changes
        if change.path.exists() and not backups.is_ours(change.path)
    ]
    return Plan("restore", tuple(changes), _summary(changes), tuple(foreign))


def _change(path: Path, version: Version) -> FileChange | None:
    """What restoring does to a file; None if there is nothing to do."""
    path = path.resolve()  # backups are beside what a link points at
    before = seen(path, backups.record_of(path))  # first: what is decided below relies on it
    kept = [backups.previous(path)] if version == "previous" else backups.originals(path)
    source = next((file for file in kept if file.is_file()), None)
    if source is not None:
        return _put_back(path, source, before, ours=version == "previous")
    if version == "previous" or not (backups.is_ours(path) and backups.is_new(path)):
        return None
    check_writable(path)
    kept_as = backups.previous(path)
    what = "There was no such file before."
    return FileChange(path, "remove", what, backup=kept_as, before={**before, **seen(kept_as)})


def _put_back(path: Path, source: Path, before: Seen, *, ours: bool) -> FileChange:
    """Replace the file by its backup, and keep the file."""
    check_writable(path)
    check_backup(source, path)
    backup = backups.backup_for(path)
    return FileChange(
        path,
        "replace" if path.exists() else "new file",
        f"Restored from {source.name}.",
        lambda temporary: _same_file(source, temporary),
        backup=backup,
        uses_up=source,
        ours=ours,
        before={**before, **seen(source, *([backup] if backup else []))},
    )


def _same_file(source: Path, temporary: Path) -> None:
    """Link to the backup, which costs nothing; its own name is removed afterwards."""
    temporary.unlink()
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copy2(source, temporary)


def _summary(changes: Sequence[FileChange]) -> str:
    count = len(changes)
    return "1 file is restored." if count == 1 else f"{count} files are restored together."
