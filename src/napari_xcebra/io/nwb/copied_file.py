"""Adds results to a copy of an NWB file, whatever program wrote it; the file itself stays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io import open_recording
from napari_xcebra.io.containers.hdf5 import attribute, changed_copy, make_room, open_hdf5
from napari_xcebra.io.nwb.decisions import opened_planes, write_columns
from napari_xcebra.io.nwb.new_behavior import add_behavior
from napari_xcebra.io.nwb.new_file import subject_of
from napari_xcebra.io.nwb.results import Results, RoiRows, add_results
from napari_xcebra.io.nwb.walk import RESULTS
from napari_xcebra.recording import Recording


def add_to_copy(
    nwb: Any,
    source: Path,
    path: Path,
    recording: Recording,
    found: Results,
    subject: Mapping[str, str] | None = None,
) -> None:
    """Copy a file, and add decisions, behaviour of other files and the results to the copy.

    Parameters
    ----------
    nwb : module
        pynwb.
    source : Path
        File that the recording was opened from.
    path : Path
        Of the copy; replaced if it is there.
    subject : mapping of str to str, optional
        The animal, if the file does not say which.
    """
    rows = _rows(source, recording.n_cells)
    accepted = np.asarray(recording.accepted)

    def change(file: h5py.File) -> None:
        write_columns(file, accepted, {})
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
                file.subject = subject_of(nwb, subject)
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
        for plane in opened_planes(file):
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
