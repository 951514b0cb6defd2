"""Reads a suite2p folder: one plane, or all planes side by side (`combined`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import mapped_header
from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.suite2p.facts import read_facts
from napari_xcebra.io.suite2p.rois import (
    columns_of,
    footprints_of,
    is_all_shared,
    mixed,
    read_flags,
    read_stat,
)
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces, NpyTraces

SIGNALS: dict[Signal, str] = {
    "fluorescence": "F.npy",
    "neuropil": "Fneu.npy",
    "events": "spks.npy",
}
_WITHOUT = {
    "Fneu.npy": "neuropil cannot be subtracted",
    "spks.npy": "there are no deconvolved events",
    "iscell.npy": "every ROI counts as a cell",
    "stat.npy": "the positions of the cells are unknown",
}
_LAST = 16
"""Frames at the end of `combined` that are looked at for zeros."""


def read_plane(folder: Path, settings: OpenSettings) -> Extraction:
    """What suite2p found in a plane.

    Cells have the number of their ROI. Traces stay on disk.
    """
    signals, left_out = _signals(folder, settings)
    n_frames, n_cells = signals["fluorescence"].shape
    facts = read_facts(folder)
    notes = [f"Written by suite2p {facts.version}."] if facts.version else []
    notes += [
        f"There is no {name}: {but}."
        for name, but in _WITHOUT.items()
        if not (folder / name).is_file()
    ]
    notes += left_out
    if "events" in signals and not facts.deconvolved:
        del signals["events"]
        notes.append("spks.npy is empty: suite2p was told not to deconvolve.")
    field = facts.field
    cells, footprints, on_rois = _rois(folder / "stat.npy", n_cells, field)
    accepted = None
    if (folder / "iscell.npy").is_file():
        accepted, likely = read_flags(folder / "iscell.npy", n_cells)
        cells |= {} if likely is None else {"probability": likely}
    if (folder / "redcell.npy").is_file():
        cells["red"], likely = read_flags(folder / "redcell.npy", n_cells)
        cells |= {} if likely is None else {"red_probability": likely}
    images, more = ({}, ()) if field is None else facts.images(field)
    excluded, bad = facts.bad_frames(n_frames)
    if "plane" in cells and (filled := filled_frames(signals["fluorescence"], cells["plane"])):
        excluded = np.zeros(n_frames, bool) if excluded is None else excluded
        excluded[-filled:] = True
        bad += (f"The last {filled} frames are left out: not all planes have them.",)
    starts, pieces = facts.starts(n_frames)
    pixel_size, about_pixels = facts.pixel_size
    return Extraction(
        signals,
        facts.rate,
        cell_ids=np.arange(n_cells),
        accepted=accepted,
        cells=cells,
        footprints=footprints,
        images=images,
        excluded=excluded,
        starts=starts,
        neuropil_coefficient=facts.neuropil_coefficient,
        pixel_size=pixel_size,
        notes=(*notes, *on_rois, *more, *bad, *pieces, *about_pixels),
    )


def _rois(
    file: Path, n_cells: int, field: tuple[int, int] | None
) -> tuple[dict[str, np.ndarray], Footprints | None, tuple[str, ...]]:
    """What is known of each ROI, where it lies, and notes; nothing if there is no such file."""
    if not file.is_file():
        return {}, None, ()
    rois = read_stat(file, n_cells)
    footprints, notes = footprints_of(rois, field, file)
    if shared := sum(is_all_shared(roi) for roi in rois):
        notes = (
            *notes,
            f"{shared} ROIs share every pixel with others: suite2p measures no fluorescence for "
            "them unless overlap is allowed.",
        )
    return columns_of(rois), footprints, tuple(notes)


def _signals(folder: Path, settings: OpenSettings) -> tuple[dict[Signal, LazyTraces], list[str]]:
    """F.npy and the other traces that fit it, and notes on those that do not and are not needed.

    Without events, F and Fneu suffice; without neuropil, F only suffices if the user says so.
    """
    if not (folder / "F.npy").is_file():
        raise InputError(f"{folder} has no F.npy: suite2p did not extract traces into it.")
    signals: dict[Signal, LazyTraces] = {}
    shape, notes = None, []
    needless = {
        "events": settings.traces != "events",
        "neuropil": settings.traces in ("raw", "events") or settings.neuropil == 0,
    }
    for signal, name in SIGNALS.items():
        path = folder / name
        if not path.is_file():
            continue
        try:
            shape = _check_shape(path, shape)
        except InputError as error:
            if needless.get(signal):
                notes.append(f"{name} is left out, so that {_WITHOUT[name]}: {error}")
                continue
            if signal == "neuropil":
                raise InputError(
                    f"{error} To use F.npy without subtracting neuropil, set `neuropil` to 0."
                ) from error
            raise
        signals[signal] = NpyTraces(path, cells_first=True)
    return signals, notes


def _check_shape(path: Path, needed: tuple[int, ...] | None) -> tuple[int, ...]:
    """Cells and frames of a file of traces; raises if they are not those needed."""
    header = mapped_header(path)
    if header.dtype.kind not in "biuf" or len(header.shape) != 2 or 0 in header.shape:
        raise InputError(
            f"{path} has an array of shape {header.shape} and type {header.dtype}: numbers, "
            "cells × frames, are needed."
        )
    for there, n, what in zip(
        header.shape, needed or header.shape, ("cells", "frames"), strict=True
    ):
        if there != n:
            raise mixed(path.parent, n, path.name, there, what)
    return header.shape


def filled_frames(fluorescence: LazyTraces, plane: np.ndarray) -> int:
    """Number of frames at the end that some plane of `combined` lacks.

    Planes of a volume may differ by a frame; suite2p fills the shorter ones with zeros.
    """
    n_frames, n_cells = fluorescence.shape
    last = slice(max(n_frames - _LAST, 0), n_frames)
    zero = fluorescence.block(last, slice(0, n_cells)) == 0
    filled = 0
    for number in np.unique(plane):
        dark = zero[:, plane == number].all(axis=1)
        if not dark.all():
            filled = max(filled, int(np.argmin(dark[::-1])))
    return filled
