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

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.arrays.layout import layout_of
from napari_xcebra.io.arrays.named import fits
from napari_xcebra.io.arrays.npy import mapped_header, read_npy
from napari_xcebra.io.arrays.several import ZIP, from_several
from napari_xcebra.io.arrays.tables import ids_from, read_trace_table, say_more_than_ids
from napari_xcebra.io.clocks.intervals import rate_of
from napari_xcebra.io.extraction import Behavior, Extraction
from napari_xcebra.io.footprint_files import Regions, regions_beside
from napari_xcebra.io.hdf5.arrays import is_plain
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.tables import PARQUET, SUFFIXES
from napari_xcebra.io.zarr.arrays import is_zarr
from napari_xcebra.recording.traces import IN_MEMORY, NpyTraces

NAME = "an array or table of traces (.npy, .npz, .mat, .h5, .zarr, .csv, .tsv, .parquet)"
GENERIC = True

NPY = b"\x93NUMPY"


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
    beside = regions_beside(path)
    start, suffix = first_bytes(path), path.suffix.lower()
    if start.startswith(NPY) or (suffix == ".npy" and not start.startswith(ZIP)):
        found = _from_npy(path, settings, beside)
    else:
        several = from_several(path, settings, beside)
        found = _from_table(path, settings, beside) if several is None else several
    return _with_footprints(found, beside)


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
