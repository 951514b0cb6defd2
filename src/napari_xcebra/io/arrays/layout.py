"""Decides which axis of an array of traces is cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.traces import read_block

_CELLS, _FRAMES = (
    "(?:cells?|neurons?|rois?|units?|components?)",
    "(?:time|times|t|frames?|samples?)",
)
_BETWEEN = "[ _-]*(?:x|by|[ _-])[ _-]*"
_CELLS_FIRST = re.compile(f"(?<![a-z]){_CELLS}{_BETWEEN}{_FRAMES}(?![a-z])", re.IGNORECASE)
_FRAMES_FIRST = re.compile(f"(?<![a-z]){_FRAMES}{_BETWEEN}{_CELLS}(?![a-z])", re.IGNORECASE)
SPARSE = 0.8
"""Share of zeros from which on an array holds events."""
_BLOCK = 1024
"""Side of the block in the middle of the array that smoothness is measured on."""


@dataclass(frozen=True)
class Layout:
    """Whether cells come first, and how that is known."""

    cells_first: bool
    why: str
    guessed: bool = False

    def note(self, name: str, shape: tuple[int, int]) -> str:
        """How the array was read, and how to change that if it was guessed."""
        first, second = ("cells", "frames") if self.cells_first else ("frames", "cells")
        text = f"{name} was read as {shape[0]} {first} × {shape[1]} {second}: {self.why}"
        other = "frames-cells" if self.cells_first else "cells-frames"
        return (
            f"{text} (a guess; set `layout` to {other} if it is wrong)."
            if self.guessed
            else f"{text}."
        )


def layout_of(
    array: Any,
    settings: OpenSettings,
    *,
    name: str = "",
    per_frame: Collection[int] = (),
    fits: Callable[[int], str | None] = lambda n_cells: None,
) -> Layout:
    """Decide which axis of an array is cells.

    Parameters
    ----------
    array : (a, b) array
        In memory or on disk; only a block in its middle is read.
    settings : OpenSettings
        Its `layout` stands above everything.
    name : str
        Of the file and the array: ``cells_x_time`` says it.
    per_frame : collection of int
        Lengths of arrays that are likely to have one entry per frame.
    fits : callable
        Gives the name of what has just that many cells, such as a label image, or None.
    """
    if settings.layout != "auto":
        return Layout(settings.layout == "cells-frames", "as `layout` says")
    rows, columns = array.shape
    fitting = {n_cells: fits(n_cells) for n_cells in (rows, columns)}
    if (fitting[rows] is None) != (fitting[columns] is None):
        n_cells = rows if fitting[rows] else columns
        return Layout(fitting[rows] is not None, f"{fitting[n_cells]} has {n_cells} cells")
    if (rows in per_frame) != (columns in per_frame):
        frames = rows if rows in per_frame else columns
        return Layout(columns in per_frame, f"other arrays in the file have {frames} entries")
    for pattern, cells_first in ((_CELLS_FIRST, True), (_FRAMES_FIRST, False)):
        if pattern.search(name):
            return Layout(cells_first, "as its name says")
    smooth = smoother_axis(array)
    if smooth is not None:
        return Layout(smooth == 1, "successive values along the frames are similar", guessed=True)
    return Layout(columns > rows, "recordings usually have more frames than cells", guessed=True)


def smoother_axis(array: Any) -> int | None:
    """Axis along which neighbours are clearly more alike: that is time.

    Calcium decays over frames, while cells have no order. Means of rows and of columns are
    subtracted first: cells differ in brightness, and may be sorted by it.
    """
    rows, columns = (
        slice(max(0, (n - _BLOCK) // 2), min(n, (n + _BLOCK) // 2)) for n in array.shape
    )
    block = read_block(array, rows, columns).astype(np.float64)
    block[~np.isfinite(block)] = 0
    sparse = bool((block == 0).mean() > SPARSE)
    with np.errstate(all="ignore"):  # extreme numbers tell nothing
        block -= block.mean(axis=0)
        block -= block.mean(axis=1, keepdims=True)
        first, error = _neighbours_alike(block.T, sparse)
        second, other = _neighbours_alike(block, sparse)
    clear = abs(first - second) > 0.05 + 4 * np.hypot(error, other)
    return int(second > first) if clear else None


def _neighbours_alike(lines: np.ndarray, sparse: bool) -> tuple[float, float]:
    """Mean correlation of each entry with the next along the rows, and its error by chance.

    Where nearly all entries are 0, rows count by their variance: those without an event hold
    nothing but the means that were subtracted.
    """
    length = lines.shape[1]
    power = (lines**2).mean(axis=1)
    varied = power > 1e-12 * power.max(initial=0)
    if length < 2 or not varied.any():
        return 0.0, np.inf
    lines, power = lines[varied], power[varied]
    alike = (lines[:, 1:] * lines[:, :-1]).mean(axis=1) / power
    # numbers that add up to zero are a little unlike each other
    weight = power / power.sum() if sparse else np.full(len(lines), 1 / len(lines))
    error = np.sqrt(np.square(weight).sum() / (length - 1))
    return float(weight @ alike) + 1 / (length - 1), float(error)
