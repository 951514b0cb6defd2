"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError


@contextlib.contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a temporary neighbour that takes the place of `path` once it is complete.

    Yields
    ------
    Path
        Where to write. If the block fails, it is removed and `path` stays as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_description(path: Path, what: str, version: int) -> dict[str, Any]:
    """The JSON file that says what a folder of ours holds.

    Parameters
    ----------
    path : Path
    what : str
        "run", "session": its `kind` must be "napari-xcebra" and this.
    version : int
        Latest `format` that can be read.
    """
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path.parent} holds no {what}: {error.strerror or error}.") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}.") from error
    if not isinstance(about, dict) or about.get("kind") != f"napari-xcebra {what}":
        raise InputError(f"{path} was not written by napari-xcebra.")
    if not isinstance(about.get("format"), int) or about["format"] > version:
        raise InputError(f"{path} was written by a later version of napari-xcebra: update it.")
    return about


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
