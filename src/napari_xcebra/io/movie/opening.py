"""Opens a movie in any format that is known, and looks at a few frames of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.movie.like import Like
from napari_xcebra.recording import Movie, Recording

FORMATS = {
    "suite2p": (".bin",),
    "caiman": (".mmap",),
    "minian": (),
    "tiff": (".tif", ".tiff"),
    "zarr": (".zarr",),
    "npy": (".npy",),
    "hdf5": (".h5", ".hdf5"),
}
"""Modules of formats, in the order in which they are asked, and how their files usually end."""
LOOKED_AT, SAMPLED = 3, 20_000
"""Frames, and pixels of each, whose values are looked at for the contrast."""
MOST_PACKED = 50
"""Pixels that a byte may stand for where frames are compressed."""
DARKEST, BRIGHTEST = 1.0, 99.7
"""Percentiles that are shown as black and white."""


def is_movie(path: Path) -> bool:
    """Whether a path is that of a movie in a known format."""
    return format_of_movie(path) is not None


def may_be_of(path: Path, recording: Recording) -> bool:
    """Whether a path could hold as many frames as a recording, as far as its size tells."""
    if not path.is_file():
        return path.is_dir()
    like = Like.of(recording)
    return path.stat().st_size * MOST_PACKED >= like.n_frames * math.prod(like.field or (8, 8))


def format_of_movie(path: Path, names: Iterable[str] = FORMATS) -> Any:
    """The module of these that knows a movie; None if none does."""
    return next((form for form in formats(names) if form.sniff(path)), None)


def formats(names: Iterable[str] = FORMATS) -> Iterator[Any]:
    """Modules of formats, each imported when it is asked for."""
    return (import_module(f"{__package__}.{name}") for name in names)


def open_movie(path: Path, like: Like) -> Movie:
    """Movie at a path, with a contrast to show it at.

    Parameters
    ----------
    path : Path
        A file, or a folder of suite2p, of Minian, of TIFF files or of zarr.
    like : Like
        What is known of its recording.
    """
    if not path.exists():
        raise InputError(f"There is no movie {path}.")
    form = format_of_movie(path)
    if form is None:
        known = "; ".join(form.NAME for form in formats())
        raise InputError(f"{path} is not a movie in a known format. Looked for: {known}.")
    with sentence_on_failure(path):
        return with_contrast(form.load(path, like))


def with_contrast(movie: Movie) -> Movie:
    """Movie with black and white at values that nearly all pixels lie between."""
    values = []
    for number in np.unique(np.linspace(0, movie.n_frames - 1, LOOKED_AT).astype(int)):
        for plane in range(len(movie.planes)):
            pixels = movie.plane(int(number), plane).reshape(-1)
            values.append(pixels[:: max(1, len(pixels) // SAMPLED)].astype(np.float64))
    movie.close()
    known = np.concatenate(values)
    known = known[np.isfinite(known)]
    if not len(known):
        return movie
    low, high = (float(value) for value in np.percentile(known, [DARKEST, BRIGHTEST]))
    return replace(movie, contrast=(low, high if high > low else low + 1.0))
