"""Writes recordings and results as Neurodata Without Borders files, for other programs.

pynwb writes them; it is an extra, because reading takes h5py alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import h5py
import numpy as np

from napari_xcebra.errors import InputError, ValuesError
from napari_xcebra.files import whole
from napari_xcebra.io import open_recording
from napari_xcebra.io.containers.hdf5 import (
    attribute,
    changed_copy,
    child,
    dataset_at,
    make_room,
    open_hdf5,
    read,
)
from napari_xcebra.io.decisions.plan import Plan, change_to, seen, target_of
from napari_xcebra.io.formats.nwb.behavior import (
    add_behavior,
    add_intervals,
    clock_of,
    plain_name,
    told_by_trials,
)
from napari_xcebra.io.formats.nwb.reading import (
    REJECTED,
    acceptance_columns,
    described,
    imaged_together,
)
from napari_xcebra.io.formats.nwb.results import Results, RoiRows, add_results
from napari_xcebra.io.formats.nwb.walk import (
    RESULTS,
    Plane,
    column_names,
    is_nwb,
    planes_in,
    typed_objects,
)
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import LazyTraces

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.io.decisions.decided import Decided


def write_nwb(
    recording: Recording,
    path: str | PathLike[str],
    results: Attribution | Iterable[Attribution] = (),
    *,
    decisions: pd.DataFrame | None = None,
    threshold: float = 0.0,
    started: datetime | None = None,
    subject: Mapping[str, str] | None = None,
    location: str = "",
    new: bool = False,
) -> Path:
    """Write a recording and what was found in it as an NWB file; whole or not at all.

    A recording that was opened from an NWB file is copied, and the results are added to the copy:
    what else the file holds stays as it was. Of any other recording a new file is made, with its
    traces, ROIs, images and behaviour.

    The results are in a processing module, `xcebra`: a table for each factor that refers to the
    table of ROIs, the factors with their verdicts, the embedding as a time series, and the
    settings and versions it was made with.

    Parameters
    ----------
    recording : Recording
    path : path
        Usually ends in .nwb.
    results : Attribution or several, optional
        Maps of one run; the first is the one to look at first.
    decisions : DataFrame, optional
        As `Curation.table` gives it.
    threshold : float
        z above which a cell counts as above threshold.
    started : datetime, optional
        When the session began, at time 0 of the recording. Archives ask for it; without, the file
        says that it is not known. A copy keeps its own.
    subject : mapping of str to str, optional
        The animal, as archives ask for it: subject_id, species, sex (F, M, U, O) and age (P90D).
        A copy keeps its own, if it has one.
    location : str
        Where in the brain was imaged, such as VISp. A copy keeps its own.
    new : bool
        Make a new file of a recording that was opened from an NWB file, too.

    Returns
    -------
    Path

    Examples
    --------
    >>> xc.write_nwb(recording, "results.nwb", result)  # doctest: +SKIP
    """
    path, nwb = Path(path), _pynwb()
    maps = list(results) if isinstance(results, Iterable) else [results]
    recording = _with_decisions(recording, decisions)
    source = Path(recording.source or "-")
    if path.resolve() == source.resolve():
        raise InputError(
            f"{path} is the file that was opened: choose another name, so that it stays as it is."
        )
    found = Results.of(recording, maps, decisions, threshold)
    if is_nwb(source) and not new:
        with whole(path) as temporary:
            _add_to_copy(nwb, source, temporary, recording, found, subject)
        return path
    file = _new_file(nwb, recording, started, subject, location)
    rows = RoiRows(_table_in(file), np.arange(recording.n_cells), slice(None))
    add_results(nwb, file, [rows], recording, found)
    with whole(path) as temporary:
        made = 4 * recording.n_frames * recording.n_cells
        made += sum(4 * np.size(image) for image in recording.images.values())
        made += 0 if recording.footprints is None else 16 * len(recording.footprints.cell)
        make_room(temporary, made + found.room(recording))
        with nwb.NWBHDF5IO(temporary, "r+") as writer:
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


def _with_decisions(recording: Recording, decisions: pd.DataFrame | None) -> Recording:
    """The recording with the cells accepted or rejected that were decided on."""
    if decisions is None:
        return recording
    decided = decisions.drop_duplicates("cell").set_index("cell")["status"]
    status = decided.reindex(np.asarray(recording.cell_ids)).to_numpy(object)
    accepted = np.asarray(recording.accepted).copy()
    accepted[status == "accepted"] = True
    accepted[status == "rejected"] = False
    return replace(recording, accepted=accepted)


UNKNOWN = {"subject_id": "unknown", "description": "not known", "sex": "U", "age": "P0D/"}
"""The animal of which nothing is told, of any age: archives refuse a file without."""


def _new_file(
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
    file.subject = _subject_of(nwb, subject)
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


def _subject_of(nwb: Any, told: Mapping[str, str] | None) -> Any:
    """The animal, as far as it is told."""
    return nwb.file.Subject(**{**UNKNOWN, **(told or {})})


def _table_in(file: Any) -> Any:
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


def _add_to_copy(
    nwb: Any,
    source: Path,
    path: Path,
    recording: Recording,
    found: Results,
    subject: Mapping[str, str] | None = None,
) -> None:
    """Copy a file, and add decisions, behaviour of other files and the results to the copy."""
    rows = _rows(source, recording.n_cells)
    accepted = np.asarray(recording.accepted)

    def change(file: h5py.File) -> None:
        _write_columns(file, accepted, {})
        if isinstance(file.get("processing"), h5py.Group):
            file["processing"].pop(RESULTS, None)  # of an earlier run

    changed_copy(source, path, change, 32 * len(accepted))
    make_room(path, found.room(recording))
    there = open_recording(source).behavior
    added = [each for name, each in recording.behavior.items() if name not in there]
    try:
        with nwb.NWBHDF5IO(path, "a", load_namespaces=True) as writer:
            file = writer.read()
            if file.subject is None:
                file.subject = _subject_of(nwb, subject)
            by_id = file.objects
            planes = [RoiRows(by_id[each], at, cells) for each, at, cells in rows]
            add_results(nwb, file, planes, recording, found)
            add_behavior(nwb, file, recording, added, suffix="_of_other_files")
            writer.write(file)
    except InputError:
        raise
    except Exception as error:  # pynwb raises whatever it met in the file of another program
        raise InputError(
            f"pynwb cannot add to a copy of {source} ({' '.join(str(error).split())[:150]}): ask "
            "for a new file instead."
        ) from error


def _rows(source: Path, n_cells: int) -> list[tuple[str, np.ndarray, slice]]:
    """The id of each table of ROIs, the rows with traces, and which cells these are."""
    found, first = [], 0
    with open_hdf5(source) as file:
        for plane in _opened_planes(file):
            name = None if plane.table is None else attribute(plane.table, "object_id")
            if not isinstance(name, str):
                raise InputError(
                    f"{source} has no table of ROIs that results can refer to: ask for a new file "
                    "instead."
                )
            last = first + len(plane.rows)
            found.append((name, np.asarray(plane.rows), slice(first, last)))
            first = last
    if first != n_cells:
        raise InputError(
            f"{source} has {first} ROIs but the recording has {n_cells}: it has been rewritten "
            "since it was opened. Reopen it."
        )
    return found


TITLE = "NWB (is_accepted and scores)"
ACCEPTED, SCORE = "is_accepted", "xcebra_score_"


def plan_decisions(decided: Decided, destination: Path | None, *, in_place: bool = False) -> Plan:
    """One file: a copy with the decisions, or the opened one with a backup.

    Parameters
    ----------
    decided : Decided
    destination : Path or None
        File or folder for the copy; beside the source if None.
    in_place : bool
        Whether the opened file is replaced instead.
    """
    source = decided.path
    assert source is not None
    beside = source.with_name(f"{source.stem}-curated{source.suffix}")
    target = target_of(source if in_place else beside, destination)
    is_same = target.resolve() == source.resolve()
    if is_same and not in_place:
        raise InputError(
            f"{target} is the file that was opened: choose another name, or replace it (in place)."
        )
    read = seen(source)
    scores = {f"{SCORE}{_plain(name)}": decided.score(name) for name in decided.factors}
    what, warnings = _described(source, decided, list(scores))
    if not is_same:
        what = f"Copy of {source} with these decisions: {what}"
        if target.resolve().parent != source.resolve().parent and _has_links(source):
            warnings.append(
                f"{source.name} refers to other files beside it: put {target.name} into the same "
                "folder as those."
            )

    def make(path: Path) -> None:
        room = 16 * decided.recording.n_cells * (1 + len(scores))
        changed_copy(
            source, path, lambda file: _write_columns(file, decided.accepted, scores), room
        )

    change = change_to(target, what, make, size=source.stat().st_size, copy=True)
    return Plan("nwb", (change,), decided.summary(), tuple(warnings), read)


def accepted_in(file: h5py.File) -> np.ndarray:
    """(cells,) bool, what the tables of ROIs say, in the order of the recording."""
    found = []
    for plane in _opened_planes(file):
        length = _length(_rows_of(plane))
        found.append(_flags(acceptance_columns(_rows_of(plane), length), length)[plane.rows])
    return np.concatenate(found)


def _opened_planes(file: h5py.File) -> list[Plane]:
    """Tables of ROIs that were opened, in the order of the recording."""
    return imaged_together(planes_in(typed_objects(file), []), [])


def _described(source: Path, decided: Decided, scores: list[str]) -> tuple[str, list[str]]:
    """Columns the ROI table will have; raises if the file does not belong to the recording."""
    warnings: list[str] = []
    with open_hdf5(source) as file:
        planes = _opened_planes(file)
        there = sum(len(plane.rows) for plane in planes)
        if there != decided.recording.n_cells:
            raise InputError(
                f"{source} has {there} ROIs but the recording has {decided.recording.n_cells}: it "
                "has been rewritten since it was opened. Reopen it."
            )
        agreed: dict[str, None] = {}
        for plane in planes:
            table = _rows_of(plane)
            for dataset in acceptance_columns(table, _length(table)).values():
                name = str(dataset.name).rsplit("/", 1)[-1]
                if _is_flag(dataset):
                    agreed[name] = None
                else:
                    warnings.append(f"{name} holds probabilities and is left as it is.")
    agreed.pop(ACCEPTED, None)
    what = f"the table of ROIs has {', '.join([ACCEPTED, *scores])}"
    if agreed:
        what += f", and {', '.join(agreed)} in agreement"
    return f"{what}.", list(dict.fromkeys(warnings))


def _write_columns(file: h5py.File, accepted: np.ndarray, scores: Mapping[str, np.ndarray]) -> None:
    """Write the columns into every table, rows without traces as they were."""
    first = 0
    for plane in _opened_planes(file):
        own = slice(first, first + len(plane.rows))
        first += len(plane.rows)
        table = _rows_of(plane)
        length = _length(table)
        present = acceptance_columns(table, length)
        flags = _flags(present, length)
        flags[plane.rows] = accepted[own]
        for key, dataset in present.items():
            if _is_flag(dataset) and key != ACCEPTED:
                _agree(dataset, ~flags if key in REJECTED else flags)
        text = "whether the ROI counts as a cell, as decided in napari-xcebra"
        _put_column(table, ACCEPTED, flags, text)
        for name, values in scores.items():
            column = np.full(length, np.nan)
            column[plane.rows] = values[own]
            factor = name.removeprefix(SCORE)
            _put_column(table, name, column, f"how much the ROI carries {factor} (xCEBRA)")


def _rows_of(plane: Plane) -> h5py.Group:
    if plane.table is None:
        raise ValuesError("it has traces but no table of ROIs in which to mark them.")
    return plane.table


def _length(table: h5py.Group) -> int:
    ids = dataset_at(table, "id")
    if ids is None or ids.ndim != 1:
        raise InputError(f"{table.file.filename}: {table.name} has no ids of ROIs.")
    return len(ids)


def _flags(present: Mapping[str, h5py.Dataset], length: int) -> np.ndarray:
    """(ROIs,) bool, what the table says now; without a column, every ROI is a cell."""
    for key, dataset in present.items():
        values = np.asarray(read(dataset), np.float64)
        flags = (values if values.ndim == 1 else values[:, 0]) > 0.5
        return ~flags if key in REJECTED else flags
    return np.ones(length, bool)


def _is_flag(dataset: h5py.Dataset) -> bool:
    """Whether a column says yes or no (with a probability beside it or not)."""
    return dataset.ndim == 2 or bool(np.isin(read(dataset), (0, 1)).all())


def _agree(dataset: h5py.Dataset, flags: np.ndarray) -> None:
    values = dataset[()]
    (values if values.ndim == 1 else values[:, 0])[:] = flags
    dataset[...] = values


def _put_column(table: h5py.Group, name: str, values: np.ndarray, description: str) -> None:
    """Add a column to the table, or replace ours."""
    names = column_names(table)
    if child(table, name) is not None:
        identity = attribute(table[name], "object_id")
        del table[name]
    else:
        identity = None
    column = table.create_dataset(name, data=values, maxshape=(None,), chunks=True)
    attributes: dict[str, Any] = {
        "description": description,
        # before NWB 2.2, tables belonged to the core
        "namespace": attribute(table["id"], "namespace", "hdmf-common"),
        "neurodata_type": "VectorData",
        "object_id": identity if isinstance(identity, str) else str(uuid4()),
    }
    for key, value in attributes.items():
        column.attrs[key] = value
    if name not in names:
        table.attrs["colnames"] = np.array([*names, name], h5py.string_dtype())


def _has_links(source: Path) -> bool:
    """Whether the file links to others."""
    found = []

    def look(group: h5py.Group) -> None:
        for name in group:
            kind = group.get(name, getlink=True)
            if isinstance(kind, h5py.ExternalLink):
                found.append(name)

    with open_hdf5(source) as file:
        look(file)
        file.visititems(lambda _, node: look(node) if isinstance(node, h5py.Group) else None)
    return bool(found)


def _plain(name: str) -> str:
    """Name of a factor that may stand in a path of HDF5."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_.") or "factor"
