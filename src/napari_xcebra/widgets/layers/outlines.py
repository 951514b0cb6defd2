"""Outlines cells in the image with smooth lines: decided, selected, and without a score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Layer, Vectors
from napari.utils.colormaps.standardize_color import transform_color

from napari_xcebra.recording.cell_shapes import CellShapes
from napari_xcebra.widgets.state.own_layers import KEY, LayerTuple, Role, metadata, role_of

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.recording.footprints import Footprints
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

OTHERS = "other ROIs"
"""Name of the layer with what is not accepted or has no score."""
GREY = "#9e9e9e"


def others_layer(recording: Recording, footprints: Footprints, token: str = "") -> LayerTuple:
    """Thin grey outlines of the ROIs that are not accepted, as (data, arguments, type)."""
    cells = np.flatnonzero(~np.asarray(recording.accepted))
    lines, _ = segments(CellShapes(footprints, recording.n_cells), cells)
    about = metadata("outlines", recording, token, cells=cells.tolist())
    shown = _look(GREY, thickness(footprints.shape) / 2) | {"name": OTHERS, "metadata": about}
    return lines, shown, "vectors"


def outline_others(state: State, others: np.ndarray) -> None:
    """Let these of the recording in front, (cells,) bool, have the thin outlines."""
    opened = state.current
    assert opened is not None, "cells are those of a recording"
    layer = state.layers.one(opened, "outlines")
    if layer is None:
        # where some are not accepted, the user deleted it
        if not others.any() or not np.all(opened.recording.accepted):
            return
        layer = Layer.create(*others_layer(opened.recording, opened.footprints, opened.token))
        at = next((i for i, x in enumerate(state.viewer.layers) if role_of(x) == "cells"), 0)
        state.layers.put(layer, at)
    cells, entry = np.flatnonzero(others), layer.metadata[KEY]
    if entry["cells"] != cells.tolist():
        entry["cells"] = cells.tolist()
        layer.data, _ = segments(opened.shapes, cells)


def outlines_layer(opened: Opened, role: Role, name: str, width: float = 1.0) -> Vectors:
    """Layer for the outlines of some cells, still without any, so many times the usual width."""
    shape = opened.labels.shape
    look = _look("white", width * thickness(shape))
    about = metadata(role, opened.recording, opened.token, cells=[], colors=[])
    return Vectors(np.zeros((0, 2, len(shape))), name=name, metadata=about, **look)


def outline(
    layer: Vectors, opened: Opened, cells: list[int], colors: Sequence[str], every: int = 1
) -> None:
    """Outline cells in colours; more cells than colours come in white.

    Does nothing while the layer is hidden, as napari cannot colour vectors that came meanwhile:
    to be called again when it is shown.
    """
    entry, wanted = layer.metadata[KEY], (cells, list(colors))
    if not layer.visible or (entry["cells"], entry["colors"]) == wanted:
        return
    entry["cells"], entry["colors"] = wanted
    lines, owner = segments(opened.shapes, cells, every)
    layer.data = lines
    if len(lines):
        names, place = np.unique([*colors, "white"], return_inverse=True)
        table = np.stack([transform_color(name)[0] for name in names])
        layer.edge_color = table[place][np.minimum(owner, len(colors))]


def segments(
    shapes: CellShapes, cells: Iterable[int], every: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Outlines of cells as napari's Vectors, from `every` so many points of each.

    Returns
    -------
    lines : (segments, 2, axes) float32
        Start of each segment, and the way from there to its end.
    owner : (segments,) int
        Which of the cells each belongs to.
    """
    axes = len(shapes.field)
    lines = [np.zeros((0, 2, axes), np.float32)]
    owner = [np.zeros(0, np.int64)]
    for number, cell in enumerate(cells):
        for around in shapes.outline(int(cell)):
            around = np.concatenate([around[:-1:every], around[:1]])
            made = np.zeros((len(around) - 1, 2, axes), np.float32)
            made[:, 0, -2:], made[:, 1, -2:] = around[:-1], np.diff(around, axis=0)
            if axes == 3:
                made[:, 0, 0] = shapes.plane(int(cell))
            lines.append(made)
            owner.append(np.full(len(made), number))
    return np.concatenate(lines), np.concatenate(owner)


def thickness(shape: tuple[int, ...]) -> float:
    """Of an outline, in pixels of a field of view."""
    return float(np.clip(min(shape[-2:]) / 256, 0.5, 4))


def _look(color: Any, width: float) -> dict[str, Any]:
    return {"edge_color": color, "edge_width": width, "vector_style": "line"}
