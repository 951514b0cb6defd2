"""Arrays in .npy and .npz files: read without pickle, checked to the last byte.

What a header claims is compared with the size of the file before anything is allocated or mapped.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from napari_xcebra.files import whole
from napari_xcebra.recording import InputError
from napari_xcebra.traces import LazyTraces

AT_ONCE, DENSEST = 2**30, 200
"""An array in an archive that has more bytes than the first, each stored byte standing for more
than the second, is no recording (an archive of 1 MB can claim 1 GB of zeros)."""


@dataclass(frozen=True)
class Header:
    """What a .npy file says of its array.

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
        return _array(file, path.stat().st_size)


def mapped_header(path: Path) -> Header:
    """What a .npy file of plain numbers says of itself, after a check that the file can hold it."""
    with sentence_on_failure(path), path.open("rb") as file:
        header = read_header(file)
        _check_size(header, path.stat().st_size)
        return header


def read_npz(path: Path, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, or those with the given names."""
    with sentence_on_failure(path), zipfile.ZipFile(path) as archive:
        arrays = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if names is None or name in names:
                if member.file_size > max(AT_ONCE, DENSEST * member.compress_size):
                    raise ValueError(f"{name} claims {member.file_size} bytes, which is absurd")
                with archive.open(member) as file:
                    arrays[name] = _array(file, member.file_size)
        return arrays


def names_in(path: Path) -> set[str]:
    """Names of the arrays in a .npz file; none if it is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except Exception:  # whatever is wrong with it, it is no such file
        return set()


def write_npz(path: Path, arrays: Mapping[str, np.ndarray | LazyTraces]) -> None:
    """Write a .npz file whole or not at all; arrays of Python objects are refused.

    Traces on disk are read and written by the block.
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


def read_header(file: IO[bytes]) -> Header:
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
    return Header(shape, dtype, file.tell(), bool(columns_first))


@contextmanager
def sentence_on_failure(path: Path) -> Iterator[None]:
    """Whatever fails while a file is read, as an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    # A damaged file fails in any of zipfile, zlib, struct, tokenize or numpy, each in its own way.
    except Exception as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"{path} holds Python objects (a pickle), which are not opened because they can "
                "run code: save it again as plain numbers."
            ) from error
        details = " ".join(str(error).split())[:200].rstrip(".") or "no details"
        raise InputError(
            f"{path} cannot be read: it is damaged, incomplete or something else than its name "
            f"says ({type(error).__name__}: {details})."
        ) from error


def _array(file: IO[bytes], size: int) -> np.ndarray:
    """The array of an open .npy file of that many bytes."""
    _check_size(read_header(file), size)
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    file.read(1)  # reading on to the end makes zipfile compare its checksum
    return array


def _check_size(header: Header, size: int) -> None:
    if header.dtype.hasobject:
        raise ValueError("an array of objects needs allow_pickle")
    claimed = header.start + math.prod(header.shape) * header.dtype.itemsize
    if claimed != size:
        raise ValueError(f"it is {'longer' if size > claimed else 'shorter'} than its header says")


def _write_blocks(file: IO[bytes], traces: LazyTraces) -> None:
    about = {"descr": "<f4", "fortran_order": True, "shape": traces.shape}
    np.lib.format.write_array_header_1_0(file, about)
    for cells in traces.cell_blocks():
        block = traces.block(slice(0, traces.shape[0]), cells)
        if not np.isfinite(block).all():
            block = traces[:, cells]  # raises the sentence that says where
        file.write(np.ascontiguousarray(block.T, "<f4").data)
