"""CaImAn: `idx_components` and `idx_components_bad` of the HDF5 file that ``CNMF.save()`` wrote.

The file may have gigabytes and the change a few bytes; a copy is made all the same, since what is
there is kept in any case, and changed in place it could be lost.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.decided import Decided
from napari_xcebra.io.decisions.hdf5 import changed_copy
from napari_xcebra.io.decisions.plan import Plan, change_to, target_of
from napari_xcebra.io.hdf5.reading import dataset_at, group_at, open_hdf5

TITLE = "CaImAn (idx_components)"
ACCEPTED, REJECTED = "idx_components", "idx_components_bad"


def plan(decided: Decided, destination: Path | None) -> Plan:
    """One file: the opened one, with the present one kept, or a copy elsewhere."""
    source = decided.path
    assert source is not None
    warnings = _checked(source, decided.recording.n_cells)
    target = target_of(source, destination)
    accepted = decided.accepted.copy()
    count = f"{ACCEPTED} has {int(accepted.sum())} components, {REJECTED} {int((~accepted).sum())}."
    is_same = target.resolve() == source.resolve()
    what = count if is_same else f"Copy of {source} with these decisions: {count}"

    def make(path: Path) -> None:
        changed_copy(source, path, lambda file: _write(file, accepted))

    change = change_to(target, what, make, size=source.stat().st_size, copy=True)
    return Plan("caiman", (change,), decided.summary(), tuple(warnings))


def _checked(source: Path, n_cells: int) -> list[str]:
    """What to know about the file; raises if it is not of this recording."""
    with open_hdf5(source) as file:
        traces = dataset_at(file, "estimates/C")
        there = 0 if traces is None else traces.shape[0]
        if there != n_cells:
            raise InputError(
                f"{source} has {there} components but the recording has {n_cells}: it was written "
                "anew since it was opened. Open it again."
            )
        present = dataset_at(file, f"estimates/{ACCEPTED}")
        if present is None or present.dtype.kind not in "iu":
            return ["CaImAn had marked no components as accepted or rejected; now they are."]
    return []


def _write(file: h5py.File, accepted: np.ndarray) -> None:
    estimates = group_at(file, "estimates")
    if estimates is None:
        raise InputError(f"{file.filename} has no estimates: it is not a file of CaImAn.")
    for name, chosen in ((ACCEPTED, accepted), (REJECTED, ~accepted)):
        # what is there may have another length, or be the text that stands for None
        if name in estimates:
            del estimates[name]
        estimates.create_dataset(name, data=np.flatnonzero(chosen).astype(np.int64))
