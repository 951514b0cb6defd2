"""Writes a recording as a suite2p plane folder (0.x), for programs that read those."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints

_IMAGES = {"mean": "meanImg", "enhanced": "meanImgE", "max": "max_proj", "correlation": "Vcorr"}


def write_suite2p(recording: Recording, folder: str | PathLike[str]) -> Path:
    """Write F, Fneu, spks, iscell, stat and ops, each file whole or not at all.

    The traces are written as F; Fneu and spks are zeros, since a recording has one kind of traces.
    ROIs are numbered from 0 on, as suite2p has no other ids. Behaviour is not written. Opening
    the folder with ``traces="raw"`` gives the same traces again.

    Parameters
    ----------
    recording : Recording
        With footprints in one plane.
    folder : path
        Such as ``suite2p/plane0``; it is made if need be.

    Returns
    -------
    Path
    """
    folder, footprints = Path(folder), recording.footprints
    if footprints is None or footprints.plane is not None:
        raise InputError("A plane folder of suite2p needs footprints, in one plane.")
    traces = np.ascontiguousarray(np.asarray(recording.traces).T, np.float32)
    accepted = np.asarray(recording.accepted, np.float64)
    likely = np.asarray(recording.cells.get("probability", accepted), np.float64)
    stat = np.empty(recording.n_cells, object)
    stat[:] = [_roi(footprints, cell, trace) for cell, trace in enumerate(traces)]
    files: dict[str, Any] = {
        "F.npy": traces,
        "Fneu.npy": np.zeros_like(traces),
        "spks.npy": np.zeros_like(traces),
        "iscell.npy": np.stack([accepted, likely], axis=1),
        "stat.npy": stat,
        "ops.npy": _ops(recording, footprints.shape, folder),
    }
    for name, content in files.items():
        with whole(folder / name) as temporary:
            np.save(temporary, content, allow_pickle=True)
    return folder


def _roi(footprints: Footprints, cell: int, trace: np.ndarray) -> dict[str, Any]:
    """Entry of stat.npy with all that suite2p's window asks of an ROI."""
    own = footprints.cell == cell
    row, column = footprints.row[own].astype(np.int64), footprints.column[own].astype(np.int64)
    center = [int(np.median(row)), int(np.median(column))] if len(row) else [0, 0]
    deviation = float(trace.std())
    centered = trace - trace.mean()
    radius = max(float(np.sqrt(len(row) / np.pi)), 1.0)
    return {
        "ypix": row,
        "xpix": column,
        "lam": footprints.weight[own].astype(np.float32),
        "med": center,
        "npix": len(row),
        "npix_norm": 1.0,
        "npix_soma": len(row),
        "soma_crop": np.ones(len(row), bool),
        "overlap": np.zeros(len(row), bool),
        "radius": radius,
        "aspect_ratio": 1.0,
        "compact": 1.0,
        "solidity": 1.0,
        "footprint": 1.0,
        "mrs": 1.0,
        "mrs0": 1.0,
        "std": deviation,
        "skew": float((centered**3).mean() / deviation**3) if deviation else 0.0,
    }


def _ops(recording: Recording, field: tuple[int, ...], folder: Path) -> dict[str, Any]:
    starts = np.asarray(recording.starts)
    images = {_IMAGES[name]: image for name, image in recording.images.items() if name in _IMAGES}
    blank = np.zeros(field, np.float32)
    return {
        "suite2p_version": "0.14",
        "save_path": str(folder),
        "Ly": field[0],
        "Lx": field[1],
        "yrange": [0, field[0]],
        "xrange": [0, field[1]],
        "fs": float(recording.rate),
        "tau": 1.0,
        "nplanes": 1,
        "nchannels": 1,
        "functional_chan": 1,
        "diameter": 12,
        "aspect": 1.0,
        "nframes": recording.n_frames,
        "frames_per_folder": np.diff(np.r_[starts, recording.n_frames]),
        "badframes": np.asarray(recording.excluded),
        "neucoeff": 0.7,
        "spikedetect": False,
        **{entry: blank for entry in ("meanImg", "meanImgE") if entry not in images},
        **images,
    }
