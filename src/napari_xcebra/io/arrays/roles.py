"""Finds the role of each array of a file (.npz, .mat, .h5) by its name and shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import ascends, scale_of
from napari_xcebra.io.containers.matlab import cell_of
from napari_xcebra.io.extraction import FEW_COLUMNS, Signal

# In the order in which they are looked for; a single letter has to have that case.
_SIGNALS: dict[Signal, tuple[str, ...]] = {
    "fluorescence": ("F", "fluorescence", "fluo", "f_raw", "raw_f", "raw_fluorescence"),
    "traces": ("traces", "trace", "calcium", "neural", "neural_data", "activity", "X", "C_raw",
               "calcium_traces", "neural_activity", "signals", "responses"),
    "dff": ("dff", "f_dff", "df_f", "dfof", "df_over_f", "delta_f", "deltaf_f", "dff_traces"),
    "denoised": ("C", "denoised", "c_dec"),
    "events": ("S", "spks", "deconv", "deconvolved", "spikes", "events", "spike_rate"),
    "neuropil": ("fneu", "f_neu", "neuropil"),
}  # fmt: skip
_RATES = ("rate", "fs", "fr", "framerate", "frame_rate", "fps", "sampling_rate", "imaging_rate")
_FOOTPRINTS = ("A", "labels", "label_image", "masks", "footprints", "rois", "roi_masks")
_ACCEPTED = ("accepted", "is_accepted", "iscell", "is_cell")
_IDS = ("ids", "cell_ids", "cell_id", "roi_ids", "roi_id", "unit_id", "unit_ids")
_IMAGES = {
    "mean": ("mean", "meanimg", "mean_image", "mean_img", "average", "avg"),
    "max": ("max", "max_proj", "maxproj", "max_image", "max_projection"),
    "correlation": ("cn", "corr", "correlation", "vcorr", "correlation_image"),
}
MOST_LISTED = 12
"""Arrays of a file that a sentence names."""


@dataclass(frozen=True)
class Roles:
    """The role of each array, by its name in the file.

    Parameters
    ----------
    signals : mapping of signal to name
        The first is the one that others are compared with.
    rate, clock, footprints, accepted, ids : str or None
    rest : tuple of str
        All other arrays.
    """

    signals: Mapping[Signal, str]
    rate: str | None
    clock: str | None
    footprints: str | None
    accepted: str | None
    ids: str | None
    rest: tuple[str, ...]


def roles_of(arrays: Mapping[str, Any], path: Path, chosen: str = "") -> Roles:
    """Find the role of each array in a file, or raise a sentence that lists them.

    Parameters
    ----------
    arrays : mapping of str to array
        Vectors have one axis.
    path : Path
        For the sentence.
    chosen : str
        Name of the array that holds the traces; empty to find it.
    """
    signals = _chosen(arrays, chosen) if chosen else _signals(arrays) or _only_wide(arrays, path)
    left = [name for name in arrays if name not in signals.values()]

    def take(names: tuple[str, ...], ndims: tuple[int, ...]) -> str | None:
        found = [n for n in left if _is_one(n, names) and arrays[n].ndim in ndims]
        if found:
            left.remove(found[0])
        return found[0] if found else None

    clock = next((n for n in left if scale_of(short(n)) is not None and ascends(arrays[n])), None)
    if clock:
        left.remove(clock)
    return Roles(
        signals,
        rate=take(_RATES, (0,)),
        clock=clock,
        footprints=take(_FOOTPRINTS, (2, 3)),
        accepted=take(_ACCEPTED, (1, 2)),
        ids=take(_IDS, (1,)),
        rest=tuple(left),
    )


def image_name(name: str) -> str:
    """What an image is called in a recording."""
    usual = (image for image, names in _IMAGES.items() if _is_one(name, names))
    return next(usual, short(name))


def _signals(arrays: Mapping[str, Any]) -> dict[Signal, str]:
    found: dict[Signal, str] = {}
    arrays = _like_traces(arrays)
    for signal, names in _SIGNALS.items():
        for wanted in names:
            for name in arrays:
                if _is_one(name, (wanted,)) and signal not in found:
                    found[signal] = name
    # neuropil alone does not describe cells
    return found if set(found) != {"neuropil"} else {}


def _like_traces(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays that may be traces: not of behaviour, and not narrow where others are wide."""
    kept = {n: a for n, a in arrays.items() if a.ndim == 2 and "behav" not in n.lower()}
    wide = {name: array for name, array in kept.items() if is_wide(array)}
    return wide or kept


