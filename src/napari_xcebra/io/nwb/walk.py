"""Finds the parts of NWB files: typed objects, time series and tables.

Names in NWB are the writer's choice, so that objects are found by their `neurodata_type` alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    Node,
    attribute,
    child,
    dataset_at,
    has_signature,
    open_hdf5,
    read,
    walk,
)

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
    rate, start = rate_of(series), dataset_at(series, "starting_time")
    if rate is None or start is None:
        return None
    return float(np.asarray(read(start)).reshape(())) + np.arange(samples) / rate


def rate_of(series: h5py.Group) -> float | None:
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
