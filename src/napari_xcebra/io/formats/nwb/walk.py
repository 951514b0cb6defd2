"""Finds the parts of NWB files: typed objects, time series and tables.

Names in NWB are the writer's choice, so that objects are found by their `neurodata_type` alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    Hdf5Traces,
    Node,
    address,
    attribute,
    child,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
    walk,
)
from napari_xcebra.io.extraction import Signal
from napari_xcebra.io.orientation import Evidence, layout_of
from napari_xcebra.io.settings import OpenSettings

RESULTS = "xcebra"
"""Processing module that results of this program are written to; it is no part of a recording."""
LONGEST_WORD = 200
"""Letters of a text that are kept in a table."""


class Typed(NamedTuple):
    """An object of an NWB file.

    Parameters
    ----------
    type : str
        Its `neurodata_type`.
    node : group or dataset
    name : str
        The last part of its path.
    holder : str
        Type of the object it lies in; empty if that has none.
    holder_name : str
    """

    type: str
    node: Node
    name: str
    holder: str
    holder_name: str

    @property
    def path(self) -> str:
        """Where in the file it lies."""
        return str(self.node.name)


def is_nwb(path: Path) -> bool:
    """Whether it is an NWB file, or one damaged by that name."""
    if not path.is_file() or not has_signature(path):
        return False
    try:
        with open_hdf5(path) as file:
            return _version(file) is not None
    except InputError:
        return path.suffix.lower() == ".nwb"


def check_version(file: h5py.File) -> None:
    """Raise unless it is NWB 2 or later."""
    version = _version(file)
    if version is None:
        raise InputError(f"{file.filename} is not an NWB file: it has no nwb_version.")
    if version.removeprefix("NWB-").startswith(("0", "1")):
        raise InputError(
            f"{file.filename} is NWB {version.removeprefix('NWB-')}: version 2 or later is needed."
        )


def _version(file: h5py.File) -> str | None:
    version = attribute(file, "nwb_version")
    if version is None:
        dataset = dataset_at(file, "nwb_version")  # as version 1 had it
        version = None if dataset is None else read(dataset)
    return version if isinstance(version, str) else None


def typed_objects(file: h5py.File) -> list[Typed]:
    """All objects of the file that have a type, in the order of their paths."""
    found = []
    types = {"/": ""}
    for node in walk(file):
        kind = attribute(node, "neurodata_type", "")
        kind = kind if isinstance(kind, str) else ""
        types[str(node.name)] = kind
        if kind:
            holder, _, name = str(node.name).rpartition("/")
            found.append(Typed(kind, node, name, types.get(holder, ""), holder.split("/")[-1]))
    return found


def of_type(objects: Iterable[Typed], *types: str) -> list[Typed]:
    """Those of the given types."""
    return [found for found in objects if found.type in types]


def scaling(data: h5py.Dataset) -> tuple[float, float]:
    """`conversion` and `offset`, which bring stored values to their unit."""
    factor, offset = attribute(data, "conversion", 1.0), attribute(data, "offset", 0.0)
    numbers = [float(value) for value in (factor, offset)]
    if not np.isfinite(numbers).all():
        raise InputError(
            f"{data.file.filename}: {data.name} has a conversion of {factor} and an offset of "
            f"{offset}: numbers are needed."
        )
    return numbers[0], numbers[1]


def times_of(series: h5py.Group, samples: int) -> np.ndarray | None:
    """(samples,) float64, seconds of the session clock; None if the series has no clock."""
    stamps = dataset_at(series, "timestamps")
    if stamps is not None:
        times = np.asarray(read(stamps), np.float64)
        if times.shape != (samples,):
            raise InputError(
                f"{series.file.filename}: {series.name} has {samples} samples but timestamps of "
                f"shape {times.shape}."
            )
        return times
    rate, start = _rate_of(series), dataset_at(series, "starting_time")
    if rate is None or start is None:
        return None
    return float(np.asarray(read(start)).reshape(())) + np.arange(samples) / rate


def _rate_of(series: h5py.Group) -> float | None:
    """Samples per second, where the series says so."""
    start = dataset_at(series, "starting_time")
    rate = None if start is None else attribute(start, "rate")
    if rate is None or not 0 < float(rate) < np.inf:
        return None
    return float(rate)


def column_names(table: h5py.Group) -> list[str]:
    """Columns of a dynamic table, in its order."""
    names = attribute(table, "colnames", [])
    return [str(name) for name in names] if isinstance(names, list) else []


def plain_column(table: h5py.Group, name: str, axes: int = 1) -> np.ndarray | None:
    """Numbers or words of a column, one per row; None if it has more axes, or is of another kind.

    Parameters
    ----------
    table : group
    name : str
    axes : int
        How many it may have, if it holds numbers.
    """
    dataset = dataset_at(table, name)
    if dataset is None or child(table, f"{name}_index") is not None:
        return None
    if not 1 <= dataset.ndim <= axes or (dataset.ndim > 1 and dataset.dtype.kind not in "biuf"):
        return None
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return words(read(dataset))
    return np.asarray(read(dataset)) if dataset.dtype.kind in "biuf" else None


def words(texts: Iterable[str]) -> np.ndarray:
    """Texts as an array of numpy, long ones cut."""
    return np.array([str(text)[:LONGEST_WORD].rstrip("\0") for text in texts], np.str_)


_SIGNALS: tuple[tuple[Signal | None, str], ...] = (
    ("traces", r"^traces$"),
    ("fluorescence", r"corrected|subtracted"),
    ("neuropil", r"neuropil|fneu"),
    ("events", r"deconv|spike|spks|event|inferred"),
    ("denoised", r"denois"),
    ("dff", r"d(elta)?_?f_?(over|/|_)?_?f|Δf"),
    (None, r"background|baseline"),
)
"""What the name of a series or of what it lies in says, the first that fits; None: of no use."""
_CONTAINERS: dict[str, Signal] = {"DfOverF": "dff", "Fluorescence": "fluorescence"}
_PREFERRED: tuple[Signal, ...] = ("fluorescence", "dff", "traces", "denoised", "events", "neuropil")


@dataclass(frozen=True)
class _Response:
    """One RoiResponseSeries.

    Parameters
    ----------
    name : str
        Its path in the file.
    signal : Signal
    series : group
    data : dataset of (frames, columns), or (columns, frames) if `cells_first`
    rows : (columns,) int
        Row of the table of ROIs that each column is.
    table : group or None
        The PlaneSegmentation.
    cells_first : bool
    """

    name: str
    signal: Signal
    series: h5py.Group
    data: h5py.Dataset
    rows: np.ndarray
    table: h5py.Group | None
    cells_first: bool


@dataclass(frozen=True)
class Plane:
    """The traces of one table of ROIs.

    Parameters
    ----------
    table : group or None
    rows : (cells,) int
        Rows of the table that have traces, in its order.
    signals : dict of Signal to (frames, cells) traces
    times : (frames,) float64 or None
    rate : float or None
    """

    table: h5py.Group | None
    rows: np.ndarray
    signals: dict[Signal, Hdf5Traces]
    times: np.ndarray | None
    rate: float | None

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return next(iter(self.signals.values())).shape


def planes_in(
    objects: Sequence[Typed], notes: list[str], settings: OpenSettings | None = None
) -> list[Plane]:
    """Traces of the file, by the table of ROIs they belong to.

    With settings, as many ROIs as frames are looked at: some programs write the ROIs first.
    """
    tables = [t.node for t in of_type(objects, "PlaneSegmentation") if _is_group(t)]
    responses = []
    for item in of_type(objects, "RoiResponseSeries"):
        signal = _signal_of(item)
        if signal is None:
            notes.append(f"{item.name} is left out: it does not hold the activity of cells.")
        elif _is_group(item):
            responses.append(_response(item, signal, tables, notes, settings))
    by_table: dict[int, list[_Response]] = {}
    for response in responses:
        key = -1 if response.table is None else address(response.table)
        by_table.setdefault(key, []).append(response)
    return [_plane(of_table, notes) for of_table in by_table.values()]


def _signal_of(item: Typed) -> Signal | None:
    """What a series holds: by its own name, that of its container, or the container's type."""
    for name in (item.name, item.holder_name):
        for signal, pattern in _SIGNALS:
            if re.search(pattern, name, re.IGNORECASE):
                return signal
    return _CONTAINERS.get(item.holder, "traces")


