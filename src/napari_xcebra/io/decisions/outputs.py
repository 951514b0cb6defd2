"""Writes decisions in any format that a recording allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import in_a_sentence
from napari_xcebra.io.containers.hdf5 import dataset_at, open_hdf5, read
from napari_xcebra.io.containers.npy import read_npy
from napari_xcebra.io.decisions import backups
from napari_xcebra.io.decisions.decided import TABLE, Decided, plan_table
from napari_xcebra.io.decisions.plan import Plan
from napari_xcebra.io.decisions.restoring import interrupted
from napari_xcebra.io.discovery import format_of, room_of
from napari_xcebra.io.formats import caiman, imagej
from napari_xcebra.io.formats.nwb import writing as nwb
from napari_xcebra.io.formats.nwb.walk import is_nwb
from napari_xcebra.io.formats.suite2p import writing as suite2p
from napari_xcebra.io.formats.suite2p.folder import folders_at, is_extracted, read_flags
from napari_xcebra.recording.recording import Recording

if TYPE_CHECKING:
    import pandas as pd


def extractor_accepted(recording: Recording, source_path: str | PathLike[str] | None) -> np.ndarray:
    """Which ROIs the extractor accepted, even if the file now has our decisions.

    Parameters
    ----------
    recording : Recording
    source_path : path or None
        What it was opened from.

    Returns
    -------
    (cells,) bool
        `recording.accepted` if nothing was written here, or the original file is gone.
    """
    present = np.asarray(recording.accepted)
    if source_path is None:
        return present
    path = Path(source_path).resolve()
    try:
        before = _in_file(path) if path.is_file() else _in_folders(path)
    except InputError:  # the backup is damaged
        return present
    return present if before is None or before.shape != present.shape else before


def _in_folders(path: Path) -> np.ndarray | None:
    """Flags of suite2p, folder by folder; None if none of them was written here."""
    folders = [folder for folder in folders_at(path) if is_extracted(folder)]
    files = [folder / suite2p.ISCELL for folder in folders]
    if not any(map(_original, files)) or not all(file.is_file() for file in files):
        return None
    return np.concatenate([_flags(_original(file) or file) for file in files])


def _flags(file: Path) -> np.ndarray:
    return read_flags(file, len(read_npy(file)))[0]


def _in_file(path: Path) -> np.ndarray | None:
    if path.name == suite2p.ISCELL or folders_at(path):
        return _in_folders(path.parent)
    original = _original(path)
    if original is None:
        return None
    with open_hdf5(original) as file:
        return nwb.accepted_in(file) if is_nwb(original) else _components(file)


def _components(file: h5py.File) -> np.ndarray | None:
    """Components that CaImAn accepts; all of them if it does not say."""
    traces, chosen = (
        dataset_at(file, "estimates/C"),
        dataset_at(file, f"estimates/{caiman.ACCEPTED}"),
    )
    if traces is None:
        return None
    if chosen is None or chosen.dtype.kind not in "iu":
        return np.ones(traces.shape[0], bool)
    return np.isin(np.arange(traces.shape[0]), read(chosen))


def _original(path: Path) -> Path | None:
    """The original file, if the current one was written here."""
    found = backups.originals(path)
    return found[0] if found and backups.is_ours(path) else None


def accepted_labels(recording: Recording, accepted: np.ndarray) -> np.ndarray:
    """Label image of the accepted cells alone.

    Labels are those of the whole recording (the cell at position i has i + 1), so that they can be
    compared; pixels that a rejected ROI shares with an accepted cell belong to the cell.

    Parameters
    ----------
    recording : Recording
        With footprints.
    accepted : (cells,) bool

    Returns
    -------
    (height, width) or (planes, height, width) uint16, or int32 past 65,534 cells
    """
    footprints = recording.footprints
    if footprints is None:
        raise InputError("The recording has no footprints: there is nothing to draw.")
    own = np.asarray(accepted, bool)[footprints.cell]
    kept = {
        name: getattr(footprints, name)[own]
        for name in ("cell", "row", "column", "weight", "plane")
        if getattr(footprints, name) is not None
    }
    return replace(footprints, **kept).label_image()


OutputKind = Literal["suite2p", "caiman", "nwb", "csv", "imagej"]
OUTPUT_KINDS: tuple[OutputKind, ...] = get_args(OutputKind)

_WRITERS: dict[OutputKind, tuple[str, Callable[..., Plan]]] = {
    "suite2p": (suite2p.TITLE, suite2p.plan_decisions),
    "caiman": (caiman.TITLE, caiman.plan_decisions),
    "nwb": (nwb.TITLE, nwb.plan_decisions),
    "csv": (TABLE, plan_table),
    "imagej": (imagej.TITLE, imagej.plan_decisions),
}
_NATIVE = ("suite2p", "caiman", "nwb")


@dataclass(frozen=True)
class _Output:
    """One way to write decisions.

    Parameters
    ----------
    kind : {"suite2p", "caiman", "nwb", "csv", "imagej"}
    title : str
        For a menu.
    why_not : str
        A sentence if it is not possible for the recording; else empty.
    """

    kind: OutputKind
    title: str
    why_not: str = ""

    @property
    def possible(self) -> bool:
        """Whether the decisions can be written this way."""
        return not self.why_not


def possible_outputs(
    recording: Recording, source_path: str | PathLike[str] | None
) -> tuple[_Output, ...]:
    """Every output, with the reason if it is not possible.

    Parameters
    ----------
    recording : Recording
    source_path : path or None
        What it was opened from; None for arrays and samples.
    """
    path = None if source_path is None else Path(source_path)
    return tuple(
        _Output(kind, title, _why_not(kind, recording, path))
        for kind, (title, _) in _WRITERS.items()
    )


def plan_output(
    kind: str,
    recording: Recording,
    source_path: str | PathLike[str] | None,
    accepted: np.ndarray,
    table: pd.DataFrame | None = None,
    scores: pd.DataFrame | None = None,
    destination: str | PathLike[str] | None = None,
    **options: Any,
) -> Plan:
    """Plan what to write where; `Plan.write` writes it.

    Parameters
    ----------
    kind : {"suite2p", "caiman", "nwb", "csv", "imagej"}
    recording : Recording
    source_path : path or None
        What the recording was opened from.
    accepted : (cells,) bool
    table : DataFrame, optional
        `Curation.table`: cell, status, by, tags, note, curator, time.
    scores : DataFrame, optional
        One row per cell and factor: cell, factor, score, and more such as z and q.
    destination : path, optional
        Where to write instead of beside or over the source.
    **options
        suite2p: ``together=False`` leaves planes and `combined` to themselves.
        nwb: ``in_place=True`` replaces the opened file.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If it cannot be written; nothing has been written then.
    """
    path = None if source_path is None else Path(source_path)
    known: OutputKind | None = next((k for k in OUTPUT_KINDS if k == kind), None)
    if known is None:
        raise InputError(f"There is no output {kind!r}: {', '.join(OUTPUT_KINDS)} are known.")
    if why_not := _why_not(known, recording, path):
        raise InputError(why_not)
    where = None if destination is None else Path(destination)
    with in_a_sentence(where or path or "The file"):
        extractor = extractor_accepted(recording, path)
        decided = Decided(recording, path, np.asarray(accepted), table, scores, extractor)
        plan = _WRITERS[known][1](decided, where, **options)
        warnings = interrupted(path) if path is not None else ()
    return replace(plan, warnings=(*plan.warnings, *warnings))


def _why_not(kind: OutputKind, recording: Recording, path: Path | None) -> str:
    if kind == "imagej" and recording.footprints is None:
        return "The recording has no footprints: there are no outlines to write."
    if kind not in _NATIVE:
        return ""
    title = _WRITERS[kind][0].split(" (")[0]
    if path is None:
        return (
            f"The recording was not opened from {title}: write a table (csv) or ROIs (imagej) "
            "instead."
        )
    try:
        found = format_of(path, "recording")
    except InputError as error:
        return str(error)
    if room_of(found) != kind:
        return f"{path} was opened as {found.NAME}, not {title}."
    return ""
