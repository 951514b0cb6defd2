"""Moves the camera of a viewer, and shows a cell close up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

import numpy as np
from napari.layers import Image, Layer
from superqt.utils import qdebounced

from napari_xcebra.recording.footprints import Neighbor
from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.layers import ACCEPTED, REJECTED, Outline, add_quietly, patch_of
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.state.signals import OfState, Signal
from napari_xcebra.widgets.state.state import is_copy, metadata, role_of

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.cell_queue import CellQueue
    from napari_xcebra.widgets.state.curations import Curations
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
        camera_of(viewer).center = (0.0, *_hold_inside(state, np.asarray(world[-2:])))


def _hold_inside(state: State, center: np.ndarray) -> np.ndarray:
    """The nearest centre of the view, in world units, with no black beside the field.

    Where the view is larger than the field, the field is in its middle.
    """
    canvas, field = canvas_of(state.viewer), _field_of(state)
    if canvas is None or field is None:
        return center
    half = np.array([canvas.height(), canvas.width()]) / (2 * camera_of(state.viewer).zoom)
    low, high = field[0] + half, field[1] - half
    return np.where(low < high, np.clip(center, low, high), field.mean(axis=0))


def _zoom_to_cells(state: State) -> None:
    """Zoom until a view is a few cells wide."""
    opened, layer = state.current, labels_layer(state)
    canvas = canvas_of(state.viewer)
    if opened is None or layer is None or canvas is None:
        return
    side = ACROSS * opened.shapes.diameter * layer.scale[-1]
    camera_of(state.viewer).zoom = min(canvas.width(), canvas.height()) / side


def _field_of(state: State) -> np.ndarray | None:
    """(2, 2) first and last corner of the current recording's field of view, in world units."""
    layer = labels_layer(state)
    return None if layer is None else np.asarray(layer.extent.world)[:, -2:]


def _fit_into_view(state: State, field: np.ndarray) -> None:
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
        opened, field = self.state.current, _field_of(self.state)
        if opened is not None and field is not None:
            camera = camera_of(self.state.viewer)
            place = camera.center, camera.zoom
            self._left[opened.token] = place
            self._before = field, place

    def _follow(self) -> None:
        opened, field = self.state.current, _field_of(self.state)
        before, self._before = self._before, None
        if before is None or opened is None or field is None:
            return
        same = np.allclose(before[0], field)
        place = before[1] if same else self._left.get(opened.token)
        if place is None:
            _fit_into_view(self.state, field)
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


COVERING = (
    "movie", "activity", "outlines", "cells", "decisions",
    "scores", "scores over time", "scores around an event", "property",
)  # fmt: skip
"""Layers that lie over the image; what was decided is shown by the lines."""
NAME = "cell and neighbours"
OWN, DOUBLE = "#FFFFFF", "#F0E442"
"""Colours of the cell, and of neighbours that may be part of it."""
STATUS_COLORS = ("#A0A0A0", ACCEPTED, REJECTED)
"""Of other cells, by their status."""
WORTH_SAYING = 0.3
"""Correlation from which a neighbour is labelled."""
WIDTH, THIN = 2.0, 1.0
"""Of lines, in pixels of the screen."""
MOST = 50
"""Cells that have a line of their own."""

Neighbors = Sequence[tuple[Neighbor, float]]
"""With their correlation."""


class _Mark(NamedTuple):
    """How a cell is outlined."""

    cell: int
    color: str
    width: float
    label: str = ""


