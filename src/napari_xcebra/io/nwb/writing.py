"""Writes recordings and results as Neurodata Without Borders files, for other programs.

pynwb writes them; it is an extra, because reading takes h5py alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.io.containers.hdf5 import make_room
from napari_xcebra.io.nwb.copied_file import add_to_copy
from napari_xcebra.io.nwb.new_file import new_file, table_in
from napari_xcebra.io.nwb.results import Results, RoiRows, add_results
from napari_xcebra.io.nwb.walk import is_nwb
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution


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
            add_to_copy(nwb, source, temporary, recording, found, subject)
        return path
    file = new_file(nwb, recording, started, subject, location)
    rows = RoiRows(table_in(file), np.arange(recording.n_cells), slice(None))
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
