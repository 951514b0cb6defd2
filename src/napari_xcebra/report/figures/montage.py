"""Places the planes of a volume beside each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Montage:
    """Places planes row by row in an arrangement that is about as wide as high.

    Parameters
    ----------
    planes, height, width : int
        Shape of the stack, in pixels.
    """

    planes: int
    height: int
    width: int

    @property
    def across(self) -> int:
        """Planes beside each other."""
        return int(np.ceil(np.sqrt(self.planes * self.height / self.width)).clip(1, self.planes))

    @property
    def gap(self) -> int:
        """Pixels between two planes."""
        return max(2, max(self.height, self.width) // 40)

    @property
    def corners(self) -> list[tuple[int, int]]:
        """Row and column of the first pixel of each plane."""
        down, right = self.height + self.gap, self.width + self.gap
        places = (divmod(plane, self.across) for plane in range(self.planes))
        return [(row * down, column * right) for row, column in places]

    def tile(self, stack: np.ndarray, between: float = 0) -> np.ndarray:
        """The planes of a (planes, height, width) stack as one image, with a value in the gaps.

        >>> Montage(2, 1, 1).tile(np.array([[[1]], [[2]]])).tolist()
        [[1, 0, 0, 2]]
        """
        rows, columns = (max(starts) for starts in zip(*self.corners, strict=True))
        tiled = np.full((rows + self.height, columns + self.width), between, stack.dtype)
        for plane, (row, column) in zip(stack, self.corners, strict=True):
            tiled[row : row + self.height, column : column + self.width] = plane
        return tiled
