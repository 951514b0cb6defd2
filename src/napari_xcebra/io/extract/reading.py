"""Reads the struct that EXTRACT returns, saved in a .mat file.

=============================  ==========================================================
``spatial_weights``            (height, width, cells)
``temporal_weights``           (frames, cells)
``config``                     ``preprocess`` and ``skip_dff`` tell whether traces are ΔF/F
``info.summary_image``         (height, width), the brightest of each pixel
``info.F_per_pixel``           (height, width), the mean
=============================  ==========================================================

It does not say how many frames there are per second.
"""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import turned
from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.matlab.structs import Struct, has_struct, images_of, open_struct
from napari_xcebra.io.settings import OpenSettings

NAME = "EXTRACT output (.mat)"

_FIELDS = ("spatial_weights", "temporal_weights")
_IMAGES = {"max": "info.summary_image", "mean": "info.F_per_pixel"}


def sniff(path: Path) -> bool:
    """Whether a struct of the file has weights in space and time."""
    return has_struct(path, _FIELDS)


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Cells, traces and images."""
    with open_struct(path, _FIELDS) as output:
        footprints = output.footprints("spatial_weights")
        if footprints is None:
            raise InputError(
                f"{path} has spatial_weights that are not a plain array: in MATLAB, run "
                "output.spatial_weights = full(output.spatial_weights) and save it again."
            )
        traces = output.traces("temporal_weights", cells_first=False)
        if traces is None or 0 in traces.shape:
            raise InputError(f"{path} has no temporal_weights of frames × cells.")
        if footprints.n_cells > traces.shape[1]:
            raise InputError(
                f"{path} has {footprints.n_cells} cells in spatial_weights and {traces.shape[1]} "
                "in temporal_weights: the file mixes two runs."
            )
        signal: Signal = "dff" if _is_relative(output) else "traces"
        return Extraction(
            {signal: traces},
            footprints=turned(footprints) if settings.swap_axes else footprints,
            images=images_of(output, _IMAGES, footprints.shape),
            notes=("EXTRACT keeps no rejected cells: all count as cells.",),
        )


def _is_relative(output: Struct) -> bool:
    """Whether the movie was brought to ΔF/F before extraction."""
    flags = []
    for name in ("config.preprocess", "config.skip_dff"):
        value = output.numbers(name)
        flags.append(value is not None and value.size == 1 and bool(value.reshape(-1)[0]))
    return flags[0] and not flags[1]
