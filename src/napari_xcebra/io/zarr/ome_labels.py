"""Reads label images of OME-Zarr, in versions 2 and 3 of zarr."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.zarr.ome import (
    axes_named,
    finest_level,
    multiscale,
    of_ome,
    pixel_size_of,
)
from napari_xcebra.io.zarr.version3 import is_any_array, stored_in

LARGEST = 2**30
"""Bytes of a label image."""


def read_ome_labels(path: Path) -> tuple[np.ndarray, float | None]:
    """Labels, (height, width) or (planes, height, width), and micrometres per pixel if known.

    Parameters
    ----------
    path : Path
        An image with labels in it (``labels/cells``), one label image, or an array.
    """
    place = _label_image(path)
    about = multiscale(place)
    array = place
    if about is not None:
        level = finest_level(about)
        if level is None:
            raise InputError(f"{place} does not say where its label image lies.")
        array = place / level
    if not is_any_array(array):
        raise InputError(f"{path} has no label image: one of OME-Zarr, or a zarr array, is needed.")
    stored = stored_in(array, path)
    if stored.dtype.kind not in "biu" or np.prod(stored.shape) * stored.dtype.itemsize > LARGEST:
        raise InputError(
            f"{array} has the shape {stored.shape} and type {stored.dtype}: a label image of whole "
            "numbers is needed."
        )
    labels = stored.read()
    while labels.ndim > 2 and labels.shape[0] == 1:
        labels = labels[0]
    size = None
    if about is not None and (axes := axes_named(about)):
        size = pixel_size_of(about, axes)
    return labels, size


def _label_image(path: Path) -> Path:
    """The only label image in the labels of an image; else the path itself."""
    folder = path / "labels"
    if not folder.is_dir():
        return path
    listed = of_ome(folder).get("labels")
    names = [str(name) for name in listed] if isinstance(listed, list) else []
    names = [name for name in names if name and ".." not in name and (folder / name).is_dir()]
    if len(names) != 1:
        told = ", ".join(names) or "none"
        raise InputError(f"{path} has these label images: {told}. Choose the folder of one.")
    return folder / names[0]
