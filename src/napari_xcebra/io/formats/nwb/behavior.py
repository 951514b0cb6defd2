"""Reads behaviour from NWB files: time series, events and intervals on the session clock."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import attribute, dataset_at, read
from napari_xcebra.io.extraction import Behavior, Events, Intervals, Series
from napari_xcebra.io.formats.nwb.walk import (
    RESULTS,
    Typed,
    column_names,
    of_type,
    plain_column,
    scaling,
    times_of,
)
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import KINDS, LENGTHS, Variable, called

SERIES = ("TimeSeries", "SpatialSeries", "PoseEstimationSeries")
LARGEST = 2**30
"""Bytes of one series; longer ones are raw signals rather than behaviour."""
MOST_COLUMNS = 64
NOT_BEHAVIOR = ("/stimulus/templates/", "/general/", f"/processing/{RESULTS}/")
INVALID = "invalid_times"
"""The only name of intervals that the specification gives a meaning."""
LONGEST = 2 * 24 * 3600.0
"""Seconds that a session can last."""

_UNITS = {
    "centimeters": "cm", "centimeter": "cm", "meters": "m", "meter": "m", "millimeters": "mm",
    "micrometers": "um", "microns": "um", "degrees": "deg", "degree": "deg", "radians": "rad",
    "radian": "rad", "pixels": "px", "pixel": "px", "seconds": "s", "volts": "V", "hertz": "Hz",
    "centimeters/second": "cm/s", "meters/second": "m/s", "centimeters per second": "cm/s",
    "meters per second": "m/s", "unknown": "", "n.a.": "", "n/a": "", "na": "", "none": "",
    "a.u.": "", "au": "", "arbitrary units": "", "no unit": "", "not_specified": "",
}  # fmt: skip


def behavior_in(
    objects: Sequence[Typed],
    settings: OpenSettings,
    name: str = "",
    frames: np.ndarray | None = None,
) -> Behavior:
    """All behaviour of a file.

    Parameters
    ----------
    objects : sequence of Typed
        Of the whole file.
    settings : OpenSettings
    name : str
        What sentences call it.
    frames : (frames,) float64, optional
        Times of the imaging of the same file.
    """
    notes: list[str] = []
    found: list[tuple[Typed, Series]] = []
    events: list[Events] = []
    tables = [item for item in of_type(objects, "TimeIntervals") if item.name != INVALID]
    intervals = [each for each in map(_table, tables) if each]
    for item in _candidates(objects):
        try:
            if item.type == "IntervalSeries":
                intervals.append(_epochs(item))
            elif _are_events(item):
                events.append(Events(item.name, _event_times(item)))
            else:
                found.append((item, _series(item, settings)))
        except InputError as error:
            notes.append(f"Left out: {error}")
    if frames is not None:
        # already on the clock of the frames
        found = [
            (item, replace(s, times=None) if _same(s.times, frames) else s) for item, s in found
        ]
    return Behavior(_named(found), tuple(intervals), tuple(notes), name, tuple(events))


def invalid_times(objects: Iterable[Typed], times: np.ndarray) -> np.ndarray:
    """(frames,) bool, frames within the intervals that the file marks as invalid."""
    invalid = np.zeros(len(times), bool)
    for item in of_type(objects, "TimeIntervals"):
        intervals = _table(item) if item.name == INVALID else None
        if intervals is not None:
            for start, stop in zip(intervals.start, intervals.stop, strict=True):
                invalid |= (times >= start) & (times < stop)
    return invalid


def _same(times: np.ndarray | None, frames: np.ndarray) -> bool:
    return times is not None and np.array_equal(times, frames)


def _candidates(objects: Iterable[Typed]) -> list[Typed]:
    """Series that may be behaviour: neither imaging nor its motion correction."""
    return [
        item
        for item in of_type(objects, *SERIES, "IntervalSeries")
        if isinstance(item.node, h5py.Group)
        and item.holder != "CorrectedImageStack"
        and not item.path.startswith(NOT_BEHAVIOR)
    ]


def _series(item: Typed, settings: OpenSettings) -> Series:
    data = dataset_at(item.node, "data")
    where = f"{item.node.file.filename}: {item.path}"
    if data is None or data.dtype.kind not in "biuf" or data.ndim not in (1, 2):
        raise InputError(f"{where} has no numbers, one row per sample.")
    if data.ndim == 2 and not 0 < data.shape[1] <= MOST_COLUMNS:
        raise InputError(f"{where} has {data.shape[1]} columns: up to {MOST_COLUMNS} are read.")
    times = times_of(item.node, len(data))
    if times is None:
        raise InputError(f"{where} has neither timestamps nor a rate.")
    factor, offset = scaling(data)
    values = np.asarray(read(data, LARGEST))
    if factor != 1 or offset != 0:
        values = values * factor + offset
    elif values.dtype.kind == "b":
        values = values.astype(np.uint8)
    values = _likely(item, values, settings.likelihood)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    unit = str(attribute(data, "unit", "") or "").strip()
    times, values = _ascending(times, values)
    series = Series(item.name, values, times, _UNITS.get(unit.lower(), unit[:20]))
    if item.holder == "CompassDirection" and values.ndim == 1:
        series = replace(series, kind="circular")
    return _as_told(item, series)


def _comment_on(variable: Variable) -> str:
    """What a series written by this program says about its variable."""
    if variable.kind == "circular":
        return f"circular variable with a period of {variable.period!r}"
    words = f" with the words {json.dumps(variable.words)}" if variable.words else ""
    return f"{variable.kind} variable{words}"


def _as_told(item: Typed, series: Series) -> Series:
    """Series with the name, kind and period that `_comment_on` and the description tell."""
    said = re.match(
        r"(continuous|circular|discrete|event) variable"
        r"(?: with a period of ([-+.e\d]{1,30})| with the words (\[.{1,10000}\]))?$",
        str(attribute(item.node, "comments", "")),
    )
    if said is None:
        return series
    name = str(attribute(item.node, "description", "")) or series.name
    kind = next(kind for kind in KINDS if kind == said[1])
    words = tuple(map(str, json.loads(said[3]))) if said[3] else ()
    period = float(said[2]) if said[2] else None
    return replace(series, name=name, kind=kind, period=period, labels=words)


def _likely(item: Typed, values: np.ndarray, least: float) -> np.ndarray:
    """Points of a pose; less likely ones are unknown."""
    confidence = dataset_at(item.node, "confidence")
    if item.type != "PoseEstimationSeries" or confidence is None:
        return values
    likely = np.asarray(read(confidence, LARGEST)) >= least
    if likely.shape != values.shape[:1]:
        return values
    return np.where(likely[:, None] if values.ndim == 2 else likely, values, np.nan)


def _ascending(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Samples whose time is known, in the order of time."""
    known = np.isfinite(times)
    if not known.all():
        times, values = times[known], values[known]
    if (np.diff(times) < 0).any():
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    return times, values


