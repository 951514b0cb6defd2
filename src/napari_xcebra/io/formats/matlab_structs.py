"""Reads the struct of a .mat file that EXTRACT returns, or lab pipelines save of CNMF-E (and CNMF).

==============================  ====================================================
``extractedImages``             CNMF-E: (height, width, cells)
``extractedSignals``            (cells, frames), before deconvolution
``extractedSignalsEst``         (cells, frames), denoised; if there
``extractedPeaks``              (cells, frames), deconvolved events; if there
``Cn``                          (height, width), correlation image
``inputOptions.Fs``             frames per second that the algorithm was told; if there
``spatial_weights``             EXTRACT: (height, width, cells)
``temporal_weights``            (frames, cells)
``config``                      ``preprocess``, ``skip_dff``: whether traces are ΔF/F
``info.summary_image``          (height, width), the brightest of each pixel
``info.F_per_pixel``            (height, width), the mean
==============================  ====================================================

EXTRACT does not say how many frames there are per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    Hdf5Traces,
    child,
    dataset_at,
    footprints_of_masks,
    group_at,
    has_signature,
    open_hdf5,
    turned,
)
from napari_xcebra.io.containers.matlab import is_mat, matlab_array, read_mat, struct_heads
from napari_xcebra.io.extraction import Extraction, Signal, finite_image
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces

NAME = "CNMF-E or EXTRACT output (.mat)"
_CNMFE = ("extractedImages", "extractedSignals")
_EXTRACT = ("spatial_weights", "temporal_weights")


def sniff(path: Path) -> bool:
    """Whether a struct of the file has the fields of either."""
    return _has_struct(path, _CNMFE) or _has_struct(path, _EXTRACT)


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Cells, traces and images."""
    load_one = _load_cnmfe if _has_struct(path, _CNMFE) else _load_extract
    return load_one(path, settings)


class _Struct(Protocol):
    """Fields of a struct; those of structs in it are named ``inner.field``."""

    def numbers(self, name: str) -> np.ndarray | None:
        """A field as MATLAB shows it; None if it is missing or holds no numbers."""

    def traces(self, name: str, *, cells_first: bool) -> LazyTraces | np.ndarray | None:
        """A field of frames × cells; or of cells × frames, as MATLAB shows it."""

    def footprints(self, name: str) -> Footprints | None:
        """A field of height × width × cells."""


def _has_struct(path: Path, fields: tuple[str, ...]) -> bool:
    """Whether the file has a struct with all these fields."""
    if not path.is_file() or not is_mat(path):
        return False
    if not has_signature(path):
        return any(all(field.encode() in head for field in fields) for head in struct_heads(path))
    try:
        with open_hdf5(path) as file:
            return _group(file, fields) is not None
    except InputError:
        return False


@contextmanager
def _open_struct(path: Path, fields: tuple[str, ...]) -> Iterator[_Struct]:
    """The struct that has all these fields."""
    if has_signature(path):
        with open_hdf5(path) as file:
            group = _group(file, fields)
            if group is None:
                raise _missing(path, fields)
            yield _Hdf5Struct(group)
        return
    arrays = read_mat(path)
    names = dict.fromkeys(name.partition(".")[0] for name in arrays)
    of = next((n for n in names if all(_has_field(arrays, f"{n}.{f}") for f in fields)), None)
    if of is None:
        raise _missing(path, fields)
    yield _Mat5Struct(path, of, arrays)


def _has_field(arrays: Mapping[str, np.ndarray], name: str) -> bool:
    return any(each == name or each.startswith((f"{name}.", f"{name}{{")) for each in arrays)


