"""Joins the elements of MATLAB's cells and lists of structs into arrays where they fit together.

A cell with a vector for each neuron is a matrix; one with a matrix for each trial is a recording of
trials, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from napari_xcebra.io.orientation import smoother_axis
from napari_xcebra.io.settings import Layout

_LAST = re.compile(r"[({]\d+[)}](?=[^({]*$)")
"""The innermost number of an element in its name, such as "{3}"."""


@dataclass(frozen=True)
class Joined:
    """Arrays of a file, with elements joined.

    Parameters
    ----------
    arrays : mapping of str to array
        Joined ones under the name of their cell, and those that fit nowhere.
    elements : mapping of str to array
        What was joined.
    starts : mapping of str to (elements,) int64
        For joined arrays, where each element begins if one follows the other.
    """

    arrays: Mapping[str, np.ndarray]
    elements: Mapping[str, np.ndarray]
    starts: Mapping[str, np.ndarray]


def joined(arrays: Mapping[str, np.ndarray], layout: Layout = "auto") -> Joined:
    """Join elements, the innermost cells first.

    Parameters
    ----------
    arrays : mapping of str to array
        As `numbers.read_mat` gives them.
    layout : {"auto", "frames-cells", "cells-frames"}
        Says along which axis matrices of one shape follow each other.
    """
    left = dict(arrays)
    elements: dict[str, np.ndarray] = {}
    starts: dict[str, np.ndarray] = {}
    apart: set[str] = set()
    while lists := _lists(left, apart):
        for cell, names in lists.items():
            found = _one([left[name] for name in names], layout)
            if found is None:
                apart |= set(names)
                continue
            elements |= {name: left.pop(name) for name in names}
            left[cell], begin = found
            starts[cell] = np.r_[0, np.cumsum(begin)[:-1]].astype(np.int64)
    return Joined(left, elements, starts)


def cell_of(name: str) -> str:
    """Name of the cell or the list of structs that an element belongs to.

    >>> cell_of("trials{12}"), cell_of("neuron(3).trace"), cell_of("traces")
    ('trials', 'neuron.trace', 'traces')
    """
    return _LAST.sub("", name)


def _lists(arrays: Mapping[str, np.ndarray], apart: set[str]) -> dict[str, list[str]]:
    """Names of the elements of the innermost cells, by the name of the cell."""
    lists: dict[str, list[str]] = {}
    for name in arrays:
        if name not in apart and (cell := cell_of(name)) != name:
            lists.setdefault(cell, []).append(name)
    return {cell: names for cell, names in lists.items() if cell not in arrays}


def _one(parts: Sequence[np.ndarray], layout: Layout) -> tuple[np.ndarray, list[int]] | None:
    """The array that parts make up, and the length of each in it; None if they do not fit."""
    if all(part.dtype.kind == "U" for part in parts):
        return np.array([str(part) for part in parts]), [1] * len(parts)
    if any(part.dtype.kind == "U" or part.ndim != 2 or not part.size for part in parts):
        return None
    if all(1 in part.shape for part in parts):
        lines = [part.reshape(-1) for part in parts]
        if len({len(line) for line in lines}) > 1:
            return np.concatenate(lines), [len(line) for line in lines]
        whole = np.stack(lines)
        return (whole[:, 0] if whole.shape[1] == 1 else whole), [whole.shape[1]] * len(lines)
    same = [axis for axis in (0, 1) if len({part.shape[axis] for part in parts}) == 1]
    if not same:
        return None
    along = 1 - same[0] if len(same) == 1 else _time_axis(parts[0], layout)
    return np.concatenate(parts, axis=along), [part.shape[along] for part in parts]


def _time_axis(part: np.ndarray, layout: Layout) -> int:
    if layout != "auto":
        return int(layout == "cells-frames")
    smooth = smoother_axis(part)
    return int(part.shape[1] > part.shape[0]) if smooth is None else smooth
