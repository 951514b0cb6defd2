"""Writes decisions to the `iscell.npy` of suite2p planes and of `combined`, in agreement.

suite2p's own window writes only the file of the open folder, so that planes and `combined` can
disagree; here all that hold the same ROIs are written together. The column of probabilities is
kept. suite2p removes the file when it is run again, and ROIs may then have other numbers: a table
of the decisions with the position of each ROI lies beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import refuse_link, whole
from napari_xcebra.io.containers.npy import mapped_header, read_npy
from napari_xcebra.io.decisions.decided import Decided, writing
from napari_xcebra.io.decisions.plan import FileChange, Plan, change_to, seen
from napari_xcebra.io.formats.suite2p.folder import (
    COMBINED,
    FILES,
    Roi,
    columns_of,
    folders_at,
    folders_near,
    is_extracted,
    planes_in,
    read_flags,
    read_stat,
)
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import NpyTraces
from napari_xcebra.text import listed

TITLE = "suite2p (iscell.npy)"
ISCELL, REDCELL, SIDECAR = "iscell.npy", "redcell.npy", "napari-xcebra-decisions.csv"
_COMPARED = 16
"""Frames by which the ROIs of planes are found again in `combined`."""

Flags = dict[Path, np.ndarray]
"""Decision on each ROI, (ROIs,) bool, by folder."""


def plan_decisions(decided: Decided, destination: Path | None, *, together: bool = True) -> Plan:
    """Every iscell.npy that holds these ROIs, and the table of decisions.

    Parameters
    ----------
    decided : Decided
    destination : Path or None
        Another folder to write to; the opened one if None.
    together : bool
        Whether planes and `combined` are written with each other.
    """
    assert decided.path is not None
    opened = [folder for folder in folders_at(decided.path) if is_extracted(folder)]
    home = opened[0].parent
    family = [*opened, *planes_in(home), home / COMBINED]
    read = seen(*(folder / name for folder in family for name in (ISCELL, "F.npy")))
    flags = _split(decided, opened)
    warnings = []
    others = _others(flags) if together else {}
    if others:
        names = listed(folder.name for folder in (*opened, *others))
        warnings.append(f"Decisions are written to {names}, which hold the same ROIs.")
    base = opened[0] if len(opened) == 1 else opened[0].parent
    files: list[FileChange] = []
    for folder, decisions in (flags | others).items():
        target = folder
        if destination is not None:
            target = destination / folder.name if len(flags | others) > 1 else destination
        change, more = _iscell(folder, target, decisions)
        files += [] if change is None else [change]
        warnings += more
    for folder, first in zip(opened, _firsts(decided, opened), strict=True):
        target = folder if destination is None else destination / folder.name
        if destination is not None and len(flags | others) == 1:
            target = destination
        files += _redcell(decided, folder, target, slice(first, first + len(flags[folder])))
        files += _merged_folder(decided, folder, first, flags[folder], destination)
    table = decided.everything()
    what = "The decisions as a table, in case suite2p is run again and removes iscell.npy."
    sidecar = (destination or base) / SIDECAR
    refuse_link(sidecar)
    files.append(change_to(sidecar, what, writing(table)))
    own = {folder.resolve() for folder in flags | others}
    read = {path: before for path, before in read.items() if path.parent in own}
    return Plan("suite2p", tuple(files), decided.summary(), tuple(dict.fromkeys(warnings)), read)


def written_near(path: Path) -> list[Path]:
    """Files of decisions in the folder, and in those that are written with it."""
    if not path.is_dir() and path.name not in (*FILES, SIDECAR):
        return []
    near = folders_near(path if path.is_dir() else path.parent)
    return [folder / name for folder in near for name in (ISCELL, REDCELL, SIDECAR)]


def table_beside(path: Path) -> Path | None:
    """Table of decisions that was written beside suite2p's files; None if there is none."""
    tables = (file for file in written_near(path) if file.name == SIDECAR)
    return next((file for file in tables if file.is_file()), None)


def check_backup(backup: Path, path: Path) -> None:
    """Raise unless a backup of iscell.npy has as many ROIs as the folder has now."""
    traces = path.parent / "F.npy"
    if path.name != ISCELL or not traces.is_file():
        return
    kept, there = len(read_npy(backup)), mapped_header(traces).shape[0]
    if kept != there:
        raise InputError(
            f"{backup} has {kept} ROIs but F.npy beside it has {there}: suite2p has been run "
            "again since, and the earlier decisions do not fit."
        )


