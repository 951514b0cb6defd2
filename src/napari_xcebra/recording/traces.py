"""Traces that stay on disk until they are read.

A recording of 10,000 cells × 100,000 frames has 4 GB of traces. The classes here behave as a
(frames, cells) float32 array when indexed, and read only what is asked for. They can be pickled
at no cost, since they carry paths instead of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError
from napari_xcebra.recording.stored import StoredMatrix, changed_since

IN_MEMORY = 512 * 2**20
"""Traces up to this many bytes are read at once and checked; larger ones stay on disk."""
BLOCK_BYTES = 64 * 2**20
"""Read at a time when all traces are read."""
PAGE_OF_PARAMETERS = 2**20
"""Bytes up to which an array is a parameter of traces, such as an order of cells."""
GAP = 64
"""Up to this many unwanted frames or cells are read along with those around them."""


class LazyTraces:
    """Behaves like a (frames, cells) float32 array; subclasses say how to read a block."""

    dtype = np.dtype(np.float32)
    ndim = 2

    @property
    def lie_by_frame(self) -> bool:
        """Whether a frame's cells lie beside each other, so that single frames are read quickly."""
        return False

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        raise NotImplementedError

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32; both slices have a start, a stop, and no step."""
        raise NotImplementedError

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Files that they are in; none if that is not known, as in a folder of chunks."""
        found = tuple(_files_in(self))
        return found if all(path.is_file() for path in found) else ()

    @cached_property
    def stamp(self) -> str:
        """Names, sizes and times of modification of the files, when it was first asked for.

        It travels with the traces to other processes; empty if `files` is.
        """
        return f"{_parameters_of(self)} {self._written}" if self.files else ""

    @cached_property
    def _written(self) -> list[tuple[str, int, int]]:
        return self._written_by_now()

    def _written_by_now(self) -> list[tuple[str, int, int]]:
        try:
            seen = [(str(path.absolute()), path.stat()) for path in self.files]
        except OSError as error:
            raise changed_since(self.files[0]) from error
        return [(name, about.st_size, about.st_mtime_ns) for name, about in seen]

    def check_unchanged(self) -> None:
        """Raise a sentence if a file was written to since the recording was opened."""
        if self._written_by_now() != self._written:
            raise changed_since(self.files[0])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        """As of an array."""
        self.check_unchanged()
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) == 3:
            parts = tuple(part for part in parts if part is not Ellipsis)
        if len(parts) > 2 or any(part is None for part in parts):
            raise IndexError("traces have two axes, frames and cells")
        parts = tuple(slice(None) if part is Ellipsis else part for part in parts)
        rows, columns = (*parts, slice(None))[:2]
        frames, cells = np.arange(self.shape[0])[rows], np.arange(self.shape[1])[columns]
        if frames.ndim and cells.ndim and not {type(rows), type(columns)} & {slice}:
            frames, cells = np.broadcast_arrays(frames, cells)
            found = self._at(frames, cells)
        else:
            found = self._within(frames, cells)
            frames = frames.reshape(frames.shape + (1,) * cells.ndim)
            frames, cells = np.broadcast_arrays(frames, cells)
        if not np.isfinite(found).all():
            where = tuple(np.argwhere(~np.isfinite(found))[0])
            raise InputError(
                f"The trace in column {cells[where]} is NaN or infinite at frame {frames[where]}: "
                "finite numbers are needed; interpolate the gaps or leave the cell or the frame "
                "out."
            )
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("traces on disk cannot become an array without a copy")
        whole = np.ascontiguousarray(self[:])
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def cell_blocks(self) -> Iterator[slice]:
        """Runs of cells, few enough to be read with all their frames."""
        frames, cells = self.shape
        step = _cells_at_once(frames)
        for first in range(0, cells, step):
            yield slice(first, min(first + step, cells))

    def _within(self, frames: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Every cell at every frame, numbered in any order: (*frames, *cells) float32."""
        whole = _all_between(frames) and _all_between(cells)
        if whole and len(cells) <= _cells_at_once(len(frames)):
            return self.block(_extent(frames)[0], _extent(cells)[0])
        rows, back = np.unique(frames, return_inverse=True)
        columns, across = np.unique(cells, return_inverse=True)
        found = np.empty((len(rows), len(columns)), np.float32)
        for here in _stretches(rows):
            most = _cells_at_once(int(rows[here.stop - 1] - rows[here.start]) + 1)
            for there in _stretches(columns, most):
                (stretch, inside), (run, own) = _extent(rows[here]), _extent(columns[there])
                found[here, there] = self.block(stretch, run)[inside][:, own]
        if not np.array_equal(frames, rows):
            found = found[back.ravel()]
        if not np.array_equal(cells, columns):
            found = found[:, across.ravel()]
        return found.reshape(frames.shape + cells.shape)

    def _at(self, frames: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """One value for each pair of frame and cell; all three arrays have one shape."""
        found = np.empty(cells.shape, np.float32)
        for cell in np.unique(cells):
            here = cells == cell
            found[here] = self._within(frames[here], np.array(cell))
        return found


class StoredTraces(LazyTraces):
    """Traces that lie in a file as plain numbers; subclasses say where."""

    @cached_property
    def _stored(self) -> tuple[StoredMatrix, bool]:
        """Where the numbers are, and whether its rows are frames."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_stored"}

    @property
    def lie_by_frame(self) -> bool:
        """Whether the file stores one frame after the other."""
        return self._stored[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        matrix, by_frame = self._stored
        rows, columns = matrix.shape
        return (rows, columns) if by_frame else (columns, rows)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        matrix, by_frame = self._stored
        return matrix.read(frames, cells) if by_frame else matrix.read(cells, frames).T


@dataclass(frozen=True)
class NpyTraces(StoredTraces):
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
    def _stored(self) -> tuple[StoredMatrix, bool]:
        matrix, turned = StoredMatrix.of_npy(self.path)
        return matrix, turned == self.cells_first


@dataclass(frozen=True)
class JoinedTraces(LazyTraces):
    """Cells of several parts side by side, cut to the shortest."""

    parts: tuple[LazyTraces | np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return min(part.shape[0] for part in self.parts), sum(p.shape[1] for p in self.parts)

    @property
    def lie_by_frame(self) -> bool:
        """Whether those of all parts do."""
        return all(lie_by_frame(part) for part in self.parts)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        found, first = [np.empty((frames.stop - frames.start, 0), np.float32)], 0
        for part in self.parts:
            here = slice(max(cells.start - first, 0), min(cells.stop - first, part.shape[1]))
            if here.start < here.stop:
                found.append(read_block(part, frames, here))
            first += part.shape[1]
        return np.concatenate(found, axis=1)


@dataclass(frozen=True)
class MergedTraces(LazyTraces):
    """Traces of which some are mixed from several; the others stay as they are.

    Parameters
    ----------
    traces : LazyTraces or (frames, cells) array
    mixed : tuple of (int, tuple of int, tuple of float)
        Position of a cell, and those that its trace is mixed from, with their weights.
    """

    traces: LazyTraces | np.ndarray
    mixed: tuple[tuple[int, tuple[int, ...], tuple[float, ...]], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        frames, cells = self.traces.shape
        return frames, cells

    @property
    def lie_by_frame(self) -> bool:
        """Whether single frames are read quickly."""
        return lie_by_frame(self.traces)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        found = read_block(self.traces, frames, cells)
        for cell, parts, weights in self.mixed:
            if cells.start <= cell < cells.stop:
                columns = [read_block(self.traces, frames, slice(p, p + 1)) for p in parts]
                found[:, cell - cells.start] = np.concatenate(columns, axis=1) @ np.array(
                    weights, np.float32
                )
        return found


@dataclass(frozen=True)
class CorrectedTraces(LazyTraces):
    """Fluorescence minus a share of the neuropil around each cell.

    Constant traces stay as they are. suite2p writes them for ROIs that share every pixel with
    others; corrected, they would be inverted neuropil and look active.
    """

    fluorescence: LazyTraces | np.ndarray
    neuropil: LazyTraces | np.ndarray
    coefficient: float

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return self.fluorescence.shape

    @property
    def lie_by_frame(self) -> bool:
        """Whether both do."""
        return lie_by_frame(self.fluorescence) and lie_by_frame(self.neuropil)

    def block(self, frames: slice, cells: slice) -> np.ndarray:
        """(frames, cells) float32."""
        neuropil = read_block(self.neuropil, frames, cells)
        neuropil[:, self._are_constant(cells)] = 0
        with np.errstate(all="ignore"):  # what is not finite is reported where it is used
            neuropil *= np.float32(self.coefficient)
            return read_block(self.fluorescence, frames, cells) - neuropil

    def _are_constant(self, cells: slice) -> np.ndarray:
        """(cells,) bool; a few frames rule out most cells, which saves reading them whole."""
        if (self._constant[cells] < 0).any():
            some = np.linspace(0, self.shape[0] - 1, 8).astype(int).tolist()
            probe = [read_block(self.fluorescence, slice(f, f + 1), cells)[0] for f in some]
            constant = (np.array(probe) == probe[0]).all(axis=0)
            for cell in np.flatnonzero(constant) + cells.start:
                own = slice(int(cell), int(cell) + 1)
                trace = read_block(self.fluorescence, slice(0, self.shape[0]), own)
                constant[cell - cells.start] = (trace == trace[0]).all()
            self._constant[cells] = constant
        return self._constant[cells] == 1

    @cached_property
    def _constant(self) -> np.ndarray:
        """(cells,) int8, 1 for constant cells, -1 where not known yet."""
        return np.full(self.shape[1], -1, np.int8)


def lie_by_frame(traces: LazyTraces | np.ndarray) -> bool:
    """Whether single frames of them are read quickly."""
    if isinstance(traces, LazyTraces):
        return traces.lie_by_frame
    return bool(traces.flags.c_contiguous)


def in_blocks(traces: LazyTraces | np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of cells, unchecked: a slice of cells, and all their frames (frames, cells)."""
    frames, cells = traces.shape
    step = _cells_at_once(frames)
    for first in range(0, cells, step):
        some = slice(first, min(first + step, cells))
        yield some, read_block(traces, slice(0, frames), some)


def blocks_as_stored(
    traces: LazyTraces | np.ndarray,
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """All traces once, unchecked, in blocks of frames and cells that are quick to read."""
    frames, cells = traces.shape
    if not isinstance(traces, LazyTraces):
        yield slice(0, frames), slice(0, cells), traces
    elif not traces.lie_by_frame:
        for some, block in in_blocks(traces):
            yield slice(0, frames), some, block
    else:
        step = max(1, BLOCK_BYTES // (32 * cells))
        for first in range(0, frames, step):
            stretch = slice(first, min(first + step, frames))
            yield stretch, slice(0, cells), read_block(traces, stretch, slice(0, cells))


def _files_in(value: Any) -> Iterator[Path]:
    """Paths among the parameters of traces, and of those that they are computed from."""
    if isinstance(value, Path):
        yield value
    elif is_dataclass(value):
        for each in fields(value):
            yield from _files_in(getattr(value, each.name))
    elif isinstance(value, tuple):
        yield from chain.from_iterable(map(_files_in, value))
    elif isinstance(value, np.ndarray) and value.nbytes > PAGE_OF_PARAMETERS:
        yield Path()  # traces in memory: no file tells whether they are the same


def _parameters_of(value: Any) -> str:
    """Parameters of traces in words, without paths."""
    if isinstance(value, Path):
        return ""
    if is_dataclass(value):
        parts = [_parameters_of(getattr(value, each.name)) for each in fields(value)]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, tuple):
        return f"({', '.join(map(_parameters_of, value))})"
    return repr(value)


def read_block(part: LazyTraces | np.ndarray, frames: slice, cells: slice) -> np.ndarray:
    """(frames, cells) float32 of traces in memory or on disk, unchecked."""
    if isinstance(part, LazyTraces):
        part.check_unchanged()  # it may have been opened in another process
        return part.block(frames, cells)
    return _as_float32(part[frames, cells])


def _as_float32(values: np.ndarray) -> np.ndarray:
    """A copy; numbers that float32 cannot hold become infinite."""
    with np.errstate(all="ignore"):
        return np.array(values, np.float32)


def _cells_at_once(frames: int) -> int:
    """How many cells to read with that many frames."""
    return max(1, BLOCK_BYTES // (4 * max(frames, 1)))


def _stretches(numbers: np.ndarray, most: int | None = None) -> Iterator[slice]:
    """Parts of ascending numbers that lie close together, none wider than `most`."""
    edges = np.flatnonzero(np.diff(numbers) > GAP) + 1
    for first, stop in pairwise([0, *edges.tolist(), len(numbers)]):
        while first < stop:
            end = stop if most is None else int(np.searchsorted(numbers, numbers[first] + most))
            yield slice(first, min(end, stop))
            first = end


def _all_between(numbers: np.ndarray) -> bool:
    """Whether they are every number from the first to the last, in order."""
    return numbers.ndim == 1 and len(numbers) > 0 and bool((np.diff(numbers) == 1).all())


def _extent(numbers: np.ndarray) -> tuple[slice, Any]:
    """The stretch from the first to the last of ascending numbers, and their index within it."""
    first, last = int(numbers[0]), int(numbers[-1])
    dense = last - first + 1 == len(numbers)
    return slice(first, last + 1), slice(None) if dense else numbers - first


COUNT = 5
APART = 3.0
"""Seconds between two transients at least."""
SMOOTHING = 0.2
"""Seconds over which a trace is averaged before peaks are looked for."""
BLOCK = 30.0
"""Seconds whose median is the baseline there."""
ABOVE_NOISE = 4.0
"""Standard deviations of the noise that a transient rises above the baseline."""
FALL_COUNT, FALL_SECONDS = 30, 3.0
"""Transients of a cell, and seconds after each, from which their fall is measured."""
SILENT, ISOLATED = 0.8, 0.5
"""Share of the values of events that are 0, and of the others that follow on a 0, at least."""
SOME_FRAMES, SOME_CELLS, NEIGHBOURS = 20_000, 100, 10
"""Frames and cells from which the nature of traces is told, and how many of these lie together."""


def are_events(traces: Any) -> bool:
    """Whether traces are events, single or counted, rather than a signal that decays.

    Parameters
    ----------
    traces : (frames, cells) array or LazyTraces
    """
    block = _some(traces)
    if not np.isfinite(block).all() or block.min(initial=0.0) < 0:
        return False
    above = block > 0
    if not above.any() or (~above).mean() < SILENT:
        return False
    alone = above[1:] & ~above[:-1]
    return bool(alone.sum() >= ISOLATED * max(above[1:].sum(), 1))


def half_fall(traces: Any, rate: float) -> float | None:
    """Seconds in which the largest transients usually fall to half; None without any.

    Activity that goes on prolongs it, so it is an upper bound of what the indicator does.

    Parameters
    ----------
    traces : (frames, cells) array or LazyTraces
    rate : float
        Frames per second.
    """
    length = max(2, round(FALL_SECONDS * rate))
    found = []
    for trace in _some(traces).T:
        peaks = largest_transients(trace, rate, FALL_COUNT)
        peaks = peaks[peaks + length <= len(trace)]
        if len(peaks) < 3:
            continue
        course = np.median([trace[peak : peak + length] for peak in peaks], axis=0)
        course = course - min(float(np.median(trace)), course.min())
        fallen = np.flatnonzero(course <= course[0] / 2)
        if len(fallen):
            found.append(fallen[0] / rate)
    return float(np.median(found)) if found else None


def _some(traces: Any) -> np.ndarray:
    """Cells spread over the recording, at its first frames: (frames, cells) float64.

    On disk, where neighbours cost as much as one, they are groups of neighbours.
    """
    frames, cells = traces.shape
    wide = NEIGHBOURS if isinstance(traces, LazyTraces) and cells > SOME_CELLS else 1
    few = np.unique(np.linspace(0, cells - wide, min(cells, SOME_CELLS) // wide).astype(np.int64))
    stretch = slice(0, min(frames, SOME_FRAMES))
    columns = [read_block(traces, stretch, slice(int(c), int(c) + wide)) for c in few]
    return np.concatenate(columns, axis=1).astype(np.float64)


def largest_transients(trace: np.ndarray, rate: float, count: int = COUNT) -> np.ndarray:
    """Frames at which the largest transients of a trace peak, the largest first.

    Slow drifts are taken out, and a transient rises well above the noise; one that is close to a
    larger one does not count.

    Parameters
    ----------
    trace : (frames,) float
        Any signal that rises with activity; frames that are not known are NaN.
    rate : float
        Frames per second.
    count : int
        How many at most.

    Returns
    -------
    (n,) int64
    """
    values = np.asarray(trace, np.float64)
    known = np.isfinite(values)
    if known.sum() < 3:
        return np.zeros(0, np.int64)
    values = np.where(known, values, np.median(values[known]))
    smooth = scipy.ndimage.uniform_filter1d(values, max(1, round(SMOOTHING * rate)), mode="mirror")
    rise = smooth - _baseline(smooth, max(3, round(BLOCK * rate)))
    noise = 1.4826 * np.median(np.abs(rise - np.median(rise)))
    # where most frames are exactly at the baseline, as in spikes, any rise counts
    least = max(ABOVE_NOISE * noise, 1e-6 * np.abs(rise).max(), np.finfo(float).tiny)
    padded = np.pad(rise, 1, constant_values=rise.min() - 1)  # peaks at either end count
    peaks, found = scipy.signal.find_peaks(
        padded, height=least, distance=max(1, round(APART * rate))
    )
    largest = np.argsort(-found["peak_heights"], kind="stable")[:count]
    return (peaks[largest] - 1).astype(np.int64)


def _baseline(values: np.ndarray, length: int) -> np.ndarray:
    """(frames,) median of each block, with straight lines between their middles."""
    blocks = np.array_split(np.arange(len(values)), max(1, len(values) // length))
    medians = [np.median(values[block]) for block in blocks]
    return np.interp(np.arange(len(values)), [block.mean() for block in blocks], medians)


_AXES = {
    "raw": "F (a.u.)",
    "corrected": "F (a.u.)",
    "dff": "ΔF/F",
    "denoised": "denoised",
    "events": "events",
    "zscored": "z score",
}
"""Short enough to stand beside a low plot."""
_UNITS = {"dff": "ΔF/F", "zscored": "SD", "": ""}


@dataclass(frozen=True)
class Origin:
    """What a recording was read from.

    Parameters
    ----------
    format : str
        Format of the file, in words; empty if it was not read from one.
    signal : str
        Kind of the traces, one of `TraceKind`; empty if unknown.
    traces : str
        How the traces were computed, in words.
    without_movie : str
        Why there is no movie, in words; empty if there is one, or none was looked for.
    """

    format: str = ""
    signal: str = ""
    traces: str = ""
    without_movie: str = ""

    @property
    def axis(self) -> str:
        """What an axis with values of the traces is called."""
        return _AXES.get(self.signal, "activity")

    @property
    def unit(self) -> str:
        """Unit of the traces, for a scale bar; empty if nothing is known about them."""
        return _UNITS.get(self.signal, "a.u.")

    def notes(self, name: str) -> tuple[str, str]:
        """The sentences on a file of that name and on its traces."""
        return f"Opened {name} as {self.format}.", f"Traces are {self.traces}."
