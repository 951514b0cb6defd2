"""Traces that stay on disk until they are looked at.

A recording of 10,000 cells × 100,000 frames has 4 GB of traces. The classes here behave as a
(frames, cells) float32 array when indexed, and read only what is asked for. They can be pickled
at no cost, since they carry paths instead of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError

BLOCK_BYTES = 64 * 2**20
"""Read at a time where everything is gone through."""


class LazyTraces:
    """What stands for a (frames, cells) float32 array; subclasses say how to read a block."""

    dtype = np.dtype(np.float32)
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        raise NotImplementedError

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32; both slices have a start, a stop, and no step."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        """As of an array: a slice, a number or an array of numbers for frames and for cells."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        frames, pick_rows = _extent(rows, self.shape[0])
        cells, pick_columns = _extent(columns, self.shape[1])
        block = self._checked(frames, cells)
        return block[pick_rows][..., pick_columns]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("traces on disk cannot become an array without a copy")
        whole = np.empty(self.shape, np.float32)
        for cells in self.cell_blocks():
            whole[:, cells] = self._checked(slice(0, self.shape[0]), cells)
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def cell_blocks(self) -> Iterator[slice]:
        """Runs of cells, few enough to be read with all their frames."""
        frames, cells = self.shape
        step = max(1, BLOCK_BYTES // (4 * max(frames, 1)))
        for first in range(0, cells, step):
            yield slice(first, min(first + step, cells))

    def _checked(self, frames: slice, cells: slice) -> np.ndarray:
        block = self.block(frames, cells)
        if not np.isfinite(block).all():
            where = np.argwhere(~np.isfinite(block))[0]
            raise InputError(
                f"The trace in column {cells.start + where[1]} is NaN or infinite at frame "
                f"{frames.start + where[0]}: finite numbers are needed; interpolate the gaps or "
                "leave the cell or the frame out."
            )
        return block


@dataclass(frozen=True)
class NpyTraces(LazyTraces):
    """Traces in a .npy file of plain numbers.

    Parameters
    ----------
    path : Path
    cells_first : bool
        Whether the file is (cells, frames), as suite2p writes it.
    """

    path: Path
    cells_first: bool

    @cached_property
    def _mapped(self) -> np.ndarray:
        mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return mapped.T if self.cells_first else mapped

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "cells_first": self.cells_first}

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self._mapped.shape

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        return np.array(self._mapped[frames, cells], np.float32)


@dataclass(frozen=True)
class JoinedTraces(LazyTraces):
    """Cells of several parts with the same frames, side by side."""

    parts: tuple[LazyTraces | np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        found, first = [], 0
        for part in self.parts:
            here = slice(max(cells.start - first, 0), min(cells.stop - first, part.shape[1]))
            if here.start < here.stop:
                found.append(read_block(part, frames, here))
            first += part.shape[1]
        return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class CorrectedTraces(LazyTraces):
    """Fluorescence less a share of the neuropil around each cell."""

    fluorescence: LazyTraces | np.ndarray
    neuropil: LazyTraces | np.ndarray
    coefficient: float

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.fluorescence.shape

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        neuropil = read_block(self.neuropil, frames, cells)
        neuropil *= np.float32(self.coefficient)
        return read_block(self.fluorescence, frames, cells) - neuropil


def in_blocks(traces: LazyTraces | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Cells by the block, unchecked: a slice of cells, and all their frames (frames, cells)."""
    every = slice(0, traces.shape[0])
    everything = [slice(0, traces.shape[1])]
    for cells in traces.cell_blocks() if isinstance(traces, LazyTraces) else everything:
        yield cells, read_block(traces, every, cells)


def read_block(part: LazyTraces | np.ndarray, frames: slice, cells: slice) -> np.ndarray:
    """(frames, cells) float32 of traces in memory or on disk, unchecked."""
    if isinstance(part, LazyTraces):
        return part.block(frames, cells)
    return np.array(part[frames, cells], np.float32)


def _extent(index: Any, length: int) -> tuple[slice, Any]:
    """The stretch that an index lies in, and the index within it."""
    if isinstance(index, slice):
        start, stop, step = index.indices(length)
        if step > 0:
            return slice(start, max(start, stop)), slice(None, None, step)
        index = np.arange(start, stop, step)
    index = np.asarray(index)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    if index.size == 0:
        return slice(0, 0), index.astype(np.int64)
    index = np.where(index < 0, index + length, index)
    first, last = int(index.min()), int(index.max())
    if first < 0 or last >= length:
        raise IndexError(f"index {last if last >= length else first} is out of 0 to {length - 1}")
    return slice(first, last + 1), (index - first)[()]