def _firsts(decided: Decided, opened: Sequence[Path]) -> list[int]:
    """Position of the first ROI of each folder in the recording."""
    counts = [mapped_header(folder / "F.npy").shape[0] for folder in opened]
    return [0, *np.cumsum(counts).tolist()][: len(opened)]


def _redcell(decided: Decided, folder: Path, target: Path, inside: slice) -> list[FileChange]:
    """The change of redcell.npy by the tags "red" and "not red", if there is one."""
    red, not_red = (decided.tagged(tag)[inside] for tag in ("red", "not red"))
    file = folder / REDCELL
    table = read_npy(file) if file.is_file() else np.zeros((len(red), 2))
    if table.ndim != 2 or len(table) != len(red):
        return []
    before = table[:, 0] > 0
    after = (before | red) & ~not_red
    if np.array_equal(before, after):
        return []
    changed = table.astype(np.float64)
    changed[:, 0] = after
    what = f"{int(after.sum())} of {len(after)} ROIs are red, by your tags; probabilities stay."
    return [change_to(target / REDCELL, what, lambda path: _save(path, changed))]


def _merged_folder(
    decided: Decided, folder: Path, first: int, flags: np.ndarray, destination: Path | None
) -> list[FileChange]:
    """A copy of a folder in which merged cells have the light and the pixels of all parts.

    The folder itself stays: its traces are what decisions were made on.
    """
    inside = slice(first, first + len(flags))
    groups = {
        cell - first: (parts[(parts >= first) & (parts < inside.stop)] - first, summed)
        for cell, (parts, summed) in decided.merged.items()
        if first <= cell < inside.stop
    }
    if not groups:
        return []
    target = (destination or folder.parent) / f"{folder.name}-merged"
    rois = read_stat(folder / "stat.npy", len(flags))
    sizes = np.array([max(len(roi["ypix"]), 1) for roi in rois], np.float64)
    files: dict[str, Any] = {}
    for name in ("F.npy", "Fneu.npy", "spks.npy"):
        if (folder / name).is_file():
            files[name] = rows = np.array(read_npy(folder / name))
            plain = rows.copy()
            for cell, (parts, summed) in groups.items():
                weights = np.ones(len(parts)) if summed else sizes[parts] / sizes[parts].sum()
                rows[cell] = weights.astype(np.float32) @ plain[parts]
    stat = np.empty(len(rois), object)
    stat[:] = rois
    for cell, (parts, _) in groups.items():
        stat[cell] = _merged_roi([rois[part] for part in parts], rois[cell], files["F.npy"][cell])
        stat[cell]["imerge"] = [int(part) for part in parts]
    files["stat.npy"] = stat
    table = read_npy(folder / ISCELL) if (folder / ISCELL).is_file() else flags[:, None]
    files[ISCELL] = np.column_stack([flags, table[:, -1]]).astype(np.float64)
    for name in ("ops.npy", "settings.npy", "db.npy", REDCELL):
        if (folder / name).is_file():
            files[name] = folder / name
    many = f"{len(groups)} merged cell{'s' * (len(groups) > 1)}"

    def make(content: Any) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            if isinstance(content, Path):
                shutil.copyfile(content, path)
            else:
                _save(path, content)

        return write

    return [
        change_to(target / name, f"Of {folder} with {many}.", make(content), copy=True)
        for name, content in files.items()
    ]


def _merged_roi(parts: Sequence[Roi], kept: Roi, trace: np.ndarray) -> Roi:
    """Entry of stat.npy of an ROI with the pixels of all parts; the largest weight counts."""
    row, column, weight = (
        np.concatenate([part[name] for part in parts]) for name in ("ypix", "xpix", "lam")
    )
    heaviest = np.argsort(-weight, kind="stable")
    _, places = np.unique(np.stack([row, column])[:, heaviest], axis=1, return_index=True)
    own = heaviest[places]
    field = int(row.max()) + 1, int(column.max()) + 1
    one = Footprints(field, np.zeros(len(own), int), row[own], column[own], weight[own])
    return {**kept, **_roi(one, 0, trace)}


def _split(decided: Decided, opened: Sequence[Path]) -> Flags:
    """Decisions by folder, in the order of the recording."""
    counts = [mapped_header(folder / "F.npy").shape[0] for folder in opened]
    if sum(counts) != decided.recording.n_cells:
        raise InputError(
            f"{decided.path} has {sum(counts)} ROIs but the recording has "
            f"{decided.recording.n_cells}: suite2p has been run again since it was opened. "
            "Reopen it."
        )
    parts = np.split(decided.accepted, np.cumsum(counts)[:-1])
    return dict(zip(opened, parts, strict=True))