def _are_events(item: Typed) -> bool:
    return item.holder == "BehavioralEvents" and dataset_at(item.node, "timestamps") is not None


def _event_times(item: Typed) -> np.ndarray:
    times = np.asarray(read(dataset_at(item.node, "timestamps"), LARGEST), np.float64).reshape(-1)
    times = np.sort(times[np.isfinite(times)])
    if not len(times) or times[-1] - times[0] >= LONGEST:
        raise InputError(f"{item.node.file.filename}: {item.path} has no events, or absurd times.")
    return times


def _epochs(item: Typed) -> Intervals:
    """Intervals of a series that is above zero at each beginning and below zero at each end."""
    data, where = dataset_at(item.node, "data"), f"{item.node.file.filename}: {item.path}"
    if data is None or data.ndim != 1 or data.dtype.kind not in "iuf":
        raise InputError(f"{where} has no beginnings and ends.")
    marks, times = np.asarray(read(data, LARGEST)), times_of(item.node, len(data))
    if times is None:
        raise InputError(f"{where} has no timestamps.")
    start, stop = times[marks > 0], times[marks < 0]
    if not len(start) or len(start) != len(stop) or (stop < start).any():
        raise InputError(f"{where} has {len(start)} beginnings and {len(stop)} ends.")
    return Intervals(item.name, start, stop)


def _table(item: Typed) -> Intervals | None:
    """Trials, epochs or other intervals, with those columns that have one value each."""
    if not isinstance(item.node, h5py.Group):
        return None
    start, stop = (plain_column(item.node, name) for name in ("start_time", "stop_time"))
    if start is None or stop is None or len(start) != len(stop) or not len(start):
        return None
    if start.dtype.kind not in "iuf" or stop.dtype.kind not in "iuf":
        return None
    columns = {}
    for name in column_names(item.node):
        column = plain_column(item.node, name) if name not in ("start_time", "stop_time") else None
        if column is not None and len(column) == len(start):
            columns[name] = column
    return Intervals(item.name, start.astype(np.float64), stop.astype(np.float64), columns)


def _named(found: Sequence[tuple[Typed, Series]]) -> tuple[Series, ...]:
    """Series with unique names: shared ones get the name of their container as a prefix."""
    count = Counter(series.name for _, series in found)
    named, taken = [], set()
    for item, series in found:
        name = series.name if count[series.name] == 1 else f"{item.holder_name}_{series.name}"
        while name in taken:
            name += "_"
        taken.add(name)
        named.append(replace(series, name=name))
    return tuple(named)


