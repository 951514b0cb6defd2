"""Ranks scores, correlates ranks, and measures how well a ranking finds known cells.

With numpy alone: `scipy.stats` takes a second to import, which a window and the first step of a
training would wait for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_xcebra.errors import InputError


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share their mean rank: (n,) float64.

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


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """(cells,) int64, 1 for the highest score; 0 where a cell has none.

    >>> ranks_of(np.array([0.1, np.nan, 0.7])).tolist()
    [2, 0, 1]
    """
    ranks = np.zeros(len(scores), np.int64)
    order = np.argsort(-scores, kind="stable")[: int(np.isfinite(scores).sum())]
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's ρ over the cells that have both scores; NaN for fewer than three.

    >>> round(rank_correlation(np.array([1, 2, 3, np.nan]), np.array([1, 8, 27, 0])), 6)
    1.0
    """
    both = np.isfinite(first) & np.isfinite(second)
    if both.sum() < 3:
        return float("nan")
    return pearson(average_ranks(first[both]), average_ranks(second[both]))


def pearson(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's r over cells that have both; NaN for fewer than three, or if one is constant."""
    both = np.stack([first, second])[:, np.isfinite(first)]
    if both.shape[1] < 3 or (both.std(1) == 0).any():
        return float("nan")
    return float(np.corrcoef(both)[0, 1])


def auroc(scores: Any, truth: Any) -> float:
    """Area under the ROC curve: the share of pairs in which the carrying cell scores higher.

    Parameters
    ----------
    scores : (cells,) float
        Cells without a score (NaN) are left out.
    truth : (cells,) bool

    Examples
    --------
    >>> auroc([0.1, 0.2, 0.8, float("nan")], [False, False, True, True])
    1.0
    """
    scores, truth = np.asarray(scores, np.float64), np.asarray(truth, bool)
    if scores.shape != truth.shape or scores.ndim != 1:
        raise InputError(
            f"scores has shape {scores.shape} and truth {truth.shape}: one value a cell is "
            "needed in both."
        )
    scored = ~np.isnan(scores)
    carrying = int(truth[scored].sum())
    if carrying in (0, int(scored.sum())):
        raise InputError(
            f"{carrying} of the {int(scored.sum())} cells with a score carry the factor: both "
            "cells that do and cells that do not are needed."
        )
    others = int(scored.sum()) - carrying
    ranks = average_ranks(scores[scored])[truth[scored]]
    return float((ranks.sum() - carrying * (carrying + 1) / 2) / (carrying * others))
