"""Reads .mat files of MATLAB 5 (``save -v6``, ``-v7``) and 7.3 (HDF5), and joins their elements.

scipy reads the former; a damaged one may end the process, or ask for any amount of memory: see
`io.guard`. Elements of cells and lists of structs are joined into arrays where they fit together: a
cell with a vector for each neuron is a matrix; one with a matrix for each trial is a recording of
trials, one after the other.
"""

from __future__ import annotations

import math
import re
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes
from napari_xcebra.io.containers.hdf5 import (
    LARGEST_DENSE,
    address,
    attribute,
    check,
    child,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
    sparse_matrix,
)
from napari_xcebra.io.orientation import smoother_axis
from napari_xcebra.io.settings import Layout

HEADER, PEEK = 128, 4096
"""Bytes of the header of MATLAB 5; and bytes that hold the names of the fields of a struct."""
COMPRESSED = 15
DEPTH = 5
"""Structs and cells in each other, up to this many."""
ELEMENTS = "/#refs#/"
"""Where MATLAB keeps what cells refer to."""


def is_mat(path: Path) -> bool:
    """Whether the content is that of a .mat file; HDF5 counts only if the name says so too."""
    header = first_bytes(path, HEADER)
    if _byte_order(header):
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
        if _byte_order(header):
            return dict(_from_scipy(path, depth))
        if is_mat(path):
            with open_hdf5(path) as file:
                return dict(_from_group(file, "", depth, set()))
    raise InputError(
        f"{path} is not a .mat file of MATLAB 5 or later, or its first bytes are damaged: in "
        "MATLAB, save it with -v7 or -v7.3."
    )


