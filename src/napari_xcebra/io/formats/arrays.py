"""Traces as a plain array: .npy, .npz or .csv, (frames, cells).

A .npz holds `traces`, may hold `rate`, and every further array with one row a frame is taken as a
behaviour variable of its name. The header of a .csv names the cells; names that end in a number
(``cell_12``) give the cell its id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from napari_xcebra.io.extraction import Behavior, Extraction, Series
from napari_xcebra.io.npy import read_npy, read_npz
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.tables import SUFFIXES, read_table
from napari_xcebra.recording import InputError

NAME = "traces as an array of frames × cells (.npy, .npz, .csv)"
GENERIC = True


def sniff(path: Path) -> bool:
    """Whether the name is that of an array or a table."""
    return path.is_file() and path.suffix.lower() in (".npy", ".npz", *SUFFIXES)


def load(path: Path, settings: OpenSettings) -> Extraction:
    """Traces, and the behaviour that is in the same .npz."""
    others: dict[str, np.ndarray] = {}
    ids = None
    if path.suffix.lower() == ".npy":
        traces = read_npy(path)
    elif path.suffix.lower() == ".npz":
        traces, others = _split(path, read_npz(path))
    else:
        traces, ids = _from_table(path)
    if traces.ndim != 2 or 0 in traces.shape:
        raise InputError(f"{path} has an array of shape {traces.shape}: (frames, cells) is needed.")
    rate = _found_rate(path, others)
    notes = []
    if traces.shape[1] > traces.shape[0]:
        notes.append(
            f"{path.name} has {traces.shape[0]} frames (rows) and {traces.shape[1]} cells "
            "(columns): transpose it if it is the other way round."
        )
    behavior = {
        name: Series(name, values)
        for name, values in others.items()
        if values.ndim in (1, 2) and len(values) == len(traces) and values.dtype.kind in "biuf"
    }
    left_out = [name for name in others if name not in behavior and name != "rate"]
    if left_out:
        notes.append(f"{path.name} also has {', '.join(left_out)}, not one row a frame: left out.")
    return Extraction(
        {"traces": traces},
        rate,
        cell_ids=ids,
        behavior=Behavior(tuple(behavior.values())),
        notes=tuple(notes),
    )


def _split(
    path: Path, arrays: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The traces, and all else."""
    wide = [name for name, array in arrays.items() if array.ndim == 2]
    name = "traces" if "traces" in arrays else wide[0] if len(wide) == 1 else None
    if name is None:
        raise InputError(
            f"{path} has no array called traces; it has: {', '.join(arrays) or 'none'}."
        )
    return arrays[name], {other: array for other, array in arrays.items() if other != name}


def _found_rate(path: Path, others: Mapping[str, np.ndarray]) -> float | None:
    rate = others.get("rate")
    if rate is None:
        return None
    if rate.size != 1 or rate.dtype.kind not in "iuf":
        raise InputError(f"{path} has a rate of shape {rate.shape}: one number is needed.")
    return float(rate.reshape(()))


def _from_table(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    table = read_table(path)
    words = [str(name) for name in table.select_dtypes(exclude=["number", "bool"]).columns]
    if words:
        raise InputError(f"Column {words[0]} of {path} has entries that are no numbers.")
    clock = [str(c) for c in table.columns if str(c).lower() in ("t", "time", "time_s", "seconds")]
    if clock:
        raise InputError(
            f"{path} has a column {clock[0]} beside the cells: remove it and give the frames per "
            "second as rate (on the command line --rate)."
        )
    return table.to_numpy(np.float32), _ids(list(table.columns))


def _ids(names: Sequence[object]) -> np.ndarray | None:
    """Numbers at the end of the names, if all have one and no two the same."""
    ends = [re.search(r"(\d{1,18})$", str(name)) for name in names]
    numbers = [int(end.group()) for end in ends if end]
    return np.array(numbers) if len(set(numbers)) == len(names) else None