def _is_group(item: Typed) -> bool:
    return isinstance(item.node, h5py.Group)


def _response(
    item: Typed,
    signal: Signal,
    tables: Sequence[h5py.Group],
    notes: list[str],
    settings: OpenSettings | None,
) -> _Response:
    data, where = dataset_at(item.node, "data"), f"{item.node.file.filename}: {item.path}"
    if data is None or data.ndim not in (1, 2):
        raise InputError(f"{where} has no data of frames × ROIs.")
    region = dataset_at(item.node, "rois")
    table = _table(region, tables)
    if region is None:
        rows = np.arange(1 if data.ndim == 1 else data.shape[1])
    else:
        rows = np.asarray(read(region), np.int64).reshape(-1)
    columns = 1 if data.ndim == 1 else data.shape[1]
    cells_first = data.ndim == 2 and columns != len(rows) == data.shape[0]
    if settings is not None and data.ndim == 2 and (len(set(data.shape)) == 1 or region is None):
        frames_first = Evidence(False, 3.0, "NWB lists the frames first")
        stored = Hdf5Traces.of(data, cells_first=False)
        cells_first = layout_of(stored, settings, [frames_first], name=item.name).cells_first
        rows = rows if region is not None else np.arange(data.shape[0 if cells_first else 1])
        columns = len(rows) if cells_first else columns
    if cells_first:
        notes.append(f"{item.name} has ROIs before frames: it was transposed.")
    elif columns != len(rows):
        raise InputError(f"{where} has {columns} columns but names {len(rows)} ROIs.")
    if len(rows) and rows.min() < 0:
        raise InputError(f"{where} names the ROI {rows.min()}: rows from 0 on are needed.")
    named, counts = np.unique(rows, return_counts=True)
    if len(named) < len(rows):
        again = int(np.argmax(counts))
        notes.append(
            f"{item.name} names ROI {named[again]} for {counts[again]} of its {len(rows)} traces: "
            "which ROI each trace belongs to is not known, so that there are neither footprints "
            "nor anything else from the table of ROIs."
        )
        table, rows = None, np.arange(len(rows))
    return _Response(item.path, signal, item.node, data, rows, table, cells_first)


