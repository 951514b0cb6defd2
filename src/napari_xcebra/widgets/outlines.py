"""Outlines of selected cells, drawn around them so that their colour stays visible."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy  # whose parts are imported when they are first used


class Outlines:
    """An image of rings around some cells, changed in place.

    Only the surroundings of cells that come or go are touched: a click costs the same in a field
    of 10,000 cells as in one of ten.

    Parameters
    ----------
    labels : (height, width) or (planes, height, width) int
        Cell i has label i + 1.
    width : int
        Of the ring, in pixels.
    """

    def __init__(self, labels: np.ndarray, width: int = 2) -> None:
        self.image = np.zeros_like(labels)
        self._labels = labels
        self._width = width
        self._boxes = scipy.ndimage.find_objects(labels)
        disc = scipy.ndimage.iterate_structure(scipy.ndimage.generate_binary_structure(2, 1), width)
        # a ring lies in its own plane
        self._brush = disc.reshape((1,) * (labels.ndim - 2) + disc.shape)
        self._drawn: list[int] = []

    def draw(self, cells: Iterable[int]) -> bool:
        """Show rings around these cells, by position, and no others; whether that is a change."""
        cells = [int(cell) for cell in cells]
        if cells == self._drawn:
            return False
        for cell in self._drawn:
            if (place := self._surroundings(cell)) is not None:
                self.image[place] = 0
        self._drawn = cells
        for cell in self._drawn:
            if (place := self._surroundings(cell)) is not None:
                own = self._labels[place] == cell + 1
                ring = scipy.ndimage.binary_dilation(own, self._brush) & ~own
                self.image[place][ring] = cell + 1
        return True

    def _surroundings(self, cell: int) -> tuple[slice, ...] | None:
        """Where a cell and its ring lie; None for a cell without pixels."""
        box = self._boxes[cell] if cell < len(self._boxes) else None
        if box is None:
            return None
        reach = [0] * (len(box) - 2) + [self._width] * 2
        return tuple(
            slice(max(side.start - more, 0), side.stop + more)
            for side, more in zip(box, reach, strict=True)
        )
