"""Saves what it takes to render a simulated movie again, beside the recording's own arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Movie, Recording
from napari_xcebra.recording.movies.rendered import RenderedFrames


def rendered_arrays(recording: Recording) -> dict[str, np.ndarray]:
    """Arrays of the movie; none if it is not rendered from this recording."""
    frames = _rendered(recording)
    return {} if frames is None else {"movie_rest": frames.rest, "movie_gain": frames.gain}


def rendered_about(recording: Recording) -> dict[str, Any] | None:
    """What else is to be said of it, as plain values."""
    frames, movie = _rendered(recording), recording.movie
    if frames is None or movie is None:
        return None
    numbers = {"dark": frames.dark, "noise": frames.noise, "seed": frames.seed}
    return {**numbers, "name": str(movie.source), "contrast": list(movie.contrast)}


def with_rendered(
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
