"""Outlines cells with smooth lines: decided, selected, without a score; and in small pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
from napari.layers import Layer, Vectors
from napari.utils.colormaps import CyclicLabelColormap, label_colormap
from napari.utils.colormaps.standardize_color import transform_color
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QFont, QImage, QPainter, QPen, QPolygonF
from superqt.utils import qimage_to_array

from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import CellShapes, Footprints, drawn_labels
from napari_xcebra.recording.traces import LazyTraces
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.movie import CellMovie, movie_layer
from napari_xcebra.widgets.state.signals import OfState
from napari_xcebra.widgets.state.state import (
    KEY,
    LayerTuple,
    Role,
    layers_of,
    metadata,
    role_of,
    shown_by,
)

if TYPE_CHECKING:
    import napari
    import pandas as pd

    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


OTHERS = "other ROIs"
"""Name of the layer with what is not accepted or has no score."""
GREY = "#9e9e9e"


def _others_layer(recording: Recording, footprints: Footprints, token: str = "") -> LayerTuple:
    """Thin grey outlines of the ROIs that are not accepted, as (data, arguments, type)."""
    cells = np.flatnonzero(~np.asarray(recording.accepted))
    lines, _ = _segments(CellShapes(footprints, recording.n_cells), cells)
    about = metadata("outlines", recording, token, cells=cells.tolist())
    shown = _look(GREY, _thickness(footprints.shape) / 2) | {"name": OTHERS, "metadata": about}
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
        layer = Layer.create(*_others_layer(opened.recording, opened.footprints, opened.token))
        at = next((i for i, x in enumerate(state.viewer.layers) if role_of(x) == "cells"), 0)
        state.layers.put(layer, at)
    cells, entry = np.flatnonzero(others), layer.metadata[KEY]
    if entry["cells"] != cells.tolist():
        entry["cells"] = cells.tolist()
        layer.data, _ = _segments(opened.shapes, cells)


def outlines_layer(opened: Opened, role: Role, name: str, width: float = 1.0) -> Vectors:
    """Layer for the outlines of some cells, still without any, so many times the usual width."""
    shape = opened.labels.shape
    look = _look("white", width * _thickness(shape))
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
    lines, owner = _segments(opened.shapes, cells, every)
    layer.data = lines
    if len(lines):
        names, place = np.unique([*colors, "white"], return_inverse=True)
        table = np.stack([transform_color(name)[0] for name in names])
        layer.edge_color = table[place][np.minimum(owner, len(colors))]


def _segments(
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


def _thickness(shape: tuple[int, ...]) -> float:
    """Of an outline, in pixels of a field of view."""
    return float(np.clip(min(shape[-2:]) / 256, 0.5, 4))


def _look(color: Any, width: float) -> dict[str, Any]:
    return {"edge_color": color, "edge_width": width, "vector_style": "line"}


MARGIN = 2.0
"""Pixels of the field around the outlines."""
FINEST, MOST = 8.0, 1600
"""Points of the picture to a pixel of the field, and along its longer side, at most."""
LABEL = 8
"""Size of the labels."""


class Outline(NamedTuple):
    """Lines around a cell, (points, 2) float each, and how they are drawn.

    `width` is in pixels of the screen; `label` is written in its middle.
    """

    lines: Sequence[np.ndarray]
    color: str
    width: float
    label: str = ""


class _Patch(NamedTuple):
    """A picture, (height, width, 4) uint8, the place of its first pixel, and pixels per pixel."""

    picture: np.ndarray
    corner: np.ndarray
    fineness: float


def patch_of(outlines: Sequence[Outline], fineness: float) -> _Patch | None:
    """Draw outlines, `fineness` points of the screen to a pixel of the field; None without any."""
    lines = [line for outline in outlines for line in outline.lines]
    if not lines:
        return None
    points = np.concatenate(lines)
    first, last = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    fineness = min(fineness, FINEST, MOST / float((last - first).max()))
    height, width = np.ceil((last - first) * fineness).astype(int)
    image = QImage(int(width), int(height), QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for outline in outlines:
        _draw(painter, outline, first, fineness)
    painter.end()
    return _Patch(qimage_to_array(image).copy(), first + 0.5 / fineness, fineness)


def _draw(painter: QPainter, outline: Outline, first: np.ndarray, fineness: float) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(outline.color), outline.width))
    for line in outline.lines:
        places = (line - first) * fineness
        painter.drawPolygon(QPolygonF([QPointF(x, y) for y, x in places.tolist()]))
    if outline.label:
        low, left = ((outline.lines[0].min(axis=0) - first) * fineness).tolist()
        high, right = ((outline.lines[0].max(axis=0) - first) * fineness).tolist()
        painter.setFont(QFont(painter.font().family(), LABEL))
        box = QRectF(left, low, right - left, high - low)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, outline.label)


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


def add_quietly(state: State, layer: Layer) -> None:
    """Add a layer that the brush must not change; the selected layers stay selected."""
    layers = state.viewer.layers
    chosen, active = set(layers.selection), layers.selection.active
    state.layers.put(layer)
    layers.selection = chosen
    layers.selection.active = active
    layer.editable = False


FROM_BELOW: tuple[Role, ...] = ("image", "movie", "activity", "outlines", "cells")
"""Order of the layers that every recording has; all others lie above."""

IMAGE_NAMES = {
    "mean": "mean image",
    "enhanced": "enhanced mean image",
    "max": "maximum projection",
    "correlation": "correlation image",
}


def footprints_of(recording: Recording) -> Footprints:
    """Where the cells are; discs on a grid where the source does not say."""
    return recording.footprints or Footprints.on_a_grid(recording.n_cells)


def recording_layers(recording: Recording, token: str = "") -> list[LayerTuple]:
    """Background images, movie, activity over time and cells, as (data, arguments, type).

    They carry a token to be found by; a new one if none is given.
    """
    token = token or uuid4().hex
    footprints = footprints_of(recording)
    labels = drawn_labels(footprints, np.asarray(recording.accepted))
    layers: list[LayerTuple] = []
    front = "mean" if "mean" in recording.images else next(iter(recording.images), "")
    for key, image in recording.images.items():
        low, high = np.percentile(image, [1, 99.8])
        shown: dict[str, Any] = {
            "name": IMAGE_NAMES.get(key, unmarked(key)),
            "colormap": "gray",
            "contrast_limits": (float(low), float(high) if high > low else float(low) + 1),
            "visible": key == front,
            "metadata": metadata("image", recording, token, shows=key),
        }
        layers.append((image, shown, "image"))
    if recording.movie is not None:
        layers.append(movie_layer(recording, token))
    layers.append(_activity_layer(recording, labels, token))
    if not np.all(recording.accepted):
        layers.append(_others_layer(recording, footprints, token))
    cells: dict[str, Any] = {
        "name": "cells",
        "opacity": 0.6,
        "colormap": _cell_colormap(recording),
        "features": cell_features(recording),
        "metadata": metadata("cells", recording, token, value=recording),
    }
    layers.append((labels, cells, "labels"))
    return layers


def _cell_colormap(recording: Recording) -> CyclicLabelColormap:
    """Accepted cells in various colours; the others are clear, and have an outline."""
    distinct = label_colormap(49).colors[1:]
    colors = np.zeros((recording.n_cells + 1, 4), np.float32)
    colors[1:] = distinct[np.arange(recording.n_cells) % len(distinct)]
    colors[1:][~np.asarray(recording.accepted)] = 0
    return CyclicLabelColormap(colors=colors, background_value=0)


def cell_features(recording: Recording, **columns: np.ndarray) -> pd.DataFrame:
    """Features table as napari expects it: the row is the label, row 0 is background.

    Parameters
    ----------
    recording : Recording
    **columns : (cells,) arrays
        Scores and the like.

    Returns
    -------
    DataFrame, (cells + 1) rows
        "cell" has the id of the source program; what else that says about cells follows.
    """
    import pandas as pd

    said = {
        name: np.asarray(column, object if np.asarray(column).dtype.kind in "SU" else None)
        for name, column in recording.cells.items()
    }
    table = {
        "cell": np.asarray(recording.cell_ids),
        "accepted": np.asarray(recording.accepted),
        **said,
        **columns,
    }
    return pd.DataFrame({name: _after_background(np.asarray(v)) for name, v in table.items()})


def _after_background(column: np.ndarray) -> np.ndarray:
    """Column with an empty entry for the background before it."""
    if column.dtype.kind == "f":
        # napari knows only Python's own NaN, which double precision is
        return np.concatenate([[np.nan], column.astype(np.float64)])
    return np.concatenate([np.array([None], object), column.astype(object)])


def _activity_layer(recording: Recording, labels: np.ndarray, token: str) -> LayerTuple:
    traces = recording.traces
    on_disk = isinstance(traces, LazyTraces)
    sample = traces[:50] if on_disk else traces[:: max(1, recording.n_frames // 200)]
    low, high = np.percentile(sample, [20, 99.5])
    shown = {
        "name": "activity",
        "colormap": "inferno",
        "contrast_limits": (float(low), float(high) if high > low else float(low) + 1),
        "visible": False,
        "rgb": False,
        "axis_labels": ("frame", "plane", "y", "x") if labels.ndim == 3 else ("frame", "y", "x"),
        "metadata": metadata("activity", recording, token),
    }
    return CellMovie(traces, labels), shown, "image"


def add_missing(
    viewer: napari.Viewer,
    opened: Opened,
    layers: Sequence[LayerTuple] | None = None,
) -> None:
    """Add those of the layers of a recording that are not in the viewer.

    `layers` are those of `recording_layers`, where they were made already.
    """
    from napari.layers import Layer

    there = {shown_by(layer.metadata) for layer in layers_of(viewer, opened)}
    for values, arguments, kind in layers or recording_layers(opened.recording, token=opened.token):
        layer = Layer.create(values, arguments, kind)
        if shown_by(layer.metadata) not in there:
            viewer.layers.insert(_place_of(layer, viewer, opened), layer)


def _place_of(layer: Layer, viewer: napari.Viewer, opened: Opened) -> int:
    """Where a layer belongs: below those that lie on the background."""
    above = [other for other in layers_of(viewer, opened) if _height(other) > _height(layer)]
    return viewer.layers.index(above[0]) if above else len(viewer.layers)


def _height(layer: Layer) -> int:
    role = role_of(layer)
    return FROM_BELOW.index(role) if role in FROM_BELOW else len(FROM_BELOW)


def bring_up_to_date(viewer: napari.Viewer, opened: Opened) -> None:
    """Update the layers after a change of the recording."""
    recording = opened.recording
    for layer in layers_of(viewer, opened):
        if role_of(layer) == "cells":
            layer.metadata[KEY]["value"] = recording
            layer.features = cell_features(recording)
            layer.colormap = _cell_colormap(recording)
        elif role_of(layer) == "activity":
            layer.data.values = recording.traces
            layer.refresh()
        elif role_of(layer) == "movie" and layer.data.movie is not recording.movie:
            viewer.layers.remove(layer)
    if recording.movie is not None:
        active = viewer.layers.selection.active
        add_missing(viewer, opened, [movie_layer(recording, opened.token)])
        viewer.layers.selection.active = active


def take_out(viewer: napari.Viewer, layers: Sequence[Layer]) -> None:
    """Take layers out of the viewer; they stay as they are."""
    visible = [layer.visible for layer in layers]
    # removing planes removes a slider, and napari then draws a half-removed layer and fails
    for layer in layers:
        layer.visible = False
    # one by one, napari would look for garbage after each, which takes 0.2 s
    with viewer.layers.batched_update():
        for layer in layers:
            viewer.layers.remove(layer)
    for layer, was_visible in zip(layers, visible, strict=True):
        layer.visible = was_visible


def put_back(viewer: napari.Viewer, layers: Sequence[Layer]) -> None:
    """Put layers back that were taken out, in their order, above those of others."""
    for layer in layers:
        viewer.add_layer(layer)
