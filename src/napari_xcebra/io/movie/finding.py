"""Opens a movie in any known format, or finds the one that belongs to a recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.formats.suite2p.folder import folders_at
from napari_xcebra.recording.movies import Movie, TurnedFrames
from napari_xcebra.recording.recording import Recording


@dataclass(frozen=True)
class Like:
    """What a movie has to be like.

    Parameters
    ----------
    n_frames : int
    field : (height, width) or None
        None: not known.
    planes : int
        0 if the field of view has no planes.
    """

    n_frames: int
    field: tuple[int, int] | None = None
    planes: int = 0

    @classmethod
    def of(cls, recording: Recording) -> Like:
        """What is known from footprints and images."""
        shapes = [image.shape for image in recording.images.values()]
        if recording.footprints is not None:
            shapes.insert(0, recording.footprints.shape)
        if not shapes:
            return cls(recording.n_frames)
        *planes, height, width = shapes[0]
        return cls(recording.n_frames, (height, width), planes[0] if planes else 0)

    def axes(self, shape: tuple[int, ...]) -> tuple[str, str, str]:
        """Which of three axes are frames "t", rows "y" and columns "x".

        Frames come first, unless only another order has the size of the field of view.
        """
        orders = ("tyx", "txy", "yxt", "xyt")
        for order in orders if self.field else ():
            sizes = dict(zip(order, shape, strict=True))
            if (sizes["y"], sizes["x"]) == self.field:
                return tuple(order)  # type: ignore[return-value]
        return ("t", "y", "x")


@dataclass(frozen=True)
class _MovieFormat:
    """A format of movies, whose module is imported when it is first asked.

    Parameters
    ----------
    module : str
        In `io/`; it has `MOVIE`, `sniff_movie` and `load_movie`.
    suffixes : tuple of str
        How its files usually end.
    """

    module: str
    suffixes: tuple[str, ...] = ()

    def _part(self, name: str) -> Any:
        return getattr(import_module(f"napari_xcebra.io.{self.module}"), name)

    @property
    def name(self) -> str:
        """For sentences."""
        return str(self._part("MOVIE"))

    def sniff(self, path: Path) -> bool:
        """Whether it recognises the path."""
        return bool(self._part("sniff_movie")(path))

    def load(self, path: Path, like: Like) -> Movie:
        """Movie at a path."""
        movie: Movie = self._part("load_movie")(path, like)
        return movie


SUITE2P = _MovieFormat("formats.suite2p.reading", (".bin",))
MINIAN = _MovieFormat("formats.minian")
FORMATS = (
    SUITE2P,
    _MovieFormat("formats.caiman", (".mmap",)),
    MINIAN,
    _MovieFormat("containers.tiff", (".tif", ".tiff")),
    _MovieFormat("movie.arrays", (".zarr", ".npy", ".h5", ".hdf5")),
)
"""Formats in the order in which they are asked."""
LOOKED_AT, SAMPLED = 3, 20_000
"""Frames, and pixels of each, whose values are looked at for the contrast."""
MOST_PACKED = 50
"""Pixels that a byte may stand for where frames are compressed."""
DARKEST, BRIGHTEST = 1.0, 99.7
"""Percentiles that are shown as black and white."""


def is_movie(path: Path) -> bool:
    """Whether a path is that of a movie in a known format."""
    return _format_of_movie(path) is not None


def may_be_of(path: Path, recording: Recording) -> bool:
    """Whether a path could hold as many frames as a recording, as far as its size tells."""
    if not path.is_file():
        return path.is_dir()
    like = Like.of(recording)
    return path.stat().st_size * MOST_PACKED >= like.n_frames * math.prod(like.field or (8, 8))


def _format_of_movie(path: Path, formats: Iterable[_MovieFormat] = FORMATS) -> _MovieFormat | None:
    """The one of these formats that knows a movie; None if none does."""
    return next((form for form in formats if form.sniff(path)), None)


def _open_movie(path: Path, like: Like) -> Movie:
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
    form = _format_of_movie(path)
    if form is None:
        known = "; ".join(form.name for form in FORMATS)
        raise InputError(f"{path} is not a movie in a known format. Looked for: {known}.")
    with sentence_on_failure(path):
        return _with_contrast(form.load(path, like))


def _with_contrast(movie: Movie) -> Movie:
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


MOST_BESIDE = 40
"""Files beside a recording that are looked at."""


def with_movie(recording: Recording, path: Path, given: Path | None) -> Recording:
    """Recording with the movie that was given, or else with its own or one that is found.

    Parameters
    ----------
    recording : Recording
    path : Path
        What it was opened from.
    given : Path or None
        Of a movie; one that does not fit is refused.
    """
    like = Like.of(recording)
    if given is not None:
        movie, notes = fitted(_open_movie(given, like), recording)
        return _with(recording, movie, notes)
    if recording.movie is not None:
        return recording
    why = ""
    for place, form, sure in _candidates(path):
        try:
            with sentence_on_failure(place):
                movie, notes = fitted(_with_contrast(form.load(place, like)), recording)
        except InputError as error:
            why = why or (str(error) if sure else "")
            continue
        # a file that happens to lie there has to fit in every frame
        if sure or not notes:
            return _with(recording, movie, notes)
    if not why:
        return recording
    return replace(recording, origin=replace(recording.origin, without_movie=why))


def _with(recording: Recording, movie: Any, notes: tuple[str, ...]) -> Recording:
    return replace(
        recording,
        movie=movie,
        origin=replace(recording.origin, without_movie=""),
        notes=(*recording.notes, *notes),
        pixel_size=recording.pixel_size or movie.pixel_size,
    )


def _candidates(path: Path) -> Iterator[tuple[Path, _MovieFormat, bool]]:
    """Where a movie may be, its format, and whether it is sure to be of this recording.

    A format is imported where there is a file of its kind: most recordings have no movie beside
    them.
    """
    if folders_at(path):
        yield path if path.is_dir() else path.parent, SUITE2P, True
    if path.is_dir() and MINIAN.sniff(path):
        yield path, MINIAN, True
    folder = path if path.is_dir() else path.parent
    try:
        beside = sorted(folder.iterdir())
    except OSError:
        return
    files = [file for file in beside if _formats_by_name(file) and file != path]
    for file in sorted(files[:MOST_BESIDE], key=_by_frame_first):
        if (form := _format_of_movie(file, _formats_by_name(file))) is not None:
            yield file, form, False


def _formats_by_name(file: Path) -> list[_MovieFormat]:
    return [form for form in FORMATS if file.suffix.lower() in form.suffixes]


def _by_frame_first(file: Path) -> tuple[bool, str]:
    """Of what CaImAn keeps, files in which a frame lies together come first."""
    return file.suffix == ".mmap" and "_order_C_" in file.name, file.name
