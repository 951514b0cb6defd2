"""Ridge regression of many cells at once, judged on blocks of time that it has not seen.

Nothing but sums of products is kept of each block; leaving a block out is a subtraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Penalties to choose from, in variances of a column."""
FAINT = 0.25
"""Columns that change less than this share of the median are treated as if they changed so much."""


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
        """Nothing summed yet; `columns` without the one of 1."""
        return cls(
            np.zeros((blocks, columns + 1, columns + 1)),
            np.zeros((blocks, columns + 1, cells)),
            np.zeros((blocks, cells)),
        )

    def add(self, block: int, x: np.ndarray, y: np.ndarray) -> None:
        """Frames of one block: (frames, columns) and (frames, cells) float32."""
        x = np.hstack([x, np.ones((len(x), 1), x.dtype)])
        self.xx[block] += x.T @ x
        self.xy[block] += x.T @ y
        self.yy[block] += np.square(y).sum(0)

    def of(self, columns: np.ndarray) -> BlockSums:
        """Sums for some of the columns, and the one of 1."""
        kept = np.r_[columns, self.xx.shape[1] - 1]
        return BlockSums(self.xx[:, kept[:, None], kept], self.xy[:, kept], self.yy)

    def centred(self, without: int | None = None) -> Centred:
        """Second moments about the mean, over all blocks or all but one."""
        kept = np.arange(len(self.xx)) != (-1 if without is None else without)
        xx, xy = self.xx[kept].sum(0), self.xy[kept].sum(0)
        frames = xx[-1, -1]
        mean_x, mean_y = xx[-1, :-1] / frames, xy[-1] / frames
        return Centred(
            xx[:-1, :-1] / frames - np.outer(mean_x, mean_x),
            xy[:-1] / frames - np.outer(mean_x, mean_y),
            mean_x,
            mean_y,
        )


@dataclass(frozen=True)
class Centred:
    """Covariances (columns, columns) and (columns, cells), and means."""

    xx: np.ndarray
    xy: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray

    @property
    def spread(self) -> np.ndarray:
        """What each column is divided by: its standard deviation; infinite if it does not change.

        A column that hardly changes, such as a spline at the edge of what was visited, is not
        blown up: its weight would be drawn from a few frames and applied to many in another block.
        """
        spread = np.sqrt(np.maximum(np.diag(self.xx), 0))
        changing = spread > 1e-5
        least = FAINT * np.median(spread[changing]) if changing.any() else 1.0
        return np.where(changing, np.maximum(spread, least), np.inf)


def ridge_weights(sums: BlockSums, without: int | None, ridges: tuple[float, ...]) -> np.ndarray:
    """Weights of the standardised regression, and the constant last.

    Returns
    -------
    (ridges, columns + 1, cells) float64
    """
    moments = sums.centred(without)
    spread = moments.spread
    values, vectors = np.linalg.eigh(moments.xx / spread / spread[:, None])
    projected = vectors.T @ (moments.xy / spread[:, None])
    weights = np.empty((len(ridges), len(spread) + 1, projected.shape[1]))
    for i, ridge in enumerate(ridges):
        slopes = vectors @ (projected / (np.maximum(values, 0) + ridge)[:, None])
        weights[i, :-1] = slopes / spread[:, None]
        weights[i, -1] = moments.mean_y - moments.mean_x @ weights[i, :-1]
    return weights


def held_out_weights(sums: BlockSums) -> np.ndarray:
    """Weights for each block, from all others: (blocks, columns + 1, cells).

    The penalty of a cell in a block is the one that is best in the other blocks.
    """
    weights, errors = _candidates(sums)
    elsewhere = errors.sum(1, keepdims=True) - errors
    best = elsewhere.argmin(0)
    return np.take_along_axis(weights, best[None, :, None], 0)[0]


def held_out_errors(sums: BlockSums) -> np.ndarray:
    """Squared error in each block of the regression on all others: (blocks, cells)."""
    _, errors = _candidates(sums)
    elsewhere = errors.sum(1, keepdims=True) - errors
    return np.take_along_axis(errors, elsewhere.argmin(0)[None], 0)[0]


def _candidates(sums: BlockSums) -> tuple[np.ndarray, np.ndarray]:
    """Weights (ridges, blocks, columns + 1, cells) and errors (ridges, blocks, cells)."""
    blocks = range(len(sums.xx))
    weights = np.stack([ridge_weights(sums, b, RIDGES) for b in blocks], axis=1)
    errors = np.stack([_errors(sums, b, weights[:, b]) for b in blocks], axis=1)
    return weights, errors


def _errors(sums: BlockSums, block: int, weights: np.ndarray) -> np.ndarray:
    """Squared error of given weights in a block: (ridges, cells)."""
    quadratic = (weights * (sums.xx[block] @ weights)).sum(1)
    return sums.yy[block] - 2 * (weights * sums.xy[block]).sum(1) + quadratic


def held_out_variance(sums: BlockSums) -> np.ndarray:
    """Squared distance from the mean of the other blocks, in each block: (blocks, cells)."""
    total, frames = sums.xy[:, -1], sums.xx[:, -1, -1][:, None]
    mean = (total.sum(0) - total) / (frames.sum(0) - frames)
    return sums.yy - 2 * mean * total + mean**2 * frames


def held_out_r2(sums: BlockSums) -> np.ndarray:
    """Share of each cell's variance that is predicted in blocks not seen: (cells,)."""
    variance = held_out_variance(sums).sum(0)
    return 1 - held_out_errors(sums).sum(0) / np.where(variance > 0, variance, 1)
