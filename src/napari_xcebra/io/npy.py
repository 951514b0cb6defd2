"""Arrays in .npy and .npz files: read without pickle, checked to the last byte."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from napari_xcebra.files import whole
from napari_xcebra.recording import InputError

Read = TypeVar("Read")


def read_npy(path: Path) -> np.ndarray:
    """The array of a .npy file."""

    def read() -> np.ndarray:
        with path.open("rb") as file:
            return _array(file)

    return _sentence_on_failure(path, read)


def read_npz(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, or those with the given names."""

    def read() -> dict[str, np.ndarray]:
        with zipfile.ZipFile(path) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            arrays = {}
            for name, member in members.items():
                if names is None or name in names:
                    with archive.open(member) as file:
                        arrays[name] = _array(file)
            return arrays

    return _sentence_on_failure(path, read)


def names_in(path: Path) -> set[str]:
    """Names of the arrays in a .npz file; none if it is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except Exception:  # whatever is wrong with it, it is no such file
        return set()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a .npz file whole or not at all; arrays of Python objects are refused."""
    # np.savez would pickle them
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise InputError(f"{objects[0]} is an array of Python objects: numbers are needed.")
    with whole(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _array(file: IO[bytes]) -> np.ndarray:
    array = np.lib.format.read_array(file, allow_pickle=False)
    # reading on to the end also makes zipfile compare its checksum
    if file.read(1):
        raise ValueError("it is longer than its header says")
    return array


def _sentence_on_failure(path: Path, read: Callable[[], Read]) -> Read:
    try:
        return read()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    # A damaged file fails in any of zipfile, zlib, struct, tokenize or numpy, each in its own way.
    except Exception as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"{path} holds Python objects (a pickle), which are not opened because they can "
                "run code: save it again as plain numbers."
            ) from error
        raise InputError(
            f"{path} cannot be read: it is damaged, incomplete or something else than its name "
            f"says ({type(error).__name__}: {str(error).rstrip('.') or 'no details'})."
        ) from error
