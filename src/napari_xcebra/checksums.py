"""Lists the files of a result with their checksums, replaces them as one, and checks them.

A description (``run.json``, ``fit.json``) lists each file with its size and SHA-256. New contents
lie complete in a folder of their own before the description that lists them takes its place; then
they move to theirs. Whoever reads looks there first, and takes only what is as listed: at any
moment, a folder holds what was saved last, or what was saved before, and never some of both.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from napari_xcebra.errors import InputError
from napari_xcebra.files import (
    in_a_sentence,
    open_file,
    read_bytes,
    read_json,
    sync,
    whole,
    write_description,
)
from napari_xcebra.locks import locked

Listed = Mapping[str, Mapping[str, Any]]
"""Size and SHA-256 of files, by their names in a folder."""
Read = TypeVar("Read")

STAGED = ".napari-xcebra-saving"
"""Folder for new contents, named by their checksums, until they move to their places."""
_STAGED_NAME = re.compile(r"[0-9a-f]{64}\.[a-z]+")
_OURS = re.compile(
    r"(fit/)?(fit\.json|weights-[0-9a-f]{16}\.safetensors)|[a-z0-9-]+\.npz|run\.json"
)
"""Names that runs and fits give to their files: no other is ever removed."""
_TRIES = 20
DESCRIPTIONS = ("run.json", "results.json", "fit.json", "joint.json")
"""Files that list others, whose contents may wait in the same folder."""


class NotAsListed(InputError):
    """A file is missing, or is not the one that was saved: which, as part of a sentence."""


def entry(content: bytes) -> dict[str, Any]:
    """Size and SHA-256 of a content."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def entry_of(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"sha256": digest, "size": os.fstat(file.fileno()).st_size}


def listed_in(about: Mapping[str, Any], path: Path, key: str = "files") -> Listed | None:
    """The list of files in a description; None in those of earlier versions, which have none."""
    files = about.get(key)
    if files is None:
        return None
    sound = isinstance(files, dict) and all(
        isinstance(each, dict)
        and type(each.get("size")) is int
        and re.fullmatch(r"[0-9a-f]{64}", str(each.get("sha256")))
        and _is_inside(name)
        for name, each in files.items()
    )
    if not sound:
        raise InputError(f"{path} is damaged: its list of files cannot be read.")
    return dict(files)


def listed_by(path: Path, key: str = "files") -> Listed:
    """Files that a description lists; none if it cannot be read."""
    try:
        return _listed_now(path, key)
    except OSError:
        return {}


def write_together(
    folder: Path,
    name: str,
    about: Mapping[str, Any],
    contents: Mapping[str, bytes | Path],
    before: Listed,
    *,
    others: Listed | None = None,
    mark: Mapping[str, Any] | None = None,
) -> None:
    """Replace the files of a folder, and the description that lists them, as one.

    The folder must be locked.

    Parameters
    ----------
    folder : Path
    name : str
        File of the description.
    about : mapping
        What it says; the list of files is added.
    contents : mapping of str to bytes or Path
        By their names in the folder, in the order in which they are to take their places; a file
        on the same drive is moved.
    before : Listed
        Files of the earlier save, which are removed.
    others : Listed, optional
        Files that stay, and stay listed.
    mark : mapping, optional
        What is listed of each new file beside its size and checksum.
    """
    files: dict[str, Mapping[str, Any]] = {}
    for each, content in contents.items():
        told = entry(content) if isinstance(content, bytes) else entry_of(content)
        files[each] = {**told, **(mark or {})}
    settle(folder)
    # named in the new description: if this program is killed now, the next save removes them
    gone = {**listed_by(folder / name, "replaced"), **before}
    gone = {each: e for each, e in gone.items() if each not in files and (folder / each).exists()}
    try:
        for each, content in contents.items():
            staged = _staged(folder, each, files[each])
            if isinstance(content, Path):
                with in_a_sentence(folder / each):
                    sync(content)
                    content.replace(staged)
                continue
            with whole(staged) as file:
                file.write_bytes(content)
        replaced = {"replaced": gone} if gone else {}
        every = {**(others or {}), **files}
        write_description(folder / name, {**about, "files": every, **replaced})
    finally:
        settle(folder)
    remove_listed(folder, gone)


def content_of(folder: Path, name: str, files: Listed) -> bytes:
    """Content of a file as it is listed, or a sentence if it is missing or another."""
    if name not in files:
        raise NotAsListed(f"{name} is not in its list of files")
    for path in (_staged(folder, name, files[name]), folder / name):
        with contextlib.suppress(OSError):
            if path.stat().st_size != files[name]["size"]:
                continue
            content = read_bytes(path)
            if entry(content) == {key: files[name].get(key) for key in ("sha256", "size")}:
                return content
    raise NotAsListed(_difference(folder, name))


