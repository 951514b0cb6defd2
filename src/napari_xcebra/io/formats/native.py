"""Reads and writes napari-xcebra's own format: a whole recording in one .npz file.

=====================================  ======================================================
``about``                              JSON text, see below
``traces``                             (frames, cells) float32
``rate``                               frames per second
``cell_ids``, ``accepted``             (cells,) int64, bool
``starts``                             (segments,) int64, first frame of each trial or session
``excluded``                           (frames,) bool, frames not to be used
``times``                              (frames,) float64, seconds (since format 2)
``behavior_0``, ``behavior_1`` …       (frames, columns) float64, one per variable
``image_0``, ``image_1`` …             (height, width), one a background image
``cells_0``, ``cells_1`` …             (cells,), one per column on the cells (since format 2)
``trial_first``, ``trial_stop``        (trials,) int64; these and the next only if there are trials
``trial_0``, ``trial_1`` …             (trials,) float64, one per column on the trials
``footprint_shape``                    height and width, or planes, height and width; this and
                                       the next only if known
``footprint_cell``, ``_row``,          (pixels,), weighted pixels of all cells
``_column``, ``_weight``, ``_plane``   (the last only where there are planes)
``movie_rest``, ``movie_gain``         (height, width), (pixels,) float32, only of a simulated
                                       movie: see `RenderedFrames`
=====================================  ======================================================

``about`` holds ``kind`` (always "napari-xcebra recording"), ``format`` (the version, 2),
``source``, ``origin`` (format, signal and traces; absent from files of earlier versions), ``notes``
(a list), ``behavior`` (key, name, kind, unit, period, words and window of each variable, in order),
``images`` and ``cells`` (their names, in order), ``trials`` (name and words of each column, in
order), ``pixel_size`` (micrometres; absent or null if not known) and ``movie`` (what else renders
a simulated one). A movie on disk is not kept: it is found beside the recording, or named again when
the file is opened. Nothing in it is pickled:
``numpy.load(path)["traces"]`` reads it anywhere. Nothing is compressed, so that large traces can
stay on disk: they are read where they lie in the file (without comparing their checksum).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import check_description
from napari_xcebra.io.containers.npy import NpzTraces, names_in, read_or_map, write_npz
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies import Movie, RenderedFrames
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import LazyTraces, Origin
from napari_xcebra.recording.variables import Trials, Variable
from napari_xcebra.settings import known_only

NAME = "a recording saved by napari-xcebra (.npz)"
FORMAT = 2
"""Version of the file; a later version of the program reads earlier ones."""

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
    if settings is not None and settings.rate:
        warnings = settings.contradicted_by(recording.rate)
        recording = replace(recording, rate=settings.rate, times=None, warnings=warnings)
    if settings is not None and settings.pixel_size:
        recording = replace(recording, pixel_size=settings.pixel_size)
    return recording


def _recording(path: Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Recording:
    mapped = isinstance(arrays["traces"], np.memmap)
    recording = Recording(
        traces=NpzTraces(path, "traces") if mapped else arrays["traces"],
        rate=float(arrays["rate"]),
        behavior={
            v["key"]: Variable(values=arrays[f"behavior_{i}"], **known_only(Variable, v))
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
        origin=Origin(**known_only(Origin, about.get("origin", {}))),
        trials=_trials(arrays, about),
        pixel_size=about.get("pixel_size"),
    )
    return _with_rendered(recording, arrays, about) if about.get("movie") else recording


def _trials(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Trials | None:
    if "trial_first" not in arrays:
        return None
    columns = about["trials"]
    return Trials(
        arrays["trial_first"],
        arrays["trial_stop"],
        {each["name"]: arrays[f"trial_{i}"] for i, each in enumerate(columns)},
        {each["name"]: each["words"] for each in columns if each["words"]},
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
    if (trials := recording.trials) is not None:
        arrays |= {"trial_first": trials.first, "trial_stop": trials.stop}
        arrays |= {f"trial_{i}": column for i, column in enumerate(trials.columns.values())}
    if (footprints := recording.footprints) is not None:
        arrays["footprint_shape"] = np.array(footprints.shape)
        arrays |= {f"footprint_{name}": getattr(footprints, name) for name in _FOOTPRINT}
        if footprints.plane is not None:
            arrays["footprint_plane"] = footprints.plane
    arrays |= _rendered_arrays(recording)
    write_npz(path, {name: _in_memory(array) for name, array in arrays.items()})
    return path


def _in_memory(array: Any) -> np.ndarray | LazyTraces:
    """An array; traces on disk stay there and are written in blocks."""
    return array if isinstance(array, LazyTraces) else np.asarray(array)


def _about(recording: Recording) -> dict[str, Any]:
    return {
        "kind": "napari-xcebra recording",
        "format": FORMAT,
        "source": recording.source,
        "origin": asdict(recording.origin),
        "notes": list(recording.notes),
        "behavior": [
            {
                "key": key,
                "name": v.name,
                "kind": v.kind,
                "unit": v.unit,
                "period": float(v.period),
                "words": v.words,
                "window": v.window,
            }
            for key, v in recording.behavior.items()
        ],
        "images": list(recording.images),
        "cells": list(recording.cells),
        "trials": _described(recording.trials),
        "pixel_size": recording.pixel_size,
        "movie": _rendered_about(recording),
    }


def _described(trials: Trials | None) -> list[dict[str, Any]]:
    columns = {} if trials is None else trials.columns
    words = {} if trials is None else trials.words
    return [{"name": name, "words": words.get(name, ())} for name in columns]


def _read_about(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    try:
        about = json.loads(str(arrays["about"]))
    except (KeyError, ValueError, RecursionError):
        about = None
    return check_description(about, path, "recording", FORMAT)


def _footprints(arrays: dict[str, np.ndarray]) -> Footprints | None:
    if "footprint_shape" not in arrays:
        return None
    shape = tuple(arrays["footprint_shape"].tolist())
    pixels = {name: arrays[f"footprint_{name}"] for name in _FOOTPRINT}
    return Footprints(shape, **pixels, plane=arrays.get("footprint_plane"))


def _rendered_arrays(recording: Recording) -> dict[str, np.ndarray]:
    """Arrays of the movie; none if it is not rendered from this recording."""
    frames = _rendered(recording)
    return {} if frames is None else {"movie_rest": frames.rest, "movie_gain": frames.gain}


def _rendered_about(recording: Recording) -> dict[str, Any] | None:
    """What else is to be said of it, as plain values."""
    frames, movie = _rendered(recording), recording.movie
    if frames is None or movie is None:
        return None
    numbers = {"dark": frames.dark, "noise": frames.noise, "seed": frames.seed}
    return {**numbers, "name": str(movie.source), "contrast": list(movie.contrast)}


def _with_rendered(
    recording: Recording, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> Recording:
    """Recording with the movie that was saved with it."""
    said, footprints = about["movie"], recording.footprints
    if footprints is None:
        raise InputError("it has a simulated movie, but no footprints.")
    frames = RenderedFrames(
        recording.traces,
        footprints,
        np.asarray(arrays["movie_rest"], np.float32),
        np.asarray(arrays["movie_gain"], np.float32),
        float(said["dark"]),
        float(said["noise"]),
        int(said["seed"]),
    )
    low, high = map(float, said["contrast"])
    source = Path(str(said["name"]))
    movie = Movie((frames,), source, rate=recording.rate, contrast=(low, high))
    return replace(recording, movie=movie)


def _rendered(recording: Recording) -> RenderedFrames | None:
    """Frames that show the traces of the recording itself, and not those it was made from."""
    frames = recording.movie.planes[0] if recording.movie is not None else None
    if not isinstance(frames, RenderedFrames) or frames.footprints is not recording.footprints:
        return None
    return frames if frames.traces is recording.traces else None