def _table(region: h5py.Dataset | None, tables: Sequence[h5py.Group]) -> h5py.Group | None:
    """The table that a region refers to."""
    reference = None if region is None else attribute(region, "table")
    if region is not None and isinstance(reference, h5py.Reference) and reference:
        target = region.file[reference]
        for table in tables:
            if address(table) == address(target):
                return table
    return tables[0] if len(tables) == 1 else None


def _plane(responses: Iterable[_Response], notes: list[str]) -> Plane:
    """Signals of one table with the same cells and frames; the first of each kind."""
    ordered = sorted(responses, key=lambda response: _PREFERRED.index(response.signal))
    main = ordered[0]
    rows, first = np.unique(main.rows, return_index=True)
    signals = {main.signal: _traces(main, first)}
    frames = signals[main.signal].shape[0]
    for other in ordered[1:]:
        places = {row: column for column, row in reversed(list(enumerate(other.rows.tolist())))}
        long = other.data.shape[1 if other.cells_first else 0]
        if other.signal in signals or long != frames or not set(rows.tolist()) <= set(places):
            why = "there is another of its kind" if other.signal in signals else (
                f"it has other ROIs or frames than {main.name}"
            )  # fmt: skip
            notes.append(f"{other.name} is left out: {why}.")
            continue
        columns = np.array([places[row] for row in rows.tolist()], np.int64)
        signals[other.signal] = _traces(other, columns)
    return Plane(main.table, rows, signals, times_of(main.series, frames), _rate_of(main.series))


def _traces(response: _Response, columns: np.ndarray) -> Hdf5Traces:
    factor, offset = scaling(response.data)
    wide = len(response.rows)
    in_order = np.array_equal(columns, np.arange(wide))
    return Hdf5Traces.of(
        response.data,
        cells_first=response.cells_first,
        columns=None if in_order else columns,
        factor=factor,
        offset=offset,
    )
