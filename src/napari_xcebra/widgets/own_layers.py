"""The layers of an opened recording in a viewer: added, found, brought up to date and removed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from napari_xcebra.widgets.layers import (
    KEY,
    LayerTuple,
    cell_colormap,
    cell_features,
    recording_layers,
    role_of,
    shown_by,
)

if TYPE_CHECKING:
    import napari
    from napari.layers import Layer

    from napari_xcebra.sessions import Opened


def layers_of(viewer: napari.Viewer, opened: Opened) -> list[Layer]:
    """Layers that belong to a recording, whatever they are called by now."""
    return [
        layer
        for layer in viewer.layers
        if role_of(layer) and layer.metadata[KEY].get("token") == opened.token
    ]


def add_missing(
    viewer: napari.Viewer,
    opened: Opened,
    layers: Sequence[LayerTuple] | None = None,
    prefix: str = "",
) -> None:
    """Add those of the images, activity and cells of a recording that are not in the viewer.

    Parameters
    ----------
    viewer : napari.Viewer
    opened : Opened
    layers : sequence of tuples, optional
        Those of `recording_layers`, where they were made already.
    prefix : str
        Put before their names.
    """
    from napari.layers import Layer

    there = {shown_by(layer) for layer in layers_of(viewer, opened)}
    for values, arguments, kind in layers or recording_layers(opened.recording, token=opened.token):
        layer = Layer.create(values, arguments, kind)
        if shown_by(layer) not in there:
            layer.name = prefix + layer.name
            viewer.add_layer(layer)


def put_before_names(viewer: napari.Viewer, opened: Opened, prefix: str) -> None:
    """Name layers that somebody else added as `add_missing` would have."""
    for layer in layers_of(viewer, opened):
        # napari numbers names that are taken
        layer.name = prefix + re.sub(r" \[\d+\]$", "", layer.name)


def bring_up_to_date(viewer: napari.Viewer, opened: Opened) -> None:
    """Show the cells and traces that the recording has by now."""
    recording = opened.recording
    for layer in layers_of(viewer, opened):
        if role_of(layer) == "cells":
            layer.metadata[KEY]["value"] = recording
            layer.features = cell_features(recording)
            layer.colormap = cell_colormap(recording)
        elif role_of(layer) == "activity":
            layer.data.values = recording.traces
            layer.refresh()


def remove(viewer: napari.Viewer, opened: Opened) -> None:
    """Take all layers of a recording out of the viewer."""
    layers = layers_of(viewer, opened)
    # planes that go take a slider with them: napari draws at once, and dies of a layer that is half
    # removed
    for layer in layers:
        layer.visible = False
    # one by one, napari would look for garbage after each, which takes 0.2 s
    with viewer.layers.batched_update():
        for layer in layers:
            viewer.layers.remove(layer)
