"""Reads a Minian folder of zarr arrays with named axes.

=============  ================================================================
``A``          (unit_id, height, width), footprints
``C``, ``S``   (unit_id, frame), denoised calcium and deconvolved events
``YrA``        (unit_id, frame), what C leaves of the fluorescence; may be absent
``max_proj``   (height, width), background image; may be absent
=============  ================================================================

Each lies in a store of its own (``A.zarr/A``) with its coordinates beside it, or all in one store.
Units keep their ids, which have gaps; rows and columns count from where the movie was cropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.zarr import StoredArray, ZarrTraces, is_any_array, stored_in
from napari_xcebra.io.extraction import Extraction, finite_image
from napari_xcebra.io.movie.arrays import ZarrFrames, checked
from napari_xcebra.io.movie.finding import Like
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies import Movie, TiledFrames
from napari_xcebra.recording.traces import IN_MEMORY, LazyTraces, read_block

NAME = "Minian (a folder with A.zarr and C.zarr)"

FURTHEST = 2**15
"""Rows and columns of a sensor; larger coordinates are invalid."""


def sniff(path: Path) -> bool:
    """Whether the folder has the arrays A and C of Minian."""
    try:
        return path.is_dir() and _home_of(path) is not None
    except OSError:
        return False


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Units of C with their footprints from A."""
    home = _home_of(path)
    if home is None:
        raise InputError(f"{path} has no arrays A and C as Minian writes them.")
    calcium = _UnitTraces.at(home, "C", path)
    ids, notes = calcium.ids, []
    signals: dict[Any, Any] = {"denoised": calcium.traces}
    for name, signal in (("S", "events"), ("YrA", "traces")):
        if _place_of(home, name) is None:
            continue
        other = _UnitTraces.at(home, name, path)
        if other.traces.shape != calcium.traces.shape or not np.array_equal(other.ids, ids):
            notes.append(f"{name} differs from C in its units or frames and was left out.")
            continue
        signals[signal] = other.traces
    if "traces" in signals:
        signals["traces"] = _SummedTraces(calcium.traces, signals["traces"])
    spatial = stored_in(_found(home, "A"), path)
    field = _Field.of(spatial, home, path)
    with np.errstate(all="ignore"):  # numbers of a damaged file overflow
        footprints, more = _footprints(spatial, home, path, ids, field)
        images = _images(home, path, field)
    return Extraction(
        signals,
        cell_ids=ids,
        accepted=_accepted(home, path, len(ids)),
        footprints=footprints,
        images=images,
        starts=_after_gaps(home, path, calcium.traces.shape[0]),
        notes=(*notes, *more),
    )


@dataclass(frozen=True)
class _SummedTraces(LazyTraces):
    """Denoised traces plus their residual."""

    denoised: LazyTraces
    residual: LazyTraces

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.denoised.shape

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        with np.errstate(all="ignore"):
            return read_block(self.denoised, frames, cells) + read_block(
                self.residual, frames, cells
            )


def _home_of(path: Path) -> Path | None:
    """Folder that the arrays are in: the one given, or one called minian in it."""
    for folder in (path, path / "minian"):
        if _place_of(folder, "C") is not None and _place_of(folder, "A") is not None:
            return folder
    return None


def _place_of(home: Path, name: str, of: str | None = None) -> Path | None:
    """Folder of an array; `of` is the array whose coordinate it is."""
    store = home / f"{of or name}.zarr"
    places = (store / name, home / name) if of else (store / name, store, home / name)
    return next((place for place in places if is_any_array(place)), None)


def _found(home: Path, name: str) -> Path:
    place = _place_of(home, name)
    if place is None:
        raise InputError(f"{home} has no array {name}.")
    return place


