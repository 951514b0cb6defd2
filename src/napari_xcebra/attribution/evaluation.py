"""How well scores find the cells that are known to carry a factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from napari_xcebra.recording import InputError


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
    return float(roc_auc_score(truth[scored], scores[scored]))
