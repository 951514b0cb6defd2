"""Finds what the extractor decided before our decisions replaced it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.caiman.decisions import ACCEPTED
from napari_xcebra.io.containers.hdf5 import dataset_at, open_hdf5, read
from napari_xcebra.io.containers.npy import read_npy
from napari_xcebra.io.nwb.decisions import accepted_in
from napari_xcebra.io.nwb.walk import is_nwb
from napari_xcebra.io.suite2p.decisions import ISCELL
from napari_xcebra.io.suite2p.folders import folders_at, is_extracted
from napari_xcebra.io.suite2p.rois import read_flags
from napari_xcebra.io.transaction import backups
from napari_xcebra.recording import Recording


def extractor_accepted(recording: Recording, source_path: str | PathLike[str] | None) -> np.ndarray:
    """Which ROIs the extractor accepted, even if the file now has our decisions.

    Parameters
    ----------
    recording : Recording
    source_path : path or None
        What it was opened from.

    Returns
    -------
    (cells,) bool
        `recording.accepted` if nothing was written here, or the original file is gone.
    """
    present = np.asarray(recording.accepted)
    if source_path is None:
        return present
    path = Path(source_path).resolve()
    try:
        before = _in_file(path) if path.is_file() else _in_folders(path)
    except InputError:  # the backup is damaged
        return present
    return present if before is None or before.shape != present.shape else before


def _in_folders(path: Path) -> np.ndarray | None:
    """Flags of suite2p, folder by folder; None if none of them was written here."""
    folders = [folder for folder in folders_at(path) if is_extracted(folder)]
    files = [folder / ISCELL for folder in folders]
    if not any(map(_original, files)) or not all(file.is_file() for file in files):
        return None
    return np.concatenate([_flags(_original(file) or file) for file in files])


def _flags(file: Path) -> np.ndarray:
    return read_flags(file, len(read_npy(file)))[0]


def _in_file(path: Path) -> np.ndarray | None:
    if path.name == ISCELL or folders_at(path):
        return _in_folders(path.parent)
    original = _original(path)
    if original is None:
        return None
    with open_hdf5(original) as file:
        return accepted_in(file) if is_nwb(original) else _components(file)


def _components(file: h5py.File) -> np.ndarray | None:
    """Components that CaImAn accepts; all of them if it does not say."""
    traces, chosen = dataset_at(file, "estimates/C"), dataset_at(file, f"estimates/{ACCEPTED}")
    if traces is None:
        return None
    if chosen is None or chosen.dtype.kind not in "iu":
        return np.ones(traces.shape[0], bool)
    return np.isin(np.arange(traces.shape[0]), read(chosen))


def _original(path: Path) -> Path | None:
    """The original file, if the current one was written here."""
    found = backups.originals(path)
    return found[0] if found and backups.is_ours(path) else None
