"""Writes `idx_components` and `idx_components_bad` into a CaImAn file (``CNMF.save()``).

The file may have gigabytes and the change a few bytes; a copy is made all the same, because the
original is kept in any case, and could be lost if it were changed in place.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import changed_copy, dataset_at, group_at, open_hdf5
from napari_xcebra.io.decisions.decided import Decided
from napari_xcebra.io.transaction.plan import Plan, change_to, seen, target_of

TITLE = "CaImAn (idx_components)"
ACCEPTED, REJECTED = "idx_components", "idx_components_bad"


def plan(decided: Decided, destination: Path | None) -> Plan:
    """One file: the opened one, with a backup, or a copy elsewhere."""
    source = decided.path
    assert source is not None
    read = seen(source)
    warnings = _checked(source, decided.recording.n_cells)
    target = target_of(source, destination)
    accepted = decided.accepted.copy()
    count = f"{ACCEPTED} has {int(accepted.sum())} components, {REJECTED} {int((~accepted).sum())}."
    is_same = target.resolve() == source.resolve()
    what = count if is_same else f"Copy of {source} with these decisions: {count}"

    def make(path: Path) -> None:
        changed_copy(source, path, lambda file: _write(file, accepted), 16 * len(accepted))

    change = change_to(target, what, make, size=source.stat().st_size, copy=True)
    return Plan("caiman", (change,), decided.summary(), tuple(warnings), read)


def _checked(source: Path, n_cells: int) -> list[str]:
    """Warnings about the file; raises if it does not belong to this recording."""
    with open_hdf5(source) as file:
        traces = dataset_at(file, "estimates/C")
        there = 0 if traces is None else traces.shape[0]
        if there != n_cells:
            raise InputError(
                f"{source} has {there} components but the recording has {n_cells}: it has been "
                "rewritten since it was opened. Reopen it."
            )
        present = dataset_at(file, f"estimates/{ACCEPTED}")
        if present is None or present.dtype.kind not in "iu":
            return ["CaImAn had marked no components as accepted or rejected; now they are."]
    return []


def _write(file: h5py.File, accepted: np.ndarray) -> None:
    estimates = group_at(file, "estimates")
    if estimates is None:
        raise InputError(f"{file.filename} has no estimates: it is not a CaImAn file.")
    for name, chosen in ((ACCEPTED, accepted), (REJECTED, ~accepted)):
        # what is there may have another length, or be the text that stands for None
        if name in estimates:
            del estimates[name]
        estimates.create_dataset(name, data=np.flatnonzero(chosen).astype(np.int64))
