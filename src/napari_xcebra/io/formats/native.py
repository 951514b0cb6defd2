"""The program's own format: a whole recording in one .npz file.

=====================================  ======================================================
``about``                              JSON text, see below
``traces``                             (frames, cells) float32
``rate``                               frames per second
``cell_ids``, ``accepted``             (cells,) int64, bool
``starts``                             (segments,) int64, first frame of each trial or session
``excluded``                           (frames,) bool, frames not to be used
``times``                              (frames,) float64, seconds (since format 2)
``behavior_0``, ``behavior_1`` …       (frames, columns) float64, one a variable
``image_0``, ``image_1`` …             (height, width), one a background image
``cells_0``, ``cells_1`` …             (cells,), one a column on the cells (since format 2)
``footprint_shape``                    height and width, or planes, height and width; this and
                                       the next only if known
``footprint_cell``, ``_row``,          (pixels,), weighted pixels of all cells
``_column``, ``_weight``, ``_plane``   (the last only where there are planes)
=====================================  ======================================================

``about`` holds ``kind`` (always "napari-xcebra recording"), ``format`` (the version, 2),
``source``, ``notes`` (a list), ``behavior`` (key, name, kind, unit and period of each variable, in
order) and ``images`` and ``cells``
(their names, in order). Nothing in it is pickled:
``numpy.load(path)["traces"]`` reads it anywhere. Nothing is compressed, so that large traces can
stay on disk: they are mapped where they lie in the file (without comparing their checksum).
"""

from __future__ import annotations

import json
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.io.npy import names_in, write_npz
from napari_xcebra.io.npz_traces import NpzTraces, read_or_map
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import Footprints, InputError, Recording, Variable
from napari_xcebra.traces import LazyTraces

NAME = "a recording saved by napari-xcebra (.npz)"
FORMAT = 2
"""Version of the file; a later version of the program reads earlier ones."""

_KIND = "napari-xcebra recording"
_FOOTPRINT = ("cell", "row", "column", "weight")


def sniff(path: Path) -> bool:
    """Whether this file says that it is a recording of ours."""
    return {"about", "traces"} <= names_in(path)


def load(path: Path, settings: OpenSettings | None = None) -> Recording:
    """Recording that `save_recording` wrote, by this or an earlier version."""
    arrays = read_or_map(path)
    about = _read_about(path, arrays)
    try:
        with np.errstate(all="ignore"):
            recording = _recording(path, arrays, about)
    except InputError as error:
        raise InputError(f"{path} does not hold a valid recording: {error}") from error
    # what is missing or of another kind than it should be fails in many ways
    except Exception as error:
        details = " ".join(str(error).split())[:200]
        raise InputError(
            f"{path} does not hold a complete recording ({type(error).__name__}: {details}): "
            "restore it from a copy."
        ) from error
    if settings is None or not settings.rate:
        return recording
    return replace(recording, rate=settings.rate, times=None)


def _recording(path: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Recording:
    mapped = isinstance(arrays["traces"], np.memmap)
    return Recording(
        traces=NpzTraces(path, "traces") if mapped else arrays["traces"],
        rate=float(arrays["rate"]),
        behavior={
            v["key"]: Variable(
                v["name"], arrays[f"behavior_{i}"], v["kind"], v["unit"], v["period"]
            )
            for i, v in enumerate(about["behavior"])
        },
        cell_ids=arrays["cell_ids"],
        accepted=arrays["accepted"],
        starts=arrays["starts"],
        excluded=arrays["excluded"],
        footprints=_footprints(arrays),
        images={name: arrays[f"image_{i}"] for i, name in enumerate(about["images"])},
        source=about["source"],
        notes=tuple(about["notes"]),
        times=arrays.get("times"),
        cells={name: arrays[f"cells_{i}"] for i, name in enumerate(about.get("cells", []))},
    )


def save_recording(recording: Recording, path: str | PathLike[str]) -> Path:
    """Write everything in a recording to one file; whole or not at all.

    Parameters
    ----------
    recording : Recording
    path : path
        Usually ends in .npz.

    Returns
    -------
    Path
    """
    path = Path(path)
    arrays: dict[str, Any] = {
        "about": np.array(json.dumps(_about(recording))),
        "traces": recording.traces,
        "rate": np.float64(recording.rate),
        "cell_ids": recording.cell_ids,
        "accepted": recording.accepted,
        "starts": recording.starts,
        "excluded": recording.excluded,
        "times": recording.times,
    }
    arrays |= {f"behavior_{i}": v.values for i, v in enumerate(recording.behavior.values())}
    arrays |= {f"image_{i}": image for i, image in enumerate(recording.images.values())}
    arrays |= {f"cells_{i}": column for i, column in enumerate(recording.cells.values())}
    if (footprints := recording.footprints) is not None:
        arrays["footprint_shape"] = np.array(footprints.shape)
        arrays |= {f"footprint_{name}": getattr(footprints, name) for name in _FOOTPRINT}
        if footprints.plane is not None:
            arrays["footprint_plane"] = footprints.plane
    write_npz(path, {name: _in_memory(array) for name, array in arrays.items()})
    return path


def _in_memory(array: Any) -> np.ndarray | LazyTraces:
    """An array; traces on disk stay there, and are written by the block."""
    return array if isinstance(array, LazyTraces) else np.asarray(array)


def _about(recording: Recording) -> dict[str, Any]:
    return {
        "kind": _KIND,
        "format": FORMAT,
        "source": recording.source,
        "notes": list(recording.notes),
        "behavior": [
            {"key": key, "name": v.name, "kind": v.kind, "unit": v.unit, "period": float(v.period)}
            for key, v in recording.behavior.items()
        ],
        "images": list(recording.images),
        "cells": list(recording.cells),
    }


def _read_about(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        about = json.loads(str(arrays["about"]))
    except (KeyError, ValueError):
        about = None
    if not isinstance(about, dict) or about.get("kind") != _KIND:
        raise InputError(f"{path} was not written by napari-xcebra: its `about` says otherwise.")
    version = about.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise InputError(
            f"{path} was written by a later version of napari-xcebra (format {version}; this "
            f"version reads up to {FORMAT}): update napari-xcebra."
        )
    return about


def _footprints(arrays: dict[str, np.ndarray]) -> Footprints | None:
    if "footprint_shape" not in arrays:
        return None
    shape = tuple(arrays["footprint_shape"].tolist())
    pixels = {name: arrays[f"footprint_{name}"] for name in _FOOTPRINT}
    return Footprints(shape, **pixels, plane=arrays.get("footprint_plane"))
