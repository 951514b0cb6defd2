"""A curve in one line of text."""

from __future__ import annotations

import numpy as np

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 40


def sparkline(values: np.ndarray) -> str:
    """A character a value, from the lowest to the highest; a space where it is not known.

    >>> sparkline(np.array([0, 1, 2, np.nan, 7]))
    '▁▂▃ █'
    """
    values = np.asarray(values, np.float64)
    known = np.isfinite(values)
    if not known.any():
        return " " * len(values)
    low, high = values[known].min(), values[known].max()
    # halves, so that numbers near the largest there are do not overflow
    span = high / 2 - low / 2
    share = (values / 2 - low / 2) / span if span > 0 else np.where(known, 0.0, np.nan)
    level = np.round(np.where(known, share, 0) * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[i] if there else " " for i, there in zip(level, known, strict=True))


def in_bins(values: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """Mean of the known values in each of some stretches of equal length; NaN where none is.

    Parameters
    ----------
    values : (frames,) float64
    width : int
        Stretches; fewer if there are fewer values.
    """
    values = np.asarray(values, np.float64)
    edges = np.linspace(0, len(values), min(width, len(values)) + 1).astype(int)
    known = np.isfinite(values)
    count = np.add.reduceat(known.astype(int), edges[:-1])
    with np.errstate(all="ignore"):
        return np.add.reduceat(np.where(known, values, 0), edges[:-1]) / count


def picked(values: np.ndarray, width: int = WIDTH) -> np.ndarray:
    """One value from the middle of each stretch, for values that have no mean."""
    values = np.asarray(values, np.float64)
    width = min(width, len(values))
    return values[((np.arange(width) + 0.5) * len(values) / max(width, 1)).astype(int)]
