"""Attribution: from a fit to the score of every cell for every factor.

The names are imported when they are used: showing an attribution takes no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_xcebra.attribution.aggregation import attribute
    from napari_xcebra.attribution.evaluation import auroc
    from napari_xcebra.attribution.methods import METHODS
    from napari_xcebra.attribution.result import Attribution
    from napari_xcebra.attribution.shift_test import significance
    from napari_xcebra.attribution.tested import Significance, seconds_to_test
    from napari_xcebra.attribution.watching import AttributionStopped

__all__ = [
    "METHODS",
    "Attribution",
    "AttributionStopped",
    "Significance",
    "attribute",
    "auroc",
    "seconds_to_test",
    "significance",
]

_HOMES = {
    "METHODS": "methods",
    "Attribution": "result",
    "AttributionStopped": "watching",
    "Significance": "tested",
    "attribute": "aggregation",
    "auroc": "evaluation",
    "seconds_to_test": "tested",
    "significance": "shift_test",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
