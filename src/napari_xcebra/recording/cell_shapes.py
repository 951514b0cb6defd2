"""Finds the outline of a cell, its neighbours, and how far these overlap with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces, in_blocks, read_block

SMOOTHING = 0.7
"""Standard deviation, in pixels, by which the steps of an outline are rounded off."""
REACH = 2.5
"""Diameters between the centres of two cells up to which they are neighbours."""
MOST = 8
"""Neighbours of a cell at most."""


@dataclass(frozen=True)
class Neighbor:
    """A cell close to another one.

    Parameters
    ----------
    cell : int
        Its position in the recording.
    distance : float
        Between both centres, in pixels.
    overlap : float
        Shared pixels, as a share of the smaller of both.
    """

    cell: int
    distance: float
    overlap: float


class CellShapes:
    """Shapes of all cells, looked up one at a time: overlapping cells have their whole outlines.

    Parameters
    ----------
    footprints : Footprints
    n_cells : int
        Some of which may have no pixels.
    """

    def __init__(self, footprints: Footprints, n_cells: int) -> None:
        self.field = footprints.shape
        cell = footprints.cell
        order = slice(None) if (np.diff(cell) >= 0).all() else np.argsort(cell, kind="stable")
        self._rows, self._columns = footprints.row[order], footprints.column[order]
        self._planes = None if footprints.plane is None else footprints.plane[order]
        self._ends = np.searchsorted(cell[order], np.arange(n_cells + 1))

    def pixels(self, cell: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of a cell, (pixels,) int each."""
        own = slice(*self._ends[cell : cell + 2])
        return self._rows[own], self._columns[own]

    def plane(self, cell: int) -> int:
        """Plane that a cell lies in; 0 where there are none."""
        if self._planes is None or self.sizes[cell] == 0:
            return 0
        return int(self._planes[self._ends[cell]])

    @cached_property
    def sizes(self) -> np.ndarray:
        """(cells,) int, pixels of each cell."""
        return np.diff(self._ends)

    @cached_property
    def diameter(self) -> float:
        """Of a disc as large as the median cell, in pixels."""
        known = self.sizes[self.sizes > 0]
        return float(2 * np.sqrt(np.median(known) / np.pi)) if len(known) else 10.0

    @cached_property
    def centers(self) -> np.ndarray:
        """(cells, 3) float, mean plane, row and column; NaN for a cell without pixels."""
        cells = np.repeat(np.arange(len(self.sizes)), self.sizes)
        planes = np.zeros(len(cells)) if self._planes is None else self._planes
        sums = [np.bincount(cells, p, len(self.sizes)) for p in (planes, self._rows, self._columns)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.stack(sums, axis=1) / self.sizes[:, None]

    def outline(self, cell: int) -> list[np.ndarray]:
        """Closed lines around a cell, one for each of its parts, with its steps rounded off.

        Returns
        -------
        list of (points, 2) float
            Row and column; the middle of a pixel is a whole number.
        """
        from skimage.measure import find_contours

        rows, columns = self.pixels(cell)
        if not len(rows):
            return []
        margin = 3
        first = np.array([rows.min(), columns.min()]) - margin
        mask = np.zeros((np.ptp(rows) + 2 * margin + 1, np.ptp(columns) + 2 * margin + 1))
        mask[rows - first[0], columns - first[1]] = 1
        smooth = scipy.ndimage.gaussian_filter(mask, SMOOTHING)
        # a part of a pixel or two would be smoothed away
        lines = find_contours(smooth if smooth.max() > 0.6 else mask, 0.5)
        return [line + first for line in lines]

    def neighbors(self, cell: int) -> list[Neighbor]:
        """Cells close to one in its plane, the nearest first."""
        if not self.sizes[cell]:
            return []
        apart = self.centers - self.centers[cell]
        distance = np.hypot(apart[:, 1], apart[:, 2])
        near = (distance <= REACH * self.diameter) & (np.round(apart[:, 0]) == 0)
        near[cell] = False
        found = np.flatnonzero(near)
        found = found[np.argsort(distance[found], kind="stable")][:MOST]
        return [Neighbor(int(n), float(distance[n]), self.overlap(cell, int(n))) for n in found]

    def overlap(self, first: int, second: int) -> float:
        """Pixels that two cells share, as a share of the smaller one."""
        if self.plane(first) != self.plane(second):
            return 0.0
        width = self.field[-1]
        (a, b), (c, d) = self.pixels(first), self.pixels(second)
        shared = np.isin(a.astype(np.int64) * width + b, c.astype(np.int64) * width + d).sum()
        return float(shared / max(min(len(a), len(c)), 1))


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's r of two traces, (frames,) each, over the frames that both have; NaN if constant.

    >>> round(correlation(np.array([0, 1, 2, np.nan]), np.array([1, 3, 5, 0])), 6)
    1.0
    """
    both = np.isfinite(first) & np.isfinite(second)
    a, b = (trace[both].astype(np.float64) for trace in (first, second))
    if len(a) < 2:
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread > 0 else float("nan")


def correlations(traces: LazyTraces | np.ndarray, cell: int) -> np.ndarray:
    """Pearson's r of the trace of a cell with those of all, as `correlation`: (cells,) float.

    Parameters
    ----------
    traces : (frames, cells) float32
        In memory or on disk, of which they are read by blocks.
    cell : int

    >>> correlations(np.array([[0.0, 1.0, 3.0], [1.0, 3.0, 2.0], [2.0, 5.0, 1.0]]), 0).round(6)
    array([ 1.,  1., -1.])
    """
    own = read_block(traces, slice(0, traces.shape[0]), slice(cell, cell + 1))[:, 0]
    return np.array(
        [correlation(own, other) for _, block in in_blocks(traces) for other in block.T]
    )
