"""Holds where the cells lie in the field of view, their outlines, neighbours and overlaps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import ValuesError
from napari_xcebra.recording.traces import LazyTraces, in_blocks, read_block

MOST_PIXELS = 2**30
"""Of a field of view with all its planes; what claims more is damaged."""


@dataclass(frozen=True)
class Footprints:
    """Where the cells are: weighted pixels of all cells, one after the other.

    Parameters
    ----------
    shape : (height, width) or (planes, height, width)
        Field of view, in pixels.
    cell, row, column : (pixels,) int
        Position of the cell in the recording, and its pixels.
    weight : (pixels,) float32
        Share of the pixel that belongs to the cell; larger wins where cells overlap.
    plane : (pixels,) int or None
        Where the field of view has planes, the one of each pixel.
    """

    shape: tuple[int, ...]
    cell: np.ndarray
    row: np.ndarray
    column: np.ndarray
    weight: np.ndarray
    plane: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(self.shape) != (2 if self.plane is None else 3):
            raise ValuesError(
                f"Footprints have shape {self.shape}: (height, width) is needed, or (planes, "
                "height, width) if pixels have a plane."
            )
        field = " × ".join(map(str, self.shape))
        if min(self.shape) < 1 or math.prod(self.shape) > MOST_PIXELS:
            raise ValuesError(
                f"Footprints have a field of view of {field} pixels: at least one is needed, and "
                f"no more than {MOST_PIXELS:,}."
            )
        lengths = {len(self.cell), len(self.weight), *(len(p) for p in self.pixels)}
        if len(lengths) > 1:
            raise ValuesError(
                "Footprints need the same number of cell, row, column and weight entries; "
                f"found {sorted(lengths)}."
            )
        names = ("plane", "row", "column")[-len(self.shape) :]
        for name, size in [("cell", None), *zip(names, self.shape, strict=True)]:
            position = getattr(self, name)
            if position.ndim != 1 or position.dtype.kind not in "iu":
                raise ValuesError(
                    f"Footprints have a {name} of type {position.dtype} and shape "
                    f"{position.shape}: one whole number per pixel is needed."
                )
            if not len(position):
                continue
            if size is None and position.min() < 0:
                raise ValuesError(f"Footprints have a cell {position.min()}: 0 or more is needed.")
            if size is not None and not (0 <= position.min() and position.max() < size):
                raise ValuesError(
                    f"Footprints have a {name} of {position.min()} to {position.max()}, outside "
                    f"the field of view of {field} pixels."
                )

    @property
    def n_cells(self) -> int:
        """Number of cells up to the last one that has a pixel."""
        return int(self.cell.max()) + 1 if len(self.cell) else 0

    @property
    def pixels(self) -> tuple[np.ndarray, ...]:
        """Index of all pixels into an image of the field of view."""
        place = (self.row, self.column)
        return place if self.plane is None else (self.plane, *place)

    def label_image(self) -> np.ndarray:
        """Dense labels: cell i has label i + 1, background is 0.

        A shared pixel goes to the cell with the larger weight. A cell that would lose every
        pixel that way gets one back, its heaviest if that can be spared, so that no cell
        disappears unless there are fewer pixels than cells.

        Returns
        -------
        (height, width) or (planes, height, width) uint16, or int32 past 65,534 cells
        """
        dtype = np.uint16 if self.n_cells < np.iinfo(np.uint16).max else np.int32
        labels = np.zeros(math.prod(self.shape), dtype)
        order = np.argsort(_known(self.weight), kind="stable")
        cell = self.cell[order]
        place = np.ravel_multi_index(self.pixels, self.shape)[order]
        labels[place] = cell + 1  # where a place comes several times, the last one stays
        owned = np.bincount(labels, minlength=self.n_cells + 1)[1:]
        hidden = np.setdiff1d(cell, np.flatnonzero(owned))
        if len(hidden):
            by_cell = np.argsort(cell[::-1], kind="stable")  # each cell's heaviest pixel first
            ends = np.cumsum(np.bincount(cell, minlength=self.n_cells))[:-1]
            places = np.split(place[::-1][by_cell], ends)
            for lost in hidden:
                _make_room(int(lost), places, labels, owned)
        return labels.reshape(self.shape)

    def merged(self, groups: Mapping[int, np.ndarray]) -> Footprints:
        """Footprints in which some cells also cover others; these stay as they are.

        Parameters
        ----------
        groups : mapping of int to (n,) int
            Cells by the one that covers all of them, itself among them. Of a pixel that several
            have, the largest weight counts.
        """
        place = np.ravel_multi_index(self.pixels, self.shape)
        kept = ~np.isin(self.cell, list(groups))
        parts = [(self.cell[kept], place[kept], self.weight[kept])]
        for cell, members in groups.items():
            own = np.isin(self.cell, members)
            where, which = np.unique(place[own], return_inverse=True)
            most = np.full(len(where), -np.inf, np.float32)
            np.maximum.at(most, which, self.weight[own])
            parts.append((np.full(len(where), cell), where, most))
        cells, places, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
        *planes, row, column = np.unravel_index(places, self.shape)
        return Footprints(
            self.shape, cells, row, column, weights.astype(np.float32),
            planes[0] if planes else None,
        )  # fmt: skip

    @classmethod
    def from_masks(cls, masks: Iterable[np.ndarray]) -> Footprints:
        """Footprints from one image of weights per cell, zero or NaN outside the cell.

        Parameters
        ----------
        masks : iterable of (height, width) or (planes, height, width) array
        """
        shape: tuple[int, ...] | None = None
        pixels, weights = [], []
        for i, given in enumerate(masks):
            mask = np.asarray(given)
            if mask.ndim not in (2, 3) or mask.dtype.kind not in "biuf":
                raise ValuesError(
                    f"Mask {i} has the shape {mask.shape} and type {mask.dtype}: numbers, "
                    "(height, width) or (planes, height, width), are needed."
                )
            shape = shape or mask.shape
            if mask.shape != shape:
                raise ValuesError(
                    f"Mask {i} has the shape {mask.shape} but the first has {shape}: masks of one "
                    "field of view are needed."
                )
            inside = np.nonzero(np.nan_to_num(mask) if mask.dtype.kind == "f" else mask)
            pixels.append(np.array(inside, np.int32))
            weights.append(mask[inside].astype(np.float32))
        if shape is None:
            raise ValuesError("masks is empty: one image per cell is needed.")
        *planes, row, column = np.concatenate(pixels, axis=1)
        return cls(
            shape=tuple(int(size) for size in shape),
            cell=np.repeat(np.arange(len(weights), dtype=np.int32), [len(w) for w in weights]),
            row=row,
            column=column,
            weight=np.concatenate(weights),
            plane=planes[0] if planes else None,
        )

    @classmethod
    def stacked(cls, planes: Sequence[Footprints | None], counts: Sequence[int]) -> Footprints:
        """Footprints of several planes, one above the other.

        Parameters
        ----------
        planes : sequence of Footprints or None
            None for a plane without any; at least one must have some.
        counts : sequence of int
            Number of cells of each plane; cells are numbered on from plane to plane.
        """
        found = [(i, plane) for i, plane in enumerate(planes) if plane is not None]
        first = np.cumsum([0, *counts])
        height, width = (max(plane.shape[axis] for _, plane in found) for axis in (0, 1))
        return cls(
            (len(planes), height, width),
            cell=np.concatenate([plane.cell + first[i] for i, plane in found]).astype(np.int32),
            row=np.concatenate([plane.row for _, plane in found]),
            column=np.concatenate([plane.column for _, plane in found]),
            weight=np.concatenate([plane.weight for _, plane in found]),
            plane=np.concatenate([np.full(len(p.cell), i, np.int32) for i, p in found]),
        )

    @classmethod
    def on_a_grid(cls, n_cells: int, spacing: int = 12, radius: float = 4.5) -> Footprints:
        """Discs on a grid, for recordings that came without footprints."""
        across = int(np.ceil(np.sqrt(n_cells)))
        down = int(np.ceil(n_cells / across))
        y, x = np.mgrid[:spacing, :spacing] - (spacing - 1) / 2
        disc_row, disc_column = np.nonzero(y**2 + x**2 <= radius**2)
        cell, pixel = np.divmod(np.arange(n_cells * len(disc_row)), len(disc_row))
        return cls(
            shape=(down * spacing, across * spacing),
            cell=cell.astype(np.int32),
            row=(cell // across * spacing + disc_row[pixel]).astype(np.int32),
            column=(cell % across * spacing + disc_column[pixel]).astype(np.int32),
            weight=np.ones(len(cell), np.float32),
        )


def _known(weight: np.ndarray) -> np.ndarray:
    """Weights that can be sorted: NaN is lighter than any other."""
    unknown = np.isnan(weight)
    return np.where(unknown, -np.inf, weight) if unknown.any() else weight


def _make_room(
    lost: int, places: Sequence[np.ndarray], labels: np.ndarray, owned: np.ndarray
) -> None:
    """Give a hidden cell one of its pixels, in place; others move over where they must.

    The search goes from the cell to the owners of its pixels, heaviest first. An owner with
    pixels to spare gives one up; an owner with a single one may have it replaced by another of
    its own, and so on (an augmenting path, so that a way is found if there is one).
    """
    wanted_by: dict[int, int] = {}  # place: the cell that would take it
    queue = deque([lost])
    while queue:
        cell = queue.popleft()
        for place in map(int, places[cell]):
            if place in wanted_by:
                continue
            wanted_by[place] = cell
            owner = int(labels[place]) - 1
            if owned[owner] > 1:
                owned[owner] -= 1
                owned[lost] += 1
                _hand_over(place, wanted_by, labels)
                return
            if owner != cell:
                queue.append(owner)


def _hand_over(place: int, wanted_by: dict[int, int], labels: np.ndarray) -> None:
    """Walk back from the pixel that was spared: each cell gives its single one to the next."""
    # the single pixel of each cell on the way, before anything moves
    single = {int(labels[p]) - 1: p for p in wanted_by if p != place}
    while True:
        cell = wanted_by[place]
        labels[place] = cell + 1
        if cell not in single:
            return
        place = single[cell]


SMOOTHING = 0.7
"""Standard deviation, in pixels, by which the steps of an outline are rounded off."""
REACH = 2.5
"""Diameters between the centres of two cells up to which they are neighbours."""
MOST = 8
"""Neighbours of a cell at most."""
ALIKE = 0.7
"""Correlation from which two that touch may be parts of one cell."""


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
    touches : bool
        Whether they overlap, or lie so close that discs of the usual size would.
    """

    cell: int
    distance: float
    overlap: float
    touches: bool

    def may_be_same(self, r: float) -> bool:
        """Whether both may be parts of one cell: they touch, and r of their traces is high.

        >>> far, close = Neighbor(1, 30.0, 0.0, False), Neighbor(1, 4.0, 0.2, True)
        >>> far.may_be_same(0.99), close.may_be_same(0.99), close.may_be_same(0.1)
        (False, True, False)
        """
        return self.touches and r >= ALIKE


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
        shared = [self.overlap(cell, int(n)) for n in found]
        return [
            Neighbor(int(n), float(distance[n]), o, o > 0 or bool(distance[n] < self.diameter))
            for n, o in zip(found, shared, strict=True)
        ]

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
