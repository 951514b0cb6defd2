"""Standardises values to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np


def mean_and_spread(
    values: np.ndarray, axis: int = 0, *, skip_nan: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation along an axis, which stays with length 1.

    Returns
    -------
    mean, spread : array
        The spread of constant values is 1, so that dividing by it leaves them at 0.
    """
    mean, std = (np.nanmean, np.nanstd) if skip_nan else (np.mean, np.std)
    spread = std(values, axis=axis, keepdims=True)
    return mean(values, axis=axis, keepdims=True), np.where(spread > 0, spread, 1)


def changes(mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Whether values change by more than single precision makes of constant ones: bool."""
    found: np.ndarray = spread > 1e-6 * np.maximum(np.abs(mean), 1e-30)
    return found


def standardised(
    values: np.ndarray,
    known: np.ndarray | None = None,
    axis: int = 0,
    *,
    skip_nan: bool = False,
) -> np.ndarray:
    """Return z-scores: (values − mean) / standard deviation.

    Parameters
    ----------
    values : array of float
    known : (n,) bool or int, optional
        Rows over which mean and standard deviation are taken; all if not given.
    axis : int
        Axis along which they are taken.
    skip_nan : bool
        Leave NaN out of both.

    Returns
    -------
    Of the shape of `values`; constant values become 0.

    Examples
    --------
    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    mean, spread = mean_and_spread(
        values if known is None else values[known], axis, skip_nan=skip_nan
    )
    return (values - mean) / spread
