"""Reads Neurodata Without Borders in a zarr folder (.nwb.zarr), as hdmf-zarr writes it.

The folder is copied into a temporary HDF5 file, but for movies, which is then read as any NWB file.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.zarr import attributes_of, json_in
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.nwb.reading import load as load_hdf5
from napari_xcebra.io.nwb_zarr.copying import copy_to_hdf5
from napari_xcebra.io.settings import OpenSettings

NAME = "Neurodata Without Borders in zarr (.nwb.zarr)"


def sniff(path: Path) -> bool:
    """Whether the folder is a group of zarr that says it is NWB."""
    try:
        is_group = (path / ".zgroup").is_file() or bool(json_in(path / "zarr.json"))
        return is_group and "nwb_version" in attributes_of(path)
    except (OSError, ValueError, RecursionError):
        return False


def load(path: Path, settings: OpenSettings) -> Extraction:
    """ROIs, traces, images and behaviour, all in memory."""
    with tempfile.TemporaryDirectory(prefix="napari-xcebra-") as folder:
        copy = Path(folder) / f"{path.stem.removesuffix('.nwb')}.nwb"
        copy_to_hdf5(path, copy)
        try:
            found = load_hdf5(copy, settings)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), str(path))) from error
        signals = {name: np.asarray(traces) for name, traces in found.signals.items()}
        return replace(found, signals=signals)