IN_FULL = {
    "um": "micrometers", "mm": "millimeters", "cm": "centimeters", "m": "meters", "px": "pixels",
    "rad": "radians", "deg": "degrees",
}  # fmt: skip
"""Units of positions and directions as NWB writes them."""


def add_behavior(
    nwb: Any, file: Any, recording: Recording, variables: Iterable[Variable], suffix: str = ""
) -> None:
    """Put variables of a recording into the containers that the specification has for them.

    Parameters
    ----------
    suffix : str
        Added to the names of the containers, in a file that may have some already.
    """
    clock = clock_of(recording)
    containers: dict[str, dict[str, Any]] = {}
    for variable in variables:
        name, holder = variable.name, _container(variable)
        values = variable.values[:, 0] if variable.values.shape[1] == 1 else variable.values
        members = containers.setdefault(holder, {})
        plain = plain_name(name, members)
        about = {
            "name": plain,
            "data": nwb.H5DataIO(values, compression="gzip"),
            "unit": IN_FULL.get(variable.unit, variable.unit) or "n.a.",
            "description": name,
            "comments": _comment_on(variable),
            **clock,
        }
        if holder == "BehavioralTimeSeries":
            members[plain] = nwb.TimeSeries(**about)
        else:
            members[plain] = nwb.behavior.SpatialSeries(reference_frame="not known", **about)
    if containers and "behavior" not in file.processing:
        file.create_processing_module(
            name="behavior", description="Variables, one sample per frame"
        )
    for holder, members in containers.items():
        key = "time_series" if holder == "BehavioralTimeSeries" else "spatial_series"
        made = getattr(nwb.behavior, holder)(name=holder + suffix, **{key: list(members.values())})
        file.processing["behavior"].add(made)


def _container(variable: Variable) -> str:
    if variable.kind == "circular" and variable.unit in ("rad", "deg"):
        return "CompassDirection"
    is_place = variable.unit in LENGTHS and variable.values.shape[1] <= 3
    return "Position" if is_place and variable.kind == "continuous" else "BehavioralTimeSeries"


def add_intervals(file: Any, recording: Recording) -> None:
    """Segments as trials, and excluded frames as invalid times; edges lie between frames."""
    times = np.asarray(recording.times)
    half = 0.5 / recording.rate
    edges = np.r_[times[0] - half, (times[1:] + times[:-1]) / 2, times[-1] + half]
    for first, stop in _trial_edges(recording):
        file.add_trial(start_time=float(edges[first]), stop_time=float(edges[stop]))
    for name in told_by_trials(recording):
        assert recording.trials is not None
        values, words = recording.trials.columns[name], recording.trials.words.get(name, ())
        file.trials.add_column(
            name=plain_name(name, file.trials.colnames),
            description=f"{name} of each trial",
            data=[called(value, words) for value in values] if words else values,
        )
    change = np.diff(np.r_[False, np.asarray(recording.excluded), False].astype(np.int8))
    for begin, end in zip(np.flatnonzero(change > 0), np.flatnonzero(change < 0), strict=True):
        file.add_invalid_time_interval(start_time=float(edges[begin]), stop_time=float(edges[end]))


def _trial_edges(recording: Recording) -> list[tuple[int, int]]:
    """First frame of each trial, or of each segment if there are no trials, and that after it."""
    if recording.trials is not None:
        return list(zip(recording.trials.first, recording.trials.stop, strict=True))
    starts = np.r_[np.asarray(recording.starts), recording.n_frames]
    return list(pairwise(starts)) if len(starts) > 2 else []


def told_by_trials(recording: Recording) -> list[str]:
    """Variables that are one value throughout each trial: the table of trials has them."""
    trials = recording.trials
    if trials is None:
        return []
    number = trials.number(recording.n_frames)
    on_frames = {
        name: np.where(number < 0, np.nan, values[number])
        for name, values in trials.columns.items()
        if name in recording.behavior
    }
    return [
        name
        for name, values in on_frames.items()
        if np.array_equal(recording.behavior[name].values[:, 0], values, equal_nan=True)
    ]


def clock_of(recording: Recording) -> dict[str, Any]:
    """Frame times: a rate if that is exact, else the time of each frame."""
    times = np.asarray(recording.times)
    if np.array_equal(times, times[0] + np.arange(len(times)) / recording.rate):
        return {"starting_time": float(times[0]), "rate": float(recording.rate)}
    return {"timestamps": times}


def plain_name(name: str, taken: Collection[str]) -> str:
    """A name that NWB admits and that is still free."""
    plain = name.replace("/", "_").replace(":", "_") or "unnamed"
    while plain in taken:
        plain += "_"
    return plain