def problem(error: Exception) -> str:
    """What is wrong with a folder, for the brackets of a sentence."""
    return str(error) if isinstance(error, NotAsListed) else f"{type(error).__name__}: {error}"


def differences(folder: Path, files: Listed, *, contents: bool = True) -> list[str]:
    """Which files are not as listed, and why, each as part of a sentence.

    Parameters
    ----------
    folder : Path
    files : Listed
    contents : bool
        Compare checksums too; otherwise only sizes, which takes no time.
    """
    found = []
    for name, wanted in files.items():
        places = (_staged(folder, name, wanted), folder / name)
        if not any(_is_as_listed(place, wanted, contents) for place in places):
            found.append(_difference(folder, name))
    return found


def remove_listed(folder: Path, files: Listed) -> None:
    """Remove files of an earlier save that still are what was written then; none through links.

    A list may come from elsewhere and name anything: both names and contents must be right.
    """
    for name, wanted in files.items():
        path = folder / name
        linked = path.is_symlink() or any(p.is_symlink() for p in _parents(path, folder))
        if _OURS.fullmatch(name) and not linked and _is_as_listed(path, wanted):
            with contextlib.suppress(OSError):
                path.unlink()


def while_unchanged(path: Path, read: Callable[[], Read]) -> Read:
    """What `read` gives; it is tried again if the description was replaced meanwhile."""
    for _ in range(_TRIES):
        before = _bytes(path)
        try:
            return read()
        except InputError:
            if _bytes(path) == before:
                raise
    return read()


def finish_writing(folder: Path) -> None:
    """Let what an interrupted program wrote take its places, if it was all there; else remove it.

    The folder may be read-only, or in use: then nothing happens.
    """
    if (folder / STAGED).is_dir() and not (folder / STAGED).is_symlink():
        with contextlib.suppress(OSError, InputError), locked(folder, patience=0):
            for left in (folder / STAGED).iterdir():
                if left.is_dir() and not left.is_symlink():
                    shutil.rmtree(left, ignore_errors=True)
            settle(folder)


_MAY_PASS = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Failures of a read that say nothing of the file."""


def _listed_now(path: Path, key: str = "files") -> Listed:
    """As `listed_by`; OSError if the description is there and cannot be read at this moment."""
    try:
        about = read_json(path)
        return (listed_in(about, path, key) or {}) if isinstance(about, dict) else {}
    except InputError as error:
        if isinstance(why := error.__cause__, OSError) and why.errno in _MAY_PASS:
            raise why from None
        return {}


def settle(folder: Path) -> None:
    """Let contents that a description lists take their places, and remove those none does.

    The folder must be locked.
    """
    staged = folder / STAGED
    if staged.is_symlink():
        staged.unlink()
    if not staged.is_dir():
        return
    try:
        listed = [each for name in DESCRIPTIONS for each in _listed_now(folder / name).items()]
    except OSError:  # what cannot be read at this moment may list what waits here
        return
    for each, wanted in listed:
        if (waiting := _staged(folder, each, wanted)).is_file():
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            waiting.replace(folder / each)
    for left in staged.iterdir():
        if left.is_file() and (left.name.startswith(".") or _STAGED_NAME.fullmatch(left.name)):
            left.unlink()
    with contextlib.suppress(OSError):
        staged.rmdir()


def _staged(folder: Path, name: str, wanted: Mapping[str, Any]) -> Path:
    return folder / STAGED / f"{wanted['sha256']}{Path(name).suffix}"


def _is_as_listed(path: Path, wanted: Mapping[str, Any], contents: bool = True) -> bool:
    try:
        if not path.is_file() or path.stat().st_size != wanted["size"]:
            return False
        return not contents or entry_of(path)["sha256"] == wanted["sha256"]
    except OSError:
        return False


def _difference(folder: Path, name: str) -> str:
    if not (folder / name).exists():
        return f"{name} is missing"
    return f"{name} is not the file that was saved: it is damaged, or was replaced"


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    plain = name.isprintable() and not set(name) & set("\\:")
    return plain and not {"", ".", ".."} & set(parts)


def _parents(path: Path, folder: Path) -> Iterable[Path]:
    return (parent for parent in path.parents if parent != folder and folder in parent.parents)


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError:
        return b""
