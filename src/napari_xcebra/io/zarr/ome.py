"""Reads what OME-Zarr says of an image: its levels, its axes, and the size of its pixels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from napari_xcebra.io.pixel_size import judged, micrometres
from napari_xcebra.io.zarr.version3 import attributes_of

LETTERS = {
    **{"t": "t", "time": "t", "frame": "t", "frames": "t"},
    **{"c": "c", "channel": "c", "z": "z", "plane": "z", "depth": "z"},
    **{"y": "y", "height": "y", "row": "y", "x": "x", "width": "x", "column": "x"},
}
"""What axes are called, and what they are."""


def of_ome(folder: Path) -> dict[str, Any]:
    """What a folder says of itself; later versions keep what is of OME apart."""
    attributes = attributes_of(folder)
    own = attributes.get("ome")
    return own if isinstance(own, dict) else attributes


def multiscale(path: Path) -> Mapping[str, Any] | None:
    """What OME says of an image, if it is one."""
    scales = of_ome(path).get("multiscales")
    found = scales[0] if isinstance(scales, list) and scales else None
    return found if isinstance(found, dict) else None


def finest_level(about: Mapping[str, Any]) -> str | None:
    """Where in its folder the pixels of an image lie at full size; None if it does not say."""
    levels = about.get("datasets")
    first = levels[0] if isinstance(levels, list) and levels else None
    named = first.get("path") if isinstance(first, dict) else None
    # a level lies in the image itself
    inside = isinstance(named, str) and not {"..", ""} & set(named.split("/"))
    return named if inside else None


def axes_named(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Letters of the axes that OME names; empty if it names none."""
    named = about.get("axes")
    if not isinstance(named, list):
        return ()
    names = [axis.get("name") if isinstance(axis, dict) else axis for axis in named]
    return tuple(LETTERS.get(str(name).lower(), "?") for name in names)


def pixel_size_of(about: Mapping[str, Any], axes: tuple[str, ...]) -> float | None:
    """Micrometres per pixel, where OME says so."""
    try:
        unit = micrometres(about["axes"][axes.index("x")].get("unit"))
        changes = about["datasets"][0]["coordinateTransformations"]
        scale = next(each["scale"] for each in changes if each.get("type") == "scale")
        width, height = (float(scale[axes.index(axis)]) for axis in "xy")
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration):
        return None
    return judged(width * unit, height * unit)[0] if unit else None
