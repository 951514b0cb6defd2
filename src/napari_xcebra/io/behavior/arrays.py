"""Reads behaviour from arrays (.npy, .npz, .mat, .h5): each array is a variable of its name.

An array `time`, `t` or `timestamps` is the clock of those that are as long; ``position_time`` is
that of ``position`` alone. A single number `rate` or `fs` is the samples per second. Samples may
run along either axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import first_bytes
from napari_xcebra.io.behavior.tables import intervals_of, series_of
from napari_xcebra.io.clocks.timestamps import (
    ClockColumn,
    find_clock,
    find_own_clocks,
)
from napari_xcebra.io.containers.hdf5 import has_signature, is_plain, read_arrays
from napari_xcebra.io.containers.matlab import is_mat, joined, read_mat
from napari_xcebra.io.containers.npy import read_npy, read_npz
from napari_xcebra.io.extraction import Behavior, Events, Intervals, Series
from napari_xcebra.io.formats import pynapple
from napari_xcebra.io.formats.array_roles import listed, short
from napari_xcebra.io.settings import OpenSettings

__all__ = ["NAME", "_load_pynapple", "sniff"]


NAME = "arrays (.npy, .npz, .mat, .h5), also of pynapple (.npz)"
GENERIC = True
_RATES = ("rate", "fs", "fps", "sampling_rate", "sample_rate", "frame_rate", "behavior_rate")
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"


def sniff(path: Path) -> bool:
    """Whether the first bytes are those of a file of arrays, or the name says so."""
    if not path.is_file():
        return False
    return (
        path.suffix.lower() in (".npy", ".npz", ".mat")
        or first_bytes(path).startswith(_NPY)
        or is_mat(path)
        or is_plain(path)
    )


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Arrays of the file, each with the clock that goes with it."""
    if pynapple.sniff(path):
        return _load_pynapple(path)
    arrays = _named(_read(path, settings))
    columns = {name: array for name, array in arrays.items() if array.ndim in (1, 2) and array.size}
    own = find_own_clocks(columns)
    shared, notes = _clocks({n: c for n, c in columns.items() if n != settings.trigger}, settings)
    clocks = {*(c.name for c in own.values()), *(n for c in shared.values() for n in _names(c))}
    rest = {n: c for n, c in columns.items() if n not in clocks}
    trials = intervals_of(
        {n: c for n, c in rest.items() if len(c) not in shared}, path.stem, str(path)
    )
    if trials is not None:
        rest = {n: c for n, c in rest.items() if len(c) != len(trials.start)}
    labels = _column_names(rest)
    rest = {n: c for n, c in rest.items() if n not in {name for name, _ in labels.values()}}
    usual, steady = _usual_length(rest), _steady_clocks(arrays, rest)
    series, left_out = [], [name for name, array in arrays.items() if array.ndim > 2]
    for name, column in rest.items():
        clock = own.get(name) or next((shared[n] for n in column.shape if n in shared), None)
        if clock is None and shared:
            left_out.append(name)
            continue
        column = _samples_first(column, len(clock.seconds) if clock else usual)
        times = clock.seconds if clock else steady.get(len(column))
        _, words = labels.get(name, ("", ()))
        found, note = series_of(name, column, times, path.name, words)
        if found is not None:
            series.append(found if clock is None else replace(found, times_in=clock.times_in))
        notes += [note] if note else []
    if left_out:
        notes.append(
            f"{path.name} also has {', '.join(left_out)}, whose length fits no clock: left out."
        )
    if not series and trials is None:
        raise InputError(
            f"Behaviour file {path} has no variables, which are arrays with one value, or a few, "
            f"for each sample; it has: {listed(arrays)}."
        )
    intervals = () if trials is None else (trials,)
    return Behavior(tuple(series), intervals, tuple(notes), path.name)


def _read(path: Path, settings: OpenSettings) -> dict[str, np.ndarray]:
    if first_bytes(path).startswith(_NPY):
        return {path.stem: read_npy(path)}
    if is_mat(path) or path.suffix.lower() == ".mat":
        return _short_names(joined(read_mat(path), settings.layout).arrays)
    if has_signature(path):
        found = read_arrays(path)
        return _short_names({n: a for n, a in found.items() if isinstance(a, np.ndarray)})
    if path.suffix.lower() == ".npy" and not first_bytes(path).startswith(_ZIP):
        return {path.stem: read_npy(path)}
    return read_npz(path)


