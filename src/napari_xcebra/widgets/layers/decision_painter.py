"""Outlines decided cells in the image, along the inside of their edge."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # whose parts are imported when they are first used
from napari.layers import Labels
from napari.utils.colormaps.standardize_color import transform_color

from napari_xcebra import curation
from napari_xcebra.widgets.layers.painting import add_quietly, label_colormap
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import metadata

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

ACCEPTED = "#56B4E9"
REJECTED = "#D55E00"
"""Blue and red-orange: distinct with any kind of colour vision."""
NAME = "decisions"


def border_image(labels: np.ndarray, width: int = 1) -> np.ndarray:
    """Labels along the inside of each cell's edge, so many pixels wide, 0 elsewhere."""
    size = (1,) * (labels.ndim - 2) + (2 * width + 1,) * 2
    inner = (scipy.ndimage.minimum_filter(labels, size) == labels) & (
        scipy.ndimage.maximum_filter(labels, size) == labels
    )
    return np.where(inner, 0, labels).astype(labels.dtype)


def decision_colors(accepted: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """(cells + 1, 4) float32: undecided cells have no line."""
    colors = np.zeros((len(accepted) + 1, 4), np.float32)
    colors[1:][accepted] = transform_color(ACCEPTED)
    colors[1:][rejected] = transform_color(REJECTED)
    return colors


class DecisionPainter(OfState):
    """Keeps one layer per recording, made at the first decision; then only its colours change."""

    def __init__(self, state: State, curations: Curations) -> None:
        super().__init__(state)
        self._curations = curations
        self._drawn_from: WeakKeyDictionary[Labels, np.ndarray] = WeakKeyDictionary()
        curations.changed.connect(self._show)

    def _show(self) -> None:
        opened = self.state.current
        if opened is None:
            return
        status = self._curations.status(opened)
        layer: Labels | None = self.state.layers.one(opened, "decisions")
        if layer is None:
            if not status.any():
                return
            layer = self._make(opened)
        elif self._drawn_from.get(layer) is not opened.labels:
            layer.data = border_image(opened.labels, _width(opened.labels))
            self._drawn_from[layer] = opened.labels
        colors = decision_colors(status == curation.ACCEPTED, status == curation.REJECTED)
        layer.colormap = label_colormap(colors)

    def _make(self, opened: Opened) -> Labels:
        layer = Labels(
            border_image(opened.labels, _width(opened.labels)),
            name=NAME,
            opacity=1.0,
            metadata=metadata("decisions", opened.recording, opened.token),
        )
        self._drawn_from[layer] = opened.labels
        add_quietly(self.state.viewer, layer)
        return layer


def _width(labels: np.ndarray) -> int:
    return int(np.clip(round(min(labels.shape[-2:]) / 512), 1, 3))