class CloseUp(OfState):
    """Takes over the view while the Curate dock is in front, unless the user does not want it."""

    changed = Signal()
    """It was switched on or off."""

    def __init__(self, state: State, curations: Curations, queue: CellQueue) -> None:
        super().__init__(state)
        self._curations = curations
        self._wanted, self._in_front, self._on = True, False, False
        self._fresh = True
        self._hidden: WeakSet[Any] = WeakSet()
        self._neighbors: tuple[int, Neighbors] = (-1, ())
        self._before: tuple[Any, float] | None = None
        self._drawn: tuple[Any, ...] = ()
        # several changes at once are drawn once
        self._draw_soon = qdebounced(self._draw, timeout=0)
        queue.came_up.connect(self._follow)
        state.selection_changed.connect(self._later)
        curations.changed.connect(self._later)
        camera_of(state.viewer).events.zoom.connect(self._later)
        state.leaving.connect(self._leave)
        state.front_changed.connect(self._forget_neighbors)
        state.recording_changed.connect(self._update)

    @property
    def wanted(self) -> bool:
        """Whether the user wants it; else the view stays as it is."""
        return self._wanted

    @wanted.setter
    def wanted(self, wanted: bool) -> None:
        if wanted != self._wanted:
            self._wanted = wanted
            self._update()
            self.changed.emit()

    def come_or_go(self, in_front: bool) -> None:
        """Begin when the dock comes to the front, and end when it goes."""
        if not self.state_open:
            return
        if in_front and not self._in_front:
            # after all that paints, so that what they show is hidden again
            for signal in (self.state.shown_changed, self.state.runs_changed):
                signal.disconnect(self._uncover)
                signal.connect(self._uncover)
        self._in_front = in_front
        self._update()

    def show_neighbors(self, cell: int, neighbors: Neighbors) -> None:
        """Outline the neighbours of a cell, once they are known."""
        self._neighbors = cell, neighbors
        self._later()

    def _forget_neighbors(self) -> None:
        """They are known by their places, which cells of another recording have, too."""
        self._neighbors = (-1, ())

    # ------------------------------------------------------------ on and off

    def _update(self) -> None:
        on = self._wanted and self._in_front and self.state.current is not None
        if on and not self._on:
            self._enter()
        elif self._on and not on:
            self._leave()

    def _enter(self) -> None:
        camera = camera_of(self.state.viewer)
        self._before = camera.center, camera.zoom
        self._on = self._fresh = True
        self._uncover()
        if len(self.state.selection) == 1:
            self._follow(int(self.state.selection[0]))
        self._later()

    def _leave(self) -> None:
        """Give view and layers back as they were."""
        if not self._on:
            return
        self._on, self._drawn = False, ()
        for layer in self.state.layers.of(self.state.current):
            if layer in self._hidden:
                layer.visible = True
            elif role_of(layer) == "close-up":
                layer.visible = False
        self._hidden.clear()
        if self._before is not None:
            camera = camera_of(self.state.viewer)
            camera.center, camera.zoom = self._before

    def _uncover(self) -> None:
        """Hide what is painted over the image."""
        opened = self.state.current
        if not self._on or opened is None:
            return
        own = self.state.layers.of(opened)
        image = any(role_of(layer) == "image" and layer.visible for layer in own)
        for layer in own:
            if role_of(layer) == "scores":
                self._hidden.discard(layer)  # the painter has just said which one is shown
            needed = role_of(layer) == "movie" and not image
            if role_of(layer) in COVERING and layer.visible and not needed:
                layer.visible = False
                self._hidden.add(layer)

    def show_movie(self) -> None:
        """Show the movie below the lines, until the next map is painted."""
        for layer in self.state.layers.of(self.state.current, "movie"):
            layer.visible = True

    # ------------------------------------------------------------ the cell

    def _follow(self, cell: int) -> None:
        if self._on and self._fresh:
            _zoom_to_cells(self.state)
            self._fresh = False  # from now on, the zoom is the user's
        bring_into_view(self.state, cell, always=self._on)

    def _later(self, _: object = None) -> None:
        if self._on:
            self._draw_soon()

    def _draw(self) -> None:
        opened = self.state.current if self.state_open else None
        if not self._on or opened is None:
            return
        selection = self.state.selection
        single = len(selection) <= MOST
        for layer in self.state.layers.of(opened, "selection", "decisions"):
            self._swap(layer, visible=not single)
        shown = [int(cell) for cell in selection] if single else []
        around = self._in_view(opened, shown[0]) if len(shown) == 1 else []
        marks = [*self._thin(opened, around), *self._thick(shown)]
        drawn = (opened.shapes, camera_of(self.state.viewer).zoom, marks)
        if drawn != self._drawn:
            self._drawn = drawn
            self._show(opened, marks)

    def _in_view(self, opened: Opened, cell: int) -> list[int]:
        """Other cells in the view around a cell, in its plane."""
        canvas, shapes = canvas_of(self.state.viewer), opened.shapes
        layer = labels_layer(self.state)
        if canvas is None or layer is None or not shapes.sizes[cell]:
            return []
        zoom = camera_of(self.state.viewer).zoom * layer.scale[-1]
        reach = np.array([canvas.height(), canvas.width()]) / (2 * zoom)
        apart = np.abs(shapes.centers - shapes.centers[cell])
        near = (apart[:, 1:] < reach).all(axis=1) & (np.round(apart[:, 0]) == 0)
        near[cell] = False
        found = np.flatnonzero(near)
        return found[np.argsort(apart[found, 1:].sum(axis=1))][:MOST].tolist()

    def _thick(self, cells: Sequence[int]) -> Iterator[_Mark]:
        """Marks of the selected cells: one in white, several in the colours of their traces."""
        colors = style_of(self.state.viewer.theme).lines if len(cells) > 1 else ()
        for place, cell in enumerate(cells):
            yield _Mark(cell, colors[place] if place < len(colors) else OWN, WIDTH)

    def _thin(self, opened: Opened, cells: Sequence[int]) -> Iterator[_Mark]:
        """Marks of neighbours: what was decided on them, and how alike their traces are."""
        status = self._curations.status(opened)
        known = self._neighbors[1] if self._neighbors[0] in self.state.selection else ()
        alike = {neighbor.cell: r for neighbor, r in known}
        doubles = {neighbor.cell for neighbor, r in known if neighbor.may_be_same(r)}
        for cell in cells:
            r = alike.get(cell, 0.0)
            color = DOUBLE if cell in doubles else STATUS_COLORS[status[cell]]
            label = f"r {r:.2f}" if r >= WORTH_SAYING else ""
            yield _Mark(cell, color, THIN, label)

    def _swap(self, layer: Any, *, visible: bool) -> None:
        """Hide the ring around selected cells where a line takes its place, or show it again."""
        if layer.visible and not visible:
            layer.visible = False
            self._hidden.add(layer)
        elif visible and layer in self._hidden:
            layer.visible = True

    def _show(self, opened: Opened, marks: Sequence[_Mark]) -> None:
        """Draw outlines as fine as the screen shows them, in the plane of the last cell."""
        shapes, field = opened.shapes, labels_layer(self.state)
        layer = self.state.layers.one(opened, "close-up")
        if field is None:
            return
        outlines = [Outline(shapes.outline(mark.cell), *mark[1:]) for mark in marks]
        plane = shapes.plane(marks[-1].cell) if marks else 0
        scale, shift = field.scale[-2:], field.translate[-2:]
        patch = patch_of(outlines, camera_of(self.state.viewer).zoom * scale[-1])
        if patch is None:
            if layer is not None:
                layer.visible = False
            return
        planes = opened.labels.ndim - 2
        picture = patch.picture[(None,) * planes]
        placed = {
            "scale": (*field.scale[-2 - planes : -2], *(scale / patch.fineness)),
            "translate": (*([plane] * planes), *(shift + scale * patch.corner)),
        }
        if layer is None:
            self._add_layer(opened, picture, placed)
            return
        layer.data = picture
        for name, value in placed.items():
            if not np.array_equal(getattr(layer, name), value):
                setattr(layer, name, value)
        if not layer.visible:
            layer.visible = True

    def _add_layer(self, opened: Opened, picture: np.ndarray, placed: dict[str, Any]) -> None:
        layer = Image(
            picture,
            rgb=True,
            name=NAME,
            interpolation2d="linear",
            metadata=metadata("close-up", opened.recording, opened.token),
            **placed,
        )
        add_quietly(self.state, layer)
