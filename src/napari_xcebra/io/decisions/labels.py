"""The accepted cells as a label image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording


def accepted_labels(recording: Recording, accepted: np.ndarray) -> np.ndarray:
    """Label image of the accepted cells alone.

    Labels are those of the whole recording (the cell at position i has i + 1), so that they can be
    compared; pixels that a rejected ROI shares with an accepted cell belong to the cell.

    Parameters
    ----------
    recording : Recording
        With footprints.
    accepted : (cells,) bool

    Returns
    -------
    (height, width) or (planes, height, width) uint16, or int32 past 65,534 cells
    """
    footprints = recording.footprints
    if footprints is None:
        raise InputError("The recording has no footprints: there is nothing to draw.")
    own = np.asarray(accepted, bool)[footprints.cell]
    kept = {
        name: getattr(footprints, name)[own]
        for name in ("cell", "row", "column", "weight", "plane")
        if getattr(footprints, name) is not None
    }
    return replace(footprints, **kept).label_image()
