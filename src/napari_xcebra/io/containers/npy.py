"""Reads .npy and .npz files, checked to the last byte; what is pickled in them is never run.

What a header claims is compared with the size of the file before anything is allocated or mapped.

Arrays in a .npz file lie one after the other, and byte for byte as in memory unless the file is
compressed.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes, whole
from napari_xcebra.io.containers.pickles import loads
from napari_xcebra.recording.stored import StoredMatrix, changed_since
from napari_xcebra.recording.traces import IN_MEMORY, LazyTraces, StoredTraces


@dataclass(frozen=True)
class _Header:
    """What a .npy file says about its array.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    start : int
        Where the values begin, in bytes.
    columns_first : bool
        Whether the first index runs fastest (Fortran order).
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    start: int
    columns_first: bool = False


def read_npy(path: Path) -> np.ndarray:
    """The array of a .npy file."""
    with sentence_on_failure(path), path.open("rb") as file:
        return _array(file, path.stat().st_size, path)


def read_object_npy(path: Path) -> Any:
    """What a .npy file of Python objects holds.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Any
        The object itself if it is one (suite2p's ops), else an array of objects (its stat).
    """
    with sentence_on_failure(path):
        with path.open("rb") as file:
            header = _read_header(file)
            if header.dtype != np.dtype(object):
                raise InputError(f"{path} holds plain numbers: Python objects were looked for.")
            found = loads(file.read(), str(path))
        if not isinstance(found, np.ndarray) or found.dtype != object:
            raise ValueError("there is no array of objects in it")
        return found.item() if header.shape == () else found.reshape(header.shape)


def mapped_header(path: Path) -> _Header:
    """Header of a .npy file of plain numbers, after a check that the file can hold them."""
    with sentence_on_failure(path), path.open("rb") as file:
        header = _read_header(file)
        _check_size(header, path.stat().st_size, path)
        return header


