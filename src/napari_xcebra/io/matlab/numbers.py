"""Reads numbers from .mat files of MATLAB 5 (``save -v6``, ``-v7``) and 7.3 (HDF5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.hdf5.reading import (
    address,
    attribute,
    child,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
)
from napari_xcebra.io.hdf5.traces import from_columns
from napari_xcebra.io.matlab.version5 import HEADER, byte_order, read_mat5

DEPTH = 3
"""Structs in structs up to this many."""
MOST = 8 * 2**30
"""Bytes of all arrays of a file together."""


def is_mat(path: Path) -> bool:
    """Whether the content is that of a .mat file; HDF5 counts only if the name says so too."""
    header = first_bytes(path, HEADER)
    if byte_order(header):
        return True
    saved_by_matlab = header[:10] == b"MATLAB 7.3"
    return (saved_by_matlab or path.suffix.lower() == ".mat") and has_signature(path)


def read_mat(path: Path, depth: int = DEPTH) -> dict[str, np.ndarray]:
    """Arrays of numbers in a .mat file, as MATLAB shows them.

    Fields of structs are named ``struct.field``. Text, cells, objects and functions are left out.

    Parameters
    ----------
    path : Path
    depth : int
        How many structs may lie in each other.

    Returns
    -------
    dict of str to array of at least two dimensions
    """
    with sentence_on_failure(path):
        with path.open("rb") as file:
            header = file.read(HEADER)
        if byte_order(header):
            return dict(_limited(path, read_mat5(path, depth)))
        if is_mat(path):
            with open_hdf5(path) as file:
                return dict(_limited(path, _from_group(file, "", depth, set())))
    raise InputError(
        f"{path} is not a .mat file of MATLAB 5 or later, or its first bytes are damaged: in "
        "MATLAB, save it with -v7 or -v7.3."
    )


def _from_group(
    group: h5py.Group, prefix: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, np.ndarray]]:
    for name in group:
        # MATLAB keeps there what cells refer to
        if name.startswith("#"):
            continue
        node = child(group, name)
        if node is None or address(node) in seen:
            continue
        seen.add(address(node))
        if isinstance(node, h5py.Dataset):
            array = matlab_array(node)
        elif attribute(node, "MATLAB_sparse") is not None:
            array = _sparse(node)
        else:
            array = None
            if depth > 0:
                yield from _from_group(node, f"{prefix}{name}.", depth - 1, seen)
        if array is not None:
            yield prefix + name, array


def matlab_array(dataset: h5py.Dataset) -> np.ndarray | None:
    """Numbers of a MATLAB 7.3 dataset in the orientation that MATLAB shows; or None.

    MATLAB counts the first index fastest and HDF5 the last, so they lie there transposed.
    """
    if dataset.dtype.kind not in "biuf" or attribute(dataset, "MATLAB_class") == "char":
        return None
    if attribute(dataset, "MATLAB_empty"):
        return np.zeros((0, 0))
    return np.atleast_2d(np.asarray(read(dataset)).T)


def _sparse(group: h5py.Group) -> np.ndarray | None:
    """A sparse matrix with its zeros, or None if that is too large."""
    parts = [dataset_at(group, name) for name in ("data", "ir", "jc")]
    rows = int(attribute(group, "MATLAB_sparse"))
    # without any value, MATLAB writes neither data nor rows
    data, row, ends = (np.zeros(0, int) if part is None else read(part) for part in parts)
    return from_columns(data, row, ends, (rows, len(ends) - 1)).dense()


def _limited(
    path: Path, arrays: Iterator[tuple[str, np.ndarray]]
) -> Iterator[tuple[str, np.ndarray]]:
    total = 0
    for name, array in arrays:
        total += array.nbytes
        if total > MOST:
            raise InputError(f"{path} has over {MOST // 2**30} GB of numbers: save fewer in it.")
        yield name, array
