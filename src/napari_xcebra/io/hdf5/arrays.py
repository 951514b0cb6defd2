"""Reads all arrays of an HDF5 file that no known program wrote."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.arrays.roles import Arrays
from napari_xcebra.io.hdf5.reading import has_signature, open_hdf5, read, walk
from napari_xcebra.io.hdf5.traces import Hdf5Traces
from napari_xcebra.recording.traces import IN_MEMORY

SUFFIXES = (".h5", ".hdf5", ".hdf", ".nc")
MOST = 8 * 2**30
"""Bytes that are read of one file."""
MOST_TEXTS = 100_000


def is_plain(path: Path) -> bool:
    """Whether the name and the first bytes are those of HDF5."""
    return path.suffix.lower() in SUFFIXES and has_signature(path)


def read_arrays(path: Path) -> Arrays:
    """Arrays of numbers and lists of texts, by their names without the first slash.

    What has two axes and is large stays on disk; what has more is left out then.
    """
    found = Arrays()
    total = 0
    with open_hdf5(path) as file:
        for node in walk(file):
            if not isinstance(node, h5py.Dataset) or node.size in (None, 0):
                continue
            array = _array(node)
            if isinstance(array, np.ndarray):
                total += array.nbytes
            if total > MOST:
                raise InputError(
                    f"{path} has over {MOST // 2**30} GB of numbers: save fewer in it."
                )
            if array is not None:
                name = str(node.name).strip("/")
                found[name], found.axes[name] = array, _axes(node)
    return found


def _axes(dataset: h5py.Dataset) -> tuple[str, ...]:
    """What the axes are called (netCDF); empty where they are not."""
    if "DIMENSION_LIST" not in dataset.attrs:
        return ()
    scales = [next(iter(axis.values()), None) for axis in dataset.dims]
    return tuple("" if s is None else str(s.name).rsplit("/", 1)[-1] for s in scales)


def _array(dataset: h5py.Dataset) -> np.ndarray | Hdf5Traces | None:
    """Values of a dataset; None if they are neither numbers nor a list of texts."""
    if h5py.check_string_dtype(dataset.dtype) is not None:
        if dataset.ndim != 1 or dataset.size > MOST_TEXTS:
            return None
        return np.asarray(read(dataset)).astype(str)
    if dataset.dtype.kind not in "biuf" or dataset.ndim > 3:
        return None
    if dataset.size * dataset.dtype.itemsize <= IN_MEMORY:
        return np.asarray(read(dataset))
    return Hdf5Traces.of(dataset, cells_first=False) if dataset.ndim == 2 else None
