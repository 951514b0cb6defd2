"""Reads the struct of a .mat file that holds an extraction, whichever version saved it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import h5py
import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.hdf5 import (
    Hdf5Traces,
    child,
    dataset_at,
    footprints_of_masks,
    group_at,
    has_signature,
    open_hdf5,
)
from napari_xcebra.io.containers.matlab import is_mat, matlab_array, read_mat, struct_fields
from napari_xcebra.io.extraction import finite_image
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import LazyTraces


class Struct(Protocol):
    """Fields of a struct; those of structs in it are named ``inner.field``."""

    def numbers(self, name: str) -> np.ndarray | None:
        """A field as MATLAB shows it; None if it is missing or holds no numbers."""

    def traces(self, name: str, *, cells_first: bool) -> LazyTraces | np.ndarray | None:
        """A field of frames × cells; or of cells × frames, as MATLAB shows it."""

    def footprints(self, name: str) -> Footprints | None:
        """A field of height × width × cells."""


def has_struct(path: Path, fields: tuple[str, ...]) -> bool:
    """Whether the file has a struct with all these fields."""
    if not path.is_file() or not is_mat(path):
        return False
    if not has_signature(path):
        return any(set(fields) <= set(names) for names in struct_fields(path).values())
    try:
        with open_hdf5(path) as file:
            return _group(file, fields) is not None
    except InputError:
        return False


@contextmanager
def open_struct(path: Path, fields: tuple[str, ...]) -> Iterator[Struct]:
    """The struct that has all these fields."""
    if has_signature(path):
        with open_hdf5(path) as file:
            group = _group(file, fields)
            if group is None:
                raise _missing(path, fields)
            yield Hdf5Struct(group)
        return
    names = [name for name, found in struct_fields(path).items() if set(fields) <= set(found)]
    if not names:
        raise _missing(path, fields)
    yield Mat5Struct(path, names[0], read_mat(path))


def images_of(
    struct: Struct, fields: Mapping[str, str], shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """Images of the struct with the shape of the field of view, (height, width) float32."""
    images = {}
    for name, field in fields.items():
        image = struct.numbers(field)
        filled = None if image is None or image.shape != shape else finite_image(image)
        if filled is not None:
            images[name] = filled
    return images


def _missing(path: Path, fields: tuple[str, ...]) -> InputError:
    return InputError(f"{path} has no struct with {' and '.join(fields)}, or it is damaged.")


def _group(file: h5py.File, fields: tuple[str, ...]) -> h5py.Group | None:
    for name in file:
        group = None if name.startswith("#") else group_at(file, name)
        if group is not None and all(child(group, field) is not None for field in fields):
            return group
    return None


@dataclass(frozen=True)
class Hdf5Struct:
    """A struct of MATLAB 7.3, where every array lies transposed."""

    group: h5py.Group

    def numbers(self, name: str) -> np.ndarray | None:
        """A field as MATLAB shows it."""
        dataset = dataset_at(self.group, name.replace(".", "/"))
        return None if dataset is None else matlab_array(dataset)

    def traces(self, name: str, *, cells_first: bool) -> LazyTraces | None:
        """A field of frames × cells, or cells × frames."""
        dataset = dataset_at(self.group, name)
        if dataset is None or dataset.dtype.kind not in "biuf" or dataset.ndim != 2:
            return None
        return Hdf5Traces.of(dataset, cells_first=not cells_first)

    def footprints(self, name: str) -> Footprints | None:
        """A field of height × width × cells."""
        dataset = dataset_at(self.group, name)
        if dataset is None or dataset.dtype.kind not in "biuf" or dataset.ndim != 3:
            return None
        return footprints_of_masks(dataset, turned=True)


@dataclass(frozen=True)
class Mat5Struct:
    """A struct of MATLAB 5, read already."""

    path: Path
    name: str
    arrays: Mapping[str, np.ndarray]

    def numbers(self, name: str) -> np.ndarray | None:
        """A field as MATLAB shows it."""
        return self.arrays.get(f"{self.name}.{name}")

    def traces(self, name: str, *, cells_first: bool) -> np.ndarray | None:
        """A field of frames × cells, or cells × frames."""
        found = self.numbers(name)
        if found is None or found.ndim != 2:
            return None
        return found.T if cells_first else found

    def footprints(self, name: str) -> Footprints | None:
        """A field of height × width × cells."""
        masks = self.numbers(name)
        if masks is not None and masks.ndim == 2:
            masks = masks[:, :, None]  # MATLAB drops the last axis of a single cell
        if masks is None or masks.ndim != 3:
            return None
        row, column, cell = (axis.astype(np.int32) for axis in np.nonzero(masks > 0))
        weight = masks[row, column, cell].astype(np.float32)
        return Footprints(masks.shape[:2], cell, row, column, weight)
