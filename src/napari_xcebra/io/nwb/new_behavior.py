"""Puts behaviour, trials and excluded frames of a recording into an NWB file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from napari_xcebra.io.nwb.behavior import comment_on
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.trials import called
from napari_xcebra.recording.variable import LENGTHS

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
            "comments": comment_on(variable),
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
