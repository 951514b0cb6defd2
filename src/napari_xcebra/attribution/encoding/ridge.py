"""Fits ridge regressions of many cells at once, and judges them on held-out blocks of time.

Only sums of products are kept of each block; leaving a block out is a subtraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RIDGES = (1e-3, 1e-2, 1e-1, 0.3, 1.0, 3.0, 10.0)
"""Penalties to choose from, in variances of a column of order 1."""
CELLS = 4096
"""Regressions at a time, where only their errors are kept."""


@dataclass(frozen=True)
class BlockSums:
    """Sums over the frames of each block; the last column of x is 1.

    Parameters
    ----------
    xx : (blocks, columns, columns) float64
    xy : (blocks, columns, cells) float64
    yy : (blocks, cells) float64
    """

    xx: np.ndarray
    xy: np.ndarray
    yy: np.ndarray

    @classmethod
    def empty(cls, blocks: int, columns: int, cells: int) -> BlockSums:
        """Sums of nothing; `columns` excludes the one of 1."""
        return cls(
            np.zeros((blocks, columns + 1, columns + 1)),
            np.zeros((blocks, columns + 1, cells)),
            np.zeros((blocks, cells)),
        )

    def add(self, block: int, x: np.ndarray, y: np.ndarray, yy: np.ndarray | None = None) -> None:
        """Frames of one block: (frames, columns) and (frames, cells) float32.

        Parameters
        ----------
        yy : (cells,), optional
            Sums of squares of y, if they are at hand.
        """
        x = np.hstack([x, np.ones((len(x), 1), x.dtype)])
        self.xx[block] += x.T @ x
        self.xy[block] += x.T @ y
        self.yy[block] += np.square(y).sum(0) if yy is None else yy

    def of(self, columns: np.ndarray) -> BlockSums:
        """Sums for some of the columns, and the one of 1."""
        kept = np.r_[columns, self.xx.shape[1] - 1]
        return BlockSums(self.xx[:, kept[:, None], kept], self.xy[:, kept], self.yy)

    def moments(
        self, block: int, whole: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> tuple[_CentredSums, _CentredSums]:
        """Of all blocks but one, and of that one about the means of the others."""
        xx, xy, yy = self.xx[block], self.xy[block], self.yy[block]
        others = whole[0] - xx, whole[1] - xy, whole[2] - yy
        frames = others[0][-1, -1]
        mean_x, mean_y = others[0][-1, :-1] / frames, others[1][-1] / frames
        return _centre(*others, mean_x, mean_y), _centre(xx, xy, yy, mean_x, mean_y)


@dataclass(frozen=True)
class _CentredSums:
    """Sums of products about some means: (columns, columns), (columns, cells) and (cells,)."""

    frames: float
    xx: np.ndarray
    xy: np.ndarray
    yy: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray


def _centre(
    xx: np.ndarray, xy: np.ndarray, yy: np.ndarray, mean_x: np.ndarray, mean_y: np.ndarray
) -> _CentredSums:
    frames, sum_x, sum_y = xx[-1, -1], xx[-1, :-1], xy[-1]
    centred = xx[:-1, :-1] - np.outer(sum_x, mean_x) - np.outer(mean_x, sum_x)
    centred += frames * np.outer(mean_x, mean_x)
    with_y = xy[:-1] - np.outer(sum_x, mean_y) - np.outer(mean_x, sum_y)
    with_y += frames * np.outer(mean_x, mean_y)
    return _CentredSums(
        float(frames),
        centred,
        with_y,
        yy - 2 * mean_y * sum_y + frames * mean_y**2,
        mean_x,
        mean_y,
    )


@dataclass(frozen=True)
class HeldOut:
    """Regressions of all cells, one for each block, from all other blocks.

    Parameters
    ----------
    blocks : tuple of _CentredSums
        Of each block, about the means of the others.
    weights : (blocks, columns, cells) float32
    errors, variance : (blocks, cells) float64
        Squared error, and squared distance from the mean of the other blocks.
    """

    blocks: tuple[_CentredSums, ...]
    weights: np.ndarray
    errors: np.ndarray
    variance: np.ndarray

    @property
    def r2(self) -> np.ndarray:
        """Share of each cell's variance that is predicted in held-out blocks: (cells,)."""
        variance = self.variance.sum(0)
        return 1 - self.errors.sum(0) / np.where(variance > 0, variance, 1)

    def carried(self, own: np.ndarray) -> np.ndarray:
        """What some columns carry: (blocks, cells), to compare with `variance`.

        The product of their part of the prediction with what all other columns leave of the
        trace. Pure noise gives 0 on average, in held-out blocks.
        """
        found = np.empty_like(self.errors)
        for block, (at, weights) in enumerate(zip(self.blocks, self.weights, strict=True)):
            mine = weights[own].astype(np.float64)
            left = at.xy[own] - at.xx[own] @ weights + at.xx[np.ix_(own, own)] @ mine
            found[block] = (mine * left).sum(0)
        return found

    def size(self, own: np.ndarray) -> np.ndarray:
        """Sum of squares of their part of the prediction: (blocks, cells)."""
        found = np.empty_like(self.errors)
        for block, (at, weights) in enumerate(zip(self.blocks, self.weights, strict=True)):
            found[block] = (weights[own] * (at.xx[np.ix_(own, own)] @ weights[own])).sum(0)
        return found


def fit_held_out(sums: BlockSums) -> HeldOut:
    """Fit all blocks but one, for each block, with the penalty that is best in the others."""
    whole = sums.xx.sum(0), sums.xy.sum(0), sums.yy.sum(0)
    blocks, width, cells = len(sums.xx), sums.xy.shape[1] - 1, sums.xy.shape[2]
    ridges = np.array(RIDGES)
    errors = np.empty((blocks, len(ridges), cells))
    spectra, left_out = [], []
    for block in range(blocks):
        others, here = sums.moments(block, whole)
        left_out.append(here)
        values, vectors = np.linalg.eigh(others.xx / others.frames)
        values, projected = np.maximum(values, 0)[:, None], vectors.T @ (others.xy / others.frames)
        slopes = (projected[:, None] / (values + ridges)[:, :, None]).reshape(width, -1)
        missed = (vectors.T @ here.xx @ vectors) @ slopes
        missed -= 2 * np.tile(vectors.T @ here.xy, len(ridges))
        errors[block] = here.yy + np.einsum("ij,ij->j", slopes, missed).reshape(-1, cells)
        spectra.append((values, vectors, projected))
    best = (errors.sum(0) - errors).argmin(1)
    weights = np.empty((blocks, width, cells), np.float32)
    for own, ridge, (values, vectors, projected) in zip(
        weights, ridges[best], spectra, strict=True
    ):
        own[:] = vectors @ (projected / (values + ridge))
    return HeldOut(
        tuple(left_out),
        weights,
        np.take_along_axis(errors, best[:, None], 1)[:, 0],
        np.stack([here.yy for here in left_out]),
    )


def held_out_errors(sums: BlockSums) -> np.ndarray:
    """Errors of `fit_held_out`, some cells at a time: (blocks, cells) float64."""
    starts = range(0, sums.yy.shape[1], CELLS)
    parts = [slice(start, start + CELLS) for start in starts]
    some = (BlockSums(sums.xx, sums.xy[:, :, part], sums.yy[:, part]) for part in parts)
    return np.hstack([fit_held_out(each).errors for each in some])
