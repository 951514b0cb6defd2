"""Reads Neurodata Without Borders 2 (.nwb): ROIs, traces, images and behaviour.

Read with h5py alone. Objects are found by type: a PlaneSegmentation is a table of ROIs, each
RoiResponseSeries names the rows of it that its columns are, and several tables are several planes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError, ValuesError
from napari_xcebra.io.containers.hdf5 import (
    attribute,
    dataset_at,
    footprints_of_masks,
    open_hdf5,
    read,
    turned,
)
from napari_xcebra.io.extraction import (
    Extraction,
    Signal,
    columns_of,
    finite_image,
    judged,
    micrometres,
    pair,
)
from napari_xcebra.io.formats.nwb.behavior import behavior_in, invalid_times
from napari_xcebra.io.formats.nwb.walk import (
    Plane,
    Typed,
    check_version,
    column_names,
    is_nwb,
    of_type,
    plain_column,
    planes_in,
    scaling,
    typed_objects,
)
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import JoinedTraces, LazyTraces

LARGEST = 2**28
"""Bytes of one image."""

_NAMES = (
    ("correlation", r"corr|^cn$"),
    ("enhanced", r"enh|meanimge"),
    ("mean", r"mean|average|avg"),
    ("max", r"max"),
)


class _Picture(NamedTuple):
    """An image of the file, under our name for it or its own."""

    name: str
    own_name: str
    pixels: np.ndarray


def _pictures_in(file: h5py.File, objects: Iterable[Typed]) -> list[_Picture]:
    """All still images except stimuli, (height, width) float32."""
    turn = _columns_first(file)
    found = []
    for image in of_type(objects, "GrayscaleImage", "RGBImage", "RGBAImage", "Image"):
        if not isinstance(image.node, h5py.Dataset) or image.path.startswith("/stimulus/"):
            continue
        if image.node.dtype.kind not in "biuf" or image.node.ndim not in (2, 3):
            continue
        try:
            pixels = np.asarray(read(image.node, LARGEST))
        except InputError:
            continue
        if pixels.ndim == 3:
            pixels = pixels[..., :3].mean(axis=-1)
        filled = finite_image(pixels)
        if filled is not None:
            found.append(_Picture(_name(image), image.name, filled.T if turn else filled))
    return found


def _with_names(pictures: Iterable[_Picture], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Images of a field of view by name; the first keeps the short one."""
    images: dict[str, np.ndarray] = {}
    for picture in pictures:
        if picture.pixels.shape == shape:
            name = picture.own_name if picture.name in images else picture.name
            images.setdefault(name, picture.pixels)
    return images


