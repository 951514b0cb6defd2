"""Scores every cell for every factor of a fit.

Names are imported on first use: showing an attribution does not load torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from napari_xcebra.attribution.methods import METHODS as METHODS
    from napari_xcebra.attribution.over_time import ScoresAround as ScoresAround
    from napari_xcebra.attribution.over_time import scores_around as scores_around
    from napari_xcebra.attribution.ranks import auroc as auroc
    from napari_xcebra.attribution.result import Attribution as Attribution
    from napari_xcebra.attribution.scoring import attribute as attribute
    from napari_xcebra.attribution.shift_test.result import Significance as Significance
    from napari_xcebra.attribution.shift_test.result import seconds_to_test as seconds_to_test
    from napari_xcebra.attribution.shift_test.test import significance as significance
    from napari_xcebra.attribution.watching import AttributionStopped as AttributionStopped

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "scoring": ["attribute"],
        "over_time": ["ScoresAround", "scores_around"],
        "ranks": ["auroc"],
        "methods": ["METHODS"],
        "result": ["Attribution"],
        "shift_test.test": ["significance"],
        "shift_test.result": ["Significance", "seconds_to_test"],
        "watching": ["AttributionStopped"],
    },
)
