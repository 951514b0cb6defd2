"""Finds the movie that belongs to a recording, in the places where programs leave it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.movie.fitting import fitted
from napari_xcebra.io.movie.like import Like
from napari_xcebra.io.movie.opening import (
    FORMATS,
    format_of_movie,
    formats,
    open_movie,
    with_contrast,
)
from napari_xcebra.io.suite2p.folders import folders_at
from napari_xcebra.recording import Recording

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
        movie, notes = fitted(open_movie(given, like), recording)
        return _with(recording, movie, notes)
    if recording.movie is not None:
        return recording
    why = ""
    for place, form, sure in _candidates(path):
        try:
            with sentence_on_failure(place):
                movie, notes = fitted(with_contrast(form.load(place, like)), recording)
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


def _candidates(path: Path) -> Iterator[tuple[Path, Any, bool]]:
    """Where a movie may be, its format, and whether it is sure to be of this recording.

    A format is imported where there is a file of its kind: most recordings have no movie beside
    them.
    """
    if folders_at(path):
        yield path if path.is_dir() else path.parent, *formats(["suite2p"]), True
    if path.is_dir() and (minian := format_of_movie(path, ["minian"])) is not None:
        yield path, minian, True
    folder = path if path.is_dir() else path.parent
    try:
        beside = sorted(folder.iterdir())
    except OSError:
        return
    files = [file for file in beside if _formats_by_name(file) and file != path]
    for file in sorted(files[:MOST_BESIDE], key=_by_frame_first):
        if (form := format_of_movie(file, _formats_by_name(file))) is not None:
            yield file, form, False


def _formats_by_name(file: Path) -> list[str]:
    return [name for name, suffixes in FORMATS.items() if file.suffix.lower() in suffixes]


def _by_frame_first(file: Path) -> tuple[bool, str]:
    """Of what CaImAn keeps, files in which a frame lies together come first."""
    return file.suffix == ".mmap" and "_order_C_" in file.name, file.name
