"""Footprints given apart from the traces: label images and ImageJ ROIs."""

from __future__ import annotations

from typing import Any

from napari_xcebra.footprints import Footprints
from napari_xcebra.recording import InputError


def read_footprints(given: Any, n_cells: int) -> Footprints:
    """Footprints from a path, a label image or a napari Labels layer.

    Parameters
    ----------
    given : path or (height, width) integer array or object with such an array as `data`
    n_cells : int
        How many cells the traces have.
    """
    raise InputError(f"{given} cannot be read as footprints.")
