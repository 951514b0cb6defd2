"""Selects cells by clicks in the image, and outlines them.

The pointer also names the cell under it in the status bar, with the score that is painted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.curation import STATUSES
from napari_xcebra.widgets.controls.napari_window import view_direction
from napari_xcebra.widgets.layers.outlines import outline, outlines_layer
from napari_xcebra.widgets.layers.painting import add_quietly
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.state.own_layers import role_of
from napari_xcebra.widgets.state.shown import painted_map

if TYPE_CHECKING:
    from napari.layers import Layer

    from napari_xcebra.curation import Status
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


STILL = 4.0
"""Pixels on the screen that a click may move before it is a drag."""
PICKING_MODES = ("pan_zoom", "pick")
"""In all others the mouse draws, and a click is a stroke."""


def is_click(event: Any) -> Generator[None, None, bool]:
    """Whether the mouse stays where it was pressed until it is released; yields at every move."""
    start = np.asarray(event.pos, float)
    yield
    while event.type == "mouse_move":
        if np.linalg.norm(np.asarray(event.pos, float) - start) > STILL:
            return False
        yield
    return True


class Picking:
    """Selects cells with the mouse, and shows which are selected."""

    def __init__(self, state: State, curations: Curations) -> None:
        self._state = state
        self._curations = curations
        viewer = state.viewer
        viewer.mouse_drag_callbacks.append(self._on_press)
        # after napari's own, which would otherwise overwrite what is said here
        viewer.events.status.connect(self._add_to_status, position="last")
        viewer.tooltip.events.text.connect(self._add_to_tooltip, position="last")
        viewer.layers.events.inserted.connect(self._keep_on_top, position="last")
        state.selection_changed.connect(self._outline)
        viewer.events.theme.connect(self._outline)

    # ------------------------------------------------------------ clicks

    def _on_press(self, viewer: Any, event: Any) -> Iterator[None]:
        if event.button == 1 and self._mouse_is_free(viewer) and (yield from is_click(event)):
            self.click(
                event.position,
                add="Shift" in event.modifiers or "Control" in event.modifiers,
                view_direction=event.view_direction,
            )

    def click(self, position: Any, *, add: bool = False, view_direction: Any = None) -> None:
        """Select the cell at a place in the world; with `add`, keep the others.

        A click on the background selects nothing, and with `add` changes nothing.
        """
        cell = self.cell_at(position, view_direction)
        if cell is not None:
            self._state.select([cell], toggle=add)
        elif not add:
            self._state.select([])

    def _mouse_is_free(self, viewer: Any) -> bool:
        active = viewer.layers.selection.active
        return str(getattr(active, "mode", "pan_zoom")) in PICKING_MODES

    def cell_at(self, position: Any, view_direction: Any = None) -> int | None:
        """Position of the cell of the recording in front that is at a place in the world."""
        state = self._state
        layers = state.layers.of(state.current)
        if not any(layer.visible for layer in layers):
            return None
        label = _label_at(layers, position, view_direction, state.viewer.dims)
        return label - 1 if label else None

    # ------------------------------------------------------------ what is selected

    def _outline(self, *_: Any) -> None:
        """Outline the selected cells of the current recording in the colours of their traces."""
        state, opened = self._state, self._state.current
        if opened is None or opened not in state.opened:  # its layers are being removed
            return
        layer = state.layers.one(opened, "selection")
        if layer is None and len(state.selection):
            layer = outlines_layer(opened, "selection", "selected cells", width=1.5)
            add_quietly(state, layer)
            layer.events.visible.connect(self._outline)
        if layer is not None:
            lines = style_of(state.viewer.theme).lines
            outline(layer, opened, state.selection.tolist(), lines)

    def _keep_on_top(self, event: Any) -> None:
        layers = self._state.viewer.layers
        if role_of(event.value) == "selection":
            return
        for layer in [x for x in layers if role_of(x) == "selection"]:
            layers.move(layers.index(layer), len(layers))

    # ------------------------------------------------------------ the cell under the pointer

    def _add_to_status(self, event: Any) -> None:
        said = event.value
        before = said.get("coordinates", "") if isinstance(said, dict) else str(said)
        text = self._under_pointer()
        if not text or text in before:
            return
        after = f"{before}; {text}" if before else text
        viewer = self._state.viewer
        viewer.status = {**said, "coordinates": after} if isinstance(said, dict) else after

    def _add_to_tooltip(self, event: Any) -> None:
        tooltip = self._state.viewer.tooltip
        text = self._under_pointer() if tooltip.visible else ""
        if text and text not in event.value:
            tooltip.text = f"{event.value}\n{text}" if event.value else text

    def _under_pointer(self) -> str:
        """What the active layer does not itself say about the cell under the pointer."""
        viewer = self._state.viewer
        if not viewer.mouse_over_canvas:
            return ""
        role = role_of(viewer.layers.selection.active) if viewer.layers.selection.active else None
        if role == "scores":
            return ""
        opened, cell = (
            self._state.current,
            self.cell_at(viewer.cursor.position, view_direction(viewer)),
        )
        if opened is None or cell is None:
            return ""
        status = STATUSES[self._curations.status(opened)[cell]]
        named = "" if role == "cells" else naming(opened, cell, status)
        return ", ".join(filter(None, [named, self._painted(cell)]))

    def _painted(self, cell: int) -> str:
        """Score and z of what is painted."""
        painted = painted_map(self._state)
        if painted is None or not painted.known[cell]:
            return ""
        return f"{painted.factor} {painted.scores[cell]:.3g} (z {painted.z[cell]:.1f})"


def naming(opened: Opened, cell: int, status: Status = "undecided") -> str:
    """A cell by the id and name of its source, and whether it was accepted.

    It is given by its position in the recording. A `status` that somebody decided comes before
    what the extractor says.
    """
    recording = opened.recording
    words = [f"cell {np.asarray(recording.cell_ids)[cell]}"]
    if "name" in recording.cells:
        words.append(str(recording.cells["name"][cell]))
    if status == "undecided":
        words.append("accepted" if np.asarray(recording.accepted)[cell] else "not accepted")
    else:
        words.append(f"{status} in curation")
    return ", ".join(words)


def _label_at(layers: list[Layer], position: Any, view_direction: Any, dims: Any) -> int:
    """Label of the uppermost cells or scores at a place in the world; 0 where there is none."""
    labelled = [layer for layer in layers[::-1] if role_of(layer) in ("cells", "scores")]
    if dims.ndisplay == 3:
        for layer in (x for x in labelled if x.visible):
            value = layer.get_value(
                position,
                view_direction=view_direction,
                dims_displayed=list(dims.displayed),
                world=True,
            )
            return int(value or 0)
        return 0
    # those in view first: the user may have moved one of them
    for layer in sorted(labelled, key=lambda x: not x.visible):
        place = np.round(layer.world_to_data(position)[-layer.ndim :]).astype(int)
        inside = all(0 <= at < size for at, size in zip(place, layer.data.shape, strict=True))
        return int(layer.data[tuple(place)]) if inside else 0
    return 0
