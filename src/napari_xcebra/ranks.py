"""Ranks of scores.

By numpy alone: `scipy.stats` has them too, and takes a second to be imported, which a window and
the first step of a training would wait for.
"""

from __future__ import annotations

import numpy as np


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 on, equal values sharing the mean of theirs: (n,) float64.

    >>> average_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (counts.cumsum() - (counts - 1) / 2)[place]
    return ranks


def relative_ranks(values: np.ndarray) -> np.ndarray:
    """(n,) float64 from 0 for the lowest value to 1 for the highest; NaN where there is none.

    >>> relative_ranks(np.array([0.1, np.nan, 0.7, 0.3])).tolist()
    [0.0, nan, 1.0, 0.5]
    """
    known = np.isfinite(values)
    place = np.full(len(values), np.nan)
    if known.any():
        place[known] = (average_ranks(values[known]) - 1) / max(1, int(known.sum()) - 1)
    return place
