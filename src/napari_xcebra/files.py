"""Writes files whole or not at all, reads descriptions, and names recordings by their path."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any
from uuid import uuid4

from napari_xcebra.errors import CannotWrite, InputError

TEMPORARY = ".napari-xcebra-"
"""How temporary names begin, followed by the second they were made in. (The time of a second name
of a file is that of the file.)"""
TEMPORARY_NAME = re.compile(re.escape(TEMPORARY) + r"(\d+)-[0-9a-f]{32}(\.\w+)?")
_NO_FLUSH = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
"""What drives answer that cannot be told to write at once: some shared ones."""

GUARDED = "NAPARI_XCEBRA_GUARDED"
"""Environment variable: 0 has Python and commands read files without a child, and so without
limits."""
CHECKSUM = "checksum"
MOST_BYTES = 2**31
"""Bytes of a file of ours past which it is not read at once: maps and weights take far less."""
MOST_TEXT = 2**27
"""Bytes of a text file past which it is not read: names of cells and settings take far less."""


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a temporary neighbour that takes the place of `path` once it is complete.

    Yields
    ------
    Path
        Where to write. If the block fails, it is removed and `path` stays as it was.

    Raises
    ------
    CannotWrite
        If the disk is full, the folder protected, or the like.
    """
    path = Path(path)
    with in_a_sentence(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = temporary_beside(path)
        try:
            yield temporary
            sync(temporary)
            temporary.chmod(usual_mode())
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def temporary_name(path: Path) -> Path:
    """A free name beside a file, short however long its own is, with its ending."""
    ending = path.suffix if re.fullmatch(r"\.\w{1,10}", path.suffix, re.ASCII) else ""
    return path.with_name(f"{TEMPORARY}{int(time.time())}-{uuid4().hex}{ending}")


def temporary_beside(path: Path) -> Path:
    """An empty file beside another, for nobody else to read yet."""
    name = temporary_name(path)
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return name


def sync(path: Path) -> None:
    """Wait until a file is on disk."""
    with path.open("rb+") as written:
        flush(written.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, so that they are there after a power cut."""
    with contextlib.suppress(OSError):  # Windows cannot open folders, and does so itself
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def flush(file: int) -> None:
    """Wait until an open file is on disk, if the drive can tell."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NO_FLUSH:
            raise


@contextlib.contextmanager
def in_a_sentence(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say in a sentence why a file could not be written."""
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{path} could not be written: there is not enough memory. Close other programs and "
            "try again."
        ) from error
    except OSError as error:
        why = error.strerror or " ".join(str(error).split())[:200] or type(error).__name__
        sentence = CannotWrite(f"{path} could not be written ({why}): {_advice(error.errno)}")
        sentence.errno, sentence.strerror = error.errno, error.strerror
        raise sentence from error


def _advice(number: int | None) -> str:
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some space, or choose another folder."
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "allow writing there, choose another folder, or close the program that has it open."
    if number == errno.ENAMETOOLONG:
        return "choose a shorter name."
    return "choose another folder, or free some space."


def refuse_link(path: Path) -> None:
    """Raise if a file or folder that is ours by its name is a link, which may lead anywhere."""
    if path.is_symlink():
        raise InputError(
            f"{path} is a link to another place, to which nothing is written: remove it, or choose "
            "another folder."
        )


def open_file(path: str | os.PathLike[str]) -> BufferedReader:
    """A file, to be read; OSError if there is none, or a pipe, a socket or a device in its place.

    Those may never begin, or never end.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    if not stat.S_ISREG(Path(path).stat().st_mode):  # opening some devices does something
        raise _no_file(path)
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced in between
        file.close()
        raise _no_file(path)
    return file


def _no_file(path: str | os.PathLike[str]) -> OSError:
    if Path(path).is_dir():
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    return OSError(
        errno.EINVAL, "it is a pipe or a device, where a file is needed", os.fspath(path)
    )


def read_bytes(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Content of a file; OSError if it is no file, or has more than `most` bytes."""
    with open_file(path) as file:
        # a file of holes claims any size and takes none
        if os.fstat(file.fileno()).st_size <= most and len(content := file.read(most + 1)) <= most:
            return content
    raise OSError(
        errno.EFBIG, f"it is too large (more than {most / 2**20:,.0f} MB)", os.fspath(path)
    )


def read_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds, or a sentence if it cannot be read, whatever is in it."""
    return parsed_json(read_text(path), path)


def parsed_json(text: str, path: str | os.PathLike[str]) -> Any:
    """What a JSON text from a file holds, or a sentence that names the file."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}.") from error
    except RecursionError as error:
        raise InputError(f"{path} is damaged: it is nested too deeply.") from error


def read_text(path: str | os.PathLike[str]) -> str:
    """Text of a file that a person or this program wrote, or a sentence."""
    try:
        return read_bytes(path, MOST_TEXT).decode("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is damaged: it is not text ({error}).") from error


def read_description(path: Path, kind: str, version: int, called: str = "") -> dict[str, Any]:
    """The JSON file that describes a folder of ours.

    Parameters
    ----------
    path : Path
    kind : str
        Such as "run": the file's `kind` must be "napari-xcebra" and this.
    version : int
        Latest `format` that can be read.
    called : str, optional
        What users call it, if that differs from the kind.
    """
    try:
        about = read_json(path)
    except InputError as error:
        if isinstance(why := error.__cause__, OSError):
            raise InputError(
                f"{path.parent} holds no {called or kind}: {why.strerror or why}."
            ) from why
        raise
    return check_description(about, path, kind, version)


def write_description(path: Path, about: Mapping[str, Any], default: Any = None) -> None:
    """Write a JSON file with a checksum of itself, which `read_description` checks.

    Parameters
    ----------
    path : Path
    about : mapping
    default : callable, optional
        Makes a plain value of one that JSON does not know.
    """
    with whole(path) as file:
        file.write_text(described(about, default), encoding="utf-8")


def described(about: Mapping[str, Any], default: Any = None) -> str:
    """JSON text of a description with a checksum of itself."""
    plain = json.loads(json.dumps(about, default=default))
    return json.dumps({**plain, CHECKSUM: _checksum(plain)}, indent=1)


def _checksum(about: Mapping[str, Any]) -> str:
    values = {name: value for name, value in about.items() if name != CHECKSUM}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def check_description(
    about: Any, path: str | os.PathLike[str], kind: str, version: int
) -> dict[str, Any]:
    """The description of a file of ours; a sentence if it is of another kind, too new or damaged.

    Earlier versions wrote no checksum.
    """
    if not isinstance(about, dict) or about.get("kind") != f"napari-xcebra {kind}":
        raise InputError(f"{path} was not written by napari-xcebra.")
    found = about.get("format")
    if not isinstance(found, int):
        raise InputError(f"{path} does not say which format it has: it is damaged.")
    if found > version:
        raise InputError(
            f"{path} was written by a later version of napari-xcebra (format {found}; this version "
            f"reads up to {version}): update napari-xcebra."
        )
    if CHECKSUM in about and about[CHECKSUM] != _checksum(about):
        raise InputError(
            f"{path} is damaged, or was changed by hand: its checksum is another. Restore it from "
            f'a copy; if you changed it, remove the line "{CHECKSUM}" from it.'
        )
    return about


def name_of(source: str) -> str:
    """Name of a recording, without folders; those that suite2p names do not tell which it is.

    >>> name_of("data/mouse 3/suite2p/plane0"), name_of("data/mouse 3.nwb"), name_of("")
    ('mouse 3 plane0', 'mouse 3.nwb', 'recording')
    """
    *folders, name = Path(source).parts or ("recording",)
    if not _named_by_suite2p(name):
        return name
    telling = [folder for folder in folders if folder not in ("suite2p", "/", "..")]
    return " ".join([*telling[-1:], name])


def _named_by_suite2p(folder: str) -> bool:
    """Whether a folder has a name that suite2p gives in every recording.

    >>> _named_by_suite2p("plane0"), _named_by_suite2p("planes of mouse 3")
    (True, False)
    """
    return re.fullmatch(r"plane\d+|combined|suite2p", folder) is not None


def usual_mode() -> int:
    """Access rights of a new file."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def first_bytes(path: Path, count: int = 8) -> bytes:
    """The first bytes of a file; none if it cannot be read, or is a pipe or a device."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""