def _others(flags: Mapping[Path, np.ndarray]) -> Flags:
    """Decisions for `combined` if planes were opened, or for planes if `combined` was."""
    first = next(iter(flags))
    combined = first.parent / COMBINED
    planes = [plane for plane in planes_in(first.parent) if is_extracted(plane)]
    if first.name == COMBINED:
        rows = _rows_in(combined, planes, planes)
        return {plane: flags[combined][own] for plane, own in rows.items()}
    if first not in planes or not (is_extracted(combined) or (combined / ISCELL).is_file()):
        return {}
    rows = _rows_in(combined, planes, list(flags))
    decisions = _present(combined)
    for plane, own in flags.items():
        decisions[rows[plane]] = own
    return {combined: decisions}


def _rows_in(combined: Path, planes: Sequence[Path], wanted: Sequence[Path]) -> dict[Path, slice]:
    """Rows of the wanted planes in `combined`, which lists plane after plane."""
    counts = {plane: mapped_header(plane / "F.npy").shape[0] for plane in planes}
    there = len(_present(combined))
    ends = np.cumsum([0, *counts.values()])
    rows = {p: slice(int(a), int(b)) for p, a, b in zip(planes, ends, ends[1:], strict=False)}
    if not is_extracted(combined) and ends[-1] == there:
        return rows  # suite2p's window makes one of decisions alone, with nothing to compare
    if ends[-1] == there and all(_same_traces(plane, combined, rows[plane]) for plane in wanted):
        return rows
    # planes may be missing, or be of another run: their numbers in `combined` tell the others
    groups = _groups(combined)
    found = {}
    for plane in wanted:
        same = [rows for rows in groups if _same_traces(plane, combined, rows)]
        if not same:
            raise InputError(
                f"{combined} ({there} ROIs) does not have the {counts[plane]} ROIs of "
                f"{plane.name}, as if suite2p had been run again on one of them. Let suite2p "
                "combine the planes again, or write to the opened folder only."
            )
        found[plane] = same[0]
    return found


def _groups(combined: Path) -> list[slice]:
    """Rows of each plane in `combined`, if stat.npy gives the plane of each ROI."""
    if not is_extracted(combined) or not (combined / "stat.npy").is_file():
        return []
    rois = read_stat(combined / "stat.npy", mapped_header(combined / "F.npy").shape[0])
    plane = columns_of(rois).get("plane", np.zeros(0))
    starts = np.flatnonzero(np.diff(plane, prepend=-1))
    return [slice(int(a), int(b)) for a, b in pairwise([*starts, len(plane)])]


def _same_traces(plane: Path, combined: Path, rows: slice) -> bool:
    one = NpyTraces(plane / "F.npy", cells_first=True)
    other = NpyTraces(combined / "F.npy", cells_first=True)
    frames = slice(0, min(_COMPARED, one.shape[0], other.shape[0]))
    if rows.stop - rows.start != one.shape[1]:
        return False
    part = one.block(frames, slice(0, one.shape[1]))
    return bool(np.array_equal(part, other.block(frames, rows), equal_nan=True))


def _present(folder: Path) -> np.ndarray:
    """Decisions as suite2p has them now; without a file, every ROI is a cell."""
    if not (folder / ISCELL).is_file():
        return np.ones(mapped_header(folder / "F.npy").shape[0], bool)
    count = len(read_npy(folder / ISCELL))
    if is_extracted(folder):
        count = mapped_header(folder / "F.npy").shape[0]
    return read_flags(folder / ISCELL, count)[0].copy()


def _iscell(
    folder: Path, target: Path, decisions: np.ndarray
) -> tuple[FileChange | None, list[str]]:
    """The change of one iscell.npy, if any; and warnings."""
    warnings: list[str] = []
    if (folder / ISCELL).is_file():
        read_flags(folder / ISCELL, len(decisions))  # raises if it is not of these ROIs
        table = read_npy(folder / ISCELL)
        present = (table if table.ndim == 1 else table[:, 0]) > 0
        accepted, rejected = int((decisions & ~present).sum()), int((~decisions & present).sum())
        if table.ndim == 1:
            warnings.append(
                f"{folder / ISCELL} has no column of probabilities and stays that way; suite2p's "
                "window cannot open such a file."
            )
        if not accepted and not rejected and target == folder:
            return None, [*warnings, f"{folder / ISCELL} already agrees and is left as it is."]
        become = "1 ROI becomes a cell" if accepted == 1 else f"{accepted} ROIs become cells"
        are = "1 no longer is" if rejected == 1 else f"{rejected} no longer are"
        what = f"{become} and {are}; probabilities stay."
        if target != folder:
            what = f"Copy of {folder / ISCELL} with these decisions: {what}"
    else:
        table = np.stack([decisions, decisions], axis=1).astype(np.float64)
        what = f"{int(decisions.sum())} of {len(decisions)} ROIs are cells, with probability 1."
    changed = table.copy()
    (changed if changed.ndim == 1 else changed[:, 0])[:] = decisions
    return change_to(target / ISCELL, what, lambda path: _save(path, changed)), warnings


