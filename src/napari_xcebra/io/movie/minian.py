"""Opens the movie in a folder of Minian: the registered one, or else the one it began with.

Rows and columns count from where the movie was cropped, as those of the footprints do.
"""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.io.minian.reading import first_pixel, home_of, place_of
from napari_xcebra.io.movie.like import Like
from napari_xcebra.io.movie.zarr import ZarrFrames, checked
from napari_xcebra.recording.movies.frames import TiledFrames
from napari_xcebra.recording.movies.movie import Movie

NAME = "Minian (a folder with Y_fm_chk.zarr or varr.zarr)"
ARRAYS = ("Y_fm_chk", "Y", "Y_hw_chk", "varr_ref", "varr")
"""Registered ones first, and of those the one stored frame by frame."""
_AXES = {"frame": "t", "height": "y", "width": "x"}


def sniff(path: Path) -> bool:
    """Whether it is a folder of Minian with a movie."""
    try:
        return path.is_dir() and _found(path) is not None
    except OSError:
        return False


def load(path: Path, like: Like) -> Movie:
    """Movie in the field of view before it was cropped."""
    home, name = _found(path) or (path, "")
    place = place_of(home, name) if name else None
    if place is None:
        raise InputError(f"{path} has none of the movies of Minian: {', '.join(ARRAYS)}.")
    stored = checked(place, path)
    if len(stored.shape) != 3:
        raise InputError(f"{place} has the shape {stored.shape}: frame × height × width is needed.")
    axes = tuple(_AXES.get(axis, "") for axis in stored.axes)
    frames = ZarrFrames(stored, axes if sorted(axes) == ["t", "x", "y"] else ("t", "y", "x"))
    n_frames, height, width = frames.shape
    top = first_pixel(home, path, name, "height", height)
    left = first_pixel(home, path, name, "width", width)
    if not (top or left):
        return Movie((frames,), place)
    placed = TiledFrames((frames,), ((top, left),), (n_frames, top + height, left + width))
    return Movie((placed,), place)


def _found(path: Path) -> tuple[Path, str] | None:
    home = home_of(path)
    names = [name for name in ARRAYS if home is not None and place_of(home, name) is not None]
    return (home, names[0]) if home is not None and names else None
