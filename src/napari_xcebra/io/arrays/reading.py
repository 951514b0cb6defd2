"""Reads traces from plain arrays or tables: .npy, .npz, .mat, .h5, .zarr, .csv, .parquet.

In either orientation: `napari_xcebra.io.arrays.layout` finds which axis is time. A .npz, .mat or
.h5 file may also hold the frames per second, times of the frames, footprints, and behaviour: an
array with one row per frame is a variable of its name. Elements of a MATLAB cell, or of a list of
structs, that fit together are one array: a matrix for each trial, or a vector for each cell. The
setting `array` says which array holds the traces where several may. The header of a table
names the cells; names that end in a number (``cell_12``) give the cell its id. A label image or
RoiSet.zip beside the file is used if it has as many cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.arrays.layout import layout_of
from napari_xcebra.io.arrays.named import extraction_of, fits
from napari_xcebra.io.arrays.npy import NpzTraces, mapped_header, read_npy, read_or_map
from napari_xcebra.io.arrays.roles import is_wide
from napari_xcebra.io.arrays.tables import ids_from, read_trace_table, say_more_than_ids
from napari_xcebra.io.arrays.zarr_arrays import is_zarr
from napari_xcebra.io.arrays.zarr_arrays import read_arrays as read_zarr
from napari_xcebra.io.clocks.intervals import rate_of
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.footprint_files import Regions, regions_beside
from napari_xcebra.io.hdf5.arrays import is_plain
from napari_xcebra.io.hdf5.arrays import read_arrays as read_hdf5
from napari_xcebra.io.hdf5.reading import has_signature
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.tables import PARQUET, SUFFIXES
from napari_xcebra.recording.traces import IN_MEMORY, NpyTraces

NAME = "an array or table of traces (.npy, .npz, .mat, .h5, .zarr, .csv, .tsv, .parquet)"
GENERIC = True

NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"


def sniff(path: Path) -> bool:
    """Whether the first bytes are those of an array, or the name is that of a table."""
    known = (".npy", ".npz", ".mat", *PARQUET, *SUFFIXES)
    if is_zarr(path):
        return True
    return path.is_file() and (
        path.suffix.lower() in known or first_bytes(path).startswith(NPY) or is_plain(path)
    )


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Traces and everything else in the file, and footprints from a file beside it."""
    from napari_xcebra.io.matlab.numbers import is_mat

    beside = regions_beside(path)
    if path.is_dir():
        return _with_footprints(_from_stored(read_zarr(path), path, settings, beside), beside)
    start, suffix = first_bytes(path), path.suffix.lower()
    if start.startswith(NPY) or (suffix == ".npy" and not start.startswith(ZIP)):
        found = _from_npy(path, settings, beside)
    elif start.startswith(ZIP) or suffix == ".npz":
        found = _from_npz(path, settings, beside)
    elif is_mat(path) or suffix == ".mat":
        found = _from_mat(path, settings, beside)
    elif has_signature(path):
        found = _from_stored(read_hdf5(path), path, settings, beside)
    else:
        found = _from_table(path, settings, beside)
    return _with_footprints(found, beside)


def names_of_arrays(path: Path) -> list[str]:
    """Names of the arrays of a file that may be traces, for the setting `array`."""
    from napari_xcebra.io.matlab.cells import joined
    from napari_xcebra.io.matlab.numbers import is_mat, read_mat

    arrays: Mapping[str, Any]
    if path.is_dir():
        arrays = read_zarr(path)
    elif is_mat(path):
        found = joined(read_mat(path))
        arrays = {**found.arrays, **found.elements}
    else:
        arrays = read_hdf5(path) if has_signature(path) else read_or_map(path)
    return [name for name, array in arrays.items() if is_wide(array)]


def _from_npy(path: Path, settings: OpenSettings, beside: Sequence[Regions]) -> Extraction:
    header = mapped_header(path)
    if len(header.shape) != 2 or 0 in header.shape or header.dtype.kind not in "biuf":
        raise InputError(
            f"{path} has an array of shape {header.shape} and type {header.dtype}: numbers, "
            "(frames, cells) or (cells, frames), are needed."
        )
    large = 4 * header.shape[0] * header.shape[1] > IN_MEMORY
    array = NpyTraces(path, cells_first=False) if large else read_npy(path)
    layout = layout_of(array, settings, name=path.stem, fits=fits(beside))
    note = layout.note(path.name, header.shape)
    if isinstance(array, NpyTraces):
        return Extraction({"traces": NpyTraces(path, layout.cells_first)}, notes=(note,))
    return Extraction({"traces": array.T if layout.cells_first else array}, notes=(note,))


def _from_npz(path: Path, settings: OpenSettings, beside: Sequence[Regions]) -> Extraction:
    arrays = read_or_map(path)

    def oriented(name: str, cells_first: bool) -> Any:
        if isinstance(arrays[name], np.memmap):
            return NpzTraces(path, name, cells_first)
        return arrays[name].T if cells_first else arrays[name]

    return extraction_of(arrays, path, settings, beside, oriented)


def _from_mat(path: Path, settings: OpenSettings, beside: Sequence[Regions]) -> Extraction:
    from napari_xcebra.io.matlab.cells import joined
    from napari_xcebra.io.matlab.numbers import read_mat

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


def _from_table(path: Path, settings: OpenSettings, beside: Sequence[Regions]) -> Extraction:
    table = read_trace_table(path, settings, fits(beside))
    notes = list(table.notes)
    if table.layout is not None:
        shape = table.traces.shape[::-1] if table.layout.cells_first else table.traces.shape
        notes.append(table.layout.note(path.name, shape))
    ids = ids_from(table.names) if table.names is not None else None
    cells = {}
    if table.names is not None and (ids is None or say_more_than_ids(table.names)):
        cells["name"] = np.array([name.strip() for name in table.names])
    return Extraction(
        {"traces": table.traces},
        rate=None if table.times is None else rate_of(table.times),
        times=table.times,
        cell_ids=ids,
        cells=cells,
        behavior=Behavior(tuple(table.behavior), name=path.name),
        notes=tuple(notes),
    )


def _with_footprints(found: Extraction, beside: Sequence[Regions]) -> Extraction:
    """Add footprints from a file beside the traces if they have none."""
    if found.footprints is not None or not beside:
        return found
    for regions in beside:
        if regions.fit(found.n_cells):
            note = f"Footprints come from {regions.name}, found beside the traces."
            footprints = regions.of_cells(found.n_cells)
            return replace(
                found,
                footprints=footprints,
                pixel_size=found.pixel_size or regions.pixel_size,
                notes=(*found.notes, note),
            )
    names = ", ".join(regions.name for regions in beside)
    note = f"{names} beside the traces do not have {found.n_cells} cells and were not used."
    return replace(found, notes=(*found.notes, note))
