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

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.clocks.timestamps import (
    ascends,
    counted_in,
    rate_of,
    scale_of,
    seconds_of,
    words_of,
)
from napari_xcebra.io.containers.hdf5 import has_signature, is_plain
from napari_xcebra.io.containers.hdf5 import read_arrays as read_hdf5
from napari_xcebra.io.containers.matlab import is_mat, joined, read_mat
from napari_xcebra.io.containers.npy import NpzTraces, mapped_header, read_npy, read_or_map
from napari_xcebra.io.containers.tables import PARQUET, SUFFIXES, is_number, read_table
from napari_xcebra.io.containers.zarr import is_zarr
from napari_xcebra.io.containers.zarr import read_arrays as read_zarr
from napari_xcebra.io.extraction import (
    Arrays,
    Behavior,
    Extraction,
    Series,
)
from napari_xcebra.io.footprint_files import Regions, regions_beside
from napari_xcebra.io.formats.array_roles import extraction_of
from napari_xcebra.io.formats.suite2p.folder import read_fall
from napari_xcebra.io.orientation import (
    CELL_WORDS,
    Evidence,
    FilesBeside,
    Layout,
    is_per_frame,
    layout_of,
)
from napari_xcebra.io.settings import OpenSettings
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
    beside = FilesBeside(path, regions_beside(path), behavior)
    start, suffix = first_bytes(path), path.suffix.lower()
    if start.startswith(NPY) or (suffix == ".npy" and not start.startswith(ZIP)):
        found = _from_npy(path, settings, beside)
    else:
        several = _from_several(path, settings, beside)
        found = _from_table(path, settings, beside) if several is None else several
    return _with_footprints(found, beside.regions)


def _from_npy(path: Path, settings: OpenSettings, beside: FilesBeside) -> Extraction:
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


def _from_table(path: Path, settings: OpenSettings, beside: FilesBeside) -> Extraction:
    table = _read_trace_table(path, settings, beside)
    notes = list(table.notes)
    if table.layout is not None:
        shape = table.traces.shape[::-1] if table.layout.cells_first else table.traces.shape
        notes.append(table.layout.note(path.name, shape))
    ids = ids_from(table.names) if table.names is not None else None
    cells = dict(table.cells)
    if table.names is not None and (ids is None or _say_more_than_ids(table.names)):
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


def _from_several(path: Path, settings: OpenSettings, beside: FilesBeside) -> Extraction | None:
    """What the arrays of a file are; None if it is no such file."""
    if path.is_dir():
        return _from_stored(read_zarr(path), path, settings, beside)
    if first_bytes(path).startswith(ZIP) or path.suffix.lower() == ".npz":
        return _from_npz(path, settings, beside)
    if is_mat(path) or path.suffix.lower() == ".mat":
        return _from_mat(path, settings, beside)
    return _from_stored(read_hdf5(path), path, settings, beside) if has_signature(path) else None


def _from_npz(path: Path, settings: OpenSettings, beside: FilesBeside) -> Extraction:
    arrays = read_or_map(path)

    def oriented(name: str, cells_first: bool) -> Any:
        if isinstance(arrays[name], np.memmap):
            return NpzTraces(path, name, cells_first)
        return arrays[name].T if cells_first else arrays[name]

    return extraction_of(arrays, path, settings, beside, oriented)


def _from_mat(path: Path, settings: OpenSettings, beside: FilesBeside) -> Extraction:
    arrays = read_mat(path)
    if not settings.array and (plane := read_fall(arrays, path)) is not None:
        return plane
    found = joined(arrays, settings.layout)
    # MATLAB has no vectors
    arrays = {n: np.squeeze(a) for n, a in found.arrays.items()}
    every = {**found.elements, **arrays}
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
    arrays: Arrays, path: Path, settings: OpenSettings, beside: FilesBeside
) -> Extraction:
    """From arrays of which large ones stay on disk (HDF5, zarr)."""

    def oriented(name: str, cells_first: bool) -> Any:
        array = arrays[name]
        if isinstance(array, np.ndarray):
            return array.T if cells_first else array
        return array.turned() if cells_first else array

    return extraction_of(arrays, path, settings, beside, oriented, axes=arrays.axes)