def _byte_order(header: bytes) -> str | None:
    """'<' or '>' if these are the first bytes of a MATLAB 5 file, else None."""
    if len(header) < HEADER:
        return None
    return {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(header[124:128])


def struct_heads(path: Path) -> list[bytes]:
    """First bytes of each array in a MATLAB 5 file, which for structs hold the names of fields."""
    heads: list[bytes] = []
    try:
        with path.open("rb") as file:
            order = _byte_order(file.read(HEADER))
            while order and len(tag := file.read(8)) == 8:
                kind, length = struct.unpack(f"{order}II", tag)
                end = file.tell() + length
                head = file.read(min(length, PEEK))
                packed = kind == COMPRESSED
                heads.append(zlib.decompressobj().decompress(head, PEEK) if packed else head)
                file.seek(end)
    except (OSError, struct.error, zlib.error):
        pass
    return heads


def _from_scipy(path: Path, depth: int) -> Iterator[tuple[str, np.ndarray]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variables that are there twice
        warnings.filterwarnings("error", "Unreadable variable")  # it would be left out
        # with `mat_dtype`, complex numbers would lose their imaginary part
        content = scipy.io.loadmat(path, spmatrix=False)
    for name, value in content.items():
        if not name.startswith("__"):
            yield from _from_value(value, name, depth)


def _from_value(value: Any, name: str, depth: int) -> Iterator[tuple[str, np.ndarray]]:
    if scipy.sparse.issparse(value):
        value = _dense(value)
    if type(value) is not np.ndarray or (value.dtype.kind in "OV" and depth == 0):
        return  # an object or a function
    if value.dtype.names:
        for number, one in enumerate(value.ravel("F"), start=1):
            of = name if value.size == 1 else f"{name}({number})"
            for field in value.dtype.names:
                yield from _from_value(one[field], f"{of}.{field}", depth - 1)
    elif value.dtype == object:
        for number, one in enumerate(value.ravel("F"), start=1):
            yield from _from_value(one, f"{name}{{{number}}}", depth - 1)
    elif value.dtype.kind == "U" and name.endswith("}"):
        if value.size <= 1:
            yield name, np.array(str(value.item()) if value.size else "")
    elif value.dtype.kind in "biuf":
        yield name, value


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
        array = _matlab_text(node) if name.endswith("}") else None
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


def _matlab_text(dataset: h5py.Dataset) -> np.ndarray | None:
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
    return _dense(sparse_matrix(data, row, ends, (rows, len(ends) - 1)))


def _dense(matrix: scipy.sparse.csc_array) -> np.ndarray | None:
    """A sparse matrix with its zeros, or None if that is too large."""
    return matrix.toarray() if math.prod(matrix.shape) <= LARGEST_DENSE else None


_LAST = re.compile(r"[({]\d+[)}](?=[^({]*$)")
"""The innermost number of an element in its name, such as "{3}"."""


@dataclass(frozen=True)
class _Joined:
    """Arrays of a file, with elements joined.

    Parameters
    ----------
    arrays : mapping of str to array
        Joined ones under the name of their cell, and those that fit nowhere.
    elements : mapping of str to array
        What was joined.
    starts : mapping of str to (elements,) int64
        For joined arrays, where each element begins if one follows the other.
    """

    arrays: Mapping[str, np.ndarray]
    elements: Mapping[str, np.ndarray]
    starts: Mapping[str, np.ndarray]


def joined(arrays: Mapping[str, np.ndarray], layout: Layout = "auto") -> _Joined:
    """Join elements, the innermost cells first.

    Parameters
    ----------
    arrays : mapping of str to array
        As `numbers.read_mat` gives them.
    layout : {"auto", "frames-cells", "cells-frames"}
        Says along which axis matrices of one shape follow each other.
    """
    left = dict(arrays)
    elements: dict[str, np.ndarray] = {}
    starts: dict[str, np.ndarray] = {}
    apart: set[str] = set()
    while lists := _lists(left, apart):
        for cell, names in lists.items():
            found = _one([left[name] for name in names], layout)
            if found is None:
                apart |= set(names)
                continue
            elements |= {name: left.pop(name) for name in names}
            left[cell], begin = found
            starts[cell] = np.r_[0, np.cumsum(begin)[:-1]].astype(np.int64)
    return _Joined(left, elements, starts)


def cell_of(name: str) -> str:
    """Name of the cell or the list of structs that an element belongs to.

    >>> cell_of("trials{12}"), cell_of("neuron(3).trace"), cell_of("traces")
    ('trials', 'neuron.trace', 'traces')
    """
    return _LAST.sub("", name)


def _lists(arrays: Mapping[str, np.ndarray], apart: set[str]) -> dict[str, list[str]]:
    """Names of the elements of the innermost cells, by the name of the cell."""
    lists: dict[str, list[str]] = {}
    for name in arrays:
        if name not in apart and (cell := cell_of(name)) != name:
            lists.setdefault(cell, []).append(name)
    return {cell: names for cell, names in lists.items() if cell not in arrays}


def _one(parts: Sequence[np.ndarray], layout: Layout) -> tuple[np.ndarray, list[int]] | None:
    """The array that parts make up, and the length of each in it; None if they do not fit."""
    if all(part.dtype.kind == "U" for part in parts):
        return np.array([str(part) for part in parts]), [1] * len(parts)
    if any(part.dtype.kind == "U" or part.ndim != 2 or not part.size for part in parts):
        return None
    if all(1 in part.shape for part in parts):
        lines = [part.reshape(-1) for part in parts]
        if len({len(line) for line in lines}) > 1:
            return np.concatenate(lines), [len(line) for line in lines]
        whole = np.stack(lines)
        return (whole[:, 0] if whole.shape[1] == 1 else whole), [whole.shape[1]] * len(lines)
    same = [axis for axis in (0, 1) if len({part.shape[axis] for part in parts}) == 1]
    if not same:
        return None
    along = 1 - same[0] if len(same) == 1 else _time_axis(parts[0], layout)
    return np.concatenate(parts, axis=along), [part.shape[along] for part in parts]


def _time_axis(part: np.ndarray, layout: Layout) -> int:
    if layout != "auto":
        return int(layout == "cells-frames")
    smooth = smoother_axis(part)
    return int(part.shape[1] > part.shape[0]) if smooth is None else smooth
