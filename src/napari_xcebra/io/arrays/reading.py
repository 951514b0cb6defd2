"""Reads traces from plain arrays or tables: .npy, .npz, .mat, .h5, .zarr, .csv, .parquet.

In either orientation: `napari_xcebra.io.orientation` finds which axis is time. A .npz, .mat or
.h5 file may also hold the frames per second, times of the frames, footprints, and behaviour: an
array with one row per frame is a variable of its name. Elements of a MATLAB cell, or of a list of
structs, that fit together are one array: a matrix for each trial, or a vector for each cell. The
setting `array` says which array holds the traces where several may. The header of a table
names the cells; names that end in a number (``cell_12``) give the cell its id. A label image or
RoiSet.zip beside the file is used if it has as many cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.arrays.named import Beside, extraction_of
from napari_xcebra.io.arrays.tables import ids_from, read_trace_table, say_more_than_ids
from napari_xcebra.io.clocks.intervals import rate_of
from napari_xcebra.io.containers.hdf5 import has_signature, is_plain
from napari_xcebra.io.containers.hdf5 import read_arrays as read_hdf5
from napari_xcebra.io.containers.matlab import is_mat, joined, read_mat
from napari_xcebra.io.containers.npy import NpzTraces, mapped_header, read_npy, read_or_map
from napari_xcebra.io.containers.tables import PARQUET, SUFFIXES
from napari_xcebra.io.containers.zarr import is_zarr
from napari_xcebra.io.containers.zarr import read_arrays as read_zarr
from napari_xcebra.io.extraction import Arrays, Behavior, Extraction
from napari_xcebra.io.footprint_files import Regions, regions_beside
from napari_xcebra.io.orientation import layout_of
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.suite2p.fall import read_fall
from napari_xcebra.recording.traces import IN_MEMORY, NpyTraces

NAME = "an array or table of traces (.npy, .npz, .mat, .h5, .zarr, .csv, .tsv, .parquet)"
GENERIC = True
TAKES_BEHAVIOR = True
"""Whether `load` is given the behaviour, whose length may tell frames from cells."""

NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"


def sniff(path: Path) -> bool:
    """Whether the first bytes are those of an array, or the name is that of a table."""
    known = (".npy", ".npz", ".mat", *PARQUET, *SUFFIXES)
    if is_zarr(path):
        return True
    return path.is_file() and (
        path.suffix.lower() in known or first_bytes(path).startswith(NPY) or is_plain(path)
    )


def load(path: Path, settings: OpenSettings, behavior: Sequence[Behavior] = ()) -> Extraction:
    """Traces and everything else in the file, and footprints from a file beside it.

    Parameters
    ----------
    path : Path
    settings : OpenSettings
    behavior : sequence of Behavior
        Files given with it, whose length may tell frames from cells.
    """
    beside = Beside(path, regions_beside(path), behavior)
    start, suffix = first_bytes(path), path.suffix.lower()
    if start.startswith(NPY) or (suffix == ".npy" and not start.startswith(ZIP)):
        found = _from_npy(path, settings, beside)
    else:
        several = from_several(path, settings, beside)
        found = _from_table(path, settings, beside) if several is None else several
    return _with_footprints(found, beside.regions)


def _from_npy(path: Path, settings: OpenSettings, beside: Beside) -> Extraction:
    header = mapped_header(path)
    if len(header.shape) != 2 or 0 in header.shape or header.dtype.kind not in "biuf":
        raise InputError(
            f"{path} has an array of shape {header.shape} and type {header.dtype}: numbers, "
            "(frames, cells) or (cells, frames), are needed."
        )
    large = 4 * header.shape[0] * header.shape[1] > IN_MEMORY
    array = NpyTraces(path, cells_first=False) if large else read_npy(path)
    evidence = beside.evidence(header.shape, settings.rate or None)
    layout = layout_of(array, settings, evidence, name=path.name)
    note = layout.note(path.name, header.shape)
    if isinstance(array, NpyTraces):
        return Extraction({"traces": NpyTraces(path, layout.cells_first)}, notes=(note,))
    return Extraction({"traces": array.T if layout.cells_first else array}, notes=(note,))


def _from_table(path: Path, settings: OpenSettings, beside: Beside) -> Extraction:
    table = read_trace_table(path, settings, beside)
    notes = list(table.notes)
    if table.layout is not None:
        shape = table.traces.shape[::-1] if table.layout.cells_first else table.traces.shape
        notes.append(table.layout.note(path.name, shape))
    ids = ids_from(table.names) if table.names is not None else None
    cells = dict(table.cells)
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


def from_several(path: Path, settings: OpenSettings, beside: Beside) -> Extraction | None:
    """What the arrays of a file are; None if it is no such file."""
    if path.is_dir():
        return _from_stored(read_zarr(path), path, settings, beside)
    if first_bytes(path).startswith(ZIP) or path.suffix.lower() == ".npz":
        return _from_npz(path, settings, beside)
    if is_mat(path) or path.suffix.lower() == ".mat":
        return _from_mat(path, settings, beside)
    return _from_stored(read_hdf5(path), path, settings, beside) if has_signature(path) else None


def _from_npz(path: Path, settings: OpenSettings, beside: Beside) -> Extraction:
    arrays = read_or_map(path)

    def oriented(name: str, cells_first: bool) -> Any:
        if isinstance(arrays[name], np.memmap):
            return NpzTraces(path, name, cells_first)
        return arrays[name].T if cells_first else arrays[name]

    return extraction_of(arrays, path, settings, beside, oriented)


def _from_mat(path: Path, settings: OpenSettings, beside: Beside) -> Extraction:
    arrays = read_mat(path)
    if not settings.array and (plane := read_fall(arrays, path)) is not None:
        return plane
    found = joined(arrays, settings.layout)
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


def _from_stored(arrays: Arrays, path: Path, settings: OpenSettings, beside: Beside) -> Extraction:
    """From arrays of which large ones stay on disk (HDF5, zarr)."""

    def oriented(name: str, cells_first: bool) -> Any:
        array = arrays[name]
        if isinstance(array, np.ndarray):
            return array.T if cells_first else array
        return array.turned() if cells_first else array

    return extraction_of(arrays, path, settings, beside, oriented, axes=arrays.axes)
