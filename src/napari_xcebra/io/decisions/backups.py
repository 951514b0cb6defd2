"""Keeps what a file held before it was replaced, beside it.

=========================  ========================================================================
``iscell.npy.original``    what another program wrote, as found before it was first replaced here;
                           never overwritten. A file that another program rewrote after that is
                           kept as ``.original-2``, and so on: the last one is what is restored.
``iscell.npy.previous``    what was written here the time before
``.iscell.npy.written``    checksum of what was written here last, which tells the two apart
=========================  ========================================================================
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from napari_xcebra.files import MOST_TEXT, open_file, read_bytes

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