def _coordinate(home: Path, root: Path, of: str, name: str, length: int) -> np.ndarray | None:
    """Whole numbers along an axis of an array, or None if there are none or too few."""
    place = _place_of(home, name, of)
    if place is None:
        return None
    stored = stored_in(place, root)
    if stored.shape != (length,) or stored.dtype.kind not in "iuf":
        return None
    stored.check_reach()
    values = stored.read()
    if not np.isfinite(values).all() or np.abs(values).max(initial=0) > 2**53:
        return None
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else None


def _order(stored: StoredArray, axes: tuple[str, ...]) -> tuple[int, ...]:
    """Which axis of an array is which."""
    if len(stored.shape) != len(axes) or 0 in stored.shape:
        raise InputError(
            f"{stored.path} has the shape {stored.shape}: {' × '.join(axes)} are needed."
        )
    if sorted(stored.axes) == sorted(axes):
        return tuple(stored.axes.index(axis) for axis in axes)
    return tuple(range(len(axes)))


@dataclass(frozen=True)
class _UnitTraces:
    """Traces of units, and their ids."""

    traces: ZarrTraces
    ids: np.ndarray

    @classmethod
    def at(cls, home: Path, name: str, root: Path) -> _UnitTraces:
        stored = stored_in(_found(home, name), root)
        units, _ = _order(stored, ("unit_id", "frame"))
        stored.check_reach()
        if stored.packed_by and 4 * math.prod(stored.shape) > IN_MEMORY:
            # they stay on disk, and are unpacked in whichever process looks at them
            raise InputError(
                f"{stored.path} is packed by {stored.packed_by}, which does not say how large a "
                "chunk becomes: save traces of this size with blosc or zstd."
            )
        n_units = stored.shape[units]
        ids = _coordinate(home, root, name, "unit_id", n_units)
        if ids is None or len(np.unique(ids)) != n_units:
            ids = np.arange(n_units)
        return cls(ZarrTraces(stored, cells_first=units == 0), ids)


@dataclass(frozen=True)
class _Field:
    """Field of view before it was cropped: its size, and where the arrays begin in it."""

    rows: int
    columns: int
    top: int = 0
    left: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.top + self.rows, self.left + self.columns

    @classmethod
    def of(cls, stored: StoredArray, home: Path, root: Path) -> _Field:
        _, height, width = _order(stored, ("unit_id", "height", "width"))
        rows, columns = stored.shape[height], stored.shape[width]
        if max(rows, columns) > FURTHEST:
            raise InputError(f"{stored.path} claims a field of view of {rows} × {columns} pixels.")
        top = _first_pixel(home, root, "A", "height", rows)
        left = _first_pixel(home, root, "A", "width", columns)
        return cls(rows, columns, top, left)


def _first_pixel(home: Path, root: Path, of: str, axis: str, length: int) -> int:
    """Row or column at which an array begins, if its coordinate counts them."""
    coordinate = _coordinate(home, root, of, axis, length)
    if coordinate is None or (np.diff(coordinate) != 1).any():
        return 0
    first = int(coordinate[0])
    return first if 0 <= first <= FURTHEST - len(coordinate) else 0


def _footprints(
    stored: StoredArray, home: Path, root: Path, ids: np.ndarray, field: _Field
) -> tuple[Footprints, list[str]]:
    """Footprints of the units that have traces; one chunk of A is in memory at a time."""
    order = _order(stored, ("unit_id", "height", "width"))
    n_units = stored.shape[order[0]]
    units = _coordinate(home, root, "A", "unit_id", n_units)
    if units is None:
        if n_units != len(ids):
            raise InputError(
                f"{stored.path} has {n_units} units but C has {len(ids)}, and there are no ids to "
                "match them by."
            )
        units = ids
    position = dict(zip(ids.tolist(), range(len(ids)), strict=True))
    cell_of = np.array([position.get(unit, -1) for unit in units.tolist()], np.int32)
    parts: list[np.ndarray] = [np.zeros((3, 0), np.int32)]
    weights: list[np.ndarray] = [np.zeros(0, np.float32)]
    for where, block in stored.blocks():
        inside = np.nonzero(block > 0)
        pixels = [np.int32(where[axis].start) + inside[axis].astype(np.int32) for axis in order]
        cell = cell_of[pixels[0]]
        kept = cell >= 0
        parts.append(np.stack([cell, pixels[1] + field.top, pixels[2] + field.left])[:, kept])
        weights.append(block[inside][kept].astype(np.float32))
    cell, row, column = np.concatenate(parts, axis=1)
    notes = []
    if (cell_of < 0).any():
        notes.append(f"{int((cell_of < 0).sum())} units of A have no trace in C: left out.")
    missing = len(ids) - len(np.unique(cell))
    if missing:
        notes.append(f"{missing} units have no footprint.")
    return Footprints(field.shape, cell, row, column, np.concatenate(weights)), notes