def _short_names(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays in structs or groups under the name of the field, where no two share it."""
    alone = {name: short(name) for name in arrays}
    ends = Counter(alone.values())
    return {alone[n] if ends[alone[n]] == 1 else n: array for n, array in arrays.items()}


def _named(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays without axes of length 1; the fields of a structured array are columns."""
    named: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if array.dtype.names:
            fields = {field: array[field] for field in array.dtype.names}
            named |= {f if f not in arrays else f"{name}_{f}": a for f, a in fields.items()}
        else:
            named[name] = array
    for name, array in named.items():
        flat = array.ravel() if array.ndim == 2 and 1 in array.shape and array.size > 1 else array
        if flat.dtype.kind == "S":
            flat = np.char.decode(flat, "utf-8", "replace")
        named[name] = flat.reshape(()) if flat.size == 1 and flat.ndim == 2 else flat
    return named


def _column_names(columns: Mapping[str, np.ndarray]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """For matrices whose columns a list of words names: the list, and the words.

    A list that begins with the name of a matrix belongs to it, as ``udf_labels`` to ``udf``.
    """
    lists = {n: c for n, c in columns.items() if c.ndim == 1 and c.dtype.kind in "UO"}
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for words, column in lists.items():
        fit = [n for n, c in columns.items() if c.ndim == 2 and min(c.shape) == len(column)]
        named = [name for name in fit if words.lower().startswith(name.lower())]
        for name in named or (fit if len(fit) == 1 else []):
            found.setdefault(name, (words, tuple(map(str, column))))
    return found


def _clocks(
    columns: Mapping[str, np.ndarray], settings: OpenSettings
) -> tuple[dict[int, ClockColumn], list[str]]:
    """The clock of the arrays of each length, and notes on arrays that are not clocks."""
    clocks: dict[int, ClockColumn] = {}
    notes: list[str] = []
    for length in {len(column) for column in columns.values() if column.ndim == 1}:
        alike = {n: c for n, c in columns.items() if c.ndim == 1 and len(c) == length}
        clock, said = find_clock(alike, settings.behavior_clock, strict=len(alike) > 1)
        notes += said
        if clock is not None:
            clocks[length] = clock
            notes += clock.notes
    return clocks, notes


def _names(clock: ClockColumn) -> tuple[str, ...]:
    return (clock.name, *clock.spare)


def _usual_length(columns: Mapping[str, np.ndarray]) -> int | None:
    """Length that most arrays of one axis have; a list of words may name anything."""
    lengths = Counter(len(c) for c in columns.values() if c.ndim == 1 and c.dtype.kind in "biuf")
    return lengths.most_common(1)[0][0] if lengths else None


def _steady_clocks(
    arrays: Mapping[str, np.ndarray], columns: Mapping[str, np.ndarray]
) -> dict[int, np.ndarray]:
    """Times of samples at the rate given in the file, for every length of array."""
    for name, array in arrays.items():
        if array.ndim == 0 and name.lower() in _RATES and array.dtype.kind in "iuf" and array > 0:
            lengths = {n for column in columns.values() for n in column.shape}
            return {n: np.arange(n) / float(array) for n in lengths}
    return {}


def _samples_first(column: np.ndarray, length: int | None) -> np.ndarray:
    """Samples along the first axis: the one of the given length, else the longer."""
    if column.ndim == 1 or column.shape[0] == length:
        return column
    is_turned = column.shape[1] == length or column.shape[0] < column.shape[1]
    return column.T if is_turned else column


def _load_pynapple(path: Path) -> Behavior:
    """A variable (Tsd, TsdFrame), events (Ts, TsGroup) or epochs (IntervalSet)."""
    kind, name = pynapple.kind_of(path), path.stem
    arrays = read_npz(path)
    needed = {"IntervalSet": ("start", "end"), "Ts": ("t",), "TsGroup": ("t", "index")}
    missing = [n for n in needed.get(kind, ("t", "d")) if n not in arrays]
    if missing:
        raise InputError(f"{path} is a {kind} of pynapple without {missing[0]}: it is damaged.")
    if kind == "IntervalSet":
        start, end = (arrays[edge].astype(np.float64) for edge in ("start", "end"))
        epochs = Intervals(name, start, end, pynapple.properties(arrays, len(start)))
        return Behavior(intervals=(epochs,), name=path.name)
    times = arrays["t"].astype(np.float64)
    if kind == "Ts":
        return Behavior(name=path.name, events=(Events(name, times),))
    if kind == "TsGroup":
        members = np.unique(arrays["index"]).tolist()
        events = (Events(f"{name}_{m}", times[arrays["index"] == m]) for m in members)
        return Behavior(name=path.name, events=tuple(events))
    values = arrays["d"]
    if values.ndim > 2 or len(values) != len(times):
        raise InputError(
            f"{path} has values of shape {values.shape} for {len(times)} times: a Tsd, or a "
            "TsdFrame of a few columns, is needed."
        )
    return Behavior((Series(name, values, times),), name=path.name)
