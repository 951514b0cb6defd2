"""Shows the cell that is judged: zoomed in, outlined, and with nothing painted over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

import numpy as np
from napari.layers import Image
from superqt.utils import qdebounced

from napari_xcebra.recording.footprints import Neighbor
from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.camera import (
    bring_into_view,
    camera_of,
    labels_layer,
    zoom_to_cells,
)
from napari_xcebra.widgets.layers.outlines import ACCEPTED, REJECTED, Outline, add_quietly, patch_of
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import metadata, role_of
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.cell_queue import CellQueue
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

COVERING = (
    "movie", "activity", "outlines", "cells", "decisions",
    "scores", "scores over time", "scores around an event",
)  # fmt: skip
"""Layers that lie over the image; what was decided is shown by the lines."""
NAME = "cell and neighbours"
OWN, DOUBLE = "#FFFFFF", "#F0E442"
"""Colours of the cell, and of neighbours whose trace is much like its own."""
STATUS_COLORS = ("#A0A0A0", ACCEPTED, REJECTED)
"""Of other cells, by their status."""
ALIKE, WORTH_SAYING = 0.7, 0.3
"""Correlations from which a neighbour may be part of the same cell, and is labelled."""
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
            zoom_to_cells(self.state)
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
        for cell in cells:
            r = alike.get(cell, 0.0)
            color = DOUBLE if r >= ALIKE else STATUS_COLORS[status[cell]]
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