def _stacked(pictures: Iterable[_Picture], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """(planes, height, width) for each name with one image per plane."""
    by_name: dict[str, list[np.ndarray]] = {}
    for picture in pictures:
        if picture.pixels.shape == shape[1:]:
            by_name.setdefault(picture.name, []).append(picture.pixels)
    return {name: np.stack(all_) for name, all_ in by_name.items() if len(all_) == shape[0]}


def _columns_first(file: h5py.File) -> bool:
    """Whether images are stored as the specification says, x before y.

    Few programs do so: neuroconv, and this one.
    """
    script = dataset_at(file, "general/source_script")
    text = "" if script is None else str(read(script)).lower()
    return "neuroconv" in text or "napari-xcebra" in text


def _name(image: Typed) -> str:
    for name, pattern in _NAMES:
        if re.search(pattern, image.name, re.IGNORECASE):
            return name
    return re.sub(r"_plane_?\d+$", "", image.name)


NAME = "Neurodata Without Borders (.nwb)"


def sniff(path: Path) -> bool:
    """Whether it is an NWB file."""
    return is_nwb(path)


def load(path: Path, settings: OpenSettings) -> Extraction:
    """All ROIs that have traces, and the behaviour of the same file."""
    notes: list[str] = []
    with open_hdf5(path) as file:
        check_version(file)
        objects = typed_objects(file)
        planes = imaged_together(planes_in(objects, notes, settings), notes)
        if not planes:
            raise InputError(
                f"{path} has no traces of ROIs (RoiResponseSeries): extract them before opening it."
            )
        pictures = _pictures_in(file, objects)
        footprints = _footprints(planes, pictures, settings, notes)
        rois = _about_rois(planes, notes)
        times = planes[0].times
        return Extraction(
            _signals(planes),
            rate=planes[0].rate or _imaging_rate(objects),
            times=times,
            cell_ids=rois.ids,
            accepted=rois.accepted,
            cells=rois.columns,
            footprints=footprints,
            images=_images(pictures, footprints, notes),
            excluded=None if times is None else invalid_times(objects, times),
            behavior=behavior_in(objects, settings, path.name, times),
            pixel_size=_pixel_size(file, objects, notes),
            notes=tuple(notes),
        )


def imaged_together(planes: list[Plane], notes: list[str]) -> list[Plane]:
    """Planes that were imaged together: same number of frames, give or take two."""
    if len(planes) < 2:
        return planes
    frames = [plane.shape[0] for plane in planes]
    main = max(planes, key=lambda plane: plane.shape[1])
    kept = [plane for plane in planes if abs(plane.shape[0] - main.shape[0]) <= 2]
    if len(kept) < len(planes):
        notes.append(
            f"The file has {len(planes)} sets of ROIs with {', '.join(map(str, frames))} frames: "
            f"only those with {main.shape[0]} are opened."
        )
    short = min(plane.shape[0] for plane in kept)
    if len(kept) > 1:
        notes.append(f"The {len(kept)} sets of ROIs are read as planes, on the clock of the first.")
    return [_cut(plane, short) for plane in kept]


def _cut(plane: Plane, frames: int) -> Plane:
    signals = {
        name: replace(traces, shape=(frames, traces.shape[1]))
        for name, traces in plane.signals.items()
    }
    times = None if plane.times is None else plane.times[:frames]
    return replace(plane, signals=signals, times=times)


def _signals(planes: Sequence[Plane]) -> dict[Signal, LazyTraces]:
    if len(planes) == 1:
        return dict(planes[0].signals)
    common = [n for n in planes[0].signals if all(n in plane.signals for plane in planes)]
    if not common:
        raise ValuesError("its planes have no kind of traces in common.")
    return {name: JoinedTraces(tuple(plane.signals[name] for plane in planes)) for name in common}


def _footprints(
    planes: Sequence[Plane], pictures: Sequence[_Picture], settings: OpenSettings, notes: list[str]
) -> Footprints | None:
    images = [picture.pixels for picture in pictures]
    found, sentences = [], []
    for plane in planes:
        masks = None if plane.table is None else _read_masks(plane.table, plane.rows)
        if masks is None:
            notes.append("The file has no ROI masks: there are no footprints.")
            return None
        footprints, note = _placed(masks, images, swap=settings.swap_axes)
        found.append(footprints)
        sentences += [note] if note else []
    notes += dict.fromkeys(sentences)
    if len(found) == 1:
        return found[0]
    if any(part.plane is not None for part in found):
        raise ValuesError("it has several volumes of ROIs; only one can be opened.")
    return Footprints.stacked(found, [len(plane.rows) for plane in planes])


def _images(
    pictures: Sequence[_Picture], footprints: Footprints | None, notes: list[str]
) -> dict[str, np.ndarray]:
    if not pictures:
        return {}
    if footprints is None:
        return _with_names(pictures, pictures[0].pixels.shape)
    if footprints.plane is not None:
        return _stacked(pictures, footprints.shape)
    others = [p.own_name for p in pictures if p.pixels.shape != footprints.shape]
    if others:
        notes.append(
            f"Images of another size than the field of view are left out: {', '.join(others)}."
        )
    return _with_names(pictures, footprints.shape)


def _pixel_size(file: h5py.File, objects: Sequence[Typed], notes: list[str]) -> float | None:
    """Micrometres per pixel as the imaging planes say, if they agree."""
    about = dataset_at(file, "session_description")
    if about is not None and read(about) == "suite2p_proc":
        return None  # suite2p writes 2 µm, whatever it was
    sizes = set()
    for plane in of_type(objects, "ImagingPlane"):
        said = (
            dataset_at(plane.node, "grid_spacing") if isinstance(plane.node, h5py.Group) else None
        )
        if said is None or said.dtype.kind not in "iuf" or said.size not in (2, 3):
            continue
        scale = micrometres(attribute(said, "unit", "meters"))
        if scale is not None and (size := pair(scale * scaling(said)[0] * np.asarray(read(said)))):
            sizes.add(judged(*size))
    if len(sizes) != 1:
        return None
    found, more = sizes.pop()
    notes += more
    return found


def _imaging_rate(objects: Sequence[Typed]) -> float | None:
    """Frames per second as the imaging planes say, if they agree."""
    rates = set()
    for plane in of_type(objects, "ImagingPlane"):
        rate = (
            dataset_at(plane.node, "imaging_rate") if isinstance(plane.node, h5py.Group) else None
        )
        if rate is not None and rate.shape == () and rate.dtype.kind in "iuf":
            rates.add(float(read(rate)))
    return rates.pop() if len(rates) == 1 and 0 < min(rates) < np.inf else None


AROUND = 21
"""Pixels across the neighbourhood that a cell should be brighter than."""
FEWEST = 5
"""Cells from which on their brightness counts."""
CLEAR = 3.0
"""Standard errors by which cells must be brighter one way round than the other."""


@dataclass(frozen=True)
class _Masks:
    """Masks as the file has them.

    Parameters
    ----------
    stored : Footprints
        `row` is the file's first coordinate (x), `column` its second.
    exact : bool
        Whether its shape is that of the field of view, not just the extent of the cells.
    usual : bool
        Whether writers of such masks usually put the column first.
    told : bool
        Whether the file says that they do.
    """

    stored: Footprints
    exact: bool
    usual: bool
    told: bool = False


def _read_masks(table: h5py.Group, rows: np.ndarray) -> _Masks | None:
    """Masks of some rows of a PlaneSegmentation; None if it has none.

    Parameters
    ----------
    table : group
    rows : (cells,) int
        Row of each cell.
    """
    images = dataset_at(table, "image_mask")
    if images is not None:
        if len(rows) and int(rows.max()) >= len(images):
            raise InputError(f"{_where(table)} has {len(images)} masks for row {rows.max()}.")
        # as the specification says: x before y
        return _Masks(footprints_of_masks(images, rows, turned=False), exact=True, usual=True)
    for name in ("pixel_mask", "voxel_mask"):
        pixels = dataset_at(table, name)
        if pixels is not None:
            found = _from_pixels(table, name, pixels, rows)
            if not len(found.cell):
                return None
            shape = _told_shape(table)
            if shape is not None and all(a <= b for a, b in zip(found.shape, shape, strict=False)):
                return _Masks(replace(found, shape=shape), exact=True, usual=True, told=True)
            # suite2p and neuroconv write the row as x
            return _Masks(found, exact=False, usual=False)
    return None


def described(shape: tuple[int, ...]) -> str:
    """What a table written by this program says about its masks: sizes, and what x and y are."""
    *planes, height, width = shape
    sizes = f"{width} columns (x), {height} rows (y)"
    return (
        f"Field of view: {sizes}, {planes[0]} planes (z)" if planes else f"Field of view: {sizes}"
    )


def _told_shape(table: h5py.Group) -> tuple[int, ...] | None:
    """Size of the field of view that `described` tells, x before y as the masks have it."""
    said = re.match(
        r"Field of view: (\d{1,6}) columns \(x\), (\d{1,6}) rows \(y\)"
        r"(?:, (\d{1,4}) planes \(z\))?$",
        str(attribute(table, "description", "")),
    )
    if said is None:
        return None
    width, height, planes = said.groups()
    return (*([int(planes)] if planes else []), int(width), int(height))


def _from_pixels(
    table: h5py.Group, name: str, dataset: h5py.Dataset, rows: np.ndarray
) -> Footprints:
    fields = ("x", "y", "z", "weight") if name == "voxel_mask" else ("x", "y", "weight")
    ends = dataset_at(table, f"{name}_index")
    if ends is None or not set(fields) <= set(dataset.dtype.names or ()):
        raise InputError(f"{_where(table)} has a {name} without {', '.join(fields)} or its index.")
    pixels = read(dataset)
    last = np.asarray(read(ends), np.int64)
    lengths = np.diff(np.r_[0, last])
    if (lengths < 0).any() or last.sum() < 0 or (len(last) and last[-1] > len(pixels)):
        raise InputError(f"{_where(table)} has a {name}_index that does not fit its {name}.")
    if len(rows) and int(rows.max()) >= len(last):
        raise InputError(f"{_where(table)} has {len(last)} masks for row {rows.max()}.")
    cell_of_row = np.full(len(last), -1)
    cell_of_row[rows] = np.arange(len(rows))
    cell = np.repeat(cell_of_row, lengths)
    pixels = pixels[: len(cell)]
    own = (cell >= 0) & (pixels["weight"] > 0)
    place = [np.asarray(pixels[field][own], np.int64) for field in fields[:-1]]
    if any(len(axis) and (axis.min() < 0 or axis.max() >= 2**20) for axis in place):
        raise InputError(f"{_where(table)} has a {name} with pixels outside any image.")
    shape = tuple(int(axis.max(initial=0)) + 1 for axis in place)
    row, column, *plane = (axis.astype(np.int32) for axis in place)
    weight = pixels["weight"][own].astype(np.float32)
    footprints = Footprints(shape[:2], cell[own].astype(np.int32), row, column, weight)
    if not plane or shape[2] == 1:
        return footprints
    return replace(footprints, shape=(shape[2], *shape[:2]), plane=plane[0])


def _placed(
    masks: _Masks, images: Collection[np.ndarray], *, swap: bool
) -> tuple[Footprints, str | None]:
    """Masks in the right orientation, and a note if the file does not say which that is.

    Parameters
    ----------
    masks : _Masks
    images : collection of (height, width)
        Images that may be of the same field of view.
    swap : bool
        Whether the user wants them the other way round than found.
    """
    candidates = {turn: turned(masks.stored) if turn else masks.stored for turn in (False, True)}
    fitting = {
        turn: [image for image in images if _fits(candidate, image.shape, masks.exact)]
        for turn, candidate in candidates.items()
    }
    certain = True
    if masks.told:
        turn = masks.usual
    elif bool(fitting[False]) != bool(fitting[True]):
        turn = bool(fitting[True])
    else:
        brightest = _brighter_turned(candidates, fitting)
        certain = brightest is not None
        turn = masks.usual if brightest is None else brightest
    turn ^= swap
    note = None
    if not certain and not swap:
        note = (
            "The file does not say which axis of the footprints is rows: if they do not lie on the "
            "cells of the image, open it with `swap_axes`."
        )
    footprints = candidates[turn]
    if not masks.exact and fitting[turn]:
        shape = fitting[turn][0].shape
        footprints = replace(footprints, shape=(*footprints.shape[:-2], *shape))
    return footprints, note


def _fits(footprints: Footprints, shape: tuple[int, ...], exact: bool) -> bool:
    height, width = footprints.shape[-2:]
    if exact:
        return (height, width) == shape
    return height <= shape[0] and width <= shape[1]


def _brighter_turned(
    candidates: dict[bool, Footprints], fitting: dict[bool, list[np.ndarray]]
) -> bool | None:
    """Orientation in which cells are clearly brighter than their surroundings, if any."""
    if (
        len(np.unique(candidates[False].cell)) < FEWEST
        or not fitting[False]
        or candidates[False].plane is not None
    ):
        return None
    excess = {
        turn: np.mean([_excess(candidate, image) for image in fitting[turn]], axis=0)
        for turn, candidate in candidates.items()
    }
    gain = excess[True] - excess[False]
    if abs(gain.mean()) <= CLEAR * gain.std(ddof=1) / np.sqrt(len(gain)):
        return None
    return bool(gain.mean() > 0)


def _excess(footprints: Footprints, image: np.ndarray) -> np.ndarray:
    """(cells,) how much brighter each cell is than its surroundings, in standard deviations."""
    local = image - scipy.ndimage.uniform_filter(
        np.asarray(image, np.float64), AROUND, mode="nearest"
    )
    local /= local.std() or 1.0
    of_cell = np.bincount(
        footprints.cell, footprints.weight * local[footprints.row, footprints.column]
    )
    weight = np.bincount(footprints.cell, footprints.weight)
    return of_cell[weight > 0] / weight[weight > 0]


def _where(table: h5py.Group) -> str:
    return f"{table.file.filename}: {table.name}"


ACCEPTED = ("is_accepted", "iscell", "is_cell", "accepted", "valid_roi", "manual_accepted")
REJECTED = ("rejected", "is_rejected")
"""Columns that say which ROIs are cells, in small letters; the first that is there counts."""
MASKS = ("image_mask", "pixel_mask", "voxel_mask")
NAMES = {"roi_name": "name", "names": "name"}


@dataclass(frozen=True)
class _Rois:
    """What is known about the ROIs of a recording, in its order.

    Parameters
    ----------
    ids : (cells,) int or None
        None where they are not unique over all planes.
    accepted : (cells,) bool or None
    columns : mapping of str to (cells,) array
    """

    ids: np.ndarray | None = None
    accepted: np.ndarray | None = None
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)


