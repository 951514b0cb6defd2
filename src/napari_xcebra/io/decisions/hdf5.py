"""Copies of HDF5 files with a few things changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py

from napari_xcebra.errors import InputError


def changed_copy(source: Path, path: Path, change: Callable[[h5py.File], None]) -> None:
    """Copy a file, then change the copy: the source is only ever read.

    The library can leave a file unreadable if it is stopped while it writes, so that no file is
    changed in place.
    """
    shutil.copyfile(source, path)
    try:
        # on shares of a network, locks often cannot be had; nobody else knows the copy
        with h5py.File(path, "r+", locking="best-effort") as file:
            change(file)
    except OSError as error:
        if error.errno is not None and error.strerror:
            raise
        raise InputError(
            f"A copy of {source} cannot be changed: it is damaged or of a version of HDF5 that is "
            f"not known here ({' '.join(str(error).split())[:150]})."
        ) from error
