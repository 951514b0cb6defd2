"""Brings a cell into view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.widgets.layers import role_of

if TYPE_CHECKING:
    from napari.layers import Layer

    from napari_xcebra.widgets.session import Opened, Session


def bring_into_view(session: Session, cell: int) -> None:
    """Centre the camera on a cell, unless it can be seen already; go to its plane, if any."""
    opened = session.current
    center = center_of(opened, cell) if opened else None
    layer = _labels_layer(session)
    if center is None or layer is None:
        return
    viewer = session.viewer
    world = layer.data_to_world(center)
    for axis, place in enumerate(world[:-2], start=viewer.dims.ndim - len(world)):
        viewer.dims.set_point(axis, place)
    low, high = layer.corner_pixels[:, -2:]
    if not ((low <= center[-2:]).all() and (center[-2:] <= high).all()):
        camera = viewer.scene.camera if hasattr(viewer, "scene") else viewer.camera  # napari < 0.9
        camera.center = (0.0, *world[-2:])


def center_of(opened: Opened, cell: int) -> np.ndarray | None:
    """Middle of a cell's pixels in its plane; None if it has none."""
    pixels = np.argwhere(opened.labels == cell + 1)
    return np.median(pixels, axis=0) if len(pixels) else None


def _labels_layer(session: Session) -> Layer | None:
    opened = session.current
    layers = [
        layer
        for layer in (session.layers_of(opened) if opened else ())
        if role_of(layer) in ("cells", "scores")
    ]
    return next((layer for layer in layers if layer.visible), layers[0] if layers else None)
