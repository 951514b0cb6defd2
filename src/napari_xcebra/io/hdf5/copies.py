"""Copies HDF5 files with a few changes, and finds the room on a disk that a file will take."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import h5py

from napari_xcebra.errors import InputError


def changed_copy(source: Path, path: Path, change: Callable[[h5py.File], None], room: int) -> None:
    """Copy a file, then change the copy: the source is only ever read.

    No file is changed in place, because the library can leave it unreadable if it is stopped
    while writing.

    Parameters
    ----------
    source, path : Path
    change : function of h5py.File
    room : int
        Bytes that the change adds, at most, but for a mebibyte.
    """
    shutil.copyfile(source, path)
    make_room(path, room)
    try:
        # network drives often have no locks; nobody else knows the copy
        with h5py.File(path, "r+", locking="best-effort") as file:
            change(file)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise
        raise InputError(
            f"A copy of {source} cannot be changed: it is damaged or of an HDF5 version that is "
            f"not supported here ({' '.join(str(error).split())[:150]})."
        ) from error


def make_room(path: Path, room: int) -> None:
    """Lengthen an HDF5 file by that many bytes and a mebibyte, which the library then writes over.

    It ends the program when a disk is full; so it finds room, and gives back what is left. An empty
    file is made where there is none.

    Raises
    ------
    OSError
        If the disk is full.
    """
    empty = io.BytesIO()
    if not path.exists() or not path.stat().st_size:
        h5py.File(empty, "w").close()
    with path.open("ab") as file:
        file.write(empty.getvalue())
        for _ in range(1 + room // 2**20):
            file.write(bytes(2**20))
