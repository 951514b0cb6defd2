"""Which scores stand at the ends of the colours, wherever a map is painted."""

from __future__ import annotations

import numpy as np

from napari_xcebra.attribution.method_notes import is_share

TOP = 99.0
"""Percentile of the scores at the upper end of the colours: a single cell must not darken all."""


def color_limits(scores: np.ndarray, method: str) -> tuple[float, float]:
    """Lowest and highest score of the colours.

    Parameters
    ----------
    scores : (cells,) float
        NaN where a cell was not used.
    method : str
        Of the attribution. Shares of variance begin at 0, others at the lowest score.

    >>> color_limits(np.array([-0.1, 0.0, 0.5]), "conditional-encoding")[0]
    0.0
    """
    known = scores[np.isfinite(scores)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(np.percentile(known, TOP))
    if is_share(method):
        low = max(low, 0.0)
    return (low, high) if high > low else (low, low + 1.0)
