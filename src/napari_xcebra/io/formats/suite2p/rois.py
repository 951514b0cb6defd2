"""Reads the ROIs of suite2p: their pixels from stat.npy, their class from iscell.npy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import read_npy, read_object_npy
from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.formats.suite2p.facts import LARGEST_FIELD, Facts, Real
from napari_xcebra.recording.footprints import Footprints

Roi = dict[str, Any]

_COLUMNS = {"skew": "skew", "radius": "radius", "snr": "snr", "compactness": "compact",
            "npix": "npix"}  # fmt: skip


def mixed(folder: Path, n_cells: int, name: str, n_others: int, what: str = "cells") -> InputError:
    """Sentence on files that do not belong together."""
    return InputError(
        f"{folder}: F.npy has {n_cells} {what} but {name} has {n_others}: the folder mixes two "
        "suite2p runs."
    )


def read_stat(path: Path, n_cells: int) -> list[Roi]:
    """The ROIs, one for each cell of F.npy."""
    found = read_object_npy(path)
    rois = found.ravel().tolist() if isinstance(found, np.ndarray) else found
    if not isinstance(rois, list) or not all(isinstance(roi, dict) for roi in rois):
        raise InputError(f"{path} does not hold suite2p ROIs (dictionaries).")
    if len(rois) != n_cells:
        raise mixed(path.parent, n_cells, path.name, len(rois))
    return rois


def footprints_of(
    rois: Sequence[Roi], field: tuple[int, int] | None, path: Path
) -> tuple[Footprints, tuple[str, ...]]:
    """Where the ROIs lie.

    Parameters
    ----------
    rois : sequence of dict
    field : (height, width) or None
        The field of view; None if not known, the pixels then say how large it is at least.
    path : Path
        Of stat.npy, for sentences.

    Returns
    -------
    Footprints
    tuple of str
        Notes.
    """
    pixels = [_pixels(roi, field, f"ROI {i} of {path}") for i, roi in enumerate(rois)]
    counts = [len(rows) for rows, _, _ in pixels]
    row, column, weight = (np.concatenate([[], *axis]) for axis in zip(*pixels, strict=True))
    row, column = row.astype(np.int64), column.astype(np.int64)
    bottom, right = int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1
    if min(row.min(initial=0), column.min(initial=0)) < 0 or bottom * right > LARGEST_FIELD:
        raise InputError(f"{path} has pixels at implausible positions: it is damaged.")
    notes: tuple[str, ...] = ()
    if field is None:
        field = (bottom, right)
        notes = (
            f"The size of the field of view is unknown: {bottom} × {right} pixels, as far as the "
            "ROIs reach, are used.",
        )
    elif bottom > field[0] or right > field[1]:
        raise InputError(
            f"{path} has pixels up to row {bottom - 1} and column {right - 1}, outside the field "
            f"of view of {field[0]} × {field[1]} pixels: the folder mixes two suite2p runs."
        )
    cell = np.repeat(np.arange(len(rois), dtype=np.int32), counts)
    at = (row.astype(np.int32), column.astype(np.int32))
    return Footprints(field, cell, *at, weight.astype(np.float32)), notes


def columns_of(rois: Sequence[Roi]) -> dict[str, np.ndarray]:
    """What stat.npy measured of each ROI, (cells,) each; "plane" and "roi" in `combined`."""
    columns = {}
    for name, entry in _COLUMNS.items():
        values = np.array([_number(roi.get(entry)) for roi in rois], np.float32)
        if np.isfinite(values).any():
            columns[name] = values
    plane = np.array([_number(roi.get("iplane")) for roi in rois])
    if np.isfinite(plane).all():
        columns["plane"] = plane.astype(np.int64)
        columns["roi"] = _count_within(columns["plane"])
    return columns


def is_all_shared(roi: Roi) -> bool:
    """Whether every pixel of an ROI belongs to others as well."""
    overlap = roi.get("overlap")
    return (
        isinstance(overlap, np.ndarray)
        and overlap.dtype == bool
        and bool(overlap.size and overlap.all())
    )


def read_flags(path: Path, n_cells: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Flag of each ROI, (cells,) bool, and the probability of it, (cells,) float32 if known."""
    table = read_npy(path)
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2) or 0 in table.shape[1:]:
        raise InputError(f"{path} has shape {table.shape}: (cells, 2) is needed.")
    if len(table) != n_cells:
        raise mixed(path.parent, n_cells, path.name, len(table))
    flags = table if table.ndim == 1 else table[:, 0]
    likely = table[:, 1].astype(np.float32) if table.ndim == 2 and table.shape[1] > 1 else None
    return flags > 0, likely


