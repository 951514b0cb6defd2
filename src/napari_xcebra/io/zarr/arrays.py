"""Reads all arrays of a zarr folder that no known program wrote, in versions 2 and 3."""

from __future__ import annotations

import math
import os
from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.io.arrays.roles import Arrays
from napari_xcebra.io.zarr.store import ZarrTraces
from napari_xcebra.io.zarr.version3 import is_any_array, stored_in
from napari_xcebra.recording.traces import IN_MEMORY

MOST = 1000
"""Arrays of a folder that are looked at."""


def is_zarr(path: Path) -> bool:
    """Whether a folder is a group or an array of zarr."""
    markers = (".zarray", ".zgroup", "zarr.json")
    return path.is_dir() and any((path / marker).is_file() for marker in markers)


def read_arrays(path: Path) -> Arrays:
    """Arrays of numbers by their place in the folder; a single one by the folder's name.

    What has two axes and is large stays on disk; what has more is left out then.
    """
    found = Arrays()
    for number, place in enumerate(_arrays(path)):
        if number == MOST:
            break
        try:
            stored = stored_in(place, path)
        except InputError:  # texts, and what is packed in a way that is not read
            if is_any_array(path):
                raise
            continue
        name = place.relative_to(path).as_posix() if place != path else path.stem
        found.axes[name] = stored.axes
        if math.prod(stored.shape) * stored.dtype.itemsize <= IN_MEMORY:
            stored.check_reach()
            found[name] = stored.read()
        elif len(stored.shape) == 2 and not stored.packed_by:
            found[name] = ZarrTraces(stored, cells_first=False)
    return found


def _arrays(path: Path) -> list[Path]:
    places = []
    for folder, inside, _ in os.walk(path):
        if is_any_array(Path(folder)):
            inside[:] = []  # chunks
            places.append(Path(folder))
        inside.sort()
    return places
