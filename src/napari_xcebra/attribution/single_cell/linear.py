"""Correlates activity with a variable, and weighs cells in a linear decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.single_cell.tuning import MOST_VALUES, Column, binned, known_frames
from napari_xcebra.errors import InputError

RIDGES = tuple(10.0 ** np.arange(-4, 4))
"""Ridges to choose from, in units of the variance of the traces."""
BLOCKS = 10
"""Contiguous blocks of time, every other one of which is held out to choose the ridge."""
DECODED_FRAMES = 20_000
"""Most frames, evenly spaced: with more, the decoder would take minutes."""
EVENT_BINS = 8
"""Bins of time around an event."""


def correlation(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, *, ranks: bool = False
) -> np.ndarray:
    """Correlation of activity with the variable.

    With one continuous column, Pearson's r. Else the multiple correlation R ≥ 0 with all columns
    together: a circular one as cosine and sine (circular-linear correlation), a discrete one as
    its values (η: R² is the share of variance between values).

    Parameters
    ----------
    activity : (frames, cells) float
    columns : sequence of Column
    used : (frames,) bool
    ranks : bool
        Of the ranks of activity and of continuous columns instead (Spearman).

    Returns
    -------
    (cells,) float64
        −1 to 1; NaN if the cell or the variable is constant.
    """
    design, frames = regressors(columns, used, ranks=ranks)
    y = activity[frames]
    if ranks:
        # several times as fast as by column
        y = scipy.stats.rankdata(np.ascontiguousarray(y.T), axis=1).T
    y = y.astype(np.float64)
    y -= y.mean(axis=0)
    length = np.sqrt(np.square(y).sum(axis=0))
    directions = _orthonormal(design)
    if directions.shape[1] == 0:
        return np.full(activity.shape[1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        along = (directions.T @ y) / np.where(length > 0, length, np.nan)
    if len(columns) == 1 and columns[0].kind == "continuous":
        return np.asarray(along[0] * np.sign(directions[:, 0] @ design[:, 0]))
    return np.asarray(np.sqrt(np.square(along).sum(axis=0)))


def rank_correlation(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray
) -> np.ndarray:
    """Correlation of ranks (Spearman's ρ); see `correlation`."""
    return correlation(activity, columns, used, ranks=True)


def decoder_weight(activity: np.ndarray, columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    """Weight of each cell in a linear decoder of the variable from all cells together.

    Ridge regression of the standardised variable (a circular one as cosine and sine, a discrete
    one as its values) on standardised traces, with the ridge that decodes held-out blocks of time
    best. A weight is large where a cell helps *beside all others*: two cells that say the same
    share it, and a cell may have one because it cancels the noise of another (Haufe et al. 2014).

    Parameters
    ----------
    activity : (frames, cells) float
        All cells that may be decoded from.
    columns : sequence of Column
    used : (frames,) bool

    Returns
    -------
    (cells,) float64
        Norm of the weights of a cell over what is decoded, ≥ 0; NaN for constant cells.
    """
    design, frames = regressors(columns, used)
    every = -(-len(frames) // DECODED_FRAMES)
    target, _ = _standardised(design[::every])
    x, moves = _standardised(activity[frames[::every]].astype(np.float64))
    weights = np.full((activity.shape[1], target.shape[1]), np.nan)
    if moves.any():
        weights[moves] = _ridge_weights(x[:, moves], target)
    return np.asarray(np.sqrt(np.square(weights).sum(axis=1)))


def regressors(
    columns: Sequence[Column], used: np.ndarray, *, ranks: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """What activity is regressed on, or decoded: (frames in use, regressors), centred; the frames.

    A continuous column is itself, or its rank; a circular one its cosine and sine; a discrete one
    an indicator of each of its values; time from an event an indicator of each of 8 bins.
    """
    frames = known_frames(columns, used)
    parts = []
    for column in columns:
        values = column.values[frames]
        if column.kind == "circular":
            angle = 2 * np.pi / column.period * values
            parts += [np.cos(angle), np.sin(angle)]
        elif column.kind == "discrete":
            parts += _indicators(column, values)
        elif column.kind == "event":
            parts += list(np.eye(EVENT_BINS)[binned(column, used, EVENT_BINS).index[frames]].T)
        else:
            parts.append(scipy.stats.rankdata(values) if ranks else values)
    design = np.stack(parts, axis=1)
    return design - design.mean(axis=0), frames


def _indicators(column: Column, values: np.ndarray) -> list[np.ndarray]:
    different = np.unique(values)
    if len(different) > MOST_VALUES:
        raise InputError(
            f"{column.name} is discrete with {len(different)} different values, too many to "
            f"compare ({MOST_VALUES} at most): set its kind to continuous."
        )
    return [(values == value).astype(np.float64) for value in different]


def _orthonormal(design: np.ndarray) -> np.ndarray:
    """Orthonormal directions that span the columns: (frames, rank)."""
    scale = np.sqrt(np.square(design).sum(axis=0))
    design = design[:, scale > 0] / scale[scale > 0]
    left, size, _ = np.linalg.svd(design, full_matrices=False)
    return left[:, size > 1e-8 * max(1.0, size.max(initial=0.0))]


def _standardised(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean 0 and variance 1, and which columns vary.

    Unlike `standardise.standardised`, a column that changes by rounding alone counts as constant.
    """
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-9 * np.abs(values).max(axis=0, initial=0.0)
    return centred / np.where(varies, spread, 1), varies


def _ridge_weights(x: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weights with the ridge that decodes held-out blocks best: (cells, targets)."""
    block = np.arange(len(x)) * BLOCKS // len(x)
    trained, held_out = block % 2 == 0, block % 2 == 1
    errors = []
    for weights in _along_ridges(x[trained], target[trained], RIDGES):
        errors.append(np.square(target[held_out] - x[held_out] @ weights).sum())
    return _along_ridges(x, target, [RIDGES[int(np.argmin(errors))]])[0]


def _along_ridges(x: np.ndarray, target: np.ndarray, ridges: Sequence[float]) -> list[np.ndarray]:
    """(XᵀX / n + ridge)⁻¹ Xᵀy / n for several ridges, from one decomposition."""
    variances, axes = np.linalg.eigh(x.T @ x / len(x))
    along = axes.T @ (x.T @ target / len(x))
    return [axes @ (along / (np.maximum(variances, 0) + ridge)[:, None]) for ridge in ridges]
