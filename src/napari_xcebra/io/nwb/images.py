"""Background images in NWB files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import h5py
import numpy as np

from napari_xcebra.io.hdf5.reading import dataset_at, read
from napari_xcebra.io.nwb.walk import Typed, of_type
from napari_xcebra.recording import InputError

LARGEST = 2**28
"""Bytes of one image."""

_NAMES = (
    ("correlation", r"corr|^cn$"),
    ("enhanced", r"enh|meanimge"),
    ("mean", r"mean|average|avg"),
    ("max", r"max"),
)


class Picture(NamedTuple):
    """An image of the file, under the name that the program has for it, or its own."""

    name: str
    own_name: str
    pixels: np.ndarray


def pictures_in(file: h5py.File, objects: Iterable[Typed]) -> list[Picture]:
    """All still images but those that were shown to the animal, (height, width) float32."""
    turn = _columns_first(file)
    found = []
    for image in of_type(objects, "GrayscaleImage", "RGBImage", "RGBAImage", "Image"):
        if not isinstance(image.node, h5py.Dataset) or image.path.startswith("/stimulus/"):
            continue
        if image.node.dtype.kind not in "biuf" or image.node.ndim not in (2, 3):
            continue
        try:
            pixels = np.asarray(read(image.node, LARGEST))
        except InputError:
            continue
        if pixels.ndim == 3:
            pixels = pixels[..., :3].mean(axis=-1)
        filled = _filled(pixels)
        if filled is not None:
            found.append(Picture(_name(image), image.name, filled.T if turn else filled))
    return found


def with_names(pictures: Iterable[Picture], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Images of a field of view by name; the first keeps the short one."""
    images: dict[str, np.ndarray] = {}
    for picture in pictures:
        if picture.pixels.shape == shape:
            name = picture.own_name if picture.name in images else picture.name
            images.setdefault(name, picture.pixels)
    return images


def stacked(pictures: Iterable[Picture], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """(planes, height, width) of those names under which there is an image for each plane."""
    by_name: dict[str, list[np.ndarray]] = {}
    for picture in pictures:
        if picture.pixels.shape == shape[1:]:
            by_name.setdefault(picture.name, []).append(picture.pixels)
    return {name: np.stack(all_) for name, all_ in by_name.items() if len(all_) == shape[0]}


def _columns_first(file: h5py.File) -> bool:
    """Whether images are stored as the specification says, x before y.

    Few programs do so: neuroconv, and this one.
    """
    script = dataset_at(file, "general/source_script")
    text = "" if script is None else str(read(script)).lower()
    return "neuroconv" in text or "napari-xcebra" in text


def _name(image: Typed) -> str:
    for name, pattern in _NAMES:
        if re.search(pattern, image.name, re.IGNORECASE):
            return name
    return re.sub(r"_plane_?\d+$", "", image.name)


def _filled(pixels: np.ndarray) -> np.ndarray | None:
    """Image with its least value where it has none; None if it has no value at all."""
    with np.errstate(over="ignore"):
        pixels = pixels.astype(np.float32)
    known = np.isfinite(pixels)
    if not known.any():
        return None
    return np.where(known, pixels, pixels[known].min())
