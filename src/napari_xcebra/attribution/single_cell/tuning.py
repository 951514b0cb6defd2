"""Computes tuning curves and maps: mean activity by what the animal does.

The oldest way of looking at a cell, against which any score must make sense. Frames that are
excluded, or at which a variable is unknown, are not used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.learn.data.labels import seconds_from_event
from napari_xcebra.recording import Kind, Recording
from napari_xcebra.recording.traces import in_blocks

CURVE_BINS = 24
MAP_BINS = 20
BLOCKS, FEWEST = 20, 5
"""Blocks of time for the error of a curve, and frames below which a bin is NaN."""
MOST_VALUES = 100
"""Most values of a discrete variable that a picture can show."""
Spacing = Literal["width", "occupancy"]


@dataclass(frozen=True)
class Column:
    """One column of a behaviour variable.

    Parameters
    ----------
    name : str
        Of the variable, or of one of its columns: see `Variable.column_names`.
    values : (frames,) float64
        NaN where it is unknown.
    kind : {"continuous", "circular", "discrete", "event"}
        Values of an event are the seconds from the nearest one, NaN far from any.
    unit : str
    period : float
        Full turn of a circular one.
    words : tuple of str
        What the values 0, 1, 2 … stand for, where they stand for words.
    """

    name: str
    values: np.ndarray
    kind: Kind = "continuous"
    unit: str = ""
    period: float = 2 * np.pi
    words: tuple[str, ...] = ()

    def called(self, value: float) -> str:
        """A value of a discrete column: its word if it has one, else the number."""
        known = value == int(value) and 0 <= value < len(self.words)
        return self.words[int(value)] if known else f"{value:g}"

    @property
    def title(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Bins:
    """A column cut into bins.

    Parameters
    ----------
    column : Column
    edges : (bins + 1,) float64
        Of a discrete column: halfway between integers, for the values in order.
    values : (bins,) float64
        Middle of each bin; of a discrete column its values.
    index : (frames,) int64
        Bin of each frame; −1 where the frame is not used.
    """

    column: Column
    edges: np.ndarray
    values: np.ndarray
    index: np.ndarray

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class TuningCurve:
    """Activity by bin of one column.

    Parameters
    ----------
    bins : Bins
    mean, error : (bins, cells) float64
        Mean activity and its standard error over contiguous blocks of time; NaN where the bin
        was visited too rarely.
    frames : (bins,) int64
        Occupancy.
    """

    bins: Bins
    mean: np.ndarray
    error: np.ndarray
    frames: np.ndarray


@dataclass(frozen=True)
class TuningMap:
    """Activity by bin of two columns.

    Parameters
    ----------
    across, up : Bins
    mean : (bins up, bins across, cells) float64
        NaN where the bin was not visited.
    frames : (bins up, bins across) int64
        Occupancy.
    """

    across: Bins
    up: Bins
    mean: np.ndarray
    frames: np.ndarray


Tuning = TuningCurve | TuningMap


def columns_of(recording: Recording, names: Sequence[str]) -> list[Column]:
    """Columns of some variables, one after the other; of an event, the time from it.

    Examples
    --------
    >>> recording = Recording.from_arrays(np.ones((5, 2)), 10.0, {"place": np.ones((5, 2))})
    >>> [column.name for column in columns_of(recording, ["place"])]
    ['x', 'y']
    """
    called = Counter(n for v in recording.behavior.values() for n in v.column_names)
    columns = []
    for variable in map(recording.variable, names):
        if variable.kind == "event":
            since = seconds_from_event(recording, variable)
            columns.append(Column(f"time from {variable.name}", since, "event", "s"))
            continue
        about = (variable.kind, variable.unit, variable.period, variable.words)
        own = variable.column_names
        if len(own) > 1 and any(called[name] > 1 for name in own):
            own = tuple(f"{variable.name} {name}" for name in own)
        columns += [Column(n, v, *about) for n, v in zip(own, variable.values.T, strict=True)]
    return columns


def known_frames(columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    """Frames in use at which all columns are known; raises if there are none: (n,) int64."""
    known = np.flatnonzero(used & ~np.any([np.isnan(c.values) for c in columns], axis=0))
    if len(known) == 0:
        names = " and ".join(column.name for column in columns)
        never = "is known at no frame" if len(columns) == 1 else "are never known at the same frame"
        raise InputError(f"{names} {never} in use.")
    return known


def binned(
    column: Column, used: np.ndarray, bins: int = CURVE_BINS, spacing: Spacing = "width"
) -> Bins:
    """Cut a column into bins.

    Parameters
    ----------
    column : Column
    used : (frames,) bool
        Frames to use, if the column is known there.
    bins : int
        A discrete column has as many as it has values.
    spacing : {"width", "occupancy"}
        Bins of equal width or equal occupancy; those of a circular column have equal width.
    """
    used = used & ~np.isnan(column.values)
    values = column.values[known_frames([column], used)]
    index = np.full(len(used), -1, np.int64)
    if column.kind == "discrete":
        different, index[used] = np.unique(values, return_inverse=True)
        if len(different) > MOST_VALUES:
            raise InputError(
                f"{column.name} is discrete with {len(different)} different values, too many to "
                f"draw ({MOST_VALUES} at most): set its kind to continuous."
            )
        return Bins(column, np.arange(len(different) + 1) - 0.5, different, index)
    if column.kind == "circular":
        edges = np.linspace(0, column.period, bins + 1)
        values = values % column.period
    elif spacing == "width":
        edges = np.linspace(*_range(values), bins + 1)
    else:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)))
        edges = edges if len(edges) > 1 else np.array(_range(values))
    place = np.searchsorted(edges, values, side="right") - 1
    index[used] = np.clip(place, 0, len(edges) - 2)
    return Bins(column, edges, (edges[1:] + edges[:-1]) / 2, index)


def _tuning_curve(activity: np.ndarray, bins: Bins) -> TuningCurve:
    """Mean activity by bin, with its standard error over contiguous blocks of time.

    Neighbouring frames are correlated, so frames are not independent samples; blocks of time
    nearly are. With N_b of N frames in block b and mean m_b there, the error of
    the mean m is  √(B/(B−1) Σ_b N_b² (m_b − m)²) / N  over the B blocks that visited the bin.

    Parameters
    ----------
    activity : (frames, cells) float
    bins : Bins
    """
    used = np.flatnonzero(bins.index >= 0)
    block = np.arange(len(used)) * BLOCKS // len(used)
    place = block * len(bins) + bins.index[used]
    size = BLOCKS * len(bins)
    frames = np.bincount(place, minlength=size).reshape(BLOCKS, len(bins), 1)
    sums = _sums(activity[used], place, size).reshape(BLOCKS, len(bins), -1)
    total = frames.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(0) / total
        visits = (frames > 0).sum(0)
        away = np.square(sums - frames * mean).sum(0)
        error = np.sqrt(away * visits / (visits - 1)) / total
    rare = total[:, 0] < FEWEST
    mean[rare] = np.nan
    error[rare | (visits[:, 0] < 2)] = np.nan
    return TuningCurve(bins, mean, error, total[:, 0])


def tuning_map(activity: np.ndarray, across: Bins, up: Bins, smooth: float = 1.0) -> TuningMap:
    """Mean activity by bin of two columns, smoothed slightly.

    Activity summed in each bin and frames spent there are smoothed alike before one is divided
    by the other, so that a rarely visited bin leans on its neighbours.

    Parameters
    ----------
    activity : (frames, cells) float
    across, up : Bins
    smooth : float
        Standard deviation of the Gaussian, in bins; circular columns wrap around, and values of
        discrete ones are not mixed.
    """
    used = known_frames((across.column, up.column), (across.index >= 0) & (up.index >= 0))
    place = up.index[used] * len(across) + across.index[used]
    size = len(up) * len(across)
    frames = np.bincount(place, minlength=size).reshape(len(up), len(across))
    sums = _sums(activity[used], place, size).reshape(len(up), len(across), -1)
    weight = frames[..., None].astype(np.float64)
    for axis, bins in enumerate((up, across)):
        if smooth > 0 and bins.column.kind != "discrete":
            mode = "wrap" if bins.column.kind == "circular" else "constant"
            sums = scipy.ndimage.gaussian_filter1d(sums, smooth, axis, mode=mode)
            weight = scipy.ndimage.gaussian_filter1d(weight, smooth, axis, mode=mode)
    mean = np.full(sums.shape, np.nan)
    np.divide(sums, weight, out=mean, where=(frames > 0)[..., None])
    return TuningMap(across, up, mean, frames)


def tuning_to(
    columns: Sequence[Column],
    activity: np.ndarray,
    used: np.ndarray,
    spacing: Spacing = "width",
    resolution: float = 1.0,
) -> Tuning:
    """Curve of one column, or map of two.

    Parameters
    ----------
    columns : one or two Column
        Of two, one that never changes is left out: a track is a line, even if the file has a
        second coordinate.
    activity : (frames, cells) float
    used : (frames,) bool
    spacing : {"width", "occupancy"}
        Of the bins of a curve; those of a map have equal width.
    resolution : float
        Number of bins, as a multiple of the default.
    """
    columns = [column for column in columns if _changes(column, used)] or columns[:1]
    if len(columns) == 1:
        count = max(2, round(resolution * CURVE_BINS))
        return _tuning_curve(activity, binned(columns[0], used, count, spacing))
    count = max(2, round(resolution * MAP_BINS))
    across, up = (binned(column, used, count) for column in columns)
    return tuning_map(activity, across, up)


def _changes(column: Column, used: np.ndarray) -> bool:
    """Whether it has two values; True if it is never known, which `binned` reports."""
    values = column.values[used & ~np.isnan(column.values)]
    return len(values) == 0 or bool(values.min() < values.max())


def _sums(activity: np.ndarray, place: np.ndarray, size: int) -> np.ndarray:
    """Activity summed by place: (size, cells)."""
    by_cell = [np.bincount(place, cell, minlength=size) for cell in activity.T]
    return np.stack(by_cell, axis=1) if by_cell else np.zeros((size, 0))


def _range(values: np.ndarray) -> tuple[float, float]:
    """Lowest and highest value, widened if there is only one."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def preferred_values(
    recording: Recording, column: Column, stop: Callable[[], bool] | None = None
) -> np.ndarray:
    """Value at the peak of each cell's tuning curve; NaN where there is no curve: (cells,) float64.

    Parameters
    ----------
    recording : Recording
        Traces are read a few cells at a time.
    column : Column
    stop : callable, optional
        Says whether nobody waits for it any more; then `Stopped` is raised.

    Examples
    --------
    >>> place = np.tile(np.arange(100.0), 10)
    >>> traces = np.stack([place > 80, place < 20], axis=1)
    >>> recording = Recording.from_arrays(traces, 10.0, {"place": place})
    >>> first, second = preferred_values(recording, Column("place", place))
    >>> bool(first > 80), bool(second < 20)
    (True, True)
    """
    bins = binned(column, ~np.asarray(recording.excluded))
    found = np.full(recording.n_cells, np.nan)
    for cells, traces in in_blocks(recording.traces):
        if stop is not None and stop():
            raise Stopped
        mean = _tuning_curve(traces, bins).mean
        known = np.isfinite(mean).any(0)
        peak = np.where(np.isfinite(mean), mean, -np.inf).argmax(0)
        found[cells] = np.where(known, bins.values[peak], np.nan)
    return found
