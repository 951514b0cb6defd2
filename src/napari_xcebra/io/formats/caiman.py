"""Reads the HDF5 file that CaImAn writes (``CNMF.save()``).

=================================================  ================================================
``estimates/A/{data,indices,indptr,shape}``        footprints: CSC, pixels × components; pixels
                                                   count down the columns of the image (Fortran)
``estimates/dims``                                 height, width (and planes)
``estimates/{C,F_dff,S,YrA}``                      (components, frames): denoised, ΔF/F, events, and
                                                   what of the movie the model leaves over
``estimates/{b,f}`` or ``estimates/b0``            background, over space and over time
``estimates/Cn``                                   correlation image
``estimates/idx_components``                       accepted components
``estimates/{SNR_comp,r_values,cnn_preds}``        how good each component is; may be empty
``params/data/fr``                                 frames per second
``params/data/dxy``                                micrometres per pixel; 1 and 1 if nobody said
=================================================  ================================================

None is written as the text ``NoneType``.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    Hdf5Traces,
    changed_copy,
    child,
    dataset_at,
    group_at,
    has_signature,
    open_hdf5,
    read,
    sparse_matrix,
)
from napari_xcebra.io.decisions.plan import Plan, change_to, seen, target_of
from napari_xcebra.io.extraction import Extraction, Signal, judged, pair
from napari_xcebra.io.movie.finding import Like
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies import Frames, Movie, PixelFrames, PlainFrames, TurnedFrames
from napari_xcebra.recording.traces import CorrectedTraces, LazyTraces

if TYPE_CHECKING:
    from napari_xcebra.io.decisions.decided import Decided

NAME = "CaImAn results (.hdf5 from CNMF.save)"

LARGEST = 2**30
"""Bytes of traces that are read for the mean image; components add little to the background."""

_SIGNALS: dict[Signal, str] = {"dff": "F_dff", "denoised": "C", "events": "S"}
_QUALITY = {"snr": "SNR_comp", "r": "r_values", "cnn": "cnn_preds"}


def sniff(path: Path) -> bool:
    """Whether it is an HDF5 file with the estimates of CaImAn, or one damaged by that name."""
    if not path.is_file() or not has_signature(path):
        return False
    try:
        with open_hdf5(path) as file:
            return child(file, "estimates/A") is not None and child(file, "params") is not None
    except InputError:
        return path.suffix.lower() == ".hdf5"


def load(path: Path, settings: OpenSettings) -> Extraction:
    """All components, with their traces, footprints and quality."""
    with open_hdf5(path) as file:
        estimates = group_at(file, "estimates")
        if estimates is None:
            raise InputError(f"{path} has no estimates: it is not a CaImAn file.")
        notes: list[str] = []
        signals = _signals(estimates, path, notes)
        n_cells = next(iter(signals.values())).shape[1]
        dims = _dims(estimates, file, path)
        weights = _matrix(estimates, "A")
        if weights is None or weights.shape != (math.prod(dims), n_cells):
            found = "no footprints" if weights is None else f"footprints of {weights.shape}"
            raise InputError(
                f"{path} has {found} for {n_cells} components in a field of view of "
                f"{' × '.join(map(str, dims))} pixels: the file is damaged."
            )
        return Extraction(
            signals,
            rate=_rate(file),
            accepted=_accepted(estimates, n_cells, path, notes),
            cells={
                name: column
                for name, key in _QUALITY.items()
                if (column := _column(estimates, key, n_cells)) is not None
            },
            footprints=_footprints(weights, dims),
            images=_images(estimates, weights, dims, notes),
            pixel_size=_pixel_size(file, notes),
            notes=tuple(notes),
        )


def _signals(estimates: h5py.Group, path: Path, notes: list[str]) -> dict[Signal, LazyTraces]:
    denoised = dataset_at(estimates, "C")
    if denoised is None or denoised.ndim != 2:
        raise InputError(f"{path} has no traces (estimates/C): fit the model before saving it.")
    found: dict[Signal, LazyTraces] = {}
    for signal, name in _SIGNALS.items():
        dataset = dataset_at(estimates, name)
        if dataset is None or dataset.ndim != 2:
            continue
        if dataset.shape != denoised.shape:
            notes.append(
                f"{name} has {dataset.shape[0]} × {dataset.shape[1]} values but C has "
                f"{denoised.shape[0]} × {denoised.shape[1]}: {name} is left out."
            )
            continue
        found[signal] = Hdf5Traces.of(dataset, cells_first=True)
    residual = dataset_at(estimates, "YrA")
    if residual is not None and residual.shape == denoised.shape:
        # C + YrA: what the movie has at the component, less −1 of the residual. It has no baseline
        # left (the background is taken away), so that no ΔF/F must be made of it.
        left_over = Hdf5Traces.of(residual, cells_first=True)
        found["traces"] = CorrectedTraces(found["denoised"], left_over, -1.0)
        notes.append(
            "Raw traces are CaImAn's C + YrA: the background is already subtracted, and their unit "
            "is that of the movie."
        )
    return found


def _dims(estimates: h5py.Group, file: h5py.File, path: Path) -> tuple[int, ...]:
    """Height, width and, of a volume, planes."""
    for group, name in ((estimates, "dims"), (file, "dims"), (file, "params/data/dims")):
        dims = _numbers(group, name)
        if dims is not None and dims.shape in ((2,), (3,)) and (dims > 0).all():
            return tuple(int(n) for n in dims)
    raise InputError(f"{path} does not give the size of the field of view (dims).")


def _numbers(group: h5py.Group, name: str) -> np.ndarray | None:
    """Numbers of a dataset; None if it is missing or stands for None."""
    dataset = dataset_at(group, name)
    if dataset is None or dataset.dtype.kind not in "biuf":
        return None
    return np.asarray(read(dataset))


def _matrix(group: h5py.Group, name: str) -> scipy.sparse.csc_array | None:
    """A matrix stored as sparse or dense, or None."""
    parts = group_at(group, name)
    if parts is None:
        plain = _numbers(group, name)
        if plain is None or plain.ndim != 2:
            return None
        return scipy.sparse.csc_array(plain)
    values = [_numbers(parts, part) for part in ("data", "indices", "indptr", "shape")]
    if any(part is None for part in values):
        raise InputError(f"{group.file.filename}: estimates/{name} is incomplete.")
    data, rows, ends, shape = values
    return sparse_matrix(data, rows, ends, shape)


def _footprints(weights: scipy.sparse.csc_array, dims: tuple[int, ...]) -> Footprints:
    pixels = weights.tocoo()
    inside = pixels.data > 0
    row, column, *plane = np.unravel_index(pixels.row[inside], dims, order="F")
    return Footprints(
        (*dims[2:], *dims[:2]),
        pixels.col[inside].astype(np.int32),
        row.astype(np.int32),
        column.astype(np.int32),
        pixels.data[inside].astype(np.float32),
        plane[0].astype(np.int32) if plane else None,
    )


def _accepted(
    estimates: h5py.Group, n_cells: int, path: Path, notes: list[str]
) -> np.ndarray | None:
    chosen = _numbers(estimates, "idx_components")
    if chosen is None:
        notes.append(
            "No components are marked as accepted or rejected (idx_components is None, as after "
            "select_components): all count as cells."
        )
        return None
    if chosen.size and not (0 <= chosen.min() and chosen.max() < n_cells):
        raise InputError(
            f"{path} accepts component {chosen.max()}, but has {n_cells}: the file is damaged."
        )
    accepted = np.zeros(n_cells, bool)
    accepted[chosen.astype(np.int64)] = True
    return accepted


def _column(estimates: h5py.Group, name: str, n_cells: int) -> np.ndarray | None:
    column = _numbers(estimates, name)
    if column is None or column.size != n_cells:
        return None
    return column.reshape(n_cells).astype(np.float64)


def _rate(file: h5py.File) -> float | None:
    rate = _numbers(file, "params/data/fr")
    if rate is None or rate.size != 1 or not 0 < rate.reshape(()) < np.inf:
        return None
    return float(rate.reshape(()))


def _pixel_size(file: h5py.File, notes: list[str]) -> float | None:
    size = pair(_numbers(file, "params/data/dxy"))
    if size is None or size == (1.0, 1.0):
        return None
    # across the columns comes second, as in the shape of the field
    found, more = judged(*size[::-1])
    notes += more
    return found


def _images(
    estimates: h5py.Group, weights: scipy.sparse.csc_array, dims: tuple[int, ...], notes: list[str]
) -> dict[str, np.ndarray]:
    images = {}
    mean = _mean_image(estimates, weights)
    if mean is not None and np.isfinite(mean).all():
        images["mean"] = _planes_first(mean.reshape(dims, order="F"))
        notes.append(
            "The mean image is that of CaImAn's model: background and components, averaged over "
            "time."
        )
    correlation = _numbers(estimates, "Cn")
    if correlation is not None and correlation.shape == dims:
        least = np.nanmin(correlation, initial=1.0)
        filled = np.where(np.isfinite(correlation), correlation, least)
        images["correlation"] = _planes_first(filled)
    return images


def _mean_image(estimates: h5py.Group, weights: scipy.sparse.csc_array) -> np.ndarray | None:
    """(pixels,), or None if the background of the model is unknown."""
    flat = _numbers(estimates, "b0")
    space, time = _matrix(estimates, "b"), _numbers(estimates, "f")
    if space is not None and time is not None and time.ndim == 2:
        if space.shape != (weights.shape[0], time.shape[0]) or not time.size:
            return None
        background = space @ time.mean(axis=1)
    elif flat is not None and flat.size == weights.shape[0]:
        background = flat.reshape(-1)
    else:
        return None
    denoised = dataset_at(estimates, "C")
    if denoised is None or denoised.size * denoised.dtype.itemsize > LARGEST:
        return background
    return background + weights @ read(denoised).mean(axis=1)


def _planes_first(image: np.ndarray) -> np.ndarray:
    return np.moveaxis(image, 2, 0).astype(np.float32) if image.ndim == 3 else image.astype("f4")


TITLE = "CaImAn (idx_components)"
ACCEPTED, REJECTED = "idx_components", "idx_components_bad"


def plan_decisions(decided: Decided, destination: Path | None) -> Plan:
    """One file: the opened one, with a backup, or a copy elsewhere."""
    source = decided.path
    assert source is not None
    read = seen(source)
    warnings = _checked(source, decided.recording.n_cells)
    target = target_of(source, destination)
    accepted = decided.accepted.copy()
    count = f"{ACCEPTED} has {int(accepted.sum())} components, {REJECTED} {int((~accepted).sum())}."
    is_same = target.resolve() == source.resolve()
    what = count if is_same else f"Copy of {source} with these decisions: {count}"

    def make(path: Path) -> None:
        changed_copy(source, path, lambda file: _write(file, accepted), 16 * len(accepted))

    change = change_to(target, what, make, size=source.stat().st_size, copy=True)
    return Plan("caiman", (change,), decided.summary(), tuple(warnings), read)


def _checked(source: Path, n_cells: int) -> list[str]:
    """Warnings about the file; raises if it does not belong to this recording."""
    with open_hdf5(source) as file:
        traces = dataset_at(file, "estimates/C")
        there = 0 if traces is None else traces.shape[0]
        if there != n_cells:
            raise InputError(
                f"{source} has {there} components but the recording has {n_cells}: it has been "
                "rewritten since it was opened. Reopen it."
            )
        present = dataset_at(file, f"estimates/{ACCEPTED}")
        if present is None or present.dtype.kind not in "iu":
            return ["CaImAn had marked no components as accepted or rejected; now they are."]
    return []


def _write(file: h5py.File, accepted: np.ndarray) -> None:
    estimates = group_at(file, "estimates")
    if estimates is None:
        raise InputError(f"{file.filename} has no estimates: it is not a CaImAn file.")
    for name, chosen in ((ACCEPTED, accepted), (REJECTED, ~accepted)):
        # what is there may have another length, or be the text that stands for None
        if name in estimates:
            del estimates[name]
        estimates.create_dataset(name, data=np.flatnonzero(chosen).astype(np.int64))


MOVIE = "CaImAn (.mmap)"
STORED = np.dtype("<f4")
_LAYOUT = re.compile(r"_d1_(\d{1,7})_d2_(\d{1,7})_d3_(\d{1,5})_order_([CF])_frames_(\d{1,9})")


def sniff_movie(path: Path) -> bool:
    """Whether its name has the layout."""
    return path.suffix == ".mmap" and _LAYOUT.search(path.name) is not None and path.is_file()


def load_movie(path: Path, like: Like) -> Movie:
    """Opens the movie that CaImAn keeps to work on: plain numbers, laid out as its name says.

    ``…_d1_512_d2_512_d3_1_order_F_frames_3000.mmap``: height, width and planes, float32. Pixels
    count down the columns of the image. In order F a frame lies together, in order C the values
    of a pixel.
    """
    found = _LAYOUT.search(path.name)
    if found is None:
        raise InputError(f"{path} does not have its size in its name, as CaImAn writes it.")
    height, width, planes, frames = (int(found[i]) for i in (1, 2, 3, 5))
    claimed = math.prod((height, width, planes, frames)) * STORED.itemsize
    size = path.stat().st_size
    if not claimed or size != claimed:
        raise InputError(
            f"{path} has {size:,} bytes, but its name says {height} × {width} pixels, "
            f"{planes} planes and {frames:,} frames, which take {claimed:,}: it is incomplete."
        )
    shape = frames, height, width
    by_frame = found[4] == "F"
    parts = tuple(_plane(path, shape, plane, planes, by_frame) for plane in range(planes))
    return Movie(parts, path, stacked=planes > 1)


def _plane(
    path: Path, shape: tuple[int, int, int], plane: int, planes: int, by_frame: bool
) -> Frames:
    frames, height, width = shape
    size = height * width * STORED.itemsize
    if not by_frame:
        return PixelFrames(path, shape, STORED, plane * size * frames)
    places = range(plane * size, frames * planes * size, planes * size)
    return TurnedFrames(PlainFrames(path, (frames, width, height), STORED, places))
