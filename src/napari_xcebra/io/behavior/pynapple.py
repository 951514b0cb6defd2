"""Reads behaviour that pynapple saved (.npz): series, events and epochs, named by the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import read_npz
from napari_xcebra.io.extraction import Behavior, Events, Intervals, Series
from napari_xcebra.io.pynapple.reading import NAME, kind_of, properties, sniff
from napari_xcebra.io.settings import OpenSettings

__all__ = ["NAME", "load", "sniff"]


def load(path: Path, settings: OpenSettings) -> Behavior:
    """A variable (Tsd, TsdFrame), events (Ts, TsGroup) or epochs (IntervalSet)."""
    kind, name = kind_of(path), path.stem
    arrays = read_npz(path)
    needed = {"IntervalSet": ("start", "end"), "Ts": ("t",), "TsGroup": ("t", "index")}
    missing = [n for n in needed.get(kind, ("t", "d")) if n not in arrays]
    if missing:
        raise InputError(f"{path} is a {kind} of pynapple without {missing[0]}: it is damaged.")
    if kind == "IntervalSet":
        start, end = (arrays[edge].astype(np.float64) for edge in ("start", "end"))
        epochs = Intervals(name, start, end, properties(arrays, len(start)))
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
