"""Clears away folders and processes whose owner is gone, and gives back memory.

A program that is killed cannot clean up. What it leaves, recordings among it, is removed at the
next start of any: only folders that were made here for this user, and only if the process that they
name has ended. A background process that outlived its window, because somebody stopped it, is ended
as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from napari_xcebra.files import MOST_TEXT, read_bytes

PREFIX = "napari-xcebra-"
MARKER = "owner.json"
OLD = 30 * 86400
"""Seconds after which a folder is let go whose owner cannot be asked for: of another computer."""


def temporary_folder(kind: str = "") -> Path:
    """A new folder for this user alone, which says that this process made it."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}"))
    try:
        name_owner(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def name_owner(folder: Path, child: int | None = None) -> None:
    """Write into a folder which process it belongs to, and the child that works with it."""
    about = {
        "host": _host(),
        "owner": [os.getpid(), _birth(os.getpid())],
        "child": None if child is None else [child, _birth(child)],
    }
    written = folder / f"{MARKER}.new"
    written.write_text(json.dumps(about), encoding="utf-8")
    written.replace(folder / MARKER)


def clear_leftovers() -> list[Path]:
    """Remove temporary folders whose owner is gone; returns them."""
    removed = []
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(tempfile.gettempdir())):
            folder = Path(entry.path)
            if entry.name.startswith(PREFIX) and _is_mine(folder) and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    return removed


def _is_mine(folder: Path) -> bool:
    """Whether it is a folder, and no link to one, that nobody but this user can write to."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode) or getattr(found, "st_reparse_tag", 0) != 0:
        return False
    return os.name != "posix" or (found.st_uid == os.getuid() and not found.st_mode & 0o077)


def _is_abandoned(folder: Path) -> bool:
    """Whether a folder names an owner that is gone; a child of it that is still there is ended."""
    marker = folder / MARKER
    try:
        found = marker.lstat()
        if not stat.S_ISREG(found.st_mode):
            return False
        old = time.time() - found.st_mtime > OLD
        about: Any = json.loads(read_bytes(marker, MOST_TEXT))
        host, (pid, birth), child = about["host"], about["owner"], about["child"]
    except FileNotFoundError:  # not made here
        return False
    except (OSError, ValueError, TypeError, KeyError):  # cut off while it was written
        return old
    if host != _host():
        return old
    if _birth(pid) == birth:
        return False
    if child is not None and _birth(child[0]) == child[1]:
        _end(child[0])
    return True


def _host() -> str:
    """Name of this computer; containers may share a folder, but not the numbers of processes."""
    with contextlib.suppress(OSError):
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - no path
    return platform.node()


def _birth(pid: int) -> str:
    """When a process began, by which a later one of that number is told apart; empty if none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # what psutil says moves when the clock is set
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return "" if ticks[0] in "ZX" else f"{boot} {ticks[19]}"
    import psutil

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except (psutil.Error, ValueError, OverflowError, TypeError):
        return ""


def _end(pid: int) -> None:
    import psutil

    with contextlib.suppress(psutil.Error):
        psutil.Process(pid).kill()


def give_back_memory() -> None:
    """Collect what is left over, and return what is free: glibc would keep it in this process.

    Three windows of 0.3 GB each left 0.5 GB behind that nothing used.
    """
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such call
            ctypes.CDLL(None).malloc_trim(0)
