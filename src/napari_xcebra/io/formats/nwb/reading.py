"""Reads Neurodata Without Borders 2 (.nwb): ROIs, traces, images and behaviour.

Read with h5py alone. Objects are found by type: a PlaneSegmentation is a table of ROIs, each
RoiResponseSeries names the rows of it that its columns are, and several tables are several planes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from napari_xcebra.errors import InputError, ValuesError
from napari_xcebra.io.containers.hdf5 import attribute, dataset_at, open_hdf5, read
from napari_xcebra.io.extraction import Extraction, Signal, finite_image
from napari_xcebra.io.formats.nwb.behavior import behavior_in, invalid_times
from napari_xcebra.io.formats.nwb.rois import about_rois, placed, read_masks
from napari_xcebra.io.formats.nwb.walk import (
    Plane,
    Typed,
    check_version,
    is_nwb,
    of_type,
    planes_in,
    scaling,
    typed_objects,
)
from napari_xcebra.io.pixel_size import judged, micrometres, pair
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


class Picture(NamedTuple):
    """An image of the file, under our name for it or its own."""

    name: str
    own_name: str
    pixels: np.ndarray


def _pictures_in(file: h5py.File, objects: Iterable[Typed]) -> list[Picture]:
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
            found.append(Picture(_name(image), image.name, filled.T if turn else filled))
    return found


def _with_names(pictures: Iterable[Picture], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Images of a field of view by name; the first keeps the short one."""
    images: dict[str, np.ndarray] = {}
    for picture in pictures:
        if picture.pixels.shape == shape:
            name = picture.own_name if picture.name in images else picture.name
            images.setdefault(name, picture.pixels)
    return images


def stacked(pictures: Iterable[Picture], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
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
        planes = imaged_together(planes_in(objects, notes), notes)
        if not planes:
            raise InputError(
                f"{path} has no traces of ROIs (RoiResponseSeries): extract them before opening it."
            )
        pictures = _pictures_in(file, objects)
        footprints = _footprints(planes, pictures, settings, notes)
        rois = about_rois(planes, notes)
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
    planes: Sequence[Plane], pictures: Sequence[Picture], settings: OpenSettings, notes: list[str]
) -> Footprints | None:
    images = [picture.pixels for picture in pictures]
    found, sentences = [], []
    for plane in planes:
        masks = None if plane.table is None else read_masks(plane.table, plane.rows)
        if masks is None:
            notes.append("The file has no ROI masks: there are no footprints.")
            return None
        footprints, note = placed(masks, images, swap=settings.swap_axes)
        found.append(footprints)
        sentences += [note] if note else []
    notes += dict.fromkeys(sentences)
    if len(found) == 1:
        return found[0]
    if any(part.plane is not None for part in found):
        raise ValuesError("it has several volumes of ROIs; only one can be opened.")
    return Footprints.stacked(found, [len(plane.rows) for plane in planes])


def _images(
    pictures: Sequence[Picture], footprints: Footprints | None, notes: list[str]
) -> dict[str, np.ndarray]:
    if not pictures:
        return {}
    if footprints is None:
        return _with_names(pictures, pictures[0].pixels.shape)
    if footprints.plane is not None:
        return stacked(pictures, footprints.shape)
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
