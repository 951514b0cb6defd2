"""Finds cells in which one variable scales the tuning to another.

A cell that fires at a place, and more there when the animal runs faster, follows both variables
together more closely than either alone. What the sum of its tunings leaves of a trace is compared
with its own tuning to one factor times the leading columns of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from napari_xcebra.attribution.encoding.model import PASS, JointModel
from napari_xcebra.attribution.encoding.ridge import HeldOut
from napari_xcebra.attribution.watching import Watch

RIDGES = (1e-2, 1e-1, 1.0)
"""Penalties to choose from, in mean variances of a column."""
PRODUCT_VALUES = 4_000_000
"""Products of tunings and columns computed at a time."""
STRETCHED = 4.0
"""Standard deviations at which a leading column is clipped: products have long tails."""


@dataclass(frozen=True)
class _Sums:
    """Of each cell in each block; the last column is 1.

    Parameters
    ----------
    zz : (blocks, cells, columns, columns) float64
    zr, zs : (blocks, cells, columns) float64
        With what all tunings leave of the trace, and with what all but the factor's own leave.
    """

    zz: np.ndarray
    zr: np.ndarray
    zs: np.ndarray

    @classmethod
    def empty(cls, blocks: int, cells: int, columns: int) -> _Sums:
        size = (blocks, cells, columns + 1)
        return cls(np.zeros((*size, columns + 1)), np.zeros(size), np.zeros(size))

    def add(self, block: int, z: np.ndarray, left: np.ndarray, others_left: np.ndarray) -> None:
        """(cells, frames, columns), (frames, cells) twice."""
        z = np.concatenate([z, np.ones((*z.shape[:2], 1), z.dtype)], axis=2)
        across = z.transpose(0, 2, 1)
        self.zz[block] += across @ z
        self.zr[block] += (across @ left.T[:, :, None])[..., 0]
        self.zs[block] += (across @ others_left.T[:, :, None])[..., 0]


def interactions(
    encoding: JointModel, models: Sequence[HeldOut], watch: Watch
) -> dict[str, np.ndarray]:
    """What each factor carries by scaling the tuning to others: (blocks, cells in use) each.

    0 for a cell unless held-out blocks are predicted by more than the standard error.

    Parameters
    ----------
    models : sequence of HeldOut
        Of the observed columns, for each cohort of the encoding.
    """
    leading, blocks = encoding.leading, len(encoding.blocks)
    found = {name: np.zeros((blocks, len(encoding.lags))) for name in leading}
    if len(leading) < 2:
        watch.advance(PASS * len(encoding.stream.frames))
        return found
    sums = [
        {
            name: _Sums.empty(blocks, len(cohort.cells), len(own) * (len(leading) - 1))
            for name, own in leading.items()
        }
        for cohort in encoding.cohorts
    ]
    for block, positions, traces in encoding.read():
        for own, cohort, model, x in zip(
            sums, encoding.cohorts, models, encoding.rows(positions), strict=True
        ):
            y = traces[:, cohort.cells]
            _add(own, encoding, model, block, x[:, encoding.observed], y)
        watch.advance(PASS * len(positions))
    for own, cohort, model in zip(sums, encoding.cohorts, models, strict=True):
        for name, of_factor in own.items():
            found[name][:, cohort.cells] = _carried(of_factor, model.variance.shape)
    return found


def _add(
    sums: dict[str, _Sums],
    encoding: JointModel,
    model: HeldOut,
    block: int,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    at, weights = model.blocks[block], model.weights[block]
    x = x - at.mean_x.astype(np.float32)
    left = y - at.mean_y.astype(np.float32) - x @ weights
    columns = encoding.columns
    tuning = {name: x[:, columns[name]] @ weights[columns[name]] for name in sums}
    spread = np.sqrt(np.maximum(np.diag(at.xx) / max(at.frames, 1), 1e-12)).astype(np.float32)
    for name, own in sums.items():
        leading = encoding.leading[name]
        scaled = np.clip(x[:, leading] / spread[leading], -STRETCHED, STRETCHED)
        others = [tuning[other] for other in sums if other != name]
        others_left = left + tuning[name]
        most = max(1, PRODUCT_VALUES // (y.shape[1] * own.zr.shape[2]))
        for first in range(0, len(y), most):
            here = slice(first, first + most)
            z = np.concatenate([o[here].T[:, :, None] * scaled[here] for o in others], axis=2)
            own.add(block, z, left[here], others_left[here])


def _carried(sums: _Sums, shape: tuple[int, ...]) -> np.ndarray:
    """Product of the prediction with what the other factors leave: (blocks, cells)."""
    zz, zr = sums.zz.sum(0), sums.zr.sum(0)
    saved = np.empty((len(RIDGES), *shape))
    product = np.empty_like(saved)
    for block in range(shape[0]):
        others, wanted = zz - sums.zz[block], (zr - sums.zr[block])[..., None]
        diagonal = np.einsum("cii->ci", others)
        size = diagonal[:, :-1].mean(1) + 1e-9
        penalty = np.ones(zz.shape[-1])
        penalty[-1] = 1e-6  # the mean is not penalised
        for i, ridge in enumerate(RIDGES):
            matrix = others + (ridge * size)[:, None, None] * np.diag(penalty)
            weights = np.linalg.solve(matrix, wanted)[..., 0]
            quadratic = (weights * (sums.zz[block] @ weights[..., None])[..., 0]).sum(1)
            saved[i, block] = 2 * (weights * sums.zr[block]).sum(1) - quadratic
            product[i, block] = (weights * sums.zs[block]).sum(1)
    best = (saved.sum(1, keepdims=True) - saved).argmax(0)[None]
    gained = np.take_along_axis(saved, best, 0)[0]
    clear = gained.sum(0) > np.sqrt(shape[0]) * gained.std(0, ddof=1)
    return np.where(clear, np.take_along_axis(product, best, 0)[0], 0.0)
