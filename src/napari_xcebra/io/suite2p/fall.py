"""Reads Fall.mat, which suite2p writes for MATLAB: a whole plane in one file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.suite2p.facts import Facts
from napari_xcebra.io.suite2p.rois import columns_of, footprints_of

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