def _about_rois(planes: Sequence[Plane], notes: list[str]) -> _Rois:
    """What the tables of all planes say about their ROIs, one plane after the other."""
    parts = [_about(plane, notes) for plane in planes]
    if len(parts) == 1:
        return parts[0]
    ids = [part.ids for part in parts if part.ids is not None]
    joined = np.concatenate(ids) if len(ids) == len(parts) else None
    accepted = None
    if any(part.accepted is not None for part in parts):
        accepted = np.concatenate(
            [
                np.ones(len(plane.rows), bool) if part.accepted is None else part.accepted
                for part, plane in zip(parts, planes, strict=True)
            ]
        )
    common = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in common}
    columns["plane"] = np.repeat(np.arange(len(planes)), [len(plane.rows) for plane in planes])
    if joined is not None and len(np.unique(joined)) < len(joined):
        columns["id_in_plane"] = joined
        joined = None
        notes.append("ROI ids repeat from plane to plane: cells are numbered across all planes.")
    return _Rois(joined, accepted, columns)


def _about(plane: Plane, notes: list[str]) -> _Rois:
    table = plane.table
    if table is None:
        return _Rois()
    ids = plain_column(table, "id")
    length = len(plane.rows) if ids is None else len(ids)
    if ids is not None and plane.rows.max() >= length:
        raise InputError(
            f"{table.file.filename}: {table.name} has {length} ROIs, but the traces name number "
            f"{plane.rows.max()}."
        )
    if length > len(plane.rows):
        notes.append(f"{length - len(plane.rows)} ROIs have no trace and are left out.")
    accepted, columns = _acceptance(table, plane.rows, length)
    if accepted is None:
        notes.append("The file does not say which ROIs are cells: all count as cells.")
    for name in column_names(table):
        if name in MASKS or name.lower() in (*ACCEPTED, *REJECTED):
            continue
        column = plain_column(table, name, axes=2)
        if column is not None and len(column) == length:
            columns |= columns_of(NAMES.get(name, name), column[plane.rows])
    return _Rois(_unique(ids, plane.rows), accepted, columns)


