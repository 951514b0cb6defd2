"""Brings a cell into view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.widgets.layers import role_of

if TYPE_CHECKING:
    from napari.layers import Layer
    from qtpy.QtWidgets import QWidget

    from napari_xcebra.widgets.session import Opened, Session

MARGIN = 0.95
"""Share of the canvas that a field of view takes, as where napari fits it in."""
ACROSS = 18
"""Diameters of a cell that the view is wide when one looks at single cells."""


def bring_into_view(session: Session, cell: int, *, always: bool = False) -> None:
    """Centre the camera on a cell, unless it can be seen already; go to its plane, if any.

    With `always`, it comes to the middle wherever it is.
    """
    opened = session.current
    center = center_of(opened, cell) if opened else None
    layer = labels_layer(session)
    if center is None or layer is None:
        return
    viewer = session.viewer
    world = layer.data_to_world(center)
    for axis, place in enumerate(world[:-2], start=viewer.dims.ndim - len(world)):
        viewer.dims.set_point(axis, place)
    low, high = layer.corner_pixels[:, -2:]
    if always or not ((low <= center[-2:]).all() and (center[-2:] <= high).all()):
        camera_of(viewer).center = (0.0, *world[-2:])


def zoom_to_cells(session: Session) -> None:
    """Zoom in, if need be, until a cell can be told from its neighbours."""
    opened, layer = session.current, labels_layer(session)
    canvas = canvas_of(session.viewer)
    if opened is None or layer is None or canvas is None:
        return
    sizes = np.bincount(opened.labels.ravel())[1:]
    diameter = 2 * np.sqrt(np.median(sizes[sizes > 0]) / np.pi) if sizes.any() else 10.0
    wanted = min(canvas.width(), canvas.height()) / (ACROSS * diameter * layer.scale[-1])
    camera = camera_of(session.viewer)
    camera.zoom = max(camera.zoom, wanted)


def field_of(session: Session) -> np.ndarray | None:
    """(2, 2) first and last corner of the current recording's field of view, in world units."""
    layer = labels_layer(session)
    return None if layer is None else np.asarray(layer.extent.world)[:, -2:]


def fit_into_view(session: Session, field: np.ndarray) -> None:
    """Show all of a field of view.

    napari's own reset would make room for the layers of other recordings, hidden as they are.
    """
    canvas = canvas_of(session.viewer)
    if canvas is None:
        return
    camera, (height, width) = camera_of(session.viewer), field[1] - field[0] + 1
    camera.center = (0.0, *field.mean(axis=0))
    camera.zoom = MARGIN * min(canvas.height() / height, canvas.width() / width)


def camera_of(viewer: Any) -> Any:
    """The camera, wherever this version of napari has it."""
    return viewer.scene.camera if hasattr(viewer, "scene") else viewer.camera  # napari < 0.9


def canvas_of(viewer: Any) -> QWidget | None:
    """What the image is drawn on; None for a viewer without a window."""
    window = getattr(viewer, "window", None)
    return None if window is None else window._qt_viewer.canvas.native


def center_of(opened: Opened, cell: int) -> np.ndarray | None:
    """Middle of a cell's pixels in its plane; None if it has none."""
    center = opened.centers[cell]
    return center if np.isfinite(center).all() else None


def labels_layer(session: Session) -> Layer | None:
    """The layer in which the cells of the current recording can be found."""
    opened = session.current
    layers = [
        layer
        for layer in (session.layers_of(opened) if opened else ())
        if role_of(layer) in ("cells", "scores")
    ]
    return next((layer for layer in layers if layer.visible), layers[0] if layers else None)
