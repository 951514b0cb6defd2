"""Keeps two programs from writing to the same folder at once."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from napari_xcebra.errors import InputError
from napari_xcebra.files import in_a_sentence, read_json

LOCK = ".napari-xcebra.lock"
PATIENCE = 10.0
"""Seconds to wait for another program: writing takes less, unless it is at it again and again."""
TOLD = "{holder} is writing to {folder}: try again when it is done."
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
"""What drives answer that know no locks: some shared ones."""


@contextlib.contextmanager
def locked(
    folder: str | os.PathLike[str], patience: float = PATIENCE, told: str = TOLD
) -> Iterator[None]:
    """Have a folder to ourselves; other programs and threads wait, or are told who has it.

    The system takes the lock back when its holder ends, however it ends. Drives without locks get
    a file that names its holder, which is broken once that program of this computer is gone.

    Parameters
    ----------
    folder : path
        Made if need be.
    patience : float
        Seconds to wait.
    told : str
        What to say if that was too short, with places for the holder and the folder.

    Raises
    ------
    InputError
        If another program still has it after that time.
    """
    folder = Path(folder)
    path = folder / LOCK
    with in_a_sentence(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = _acquired(path, patience)
        except Timeout as error:
            raise InputError(told.format(holder=_holder(path), folder=folder)) from error
    marks_itself = isinstance(lock, SoftFileLock)
    try:
        if not marks_itself:
            _name_holder(path)
        yield
    finally:
        try:
            # still held: whoever opened the file before sees that its name is gone, and starts over
            if not marks_itself:
                with contextlib.suppress(OSError):
                    path.unlink()
        finally:
            lock.release()


def _acquired(path: Path, patience: float) -> BaseFileLock:
    # others in the lab must be able to take over the file that a killed program left
    lock: BaseFileLock = FileLock(path, timeout=patience, mode=0o666, thread_local=False)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        lock = SoftFileLock(path, timeout=patience, thread_local=False)
        lock.acquire()
    return lock


def _name_holder(path: Path) -> None:
    about = {"process": os.getpid(), "host": platform.node()}
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            if os.fstat(file).st_nlink == 1:  # and not the name of a file elsewhere
                os.ftruncate(file, 0)
                os.write(file, json.dumps(about).encode())
        finally:
            os.close(file)


def _holder(path: Path) -> str:
    try:
        about = read_json(path)
        process, host = int(about["process"]), str(about["host"])
    except (ValueError, KeyError, TypeError):
        return "Another program"
    here = host == platform.node()
    return f"Another program (process {process}{'' if here else f' on {host}'})"
