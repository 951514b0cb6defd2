"""Makes a Neurodata Without Borders file of a recording, as pynwb's objects.

They follow the specification: x before y, in masks and in images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from napari_xcebra.io.nwb.new_behavior import (
    add_behavior,
    add_intervals,
    clock_of,
    plain_name,
    told_by_trials,
)
from napari_xcebra.io.nwb.rois import described
from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces

UNKNOWN = {"subject_id": "unknown", "description": "not known", "sex": "U", "age": "P0D/"}
"""The animal of which nothing is told, of any age: archives refuse a file without."""


def new_file(
    nwb: Any,
    recording: Recording,
    started: datetime | None = None,
    subject: Mapping[str, str] | None = None,
    location: str = "",
) -> Any:
    """A recording as a file of pynwb, which is not written yet.

    Parameters
    ----------
    nwb : module
        pynwb.
    recording : Recording
    started : datetime, optional
        When the session began, at time 0 of the recording.
    subject : mapping of str to str, optional
        Fields of `pynwb.file.Subject`.
    location : str
        Where in the brain was imaged.

    Returns
    -------
    pynwb.NWBFile
        Its table of ROIs has a row for each cell, in the order of the recording.
    """
    file = _file(nwb, recording, started)
    file.subject = subject_of(nwb, subject)
    ophys = file.create_processing_module(
        name="ophys", description="Regions of interest and their traces"
    )
    table = _table(nwb, file, recording, location)
    ophys.add(nwb.ophys.ImageSegmentation(plane_segmentations=[table]))
    _add_traces(nwb, ophys, recording, table)
    _add_images(nwb, ophys, recording)
    by_trial = told_by_trials(recording)
    add_behavior(
        nwb, file, recording, [v for v in recording.behavior.values() if v.name not in by_trial]
    )
    add_intervals(file, recording)
    return file


def subject_of(nwb: Any, told: Mapping[str, str] | None) -> Any:
    """The animal, as far as it is told."""
    return nwb.file.Subject(**{**UNKNOWN, **(told or {})})


def table_in(file: Any) -> Any:
    """The table of ROIs of a file made here."""
    return file.processing["ophys"]["ImageSegmentation"]["PlaneSegmentation"]


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


def _table(nwb: Any, file: Any, recording: Recording, location: str) -> Any:
    """The table of ROIs: ids, acceptance, masks and other columns."""
    # a file without masks is not valid: without footprints they are empty
    none = np.zeros(0, np.int32)
    footprints = recording.footprints or Footprints((1, 1), none, none, none, none)
    columns = [*_columns(nwb, recording), *_masks(nwb, footprints, recording.n_cells)]
    return nwb.ophys.PlaneSegmentation(
        name="PlaneSegmentation",
        description=described(footprints.shape),
        imaging_plane=_imaging_plane(nwb, file, recording, location),
        id=np.asarray(recording.cell_ids),
        columns=columns,
        colnames=[
            column.name for column in columns if not isinstance(column, nwb.core.VectorIndex)
        ],
    )


def _imaging_plane(nwb: Any, file: Any, recording: Recording, location: str) -> Any:
    """Fields that the specification requires and a recording does not know."""
    channel = nwb.ophys.OpticalChannel(
        name="OpticalChannel", description="not known", emission_lambda=float("nan")
    )
    spacing: dict[str, Any] = {}
    if (size := recording.pixel_size) is not None:
        spacing = {"grid_spacing": [size, size], "grid_spacing_unit": "micrometers"}
    return file.create_imaging_plane(
        name="ImagingPlane",
        optical_channel=channel,
        description="not known",
        device=file.create_device(name="Microscope", description="not known"),
        excitation_lambda=float("nan"),
        indicator="not known",
        location=location or "not known",
        imaging_rate=float(recording.rate),
        **spacing,
    )


def _columns(nwb: Any, recording: Recording) -> list[Any]:
    """Whether each ROI is accepted, and what else the source says about it."""
    known = {"is_accepted": np.asarray(recording.accepted)}
    for name, values in recording.cells.items():
        # a table of pynwb has attributes of its own
        key = f"roi_{name}" if hasattr(nwb.ophys.PlaneSegmentation, name) else name
        if np.asarray(values).dtype.kind in "biufU":
            known[plain_name(key, known)] = np.asarray(values)
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
        **clock_of(recording),
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


def _add_images(nwb: Any, module: Any, recording: Recording) -> None:
    pictures: dict[str, np.ndarray] = {}
    for name, image in recording.images.items():
        pixels = np.asarray(image, np.float32)
        if pixels.ndim == 2:
            pictures[plain_name(name, pictures)] = pixels
        else:
            for i, plane in enumerate(pixels):
                pictures[plain_name(f"{name}_plane{i}", pictures)] = plane
    images = [
        nwb.image.GrayscaleImage(name=name, data=pixels.T, description="x before y")
        for name, pixels in pictures.items()
    ]
    if images:
        module.add(nwb.base.Images(name="SegmentationImages", images=images,
                                   description="Background images"))  # fmt: skip
