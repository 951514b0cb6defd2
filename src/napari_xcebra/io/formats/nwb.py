"""Neurodata Without Borders, version 2 (.nwb): ROIs, traces, images and behaviour.

Read with h5py alone. Objects are found by type: a PlaneSegmentation is a table of ROIs, each
RoiResponseSeries names the rows of it that its columns are, and several tables are several planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from napari_xcebra.footprints import Footprints
from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.hdf5.reading import dataset_at, open_hdf5, read
from napari_xcebra.io.nwb.behavior import behavior_in, invalid_times
from napari_xcebra.io.nwb.images import Picture, pictures_in, stacked, with_names
from napari_xcebra.io.nwb.masks import placed, read_masks
from napari_xcebra.io.nwb.rois import about_rois
from napari_xcebra.io.nwb.traces import Plane, planes_in
from napari_xcebra.io.nwb.walk import Typed, check_version, is_nwb, of_type, typed_objects
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import InputError
from napari_xcebra.traces import JoinedTraces, LazyTraces

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
        pictures = pictures_in(file, objects)
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
            notes=tuple(notes),
        )


def imaged_together(planes: list[Plane], notes: list[str]) -> list[Plane]:
    """Planes that were imaged together: as many frames, but for one or two."""
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
        notes.append(
            f"The {len(kept)} sets of ROIs are taken as planes, on the clock of the first."
        )
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
        raise InputError("The planes of the file have no kind of traces in common.")
    return {name: JoinedTraces(tuple(plane.signals[name] for plane in planes)) for name in common}


def _footprints(
    planes: Sequence[Plane], pictures: Sequence[Picture], settings: OpenSettings, notes: list[str]
) -> Footprints | None:
    images = [picture.pixels for picture in pictures]
    found, sentences = [], []
    for plane in planes:
        masks = None if plane.table is None else read_masks(plane.table, plane.rows)
        if masks is None:
            notes.append("The file has no masks of its ROIs: footprints are missing.")
            return None
        footprints, note = placed(masks, images, swap=settings.swap_axes)
        found.append(footprints)
        sentences += [note] if note else []
    notes += dict.fromkeys(sentences)
    return found[0] if len(found) == 1 else _stack(planes, found)


def _stack(planes: Sequence[Plane], parts: Sequence[Footprints]) -> Footprints:
    """Footprints of several planes, one above the other."""
    if any(part.plane is not None for part in parts):
        raise InputError("The file has several volumes of ROIs: one is needed.")
    first = np.cumsum([0, *(len(plane.rows) for plane in planes)])
    height, width = np.max([part.shape for part in parts], axis=0)
    return Footprints(
        (len(parts), int(height), int(width)),
        np.concatenate([part.cell + n for part, n in zip(parts, first, strict=False)]),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([np.full(len(part.cell), i, np.int32) for i, part in enumerate(parts)]),
    )


def _images(
    pictures: Sequence[Picture], footprints: Footprints | None, notes: list[str]
) -> dict[str, np.ndarray]:
    if not pictures:
        return {}
    if footprints is None:
        return with_names(pictures, pictures[0].pixels.shape)
    if footprints.plane is not None:
        return stacked(pictures, footprints.shape)
    others = [p.own_name for p in pictures if p.pixels.shape != footprints.shape]
    if others:
        notes.append(
            f"Images of another size than the field of view are left out: {', '.join(others)}."
        )
    return with_names(pictures, footprints.shape)


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
