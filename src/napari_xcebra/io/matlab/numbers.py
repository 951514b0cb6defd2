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
    check,
    child,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
)
from napari_xcebra.io.hdf5.traces import from_columns
from napari_xcebra.io.matlab.version5 import HEADER, byte_order, read_mat5

DEPTH = 5
"""Structs and cells in each other, up to this many."""
MOST_ELEMENTS = 200_000
"""Elements of the cells of a file together."""
ELEMENTS = "/#refs#/"
"""Where MATLAB keeps what cells refer to."""
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

    Fields of structs are named ``struct.field``, elements of cells ``cell{2}``, and structs in a
    list ``struct(2)``. Text is left out unless it is an element of a cell; objects and functions
    always are.

    Parameters
    ----------
    path : Path
    depth : int
        How many structs and cells may lie in each other.

    Returns
    -------
    dict of str to array
        Numbers, of at least two dimensions; texts, of none.
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
        if name.startswith("#"):
            continue
        node = child(group, name)
        if node is None or address(node) in seen:
            continue
        seen.add(address(node))
        yield from _from_node(node, prefix + name, depth, seen)


def _from_node(
    node: h5py.Group | h5py.Dataset, name: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(node, h5py.Dataset) and h5py.check_ref_dtype(node.dtype) is h5py.Reference:
        if depth > 0:
            yield from _elements(node, name, depth, seen)
        return
    if isinstance(node, h5py.Dataset):
        array = matlab_text(node) if name.endswith("}") else None
        array = matlab_array(node) if array is None else array
    elif attribute(node, "MATLAB_sparse") is not None:
        array = _sparse(node)
    else:
        array = None
        if depth > 0:
            yield from _from_group(node, f"{name}.", depth - 1, seen)
    if array is not None:
        yield name, array


def _elements(
    cell: h5py.Dataset, name: str, depth: int, seen: set[int]
) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays in a cell, or in one field of a list of structs, which lie elsewhere in the file."""
    check(cell)
    if len(seen) + cell.size > MOST_ELEMENTS:
        raise InputError(f"{cell.file.filename} has over {MOST_ELEMENTS:,} elements in its cells.")
    is_cell = attribute(cell, "MATLAB_class") == "cell"
    for number, reference in enumerate(np.ravel(cell[()]), start=1):
        node = cell.file[reference] if reference else None
        if not isinstance(node, h5py.Group | h5py.Dataset) or address(node) in seen:
            continue
        if not str(node.name).startswith(ELEMENTS):
            continue  # a variable of its own
        seen.add(address(node))
        # a list of structs has a cell for each field
        inner = f"{name}{{{number}}}" if is_cell else _of_struct(name, number)
        yield from _from_node(node, inner, depth - 1, seen)


def _of_struct(name: str, number: int) -> str:
    """A field of one struct of a list.

    >>> _of_struct("neuron.trace", 2)
    'neuron(2).trace'
    """
    struct, _, field = name.rpartition(".")
    return f"{struct}({number}).{field}"


def matlab_text(dataset: h5py.Dataset) -> np.ndarray | None:
    """A text of one line, as an array without axes; None if it is something else."""
    if attribute(dataset, "MATLAB_class") != "char" or dataset.dtype.kind != "u":
        return None
    if attribute(dataset, "MATLAB_empty"):
        return np.array("")
    codes = np.asarray(read(dataset))
    if codes.ndim != 2 or codes.shape[1] != 1:
        return None
    return np.array(codes.astype("<u2").tobytes().decode("utf-16-le", "replace"))


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
