"""Chooses what is in view: a cell, all of a recording, or two maps side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Image, Layer

from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import is_copy, metadata

if TYPE_CHECKING:
    from napari.layers import Layer

    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


MARGIN = 0.95
"""Share of the canvas that a field of view takes, as in napari."""
ACROSS = 5
"""Width of a close-up, in cell diameters."""


def bring_into_view(state: State, cell: int, *, always: bool = False) -> None:
    """Centre the camera on a cell, unless it is in view already; go to its plane, if any.

    With `always`, centre it even if it is in view.
    """
    opened = state.current
    center = _center_of(opened, cell) if opened else None
    layer = labels_layer(state)
    if center is None or layer is None:
        return
    viewer = state.viewer
    world = layer.data_to_world(center)
    for axis, place in enumerate(world[:-2], start=viewer.dims.ndim - len(world)):
        viewer.dims.set_point(axis, place)
    low, high = layer.corner_pixels[:, -2:]
    if always or not ((low <= center[-2:]).all() and (center[-2:] <= high).all()):
        camera_of(viewer).center = (0.0, *_held_inside(state, np.asarray(world[-2:])))


def _held_inside(state: State, center: np.ndarray) -> np.ndarray:
    """The nearest centre of the view, in world units, with no black beside the field.

    Where the view is larger than the field, the field is in its middle.
    """
    canvas, field = canvas_of(state.viewer), field_of(state)
    if canvas is None or field is None:
        return center
    half = np.array([canvas.height(), canvas.width()]) / (2 * camera_of(state.viewer).zoom)
    low, high = field[0] + half, field[1] - half
    return np.where(low < high, np.clip(center, low, high), field.mean(axis=0))


def zoom_to_cells(state: State) -> None:
    """Zoom until a view is a few cells wide."""
    opened, layer = state.current, labels_layer(state)
    canvas = canvas_of(state.viewer)
    if opened is None or layer is None or canvas is None:
        return
    side = ACROSS * opened.shapes.diameter * layer.scale[-1]
    camera_of(state.viewer).zoom = min(canvas.width(), canvas.height()) / side


def field_of(state: State) -> np.ndarray | None:
    """(2, 2) first and last corner of the current recording's field of view, in world units."""
    layer = labels_layer(state)
    return None if layer is None else np.asarray(layer.extent.world)[:, -2:]


def fit_into_view(state: State, field: np.ndarray) -> None:
    """Show all of a field of view.

    napari's own reset would also make room for hidden layers of other recordings.
    """
    canvas = canvas_of(state.viewer)
    if canvas is None:
        return
    camera, (height, width) = camera_of(state.viewer), field[1] - field[0] + 1
    camera.center = (0.0, *field.mean(axis=0))
    camera.zoom = MARGIN * min(canvas.height() / height, canvas.width() / width)


def camera_of(viewer: Any) -> Any:
    """The camera, wherever this version of napari has it."""
    return viewer.scene.camera if hasattr(viewer, "scene") else viewer.camera  # napari < 0.9


def _center_of(opened: Opened, cell: int) -> np.ndarray | None:
    """Middle of a cell's pixels in its plane; None if it has none."""
    center = opened.centers[cell]
    return center if np.isfinite(center).all() else None


def labels_layer(state: State) -> Layer | None:
    """The layer in which the cells of the current recording can be found."""
    layers = state.layers.of(state.current, "cells", "scores")
    return next((layer for layer in layers if layer.visible), layers[0] if layers else None)


class FollowFront(OfState):
    """Looks at the recording in front: where the user left it, or at all of it when it is new.

    The camera stays where it is if the field of view is the same, as from one day to the next.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._left: dict[str, tuple[Any, float]] = {}
        self._before: tuple[np.ndarray, tuple[Any, float]] | None = None
        state.leaving.connect(self._remember)
        state.recording_changed.connect(self._follow)

    def _remember(self) -> None:
        opened, field = self.state.current, field_of(self.state)
        if opened is not None and field is not None:
            camera = camera_of(self.state.viewer)
            place = camera.center, camera.zoom
            self._left[opened.token] = place
            self._before = field, place

    def _follow(self) -> None:
        opened, field = self.state.current, field_of(self.state)
        before, self._before = self._before, None
        if before is None or opened is None or field is None:
            return
        same = np.allclose(before[0], field)
        place = before[1] if same else self._left.get(opened.token)
        if place is None:
            fit_into_view(self.state, field)
        else:
            camera = camera_of(self.state.viewer)
            camera.center, camera.zoom = place


TITLE = "background of the second view"


class SecondView(OfState):
    """Puts one layer, over a copy of the background image, into a view of its own on the right.

    napari's grid fills its views with layers by their order, a fixed number in each: the layers of
    the second view are kept at the end of the list, and all others share the first.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._layer: Layer | None = None
        self._before: tuple[bool, int, tuple[int, int]] | None = None
        self._arranging = False
        events = state.viewer.layers.events
        for event in (events.inserted, events.removed, events.reordered):
            event.connect(self._arrange)

    @property
    def _grid(self) -> Any:
        viewer = self.state.viewer
        return viewer.canvas.grid if hasattr(viewer, "canvas") else viewer.grid  # napari < 0.9

    def show(self, layer: Layer | None) -> None:
        """Show a layer on the right; None to go back to one view."""
        self._layer = layer
        if layer is None:
            self._close()
            return
        beginning = self._before is None
        if beginning:
            grid = self._grid
            self._before = (grid.enabled, grid.stride, grid.shape)
        self._arrange()
        if beginning:
            self.state.viewer.reset_view()

    def _arrange(self) -> None:
        layers = self.state.viewer.layers
        if self._arranging or self._layer is None or self._layer not in layers:
            return
        self._arranging = True
        try:
            right = [*self._background(), self._layer]
            for own in right:
                own.visible = True
            if list(layers[-len(right) :]) != right:
                for own in right:
                    layers.move(layers.index(own), len(layers))
            grid = self._grid
            grid.shape = (1, 2)
            grid.stride = max(1, len(layers) - len(right))
            grid.enabled = True
        finally:
            self._arranging = False

    def _close(self) -> None:
        if self._before is None:
            return
        grid = self._grid
        grid.enabled, grid.stride, grid.shape = self._before
        self._before = None
        self.state.viewer.reset_view()
        layers = self.state.viewer.layers
        for layer in [layer for layer in layers if is_copy(layer)]:
            layers.remove(layer)

    def _background(self) -> list[Layer]:
        """Copy of the background image of the recording, if it has one."""
        opened = self.state.current
        if opened is None:
            return []
        images = self.state.layers.of(opened, "image")
        copies = [image for image in images if is_copy(image)]
        originals = [image for image in images if image not in copies]
        shown = [image for image in originals if image.visible] or originals
        if copies or not shown:
            return copies[:1]
        copy = Image(
            shown[0].data,
            name=TITLE,
            colormap=shown[0].colormap,
            contrast_limits=shown[0].contrast_limits,
            metadata=metadata("image", opened.recording, opened.token, second=True),
        )
        layers = self.state.viewer.layers
        active = layers.selection.active
        self.state.layers.put(copy)
        layers.selection.active = active
        return [copy]
