"""Reads behaviour from a separate Neurodata Without Borders file (.nwb)."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import open_hdf5
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.formats.nwb.behavior import behavior_in
from napari_xcebra.io.formats.nwb.walk import check_version, is_nwb, typed_objects
from napari_xcebra.io.settings import OpenSettings

NAME = "Neurodata Without Borders (.nwb)"


def sniff(path: Path) -> bool:
    """Whether it is an NWB file."""
    return is_nwb(path)


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Time series, events and intervals of the file."""
    with open_hdf5(path) as file:
        check_version(file)
        found = behavior_in(typed_objects(file), settings, path.name)
    if not found.series and not found.intervals:
        raise InputError(
            f"Behaviour file {path} has no time series, events or intervals of behaviour."
        )
    return found