def _images_of(
    struct: _Struct, fields: Mapping[str, str], shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """Images of the struct with the shape of the field of view, (height, width) float32."""
    images = {}
    for name, field in fields.items():
        image = struct.numbers(field)
        filled = None if image is None or image.shape != shape else finite_image(image)
        if filled is not None:
            images[name] = filled
    return images


def _missing(path: Path, fields: tuple[str, ...]) -> InputError:
    return InputError(f"{path} has no struct with {' and '.join(fields)}, or it is damaged.")


def _group(file: h5py.File, fields: tuple[str, ...]) -> h5py.Group | None:
    for name in file:
        group = None if name.startswith("#") else group_at(file, name)
        if group is not None and all(child(group, field) is not None for field in fields):
            return group
    return None


@dataclass(frozen=True)
class _Hdf5Struct:
    """A struct of MATLAB 7.3, where every array lies transposed."""

    group: h5py.Group

    def numbers(self, name: str) -> np.ndarray | None:
        """A field as MATLAB shows it."""
        dataset = dataset_at(self.group, name.replace(".", "/"))
        return None if dataset is None else matlab_array(dataset)

    def traces(self, name: str, *, cells_first: bool) -> LazyTraces | None:
        """A field of frames × cells, or cells × frames."""
        dataset = dataset_at(self.group, name)
        if dataset is None or dataset.dtype.kind not in "biuf" or dataset.ndim != 2:
            return None
        return Hdf5Traces.of(dataset, cells_first=not cells_first)

    def footprints(self, name: str) -> Footprints | None:
        """A field of height × width × cells."""
        dataset = dataset_at(self.group, name)
        if dataset is None or dataset.dtype.kind not in "biuf" or dataset.ndim != 3:
            return None
        return footprints_of_masks(dataset, turned=True)


@dataclass(frozen=True)
class _Mat5Struct:
    """A struct of MATLAB 5, read already."""

    path: Path
    name: str
    arrays: Mapping[str, np.ndarray]

    def numbers(self, name: str) -> np.ndarray | None:
        """A field as MATLAB shows it."""
        return self.arrays.get(f"{self.name}.{name}")

    def traces(self, name: str, *, cells_first: bool) -> np.ndarray | None:
        """A field of frames × cells, or cells × frames."""
        found = self.numbers(name)
        if found is None or found.ndim != 2:
            return None
        return found.T if cells_first else found

    def footprints(self, name: str) -> Footprints | None:
        """A field of height × width × cells."""
        masks = self.numbers(name)
        if masks is not None and masks.ndim == 2:
            masks = masks[:, :, None]  # MATLAB drops the last axis of a single cell
        if masks is None or masks.ndim != 3:
            return None
        row, column, cell = (axis.astype(np.int32) for axis in np.nonzero(masks > 0))
        weight = masks[row, column, cell].astype(np.float32)
        return Footprints(masks.shape[:2], cell, row, column, weight)


_SIGNALS: dict[Signal, str] = {
    "traces": "extractedSignals",
    "denoised": "extractedSignalsEst",
    "events": "extractedPeaks",
}


def _load_cnmfe(path: Path, settings: OpenSettings) -> Extraction:
    """Cells, traces and the correlation image."""
    with _open_struct(path, _CNMFE) as output:
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
            images=_images_of(output, {"correlation": "Cn"}, footprints.shape),
            notes=tuple(notes),
        )


def _signals(output: _Struct, path: Path) -> dict[Signal, LazyTraces | np.ndarray]:
    main = output.traces("extractedSignals", cells_first=True)
    if main is None or 0 in main.shape:
        raise InputError(f"{path} has no extractedSignals of cells × frames.")
    found: dict[Signal, LazyTraces | np.ndarray] = {}
    for signal, name in _SIGNALS.items():
        traces = output.traces(name, cells_first=True)
        if traces is not None and traces.shape == main.shape:
            found[signal] = traces
    return found


def _rate(output: _Struct) -> float | None:
    rate = output.numbers("inputOptions.Fs")
    if rate is None or rate.size != 1 or not 0 < rate.reshape(-1)[0] < np.inf:
        return None
    return float(rate.reshape(-1)[0])


_IMAGES = {"max": "info.summary_image", "mean": "info.F_per_pixel"}


def _load_extract(path: Path, settings: OpenSettings) -> Extraction:
    """Cells, traces and images."""
    with _open_struct(path, _EXTRACT) as output:
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
            images=_images_of(output, _IMAGES, footprints.shape),
            notes=("EXTRACT keeps no rejected cells: all count as cells.",),
        )


def _is_relative(output: _Struct) -> bool:
    """Whether the movie was brought to ΔF/F before extraction."""
    flags = []
    for name in ("config.preprocess", "config.skip_dff"):
        value = output.numbers(name)
        flags.append(value is not None and value.size == 1 and bool(value.reshape(-1)[0]))
    return flags[0] and not flags[1]
