"""Reads CNMF-E (and CNMF) output as lab pipelines in MATLAB save it: one struct in a .mat file.

==============================  ====================================================
``extractedImages``             (height, width, cells)
``extractedSignals``            (cells, frames), before deconvolution
``extractedSignalsEst``         (cells, frames), denoised; if there
``extractedPeaks``              (cells, frames), deconvolved events; if there
``Cn``                          (height, width), correlation image
``inputOptions.Fs``             frames per second that the algorithm was told; if there
==============================  ====================================================
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import turned
from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.matlab.structs import Struct, has_struct, images_of, open_struct
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.traces import LazyTraces

NAME = "CNMF-E output (.mat)"

_FIELDS = ("extractedImages", "extractedSignals")
_SIGNALS: dict[Signal, str] = {
    "traces": "extractedSignals",
    "denoised": "extractedSignalsEst",
    "events": "extractedPeaks",
}


def sniff(path: Path) -> bool:
    """Whether a struct of the file has extracted images and signals."""
    return has_struct(path, _FIELDS)


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Cells, traces and the correlation image."""
    with open_struct(path, _FIELDS) as output:
        footprints = output.footprints("extractedImages")
        if footprints is None:
            raise InputError(f"{path} has no extractedImages of height × width × cells.")
        signals = _signals(output, path)
        n_cells = signals["traces"].shape[1]
        if footprints.n_cells > n_cells:
            raise InputError(
                f"{path} has {footprints.n_cells} cells in extractedImages and {n_cells} in "
                "extractedSignals: the file mixes two runs."
            )
        rate = _rate(output)
        notes = ["CNMF-E keeps no rejected cells: all count as cells."]
        if rate is not None:
            notes.append(f"{rate:g} frames per second, as set for CNMF-E (Fs).")
        return Extraction(
            signals,
            rate=rate,
            footprints=turned(footprints) if settings.swap_axes else footprints,
            images=images_of(output, {"correlation": "Cn"}, footprints.shape),
            notes=tuple(notes),
        )


def _signals(output: Struct, path: Path) -> dict[Signal, LazyTraces | np.ndarray]:
    main = output.traces("extractedSignals", cells_first=True)
    if main is None or 0 in main.shape:
        raise InputError(f"{path} has no extractedSignals of cells × frames.")
    found: dict[Signal, LazyTraces | np.ndarray] = {}
    for signal, name in _SIGNALS.items():
        traces = output.traces(name, cells_first=True)
        if traces is not None and traces.shape == main.shape:
            found[signal] = traces
    return found


def _rate(output: Struct) -> float | None:
    rate = output.numbers("inputOptions.Fs")
    if rate is None or rate.size != 1 or not 0 < rate.reshape(-1)[0] < np.inf:
        return None
    return float(rate.reshape(-1)[0])