def _pixels(
    roi: Roi, field: tuple[int, int] | None, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and weights of the pixels of an ROI."""
    if "ypix" in roi and "xpix" in roi:
        row, column = _whole(roi["ypix"], name), _whole(roi["xpix"], name)
    elif "ipix" in roi and field is not None:
        row, column = np.divmod(_whole(roi["ipix"], name), field[1])
    else:
        raise InputError(f"{name} has no pixels (ypix and xpix, or ipix and a known width).")
    weight = np.ravel(roi.get("lam", np.ones(len(row))))
    if len(row) != len(column) or len(row) != len(weight) or weight.dtype.kind not in "biuf":
        raise InputError(
            f"{name} has {len(row)} rows, {len(column)} columns and {len(weight)} weights of "
            "pixels: the same number of each is needed."
        )
    with np.errstate(all="ignore"):
        return row, column, np.nan_to_num(weight.astype(np.float32), posinf=0, neginf=0)


def _whole(values: Any, name: str) -> np.ndarray:
    values = np.ravel(values)
    if values.size and values.dtype.kind not in "iu":
        raise InputError(f"{name} has pixels of type {values.dtype}: whole numbers are needed.")
    return values.astype(np.int64)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, Real) and -1e30 < value < 1e30 else np.nan


def _count_within(groups: np.ndarray) -> np.ndarray:
    """Running number of each within its own group, from 0."""
    count = np.empty(len(groups), np.int64)
    for group in np.unique(groups):
        here = groups == group
        count[here] = np.arange(here.sum())
    return count


_ROI = re.compile(r"stat[({](\d+)[)}]\.(\w+)")
_PIXELS = ("ypix", "xpix", "ipix")
_SIGNALS: dict[Signal, str] = {"fluorescence": "F", "neuropil": "Fneu", "events": "spks"}


def read_fall(arrays: Mapping[str, np.ndarray], path: Path) -> Extraction | None:
    """What suite2p found in a plane; None if these are not the arrays of a Fall.mat.

    Parameters
    ----------
    arrays : mapping of str to array
        As `containers.matlab.read_mat` gives them: ``stat{3}.ypix``, ``ops.fs``, ``F`` …
    path : Path
        For sentences.
    """
    rois = _rois(arrays)
    count, fluorescence = len(rois), arrays.get("F")
    if not rois or fluorescence is None or count not in fluorescence.shape:
        return None
    # as suite2p writes it, unless somebody turned it in MATLAB
    cells_first = fluorescence.shape[0] == count
    alike = {s: arrays[n] for s, n in _SIGNALS.items() if n in arrays}
    signals = {s: a.T if cells_first else a for s, a in alike.items()
               if a.shape == fluorescence.shape}  # fmt: skip
    notes = [f"{path.name} was read as suite2p's Fall.mat: a struct for each of {count} ROIs."]
    notes += [f"{_SIGNALS[s]} of {path.name} does not have the size of F: left out."
              for s in alike if s not in signals]  # fmt: skip
    facts = Facts(_options(arrays))
    if "events" in signals and not facts.deconvolved:
        del signals["events"]
    n_frames = fluorescence.shape[1] if cells_first else fluorescence.shape[0]
    footprints, on_rois = footprints_of(rois, facts.field, path)
    cells = columns_of(rois)
    accepted, likely = _flags(arrays.get("iscell"), count)
    cells |= {} if likely is None else {"probability": likely}
    red, likely = _flags(arrays.get("redcell"), count)
    cells |= {} if red is None else {"red": red}
    cells |= {} if likely is None else {"red_probability": likely}
    images, more = ({}, ()) if facts.field is None else facts.images(facts.field)
    excluded, bad = facts.bad_frames(n_frames)
    starts, pieces = facts.starts(n_frames)
    pixel_size, about_pixels = facts.pixel_size
    return Extraction(
        signals,
        facts.rate,
        cell_ids=np.arange(count),
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


def _rois(arrays: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Entries of stat, in order; none if one lacks pixels."""
    rois: dict[int, dict[str, Any]] = {}
    for name, array in arrays.items():
        if found := _ROI.fullmatch(name):
            rois.setdefault(int(found[1]), {})[found[2]] = _plain(array, found[2] in _PIXELS)
    whole = all({"ypix", "xpix"} <= set(roi) for roi in rois.values())
    return [rois[number] for number in sorted(rois)] if whole else []


def _options(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Entries of ops; structs in it are dictionaries."""
    options: dict[str, Any] = {}
    for name, array in arrays.items():
        first, *inner = name.split(".")
        if first != "ops" or not inner or "{" in name or "(" in name:
            continue
        place = options
        for struct in inner[:-1]:
            place = place.setdefault(struct, {})
        place[inner[-1]] = _plain(array)
    return options


def _plain(array: np.ndarray, pixels: bool = False) -> Any:
    """A number, a vector or an image: MATLAB has matrices only, of float64 by habit."""
    if pixels and array.dtype.kind == "f" and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.size == 1 and not pixels:
        return array.item()
    return array.reshape(-1) if 1 in array.shape else array


def _flags(table: np.ndarray | None, count: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Flag of each ROI, (cells,) bool, and its probability if known."""
    if table is None or table.dtype.kind not in "biuf" or count not in table.shape:
        return None, None
    table = (table if len(table) == count else table.T).reshape(count, -1)
    likely = table[:, 1].astype(np.float32) if table.shape[1] > 1 else None
    return table[:, 0] > 0, likely
