"""Brings a movie to the clock of a recording, or says why it is not the movie of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.movie.like import Like
from napari_xcebra.recording import Recording
from napari_xcebra.recording.movies.frames import TurnedFrames
from napari_xcebra.recording.movies.movie import Movie

FEW, SHARE = 10, 0.002
"""Frames, or share of them, by which a movie may be longer or shorter."""
MOST = 100
"""Frames of one that may stand for a frame of the other."""


def fitted(movie: Movie, recording: Recording) -> tuple[Movie, tuple[str, ...]]:
    """Movie on the frames of a recording, and sentences on what was done for it.

    Raises
    ------
    InputError
        If the field of view or the number of frames is another one.
    """
    like = Like.of(recording)
    movie, turned = _in_field(movie, like)
    numbers, note = _on_clock(movie, recording)
    return replace(movie, numbers=numbers), (*turned, *note)


def _in_field(movie: Movie, like: Like) -> tuple[Movie, tuple[str, ...]]:
    """Movie with the field of view of the recording."""
    if like.field is None:
        return movie, ()
    planes = len(movie.planes) if movie.stacked else 0
    if planes == 0 and like.planes == 1:
        movie, planes = replace(movie, stacked=True), 1
    if planes != like.planes:
        raise InputError(
            f"{movie.source} has {_planes(planes)}, but the recording has {_planes(like.planes)}: "
            "it is the movie of another recording, or of a part of it."
        )
    if movie.field == like.field:
        return movie, ()
    if movie.field == like.field[::-1]:
        parts = tuple(TurnedFrames(part) for part in movie.planes)
        note = f"Rows and columns of the movie {movie.source.name} are swapped to fit the cells."
        return replace(movie, planes=parts), (note,)
    raise InputError(
        f"{movie.source} has frames of {_times(movie.field)} pixels, but the field of view of the "
        f"recording is {_times(like.field)}: it is the movie of another recording, or was cropped "
        "or binned."
    )


def _on_clock(movie: Movie, recording: Recording) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Frame of the movie at each frame of the recording, and a note if they are not the same."""
    there, wanted = movie.n_frames, recording.n_frames
    frames = np.arange(wanted)
    if there == wanted:
        return None, ()
    name = f"The movie {movie.source.name} has {there:,} frames and the recording {wanted:,}"
    if _nearly(there, wanted):
        if there > wanted:
            return frames, (f"{name}: the last {there - wanted} of the movie are not shown.",)
        return np.minimum(frames, there - 1), (f"{name}: its last one stands for those it lacks.",)
    every = round(wanted / there)
    if 2 <= every <= MOST and _nearly(there * every, wanted, every):
        note = f"{name}: each frame of the movie stands for {every} of the recording."
        return np.minimum(frames // every, there - 1), (note,)
    every = round(there / wanted)
    if 2 <= every <= MOST and _nearly(wanted * every, there, every):
        note = f"{name}: one in {every} frames of the movie is shown."
        return np.minimum(frames * every, there - 1), (note,)
    if movie.rate:
        times = np.asarray(recording.times)
        placed = np.round((times - times[0]) * movie.rate).astype(np.int64)
        if _nearly(int(placed[-1]) + 1, there):
            note = f"{name}: frames are matched by their time, at {movie.rate:.4g} per second."
            return np.minimum(placed, there - 1), (note,)
    raise InputError(
        f"{movie.source} has {there:,} frames, but the recording has {wanted:,}: it is the movie "
        "of another recording, or a part of it."
    )


def _nearly(there: int, wanted: int, least: int = 0) -> bool:
    return abs(there - wanted) <= max(FEW if wanted > 20 * FEW else 0, least, SHARE * wanted)


def _times(field: tuple[int, int]) -> str:
    return " × ".join(map(str, field))


def _planes(count: int) -> str:
    return {0: "no planes", 1: "1 plane"}.get(count, f"{count} planes")