_CELL = re.compile(
    r"((cells?|rois?|neurons?|units?|components?|mean|c|n)[ _-]*)?\d+", re.IGNORECASE
)
_PLACE = {"x", "y", "z"}
_ID = {"id", "ids", "number", "index", "no", "nr", "name"}
_COUNTED = 10
"""Rows from which on a column of even steps counts as a clock or a frame count."""


@dataclass(frozen=True)
class _TraceTable:
    """Traces of a table, and what came with them.

    Parameters
    ----------
    traces : (frames, cells) float32
    names : sequence of str, or None
        What the cells are called.
    times : (frames,) float64 or None
    behavior : sequence of Series
        Columns that are no cells.
    cells : mapping of str to (cells,) array
        What else is known of each cell.
    layout : Layout or None
        None where names leave no doubt.
    notes : sequence of str
    """

    traces: np.ndarray
    names: Sequence[str] | None = None
    times: np.ndarray | None = None
    behavior: Sequence[Series] = ()
    cells: Mapping[str, np.ndarray] = field(default_factory=dict)
    layout: Layout | None = None
    notes: Sequence[str] = field(default=())


def _read_trace_table(path: Path, settings: OpenSettings, beside: FilesBeside) -> _TraceTable:
    """Traces of a table; `beside` may say how many cells and frames there are."""
    table = read_table(path, keep=("frame", "name"))
    table.columns = pd.Index([str(name) for name in table.columns])
    if (ids := _cell_column(table)) is not None:
        if table[ids].duplicated().any():
            return _by_entry(path, table, ids)
        return _cells_in_rows(path, table, ids)
    table = _with_seconds(_in_order(path, table))
    if _has_row_names(table):
        return _cells_in_rows(path, table, table.columns[0])
    words = list(table.select_dtypes(exclude=["number", "bool"]).columns)
    if words:
        raise InputError(f"Column {words[0]} of {path} has entries that are not numbers.")
    first = table.columns[0]
    counts = table[first].to_numpy()
    clock, notes = _clock(path, table)
    counted = clock is None and first not in table.columns
    times = None if clock is None else table.pop(clock[0]).to_numpy(np.float64) * clock[1]
    others = _no_cells(table)
    if len(others) == table.shape[1] > 0:
        raise InputError(
            f"{path} has columns {', '.join(others[:6])}, which are behaviour, and none of traces: "
            "give it beside a recording (`behavior`)."
        )
    behavior = [Series(name, table.pop(name).to_numpy()) for name in others]
    if others:
        notes.append(f"Columns {', '.join(others)} of {path.name} are read as behaviour.")
    if table.shape[1] == 0:
        raise InputError(f"{path} has no column of traces: one per cell is needed.")
    names = list(table.columns)
    traces = _as_float32(table)
    sure = times is not None or bool(others) or not all(is_number(name) for name in names)
    if sure and settings.layout != "cells-frames":
        return _TraceTable(traces, names, times, behavior, notes=notes)
    heads = _heads(names)
    evidence = [*heads.evidence, *beside.evidence(traces.shape, settings.rate or None)]
    layout = layout_of(traces, settings, evidence, name=path.name)
    if not layout.cells_first:
        return _TraceTable(traces, names, times, behavior, layout=layout, notes=notes)
    numbers = [f"{number:g}" for number in counts] if counted else None
    return _TraceTable(traces.T, numbers, heads.times, layout=layout, notes=notes)