def _save(path: Path, table: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, table, allow_pickle=table.dtype == object)


_IMAGES = {"mean": "meanImg", "enhanced": "meanImgE", "max": "max_proj", "correlation": "Vcorr"}


def write_suite2p(recording: Recording, folder: str | PathLike[str]) -> Path:
    """Write F, Fneu, spks, iscell, stat and ops, each file whole or not at all.

    The traces are written as F; Fneu and spks are zeros, since a recording has one kind of traces.
    ROIs are numbered from 0 on, as suite2p has no other ids. Behaviour is not written. Opening
    the folder with ``traces="raw"`` gives the same traces again.

    Parameters
    ----------
    recording : Recording
        With footprints in one plane.
    folder : path
        Such as ``suite2p/plane0``; it is made if need be.

    Returns
    -------
    Path
    """
    folder, footprints = Path(folder), recording.footprints
    if footprints is None or footprints.plane is not None:
        raise InputError("A plane folder of suite2p needs footprints, in one plane.")
    traces = np.ascontiguousarray(np.asarray(recording.traces).T, np.float32)
    accepted = np.asarray(recording.accepted, np.float64)
    likely = np.asarray(recording.cells.get("probability", accepted), np.float64)
    stat = np.empty(recording.n_cells, object)
    stat[:] = [_roi(footprints, cell, trace) for cell, trace in enumerate(traces)]
    files: dict[str, Any] = {
        "F.npy": traces,
        "Fneu.npy": np.zeros_like(traces),
        "spks.npy": np.zeros_like(traces),
        "iscell.npy": np.stack([accepted, likely], axis=1),
        "stat.npy": stat,
        "ops.npy": _ops(recording, footprints.shape, folder),
    }
    for name, content in files.items():
        with whole(folder / name) as temporary:
            np.save(temporary, content, allow_pickle=True)
    return folder


def _roi(footprints: Footprints, cell: int, trace: np.ndarray) -> dict[str, Any]:
    """Entry of stat.npy with all that suite2p's window asks of an ROI."""
    own = footprints.cell == cell
    row, column = footprints.row[own].astype(np.int64), footprints.column[own].astype(np.int64)
    center = [int(np.median(row)), int(np.median(column))] if len(row) else [0, 0]
    deviation = float(trace.std())
    centered = trace - trace.mean()
    radius = max(float(np.sqrt(len(row) / np.pi)), 1.0)
    return {
        "ypix": row,
        "xpix": column,
        "lam": footprints.weight[own].astype(np.float32),
        "med": center,
        "npix": len(row),
        "npix_norm": 1.0,
        "npix_soma": len(row),
        "soma_crop": np.ones(len(row), bool),
        "overlap": np.zeros(len(row), bool),
        "radius": radius,
        "aspect_ratio": 1.0,
        "compact": 1.0,
        "solidity": 1.0,
        "footprint": 1.0,
        "mrs": 1.0,
        "mrs0": 1.0,
        "std": deviation,
        "skew": float((centered**3).mean() / deviation**3) if deviation else 0.0,
    }


def _ops(recording: Recording, field: tuple[int, ...], folder: Path) -> dict[str, Any]:
    starts = np.asarray(recording.starts)
    images = {_IMAGES[name]: image for name, image in recording.images.items() if name in _IMAGES}
    blank = np.zeros(field, np.float32)
    return {
        "suite2p_version": "0.14",
        "save_path": str(folder),
        "Ly": field[0],
        "Lx": field[1],
        "yrange": [0, field[0]],
        "xrange": [0, field[1]],
        "fs": float(recording.rate),
        "tau": 1.0,
        "nplanes": 1,
        "nchannels": 1,
        "functional_chan": 1,
        "diameter": 12,
        "aspect": 1.0,
        "nframes": recording.n_frames,
        "frames_per_folder": np.diff(np.r_[starts, recording.n_frames]),
        "badframes": np.asarray(recording.excluded),
        "neucoeff": 0.7,
        "spikedetect": False,
        **{entry: blank for entry in ("meanImg", "meanImgE") if entry not in images},
        **images,
    }
