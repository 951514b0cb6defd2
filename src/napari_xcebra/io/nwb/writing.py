"""Writes recordings as Neurodata Without Borders files, for other programs and archives.

pynwb writes them, so that they follow the specification: x before y, in masks and in images.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.io.nwb.behavior import comment_on
from napari_xcebra.io.nwb.rois import described
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces
from napari_xcebra.recording.variable import LENGTHS

"""Units of variables that are positions."""


def write_nwb(
    recording: Recording, path: str | PathLike[str], *, started: datetime | None = None
) -> Path:
    """Write a recording as an NWB file; whole or not at all.

    Parameters
    ----------
    recording : Recording
    path : path
        Usually ends in .nwb.
    started : datetime, optional
        When the session began, at time 0 of the recording. Archives ask for it; without, the file
        says that it is not known.

    Returns
    -------
    Path
    """
    path = Path(path)
    nwb = _pynwb()
    file = _file(nwb, recording, started)
    ophys = file.create_processing_module(
        name="ophys", description="Regions of interest and their traces"
    )
    table = _table(nwb, file, recording)
    ophys.add(nwb.ophys.ImageSegmentation(plane_segmentations=[table]))
    _add_traces(nwb, ophys, recording, table)
    _add_images(nwb, ophys, recording)
    if recording.behavior:
        behavior = file.create_processing_module(
            name="behavior", description="Variables, one sample per frame"
        )
        _add_behavior(nwb, behavior, recording)
    _add_intervals(file, recording)
    with whole(path) as temporary, nwb.NWBHDF5IO(temporary, "w") as writer:
        writer.write(file)
    return path


def _pynwb() -> Any:
    """The package pynwb, which is an extra and slow to import."""
    try:
        import pynwb
    except ImportError as error:
        raise InputError(
            "Writing NWB files needs the package pynwb: install napari-xcebra[nwb]."
        ) from error
    return pynwb


def _file(nwb: Any, recording: Recording, started: datetime | None) -> Any:
    described_as = f"Calcium imaging, from {Path(recording.source).name or 'arrays'}"
    if started is None:
        described_as += "; when it was recorded is not known"
    elif started.tzinfo is None:
        started = started.astimezone()
    return nwb.NWBFile(
        session_description=described_as,
        identifier=str(uuid4()),
        session_start_time=started or datetime(1970, 1, 1, tzinfo=UTC),
        notes="\n".join(recording.notes) or None,
        source_script="Written by napari-xcebra",
        source_script_file_name="napari-xcebra",
    )


def _table(nwb: Any, file: Any, recording: Recording) -> Any:
    """The table of ROIs: ids, acceptance, masks and other columns."""
    # a file without masks is not valid: without footprints they are empty
    none = np.zeros(0, np.int32)
    footprints = recording.footprints or Footprints((1, 1), none, none, none, none)
    columns = [*_columns(nwb, recording), *_masks(nwb, footprints, recording.n_cells)]
    return nwb.ophys.PlaneSegmentation(
        name="PlaneSegmentation",
        description=described(footprints.shape),
        imaging_plane=_imaging_plane(nwb, file, recording.rate, recording.pixel_size),
        id=np.asarray(recording.cell_ids),
        columns=columns,
        colnames=[
            column.name for column in columns if not isinstance(column, nwb.core.VectorIndex)
        ],
    )


def _imaging_plane(nwb: Any, file: Any, rate: float, pixel_size: float | None) -> Any:
    """Fields that the specification requires and a recording does not know."""
    channel = nwb.ophys.OpticalChannel(
        name="OpticalChannel", description="not known", emission_lambda=float("nan")
    )
    spacing: dict[str, Any] = {}
    if pixel_size is not None:
        spacing = {"grid_spacing": [pixel_size, pixel_size], "grid_spacing_unit": "micrometers"}
    return file.create_imaging_plane(
        name="ImagingPlane",
        optical_channel=channel,
        description="not known",
        device=file.create_device(name="Microscope"),
        excitation_lambda=float("nan"),
        indicator="not known",
        location="not known",
        imaging_rate=float(rate),
        **spacing,
    )


def _columns(nwb: Any, recording: Recording) -> list[Any]:
    """Whether each ROI is accepted, and what else the source says about it."""
    known = {"is_accepted": np.asarray(recording.accepted)}
    for name, values in recording.cells.items():
        # a table of pynwb has attributes of its own
        key = f"roi_{name}" if hasattr(nwb.ophys.PlaneSegmentation, name) else name
        if np.asarray(values).dtype.kind in "biufU":
            known[_plain(key, known)] = np.asarray(values)
    return [
        nwb.core.VectorData(
            name=name,
            description=f"{name} of each ROI",
            data=values.tolist() if values.dtype.kind == "U" else values,
        )
        for name, values in known.items()
    ]


def _masks(nwb: Any, footprints: Footprints, n_cells: int) -> list[Any]:
    """Weighted pixels of all cells, one cell after the other, and where each ends."""
    kind = [("x", np.uint32), ("y", np.uint32), ("weight", np.float32)]
    name = "pixel_mask"
    if footprints.plane is not None:
        kind.insert(2, ("z", np.uint32))
        name = "voxel_mask"
    order = np.argsort(footprints.cell, kind="stable")
    pixels = np.empty(len(order), kind)
    pixels["x"], pixels["y"] = footprints.column[order], footprints.row[order]
    pixels["weight"] = footprints.weight[order]
    if footprints.plane is not None:
        pixels["z"] = footprints.plane[order]
    ends = np.cumsum(np.bincount(footprints.cell, minlength=n_cells))
    column = nwb.core.VectorData(name=name, description="pixels of each ROI", data=pixels)
    return [column, nwb.core.VectorIndex(name=f"{name}_index", data=ends, target=column)]


def _add_traces(nwb: Any, module: Any, recording: Recording, table: Any) -> None:
    """The traces in a container that says what they are."""
    every = table.create_roi_table_region(
        region=list(range(recording.n_cells)), description="all ROIs"
    )
    relative = recording.origin.signal == "dff"
    series = nwb.ophys.RoiResponseSeries(
        # by this name, what is neither ΔF/F nor raw fluorescence is read back as it is
        name="RoiResponseSeries" if relative else "traces",
        data=_on_disk(nwb, recording.traces),
        rois=every,
        unit="n.a.",
        description=recording.origin.traces or "traces",
        **_clock(recording),
    )
    container = nwb.ophys.DfOverF() if relative else nwb.ophys.Fluorescence()
    module.add(container)
    container.add_roi_response_series(series)


def _on_disk(nwb: Any, traces: LazyTraces | np.ndarray) -> Any:
    """Compressed data, read in blocks if they are on disk."""
    if not isinstance(traces, LazyTraces):
        return nwb.H5DataIO(traces, compression="gzip", shuffle=True)
    from hdmf.data_utils import DataChunkIterator

    step = max(1, 2**22 // traces.shape[1])

    def rows() -> Iterator[np.ndarray]:
        for first in range(0, len(traces), step):
            yield from traces[first : first + step]

    blocks = DataChunkIterator(
        data=rows(), maxshape=traces.shape, dtype=traces.dtype, buffer_size=step
    )
    return nwb.H5DataIO(blocks, compression="gzip", shuffle=True)


def _clock(recording: Recording) -> dict[str, Any]:
    """Frame times: a rate if that is exact, else the time of each frame."""
    times = np.asarray(recording.times)
    if np.array_equal(times, times[0] + np.arange(len(times)) / recording.rate):
        return {"starting_time": float(times[0]), "rate": float(recording.rate)}
    return {"timestamps": times}


def _add_images(nwb: Any, module: Any, recording: Recording) -> None:
    pictures: dict[str, np.ndarray] = {}
    for name, image in recording.images.items():
        pixels = np.asarray(image, np.float32)
        if pixels.ndim == 2:
            pictures[_plain(name, pictures)] = pixels
        else:
            for i, plane in enumerate(pixels):
                pictures[_plain(f"{name}_plane{i}", pictures)] = plane
    images = [
        nwb.image.GrayscaleImage(name=name, data=pixels.T, description="x before y")
        for name, pixels in pictures.items()
    ]
    if images:
        module.add(nwb.base.Images(name="SegmentationImages", images=images,
                                   description="Background images"))  # fmt: skip


def _add_behavior(nwb: Any, module: Any, recording: Recording) -> None:
    """Variables in the containers that the specification has for them."""
    clock = _clock(recording)
    containers: dict[str, dict[str, Any]] = {}
    for name, variable in recording.behavior.items():
        holder = _container(variable)
        values = variable.values[:, 0] if variable.values.shape[1] == 1 else variable.values
        members = containers.setdefault(holder, {})
        plain = _plain(name, members)
        about = {
            "name": plain,
            "data": nwb.H5DataIO(values, compression="gzip"),
            "unit": variable.unit or "n.a.",
            "description": name,
            "comments": comment_on(variable),
            **clock,
        }
        if holder == "BehavioralTimeSeries":
            members[plain] = nwb.TimeSeries(**about)
        else:
            members[plain] = nwb.behavior.SpatialSeries(reference_frame="not known", **about)
    for holder, members in containers.items():
        key = "time_series" if holder == "BehavioralTimeSeries" else "spatial_series"
        module.add(getattr(nwb.behavior, holder)(name=holder, **{key: list(members.values())}))


def _container(variable: Variable) -> str:
    if variable.kind == "circular":
        return "CompassDirection"
    measured = variable.is_place and variable.unit in LENGTHS
    return "Position" if measured else "BehavioralTimeSeries"


def _add_intervals(file: Any, recording: Recording) -> None:
    """Segments as trials, and excluded frames as invalid times; edges lie between frames."""
    times = np.asarray(recording.times)
    half = 0.5 / recording.rate
    edges = np.r_[times[0] - half, (times[1:] + times[:-1]) / 2, times[-1] + half]
    starts = np.r_[np.asarray(recording.starts), len(times)]
    if len(starts) > 2:
        for first, last in pairwise(starts):
            file.add_trial(start_time=float(edges[first]), stop_time=float(edges[last]))
    change = np.diff(np.r_[False, np.asarray(recording.excluded), False].astype(np.int8))
    for first, last in zip(np.flatnonzero(change > 0), np.flatnonzero(change < 0), strict=True):
        file.add_invalid_time_interval(start_time=float(edges[first]), stop_time=float(edges[last]))


def _plain(name: str, taken: Collection[str]) -> str:
    """A name that NWB admits and that is still free."""
    plain = name.replace("/", "_").replace(":", "_") or "unnamed"
    while plain in taken:
        plain += "_"
    return plain