def _images(home: Path, root: Path, field: _Field) -> Mapping[str, np.ndarray]:
    place = _place_of(home, "max_proj")
    if place is None:
        return {}
    stored = stored_in(place, root)
    if sorted(stored.shape) != sorted((field.rows, field.columns)):
        return {}
    image = finite_image(stored.read().transpose(_order(stored, ("height", "width"))))
    if image is None or image.shape != (field.rows, field.columns):
        return {}
    whole = np.full(field.shape, image.min(), np.float32)
    whole[field.top :, field.left :] = image
    return {"max": whole}


def _accepted(home: Path, root: Path, n_units: int) -> np.ndarray | None:
    """Units that were not rejected by hand; rejected ones have the label -1."""
    labels = _coordinate(home, root, "C", "unit_labels", n_units)
    return None if labels is None else labels >= 0


def _after_gaps(home: Path, root: Path, n_frames: int) -> np.ndarray | None:
    """Frames before which others were dropped, so that no window spans the gap."""
    frames = _coordinate(home, root, "C", "frame", n_frames)
    if frames is None or n_frames < 2:
        return None
    steps = np.diff(frames)
    gaps = np.flatnonzero(steps > 1.5 * np.median(steps)) + 1
    return gaps if len(gaps) else None


MOVIE = "Minian (a folder with Y_fm_chk.zarr or varr.zarr)"
ARRAYS = ("Y_fm_chk", "Y", "Y_hw_chk", "varr_ref", "varr")
"""Registered ones first, and of those the one stored frame by frame."""
_AXES = {"frame": "t", "height": "y", "width": "x"}


def sniff_movie(path: Path) -> bool:
    """Whether it is a folder of Minian with a movie."""
    try:
        return path.is_dir() and _movie_in(path) is not None
    except OSError:
        return False


def load_movie(path: Path, like: Like) -> Movie:
    """Opens the registered movie, or else the one it began with.

    Rows and columns count from where the movie was cropped, as those of the footprints do.
    """
    home, name = _movie_in(path) or (path, "")
    place = _place_of(home, name) if name else None
    if place is None:
        raise InputError(f"{path} has none of the movies of Minian: {', '.join(ARRAYS)}.")
    stored = checked(place, path)
    if len(stored.shape) != 3:
        raise InputError(f"{place} has the shape {stored.shape}: frame × height × width is needed.")
    axes = tuple(_AXES.get(axis, "") for axis in stored.axes)
    frames = ZarrFrames(stored, axes if sorted(axes) == ["t", "x", "y"] else ("t", "y", "x"))
    n_frames, height, width = frames.shape
    top = _first_pixel(home, path, name, "height", height)
    left = _first_pixel(home, path, name, "width", width)
    if not (top or left):
        return Movie((frames,), place)
    placed = TiledFrames((frames,), ((top, left),), (n_frames, top + height, left + width))
    return Movie((placed,), place)


def _movie_in(path: Path) -> tuple[Path, str] | None:
    home = _home_of(path)
    names = [name for name in ARRAYS if home is not None and _place_of(home, name) is not None]
    return (home, names[0]) if home is not None and names else None