def ids_from(names: Sequence[str]) -> np.ndarray | None:
    """Numbers at the end of the names, if all have one and no two the same.

    >>> ids_from(["cell_12", "cell_7"])
    array([12,  7])
    """
    ends = [re.search(r"(\d{1,18})$", name.strip()) for name in names]
    numbers = [int(end.group()) for end in ends if end]
    return np.array(numbers) if len(set(numbers)) == len(names) else None


def _say_more_than_ids(names: Sequence[str]) -> bool:
    """Whether names are worth keeping beside ids: they do not just count cells.

    >>> _say_more_than_ids(["cell_0", "cell_1"]), _say_more_than_ids(["pyr_0", "pv_1"])
    (False, True)
    """
    return len({re.sub(r"\d+$", "", name.strip()) for name in names}) > 1


def _in_order(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Table without columns that number the frames, its rows in their order.

    Raises
    ------
    InputError
        If a frame is missing, or there twice.
    """
    for name in [n for n in table.columns if counted_in(n) == "frames"]:
        numbers = pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64)
        ordered = np.sort(numbers)
        if not any(np.array_equal(ordered, np.arange(s, s + len(numbers))) for s in (0, 1)):
            raise InputError(
                f"Column {name} of {path} numbers the frames {np.nanmin(numbers):g} to "
                f"{np.nanmax(numbers):g} in {len(numbers)} rows: each frame once, from 0 or 1 on, "
                "is needed. Remove the column if the rows are the frames in their order."
            )
        table = table.iloc[np.argsort(numbers)].drop(columns=name).reset_index(drop=True)
    return table


def _with_seconds(table: pd.DataFrame) -> pd.DataFrame:
    """Table in which a column of dates, or of times of day, is in seconds from the first."""
    for name in table.columns[:3]:
        if not _is_numeric(table[name]) and (clock := seconds_of(table[name], 1.0, name)):
            seconds = clock.seconds - np.nanmin(clock.seconds)
            return table.assign(**{name: seconds}).rename(columns={name: "time"})
    return table


class _Heads(NamedTuple):
    """What a header of numbers says."""

    evidence: Sequence[Evidence] = ()
    times: np.ndarray | None = None


def _heads(names: Sequence[str]) -> _Heads:
    """Ids of cells, or times of frames; nothing if they may be either, or count the columns."""
    if len(names) < 2 or not all(is_number(name) for name in names):
        return _Heads()
    numbers = np.array([float(name) for name in names])
    steps, whole = np.diff(numbers), all(name.isdecimal() for name in names)
    if whole and (steps == 1).all():
        return _Heads()
    typical = float(np.median(steps))
    if len(names) >= _COUNTED and 0 < typical / 2 < steps.min() and steps.max() < 1.5 * typical:
        times = [Evidence(True, 3.0, "its header has times")]
        return _Heads() if whole else _Heads(times, numbers)
    return _Heads([Evidence(False, 3.0, "its header has ids of cells")] if whole else ())


def _cell_column(table: pd.DataFrame) -> str | None:
    """The column that says which cell a row is of, by its name."""
    for name in table.columns[:3]:
        words = set(words_of(name))
        column = table[name]
        whole = not _is_numeric(column) or bool((column == column.round()).all())
        if words & CELL_WORDS and words <= CELL_WORDS | _ID and whole and not column.isna().any():
            return str(name)
    return None


def _by_entry(path: Path, table: pd.DataFrame, ids: str) -> _TraceTable:
    """Traces of a table with a row for each cell at each frame."""
    times = [n for n in table.columns if counted_in(n) == "frames" or scale_of(n) is not None]
    values = [n for n in table.columns if n not in (ids, *times) and _is_numeric(table[n])]
    if not times or len(values) != 1:
        raise InputError(
            f"{path} has several rows for each {ids}: columns of the frame or the time, and one of "
            f"values, are needed beside it; it has {', '.join(table.columns)}."
        )
    if table.duplicated([ids, times[0]]).any():
        raise InputError(f"{path} has two rows for the same {ids} and {times[0]}.")
    wide = table.pivot(index=times[0], columns=ids, values=values[0])
    clock = scale_of(times[0])
    at = None if clock is None else wide.index.to_numpy(np.float64) * clock
    note = f"{path.name} was read with a row for each {ids} and {times[0]}: {values[0]}."
    return _TraceTable(_as_float32(wide), [str(n) for n in wide.columns], at, notes=(note,))


def _is_numeric(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def _has_row_names(table: pd.DataFrame) -> bool:
    """Whether the first column has words and all others numbers: rows are then cells."""
    first, *others = table.columns
    numeric = table[others].select_dtypes(include=["number", "bool"]).shape[1] == len(others)
    if len(others) < 2 or not numeric or _is_numeric(table[first]):
        return False
    words = table[first].astype(str)
    return bool(pd.to_numeric(words, errors="coerce").isna().all() and words.is_unique)


def _cells_in_rows(path: Path, table: pd.DataFrame, ids: str) -> _TraceTable:
    """Traces of a table with a row for each cell; other columns are properties of the cells."""
    names = table.pop(ids).astype(str).tolist()
    # columns of frames are counted, or timed, with the same word before the number
    stems = [re.sub(r"\d+(?:\.\d+)?$", "", name) for name in table.columns]
    usual = Counter(stems).most_common(1)[0][0] if stems else ""
    about = {name: table.pop(name).to_numpy()
             for name, stem in zip(table.columns, stems, strict=True) if stem != usual}  # fmt: skip
    if table.shape[1] < 2 or not all(_is_numeric(column) for _, column in table.items()):
        raise InputError(
            f"{path} has a row for each {ids}, but no columns of numbers for its frames."
        )
    header = pd.to_numeric(pd.Series(table.columns), errors="coerce").to_numpy(np.float64)
    counted = np.array_equal(header, np.arange(len(header)) + header[0])
    times = header if not counted and ascends(header) else None
    traces = _as_float32(table).T
    why = f"{path.name} was read with one row per cell: column {ids} names the cells."
    return _TraceTable(traces, names, times, cells=about, notes=(why,))


def _clock(path: Path, table: pd.DataFrame) -> tuple[tuple[str, float] | None, list[str]]:
    """Name of the column of times and the seconds in its unit, and notes."""
    for name in table.columns:
        scale = scale_of(name)
        if scale is None:
            continue
        if not ascends(table[name].to_numpy(np.float64)):
            raise InputError(
                f"Column {name} of {path} does not increase: each frame needs a later time (or "
                "remove the column and set `rate`)."
            )
        return (name, scale), []
    first = table.columns[0]
    counts = table[first].to_numpy(np.float64)
    if table.shape[1] < 2 or not is_number(first) or not _even(counts):
        return None, []
    if np.array_equal(np.diff(counts), np.ones(len(counts) - 1)):
        table.pop(first)
        return None, [f"The first column of {path.name} counts the rows and was left out."]
    return (first, 1.0), [f"The first column of {path.name} was read as the frame times."]


def _as_float32(table: pd.DataFrame) -> np.ndarray:
    with np.errstate(all="ignore"):  # what is too large is not finite, which is dealt with later
        return table.to_numpy(np.float32, na_value=np.nan)


def _no_cells(table: pd.DataFrame) -> list[str]:
    """Columns not named like cells, if several others are; else those named like behaviour."""
    cells = [name for name in table.columns if _CELL.fullmatch(name.strip())]
    if len(cells) > 1:
        return [name for name in table.columns if name not in cells]
    return [n for n in table.columns if is_per_frame(n) or set(words_of(n)) & _PLACE]


def _even(values: np.ndarray) -> bool:
    """Whether a column increases in even steps, which no trace does."""
    if len(values) < _COUNTED or not ascends(values):
        return False
    steps = np.diff(values)
    return bool(np.abs(steps - np.median(steps)).max() <= 0.05 * np.median(steps))
