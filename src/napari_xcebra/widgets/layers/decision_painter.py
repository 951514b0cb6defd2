"""Outlines decided cells in the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.widgets.layers.outlines import outline, outlines_layer
from napari_xcebra.widgets.layers.painting import add_quietly
from napari_xcebra.widgets.state.of_state import OfState

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State

ACCEPTED = "#56B4E9"
REJECTED = "#D55E00"
"""Blue and red-orange: distinct with any kind of colour vision."""
NAME = "decisions"


class DecisionPainter(OfState):
    """Keeps one layer per recording, made at the first decision."""

    def __init__(self, state: State, curations: Curations) -> None:
        super().__init__(state)
        self._curations = curations
        curations.changed.connect(self._show)

    def _show(self, _: Any = None) -> None:
        opened = self.state.current if self.state_open else None
        if opened is None:
            return
        status = self._curations.status(opened)
        layer = self.state.layers.one(opened, "decisions")
        if layer is None:
            if not status.any():
                return
            layer = outlines_layer(opened, "decisions", NAME)
            add_quietly(self.state, layer)
            layer.events.visible.connect(self._show)
        decided = np.flatnonzero(status)
        colors = np.array(["", ACCEPTED, REJECTED])[status[decided]]
        outline(layer, opened, decided.tolist(), colors.tolist(), every=2)
