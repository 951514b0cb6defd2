"""Reads what pynapple saves (.npz): a TsdFrame of traces, or behaviour of any of its kinds.

Each file holds the name of its kind, times, values, the epochs within which they are known, and
names and properties of its columns, which are pickled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import rate_of
from napari_xcebra.io.containers.npy import NpzTraces, names_in, read_npz, read_or_map
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.interchange import ids_and_names, plain_columns

NAME = "pynapple (.npz)"
KINDS = ("Ts", "Tsd", "TsdFrame", "TsdTensor", "TsGroup", "IntervalSet")


def sniff(path: Path) -> bool:
    """Whether an archive says that it holds something of pynapple."""
    return bool(path.is_file() and {"type", "start", "end"} <= names_in(path) and kind_of(path))


def kind_of(path: Path) -> str:
    """What the archive holds; empty if it does not say."""
    try:
        said = read_npz(path, ["type"])["type"]
    except InputError:
        return ""
    return str(said[0]) if said.shape == (1,) and str(said[0]) in KINDS else ""


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Traces, one column a cell, with the properties that the columns have."""
    kind = kind_of(path)
    if kind != "TsdFrame":
        raise InputError(
            f"{path} is a {kind} of pynapple: a TsdFrame with a column for each cell is needed as "
            "a recording. Give it as `behavior` if it is behaviour."
        )
    arrays = read_or_map(path)
    missing = [name for name in ("t", "d") if name not in arrays]
    if missing or arrays["d"].ndim != 2 or arrays["t"].shape != arrays["d"].shape[:1]:
        raise InputError(f"{path} has no values and times that fit together: it is damaged.")
    traces: Any = arrays["d"]
    if isinstance(traces, np.memmap):
        traces = NpzTraces(path, "d")
    columns = arrays.get("columns", np.arange(traces.shape[1]))
    ids, names = ids_and_names(columns, traces.shape[1])
    times = arrays["t"].astype(np.float64)
    first = np.searchsorted(times, arrays["start"])
    cells = names | properties(arrays, traces.shape[1])
    accepted = cells.pop("accepted", None)
    return Extraction(
        {"traces": traces},
        rate=rate_of(times),
        times=times,
        cell_ids=ids,
        accepted=accepted if accepted is not None and accepted.dtype == bool else None,
        cells=cells,
        starts=first[(first > 0) & (first < len(times))],
    )


def properties(arrays: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """What is known of each column, or of each epoch."""
    about = arrays["_metadata"].item() if "_metadata" in arrays else None
    return plain_columns(about, count) if isinstance(about, dict) else {}