def _chosen(arrays: Mapping[str, Any], name: str) -> dict[Signal, str]:
    """The array that the user chose, as the signal that its name says."""
    known = (s for s, names in _SIGNALS.items() if s != "neuropil" and _is_one(name, names))
    return {next(known, "traces"): name}


def _only_wide(arrays: Mapping[str, Any], path: Path) -> dict[Signal, str]:
    wide = [n for n, a in arrays.items() if a.ndim == 2 and not _is_one(n, _FOOTPRINTS)]
    if len(wide) > 1:
        wide = [name for name in wide if min(arrays[name].shape) > FEW_COLUMNS]
    if not wide:
        raise InputError(
            f"{path} has no array of traces, frames × cells; it has: {listed(arrays)}."
        )
    if len(wide) > 1:
        raise InputError(
            f"{path} has several arrays that may be the traces: set `array` to the name of one, "
            f"such as {wide[0]}. It has: {listed(arrays)}."
        )
    return {"traces": wide[0]}


def array_named(name: str, arrays: Mapping[str, Any], path: Path) -> str:
    """Full name of the array that the user chose, who may leave out what it lies in.

    Raises
    ------
    InputError
        If there is none of that name, several, or one without frames and cells.
    """
    asked = name.strip().strip("/").replace("/", ".")
    same = [n for n in arrays if n.replace("/", ".") == asked]
    found = same or [n for n in arrays if short(n) == asked]
    if len(found) != 1:
        has = "several arrays" if found else "no array"
        raise InputError(f"{path} has {has} called {name} (`array`); it has: {listed(arrays)}.")
    array = arrays[found[0]]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{found[0]} of {path} has {size_of(array)} values: numbers with two axes, frames and "
            "cells, are needed (`array`)."
        )
    return found[0]


def listed(arrays: Mapping[str, Any]) -> str:
    """Names and sizes of arrays, those like traces first; of the elements of a cell only some."""
    cells: dict[str, list[str]] = {}
    for name in arrays:
        cells.setdefault(cell_of(name), []).append(name)
    order = sorted(cells, key=lambda cell: not is_wide(arrays[cells[cell][0]]))
    told = [_told(cells[cell], arrays) for cell in order[:MOST_LISTED]]
    more = len(order) - len(told)
    return ", ".join([*told, *([f"and {more} more"] if more else [])]) or "no arrays of numbers"


def size_of(array: Any) -> str:
    """Size of an array, such as "136 × 1137"."""
    return " × ".join(map(str, array.shape)) or "1"


def _told(names: list[str], arrays: Mapping[str, Any]) -> str:
    first = f"{names[0]} {size_of(arrays[names[0]])}"
    return f"{first} to {names[-1]} {size_of(arrays[names[-1]])}" if len(names) > 1 else first


def is_wide(array: Any) -> bool:
    """Whether an array may be traces: two axes, and more than a few columns."""
    return array.ndim == 2 and min(array.shape) > FEW_COLUMNS


def _is_one(name: str, names: tuple[str, ...]) -> bool:
    name = short(name)
    return any(name == n if len(n) == 1 else name.lower() == n.lower() for n in names)


def short(name: str) -> str:
    """Name of a field without that of its struct, or of a dataset without its groups."""
    return re.split(r"[./]", name)[-1]
