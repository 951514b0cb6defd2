"""Reads traces, masks and sparse matrices from HDF5 files, only as far as needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError
from napari_xcebra.io.hdf5.reading import check, dataset_at, open_hdf5
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import BLOCK_BYTES, LazyTraces

LARGEST_DENSE = 2**28
"""Values a matrix may have with its zeros."""


def sparse_matrix(value: Any, row: Any, ends: Any, shape: Any) -> scipy.sparse.csc_array:
    """Matrix stored column after column, as MATLAB and scipy (CSC) do.

    Parameters
    ----------
    value, row : (values,)
        Values that are not zero, and their rows.
    ends : (columns + 1,)
        0, then the number of values up to the end of each column.
    shape : (rows, columns)

    Raises
    ------
    ValueError
        If these do not belong together.
    """
    value, row, ends = (np.asarray(part).reshape(-1) for part in (value, row, ends))
    parts = (value, row.astype(np.int64), ends.astype(np.int64))
    found = scipy.sparse.csc_array(parts, shape=tuple(int(n) for n in np.ravel(shape)))
    found.check_format(full_check=True)
    return found


@dataclass(frozen=True, eq=False)
class Hdf5Traces(LazyTraces):
    """Traces in a dataset of an HDF5 file, which is open only while they are read.

    Parameters
    ----------
    path : Path
    name : str
        Of the dataset in the file.
    shape : (frames, cells)
    cells_first : bool
        Whether the dataset is (cells, frames).
    columns : (cells,) int or None
        Where in the dataset each cell is; None: in order.
    factor, offset : float
        Traces are ``factor * stored + offset``.
    """

    path: Path
    name: str
    # the property of the base class is a field here, so that looking at it opens no file
    shape: tuple[int, int] = (0, 0)
    cells_first: bool = False
    columns: np.ndarray | None = None
    factor: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(
        cls,
        dataset: h5py.Dataset,
        *,
        cells_first: bool,
        columns: np.ndarray | None = None,
        factor: float = 1.0,
        offset: float = 0.0,
    ) -> Hdf5Traces:
        """Traces of a dataset; only its header is read."""
        check(dataset)
        where = f"{dataset.file.filename}: {dataset.name}"
        if dataset.ndim not in (1, 2) or dataset.dtype.kind not in "biuf":
            raise InputError(
                f"{where} has shape {dataset.shape} and type {dataset.dtype}: numbers, frames × "
                "cells, are needed."
            )
        long, wide = (*dataset.shape, 1)[:2]
        if dataset.ndim == 2 and cells_first:
            long, wide = wide, long
        if columns is not None:
            if len(columns) and not (0 <= columns.min() and columns.max() < wide):
                raise InputError(f"{where} has {wide} cells, but number {columns.max()} is used.")
            wide = len(columns)
        if not long or not wide:
            raise InputError(
                f"{where} has {long} frames and {wide} cells: at least one of each is needed."
            )
        name, path = str(dataset.name), Path(dataset.file.filename)
        return cls(path, name, (long, wide), cells_first, columns, factor, offset)

    def turned(self) -> Hdf5Traces:
        """The same with frames and cells swapped."""
        return replace(self, shape=self.shape[::-1], cells_first=not self.cells_first)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        pick = slice(None)
        if self.columns is not None:
            wanted = self.columns[cells]
            if not len(wanted):
                return np.zeros((frames.stop - frames.start, 0), np.float32)
            cells = slice(int(wanted.min()), int(wanted.max()) + 1)
            pick = wanted - cells.start
        with open_hdf5(self.path) as file:
            dataset = dataset_at(file, self.name)
            if dataset is None:
                raise InputError(f"{self.path} no longer has {self.name}.")
            if dataset.ndim == 1:
                part = dataset[frames][:, None][:, cells]
            else:
                part = dataset[cells, frames].T if self.cells_first else dataset[frames, cells]
            block = np.array(part[:, pick], np.float32)
            if self.factor != 1 or self.offset != 0:
                block = block * np.float32(self.factor) + np.float32(self.offset)
        if block.shape[0] != frames.stop - frames.start:
            raise InputError(f"{self.path} has changed since it was opened: open it again.")
        return block


def footprints_of_masks(
    masks: h5py.Dataset, cells: Sequence[int] | np.ndarray | None = None, *, turned: bool
) -> Footprints:
    """Footprints of a stack of images, one per cell, read some cells at a time.

    Parameters
    ----------
    masks : dataset of (cells, height, width), or (cells, width, height) if `turned`
        Weights; a pixel that is not above zero does not belong to the cell. A further axis, at the
        end, is that of planes.
    cells : sequence of int, optional
        Which of the images, in this order.
    turned : bool
        Whether columns come before rows, as in a file of MATLAB.
    """
    check(masks)
    if masks.ndim not in (3, 4) or masks.dtype.kind not in "biuf":
        raise InputError(
            f"{masks.file.filename}: {masks.name} has shape {masks.shape} and type {masks.dtype}: "
            "one image of numbers per cell is needed."
        )
    cells = np.arange(len(masks)) if cells is None else np.asarray(cells, np.int64)
    height, width, *planes = (int(n) for n in masks.shape[1:])
    pixels = math.prod((height, width, *planes))
    step = max(1, BLOCK_BYTES // max(1, pixels * masks.dtype.itemsize))
    cell, indices, weight = [], [], []
    for first in range(0, len(cells), step):
        wanted = cells[first : first + step]
        some = masks[int(wanted.min()) : int(wanted.max()) + 1] if _near(wanted) else None
        for i, place in enumerate(wanted, first):
            mask = masks[int(place)] if some is None else some[place - wanted.min()]
            own = np.nonzero(mask > 0)
            cell.append(np.full(len(own[0]), i, np.int32))
            indices.append(np.array(own, np.int32))
            weight.append(mask[own].astype(np.float32))
    row, column, *plane = np.concatenate(indices, axis=1)
    if turned:
        row, column, height, width = column, row, width, height
    shape = (*planes, height, width)
    where = np.concatenate(cell), row, column, np.concatenate(weight)
    return Footprints(shape, *where, plane[0] if plane else None)


def turned(footprints: Footprints) -> Footprints:
    """Footprints with rows and columns swapped."""
    *planes, height, width = footprints.shape
    return replace(
        footprints,
        shape=(*planes, width, height),
        row=footprints.column,
        column=footprints.row,
    )


def _near(cells: np.ndarray) -> bool:
    """Whether all from the first to the last can be read at once without waste."""
    return int(cells.max()) - int(cells.min()) < 2 * len(cells)
