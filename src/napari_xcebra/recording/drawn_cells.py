"""Draws the cells of a recording into one image, so that those that overlap stay whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from napari_xcebra.recording.footprints import Footprints


def drawn_labels(footprints: Footprints, accepted: np.ndarray) -> np.ndarray:
    """Label image in which accepted cells lie above the others.

    A pixel that several of these share goes to the one with the larger weight around it: single
    weights are noisy, and would tear both.

    Parameters
    ----------
    footprints : Footprints
    accepted : (cells,) bool

    Returns
    -------
    (height, width) or (planes, height, width) uint16 or int32
        Cell i has label i + 1, as of `Footprints.label_image`.
    """
    weight = _around(footprints)
    span = float(weight.max(initial=0.0)) or 1.0
    on_top = np.asarray(accepted, bool)[footprints.cell]
    return replace(footprints, weight=weight / span + 2 * on_top).label_image()


def _around(footprints: Footprints) -> np.ndarray:
    """(pixels,) float64, weight of the same cell in the 3 × 3 pixels around, where cells overlap.

    Where they do not, any weight will do.
    """
    weight = np.nan_to_num(footprints.weight.astype(np.float64))
    size = int(np.prod(footprints.shape))
    place = np.ravel_multi_index(footprints.pixels, footprints.shape)
    shared = np.flatnonzero(np.bincount(place, minlength=size)[place] > 1)
    if not len(shared):
        return weight
    key = footprints.cell.astype(np.int64) * size + place
    order = np.argsort(key)
    ordered = key[order]
    height, width = footprints.shape[-2:]
    row, column = footprints.row[shared], footprints.column[shared]
    total = np.zeros(len(shared))
    for down, right in product((-1, 0, 1), repeat=2):
        inside = (0 <= row + down) & (row + down < height)
        inside &= (0 <= column + right) & (column + right < width)
        wanted = key[shared] + down * width + right
        at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        found = inside & (ordered[at] == wanted)
        total[found] += weight[order[at[found]]]
    weight[shared] = total / 9
    return weight
