"""Makes the napari layers of a recording, updates and removes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from napari.utils.colormaps import CyclicLabelColormap, label_colormap

from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints, drawn_labels
from napari_xcebra.recording.traces import LazyTraces
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.movie import CellMovie, movie_layer
from napari_xcebra.widgets.layers.outlines import others_layer
from napari_xcebra.widgets.state.own_layers import (
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
    from napari.layers import Layer

    from napari_xcebra.workspace_file import Opened

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
        layers.append(others_layer(recording, footprints, token))
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
