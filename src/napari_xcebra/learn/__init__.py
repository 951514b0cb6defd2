"""Learning: from a recording and its factors to a trained, measured encoder.

The names are imported when they are used: a form or a help page needs the settings, not torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from napari_xcebra.learn.data.factors import Factor as Factor
    from napari_xcebra.learn.fitting import fit as fit
    from napari_xcebra.learn.quality.verdict import Goodness as Goodness
    from napari_xcebra.learn.result import Fit as Fit
    from napari_xcebra.learn.settings import FitSettings as FitSettings
    from napari_xcebra.learn.training.progress import Progress as Progress
    from napari_xcebra.learn.training.training import Training as Training

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "fitting": ["fit"],
        "data.factors": ["Factor"],
        "training.progress": ["Progress"],
        "result": ["Fit"],
        "settings": ["FitSettings"],
        "training.training": ["Training"],
        "quality.verdict": ["Goodness"],
    },
)
