"""Learning: from a recording and its factors to a trained, measured encoder.

The names are imported when they are used: a form or a help page needs the settings, not torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from napari_xcebra.errors import TrainingDiverged

if TYPE_CHECKING:
    from napari_xcebra.learn.checkpoint import Checkpoint
    from napari_xcebra.learn.fitting import fit
    from napari_xcebra.learn.parts import Factor
    from napari_xcebra.learn.progress import Progress
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings
    from napari_xcebra.learn.training import Training
    from napari_xcebra.learn.verdict import Goodness

__all__ = [
    "Checkpoint",
    "Factor",
    "Fit",
    "FitSettings",
    "Goodness",
    "Progress",
    "Training",
    "TrainingDiverged",
    "fit",
]

_HOMES = {
    "Checkpoint": "checkpoint",
    "Factor": "parts",
    "Fit": "result",
    "FitSettings": "settings",
    "Goodness": "verdict",
    "Progress": "progress",
    "Training": "training",
    "fit": "fitting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
