"""Attribution: from a fit to the score of every cell for every factor."""

from __future__ import annotations

from napari_xcebra.attribution.aggregation import AttributionStopped, attribute
from napari_xcebra.attribution.evaluation import auroc
from napari_xcebra.attribution.methods import METHODS
from napari_xcebra.attribution.result import Attribution

__all__ = ["METHODS", "Attribution", "AttributionStopped", "attribute", "auroc"]