def read_npz(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, or those with the given names."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        arrays = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if names is None or name in names:
                with archive.open(member) as file:
                    arrays[name] = _member(file, member.file_size, f"{path} ({name})")
        if arrays and all(array.dtype.hasobject for array in arrays.values()):
            raise _of_objects(path)
        return arrays


def names_in(path: Path) -> set[str]:
    """Names of the arrays in a .npz file; none if it is not one."""
    # an archive may also be appended to any other file, such as a table
    if not first_bytes(path).startswith(b"PK"):
        return set()
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except Exception:  # whatever is wrong with it, it is not one
        return set()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray | LazyTraces]) -> None:
    """Write a .npz file whole or not at all; arrays of Python objects are refused.

    Traces on disk are read and written in blocks.
    """
    # np.savez would pickle them
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise InputError(f"{objects[0]} is an array of Python objects: numbers are needed.")
    with whole(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                if isinstance(array, LazyTraces):
                    _write_blocks(file, array)
                else:
                    np.lib.format.write_array(file, array, allow_pickle=False)


def _read_header(file: IO[bytes]) -> _Header:
    """Header of a .npy file; raises anything if it is damaged."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:  # 3.0 is for columns with names in Greek or Chinese
        raise ValueError(f"version {version[0]}.{version[1]} of the .npy format is not for numbers")
    shape, columns_first, dtype = readers[version](file)
    if any(size < 0 for size in shape):
        raise ValueError(f"it claims the shape {shape}")
    return _Header(shape, dtype, file.tell(), bool(columns_first))


def _member(file: IO[bytes], size: int, where: str) -> np.ndarray:
    """Array in an archive; words that were pickled are words, other objects stay what they are."""
    header = _read_header(file)
    if header.dtype != np.dtype(object):
        file.seek(0)
        return _array(file, size, Path(where))
    found = loads(file.read(), where)
    found = found.reshape(-1) if isinstance(found, np.ndarray) and found.dtype == object else found
    if not isinstance(found, np.ndarray) or len(found) != math.prod(header.shape):
        raise ValueError("there is no array of objects in it")
    if found.size and all(isinstance(word, str) for word in found):
        found = found.astype(np.str_)
    return found.reshape(header.shape)


def _array(file: IO[bytes], size: int, path: Path) -> np.ndarray:
    """The array of an open .npy file of that many bytes."""
    _check_size(_read_header(file), size, path)
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    file.read(1)  # reading on to the end makes zipfile compare its checksum
    return array


def _check_size(header: _Header, size: int, path: Path) -> None:
    if header.dtype.hasobject:
        raise _of_objects(path)
    claimed = header.start + math.prod(header.shape) * header.dtype.itemsize
    if claimed != size:
        raise ValueError(f"it is {'longer' if size > claimed else 'shorter'} than its header says")


def _of_objects(path: Path) -> InputError:
    return InputError(
        f"{path} holds Python objects (a pickle), which are not opened because they can run code: "
        "save it again as plain numbers."
    )


def _write_blocks(file: IO[bytes], traces: LazyTraces) -> None:
    about = {"descr": "<f4", "fortran_order": True, "shape": traces.shape}
    np.lib.format.write_array_header_1_0(file, about)
    for cells in traces.cell_blocks():
        block = traces.block(slice(0, traces.shape[0]), cells)
        if not np.isfinite(block).all():
            block = traces[:, cells]  # raises the sentence that says where
        file.write(np.ascontiguousarray(block.T, "<f4").data)


@dataclass(frozen=True)
class NpzTraces(StoredTraces):
    """Traces in an uncompressed .npz file, read where they lie.

    Parameters
    ----------
    path : Path
    name : str
        Of the array.
    cells_first : bool
        Whether the array is (cells, frames).
    """

    path: Path
    name: str
    cells_first: bool = False

    @cached_property
    def _stored(self) -> tuple[StoredMatrix, bool]:
        found = _place(self.path, self.name)
        if found is None:
            raise changed_since(self.path)
        shape = found.shape[::-1] if found.columns_first else found.shape
        matrix = StoredMatrix(self.path, found.start, found.dtype, (shape[0], shape[1]))
        return matrix, found.columns_first == self.cells_first


def read_or_map(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a .npz file; large, uncompressed ones with two axes are mapped."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        large = [member.filename.removesuffix(".npy") for member in archive.infolist()
                 if member.file_size > IN_MEMORY]  # fmt: skip
    mapped = {name: _map_member(path, name) for name in large}
    found = {name: array for name, array in mapped.items() if array is not None}
    return read_npz(path, names_in(path) - set(found)) | found


def _map_member(path: Path, name: str) -> np.memmap | None:
    """Array (rows, columns) of numbers in a .npz file, mapped; None if that is not possible.

    Only for as long as a recording is being opened: what stays on disk is read by `NpzTraces`.
    """
    found = _place(path, name)
    if found is None:
        return None
    order: Any = "F" if found.columns_first else "C"
    return np.memmap(path, found.dtype, "r", found.start, found.shape, order=order)


def _place(path: Path, name: str) -> _Header | None:
    """Where in a .npz file a matrix of numbers lies as in memory; None if it does not."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
        member = members.get(name)
        if member is None or member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            return None
        with archive.open(member) as file:
            header = _read_header(file)
        with path.open("rb") as file:
            file.seek(member.header_offset + 26)
            lengths = file.read(4)
        # name and further fields stand between the member's own header and its bytes
        begin = member.header_offset + 30 + sum(int.from_bytes(lengths[i : i + 2], "little")
                                                for i in (0, 2))  # fmt: skip
        size = header.start + math.prod(header.shape) * header.dtype.itemsize
        if size != member.file_size or begin + size > path.stat().st_size:
            raise ValueError(f"{name} is not as long as its header says")
        if len(header.shape) != 2 or header.dtype.kind not in "biuf" or not size > header.start:
            return None
        return replace(header, start=begin + header.start)
