"""Paints a map from a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from napari_xcebra.widgets.layers.scores import score_layer
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari
    from napari.layers import Labels

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.recording import Recording


def paint(
    viewer: napari.Viewer,
    recording: Recording,
    attribution: Attribution,
    factors: Sequence[str] | None = None,
) -> list[Labels]:
    """Add the recording's images and one painted Labels layer per factor to a viewer.

    Parameters
    ----------
    viewer : napari.Viewer
    recording : Recording
    attribution : Attribution
    factors : sequence of str, optional
        All, if not given.

    Returns
    -------
    list of Labels
        Those of the factors; the first is shown, the others are hidden.
    """
    token = services_of(viewer).state.show(recording).token
    layers = [
        score_layer(recording, attribution, factor, token=token)
        for factor in factors or attribution.factors
    ]
    for number, layer in enumerate(layers):
        layer.visible = number == 0
        viewer.add_layer(layer)
    return layers
