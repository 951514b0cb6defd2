"""Sample data for napari's File menu."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_xcebra.simulate import field

CELLS = 150
# The picture is steady after a minute of frames; a longer recording would only open slower.
FRAMES = 600


def imaged_field() -> list[tuple[np.ndarray, dict[str, Any], str]]:
    """Simulate an imaged field of view and show its mean image with the cells on top.

    Returns
    -------
    layers : list of (array, layer arguments, layer type)
        An Image layer, (height, width) float32, and a Labels layer of the same shape with
        cells numbered 1..N.
    """
    recording = field(cells=CELLS, frames=FRAMES, seed=0).recording
    assert recording.footprints is not None  # a simulated field always knows where its cells are
    return [
        (recording.images["mean"], {"name": "mean image", "colormap": "gray"}, "image"),
        (recording.footprints.label_image(), {"name": "cells", "opacity": 0.5}, "labels"),
    ]