def _unique(ids: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """Ids of the rows, if they are whole numbers and no two the same."""
    if ids is None or ids.dtype.kind not in "iu" or len(np.unique(ids[rows])) < len(rows):
        return None
    return ids[rows].astype(np.int64)


def acceptance_columns(table: h5py.Group, length: int) -> dict[str, h5py.Dataset]:
    """Columns that accept or reject ROIs, by their name in lower case."""
    names = {name.lower(): name for name in column_names(table)}
    found = {}
    for key in (*ACCEPTED, *REJECTED):
        dataset = dataset_at(table, names[key]) if key in names else None
        if dataset is None or dataset.dtype.kind not in "biuf" or dataset.shape[:1] != (length,):
            continue
        if dataset.shape in ((length,), (length, 2)):
            found[key] = dataset
    return found


def _acceptance(
    table: h5py.Group, rows: np.ndarray, length: int
) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """(cells,) bool from the column that says so; and the probability, where one has it."""
    accepted: np.ndarray | None = None
    likely: dict[str, np.ndarray] = {}
    for key, dataset in acceptance_columns(table, length).items():
        values = np.asarray(read(dataset), np.float64)
        # suite2p: a flag, and the probability that its classifier gave
        flags = values[rows] if values.ndim == 1 else values[rows, 0]
        if accepted is None:
            accepted = flags <= 0.5 if key in REJECTED else flags > 0.5
        if values.ndim == 2 and not likely:
            likely = {"probability": values[rows, 1]}
        elif not np.isin(values, (0, 1)).all() and not likely:
            likely = {"probability": values[rows]}
    return accepted, likely
