"""What was decided, in the image: a line along the inside of each cell, which keeps its colour."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # whose parts are imported when they are first used
from napari.layers import Labels

from napari_xcebra.widgets.layers import metadata, role_of
from napari_xcebra.widgets.painting import label_colormap

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Opened, Session

ACCEPTED = "#56B4E9"
REJECTED = "#D55E00"
"""Blue and red-orange are told apart with every kind of colour vision."""
NAME = "decisions"


def border_image(labels: np.ndarray, width: int = 1) -> np.ndarray:
    """Labels along the inside of each cell's edge, 0 elsewhere.

    Parameters
    ----------
    labels : (height, width) or (planes, height, width) int
    width : int
        In pixels.
    """
    size = (1,) * (labels.ndim - 2) + (2 * width + 1,) * 2
    inner = (scipy.ndimage.minimum_filter(labels, size) == labels) & (
        scipy.ndimage.maximum_filter(labels, size) == labels
    )
    return np.where(inner, 0, labels).astype(labels.dtype)


def decision_colors(accepted: np.ndarray, rejected: np.ndarray) -> np.ndarray:
    """(cells + 1, 4) float32: what is undecided has no line."""
    colors = np.zeros((len(accepted) + 1, 4), np.float32)
    colors[1:][accepted] = _rgba(ACCEPTED)
    colors[1:][rejected] = _rgba(REJECTED)
    return colors


def _rgba(color: str) -> list[float]:
    return [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] + [1.0]


class DecisionLayers:
    """One layer a recording, made at the first decision; changing it changes a table of colours."""

    def __init__(self) -> None:
        self._drawn_from: WeakKeyDictionary[Labels, np.ndarray] = WeakKeyDictionary()

    def show(
        self, session: Session, opened: Opened, accepted: np.ndarray, rejected: np.ndarray
    ) -> None:
        """Show the decisions of a recording, each (cells,) bool."""
        layer = self._find(session, opened)
        if layer is None:
            if not accepted.any() and not rejected.any():
                return
            layer = self._make(session, opened)
        elif self._drawn_from.get(layer) is not opened.labels:
            layer.data = border_image(opened.labels, _width(opened.labels))
            self._drawn_from[layer] = opened.labels
        layer.colormap = label_colormap(decision_colors(accepted, rejected))

    def _find(self, session: Session, opened: Opened) -> Labels | None:
        own = session.layers_of(opened)
        return next((layer for layer in own if role_of(layer) == "decisions"), None)

    def _make(self, session: Session, opened: Opened) -> Labels:
        layers = session.viewer.layers
        layer = Labels(
            border_image(opened.labels, _width(opened.labels)),
            name=NAME if session.opened[0] is opened else f"{opened.name} · {NAME}",
            opacity=1.0,
            metadata=metadata("decisions", opened.recording, opened.token),
        )
        self._drawn_from[layer] = opened.labels
        chosen, active = set(layers.selection), layers.selection.active
        session.viewer.add_layer(layer)
        layers.selection = chosen
        layers.selection.active = active
        # what is drawn here comes from decisions, not from a brush
        layer.editable = False
        return layer


def _width(labels: np.ndarray) -> int:
    return int(np.clip(round(min(labels.shape[-2:]) / 512), 1, 3))
