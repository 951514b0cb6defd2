"""What the arrays of a file are, by the names that labs give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_xcebra.io.clocks.timestamps import scale_of
from napari_xcebra.io.extraction import Signal
from napari_xcebra.recording import InputError

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
FEW_COLUMNS = 3
"""An array with no more columns is a position or a pose rather than traces."""


@dataclass(frozen=True)
class Roles:
    """Which array is what; names as they are in the file.

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


def roles_of(arrays: Mapping[str, np.ndarray], path: Path) -> Roles:
    """Tell the arrays of a file apart, or raise a sentence that lists them.

    Parameters
    ----------
    arrays : mapping of str to array
        Vectors have one axis.
    path : Path
        For the sentence.
    """
    signals = _signals(arrays) or _only_wide(arrays, path)
    left = [name for name in arrays if name not in signals.values()]

    def take(names: tuple[str, ...], ndims: tuple[int, ...]) -> str | None:
        found = [n for n in left if _is_one(n, names) and arrays[n].ndim in ndims]
        if found:
            left.remove(found[0])
        return found[0] if found else None

    clock = next((n for n in left if scale_of(short(n)) is not None and _ascends(arrays[n])), None)
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


def is_per_cell(name: str) -> bool:
    """Whether an array of that name has an entry a cell."""
    return _is_one(name, _ACCEPTED) or _is_one(name, _IDS)


def image_name(name: str) -> str:
    """What an image is called in a recording."""
    usual = (image for image, names in _IMAGES.items() if _is_one(name, names))
    return next(usual, short(name))


def _signals(arrays: Mapping[str, np.ndarray]) -> dict[Signal, str]:
    found: dict[Signal, str] = {}
    for signal, names in _SIGNALS.items():
        for wanted in names:
            for name, array in arrays.items():
                if _is_one(name, (wanted,)) and array.ndim == 2 and signal not in found:
                    found[signal] = name
    # neuropil alone says nothing about cells
    return found if set(found) != {"neuropil"} else {}


def _only_wide(arrays: Mapping[str, np.ndarray], path: Path) -> dict[Signal, str]:
    wide = [n for n, a in arrays.items() if a.ndim == 2 and not _is_one(n, _FOOTPRINTS)]
    if len(wide) > 1:
        wide = [name for name in wide if min(arrays[name].shape) > FEW_COLUMNS]
    if len(wide) != 1:
        has = ", ".join(f"{n} {' × '.join(map(str, a.shape))}".strip() for n, a in arrays.items())
        raise InputError(
            f"{path} has no array called traces; it has: {has[:500] or 'none'}. Call the one "
            "with the traces so."
        )
    return {"traces": wide[0]}


def _ascends(array: np.ndarray) -> bool:
    """Whether a vector can be the times of frames."""
    return array.ndim == 1 and bool(np.isfinite(array).all() and (np.diff(array) > 0).all())


def _is_one(name: str, names: tuple[str, ...]) -> bool:
    name = short(name)
    return any(name == n if len(n) == 1 else name.lower() == n.lower() for n in names)


def short(name: str) -> str:
    """Name of a field without that of its struct."""
    return name.rpartition(".")[2]
