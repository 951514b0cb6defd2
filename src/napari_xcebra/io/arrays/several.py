"""Reads files that hold several arrays: .npz, .mat, .h5, .zarr."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.files import first_bytes
from napari_xcebra.io.arrays.named import extraction_of
from napari_xcebra.io.arrays.npy import NpzTraces, read_or_map
from napari_xcebra.io.arrays.roles import is_wide
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.footprint_files import Regions
from napari_xcebra.io.hdf5.arrays import read_arrays as read_hdf5
from napari_xcebra.io.hdf5.reading import has_signature
from napari_xcebra.io.matlab.cells import joined
from napari_xcebra.io.matlab.numbers import is_mat, read_mat
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.zarr.arrays import read_arrays as read_zarr

ZIP = b"PK\x03\x04"


def from_several(
    path: Path, settings: OpenSettings, beside: Sequence[Regions]
) -> Extraction | None:
    """What the arrays of a file are; None if it is no such file."""
    if path.is_dir():
        return _from_stored(read_zarr(path), path, settings, beside)
    if first_bytes(path).startswith(ZIP) or path.suffix.lower() == ".npz":
        return _from_npz(path, settings, beside)
    if is_mat(path) or path.suffix.lower() == ".mat":
        return _from_mat(path, settings, beside)
    return _from_stored(read_hdf5(path), path, settings, beside) if has_signature(path) else None


def names_of_arrays(path: Path) -> list[str]:
    """Names of the arrays of a file that may be traces, for the setting `array`."""
    arrays: Mapping[str, Any]
    if path.is_dir():
        arrays = read_zarr(path)
    elif is_mat(path):
        found = joined(read_mat(path))
        arrays = {**found.arrays, **found.elements}
    else:
        arrays = read_hdf5(path) if has_signature(path) else read_or_map(path)
    return [name for name, array in arrays.items() if is_wide(array)]


def _from_npz(path: Path, settings: OpenSettings, beside: Sequence[Regions]) -> Extraction:
    arrays = read_or_map(path)

    def oriented(name: str, cells_first: bool) -> Any:
        if isinstance(arrays[name], np.memmap):
            return NpzTraces(path, name, cells_first)
        return arrays[name].T if cells_first else arrays[name]

    return extraction_of(arrays, path, settings, beside, oriented)


def _from_mat(path: Path, settings: OpenSettings, beside: Sequence[Regions]) -> Extraction:
    found = joined(read_mat(path), settings.layout)
    every = {**found.elements, **found.arrays}
    # MATLAB has no vectors
    arrays = {n: a.reshape(-1) if 1 in a.shape else a for n, a in found.arrays.items()}
    return extraction_of(
        arrays,
        path,
        settings,
        beside,
        lambda name, cells_first: every[name].T if cells_first else every[name],
        elements=found.elements,
        starts=found.starts,
    )


def _from_stored(
    arrays: Mapping[str, Any], path: Path, settings: OpenSettings, beside: Sequence[Regions]
) -> Extraction:
    """From arrays of which large ones stay on disk (HDF5, zarr)."""

    def oriented(name: str, cells_first: bool) -> Any:
        array = arrays[name]
        if isinstance(array, np.ndarray):
            return array.T if cells_first else array
        return array.turned() if cells_first else array

    return extraction_of(arrays, path, settings, beside, oriented)
