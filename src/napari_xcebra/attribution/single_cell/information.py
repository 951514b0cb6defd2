"""Computes how much the activity of a cell tells about a variable, in bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from napari_xcebra.attribution.single_cell.tuning import (
    Column,
    TuningMap,
    binned,
    known_frames,
    tuning_to,
)
from napari_xcebra.errors import InputError

FLOOR = 25.0
"""Percentile of a trace that counts as no activity: traces, unlike rates, can be negative."""
LEVELS = 8
"""Levels of activity, equally frequent."""
MUTUAL_BINS = {1: 16, 2: 8}
"""Bins of each column, by the number of columns."""
SHIFTS = 20
"""Shifts in time from which the bias of mutual information is estimated."""


def spatial_information(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, floor: float | None = FLOOR
) -> np.ndarray:
    """Bits an event carries (Skaggs et al. 1993):  Σ_i p_i (r_i / r) log₂(r_i / r).

    r_i is the mean activity in bin i of the tuning curve (24 bins) or, of two columns, of the map
    (20 × 20 bins, smoothed by 1 bin); p_i is the share of time spent there, and r = Σ p_i r_i.

    The formula is for spikes. Calcium traces have a baseline and go below zero: the lowest quarter
    of a trace counts as no activity, and what is above as the number of events. Deconvolved
    events, which are mostly zero, stay as they are. On traces, the bits are good for comparing
    cells, not for comparing with spikes.

    Parameters
    ----------
    activity : (frames, cells) float
    columns : sequence of Column
        Of more than two, the one with most information counts.
    used : (frames,) bool
    floor : float, optional
        Percentile of each trace that counts as no activity; None if activity is already a rate.

    Returns
    -------
    (cells,) float64
        NaN for cells without activity.
    """
    return _strongest(_skaggs, _above(activity, columns, used, floor), columns, used)


def information_rate(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, floor: float | None = FLOOR
) -> np.ndarray:
    """Bits in a second (Skaggs et al. 1993):  Σ_i p_i r_i log₂(r_i / r).

    In bits per second if traces are events per second; else in bits × the unit of the traces, so
    brighter cells have more. Parameters as of `spatial_information`.
    """
    above = _above(activity, columns, used, floor)
    return _strongest(_skaggs_rate, above, columns, used)


def mutual_information(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, shifts: int = SHIFTS
) -> np.ndarray:
    """Bits that activity and variable share at a frame:  Σ p(a, v) log₂ p(a, v) / (p(a) p(v)).

    Activity is cut into 8 levels and the variable into 16 bins (two columns: 8 × 8), each visited
    equally often. Few frames, and slow traces, give spurious information; the mean information
    with the variable shifted in time is therefore subtracted.

    Parameters
    ----------
    activity : (frames, cells) float
    columns : sequence of Column
        Of more than two, the one with most information counts.
    used : (frames,) bool
    shifts : int
        0 subtracts nothing.

    Returns
    -------
    (cells,) float64
        About 0, or a little below, if they are unrelated; NaN for constant cells.
    """

    def shared(activity: np.ndarray, columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
        return _shared_bits(activity, columns, used, shifts)

    return _strongest(shared, activity, columns, used)


def _strongest(
    statistic: Callable[[np.ndarray, Sequence[Column], np.ndarray], np.ndarray],
    activity: np.ndarray,
    columns: Sequence[Column],
    used: np.ndarray,
) -> np.ndarray:
    """Of all columns if there are one or two; else the largest of any one: (cells,) float64."""
    if len(columns) <= 2:
        return statistic(activity, columns, used)
    return np.fmax.reduce([statistic(activity, [column], used) for column in columns])


def _above(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, floor: float | None
) -> np.ndarray:
    frames = known_frames(columns, used)
    if floor is None:
        return activity
    return np.maximum(activity - np.percentile(activity[frames], floor, axis=0), 0)


def _skaggs(activity: np.ndarray, columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    share, rate = _rate_map(activity, columns, used)
    mean = share @ rate
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = rate / mean
        bits = np.where(relative > 0, relative * np.log2(relative), 0)
    return np.where(mean > 0, share @ bits, np.nan)


def _skaggs_rate(activity: np.ndarray, columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    share, rate = _rate_map(activity, columns, used)
    return (share @ rate) * _skaggs(activity, columns, used)


def _rate_map(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Share of time in each bin that is known, and mean activity there: (bins,), (bins, cells)."""
    tuning = tuning_to(columns, activity, used)
    mean, frames = tuning.mean, tuning.frames
    if isinstance(tuning, TuningMap):
        mean, frames = mean.reshape(-1, mean.shape[-1]), frames.ravel()
    # every cell has the same bins: they are those visited often enough
    visited = (frames > 0) & ~np.isnan(mean).all(axis=1)
    if not visited.any():
        names = " and ".join(column.name for column in columns)
        raise InputError(f"{names}: no value was visited often enough to compute information.")
    return frames[visited] / frames[visited].sum(), mean[visited]


def _shared_bits(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, shifts: int
) -> np.ndarray:
    index, n_bins, frames = _joint_index(columns, used)
    levels = _levels(activity[frames])
    bits = _mutual_bits(index, n_bins, levels)
    if shifts:
        bits -= np.mean(
            [_mutual_bits(np.roll(index, by), n_bins, levels) for by in _lags(len(index), shifts)],
            axis=0,
        )
    bits[(levels == levels[:, :1]).all(axis=1)] = np.nan
    return bits


def _joint_index(columns: Sequence[Column], used: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Bin of each frame that is used, number of bins, and which frames those are."""
    cut = [binned(c, used, MUTUAL_BINS[len(columns)], spacing="occupancy") for c in columns]
    frames = known_frames(columns, used)
    sizes = tuple(len(bins) for bins in cut)
    index = np.ravel_multi_index(tuple(bins.index[frames] for bins in cut), sizes)
    return index, int(np.prod(sizes)), frames


def _levels(activity: np.ndarray) -> np.ndarray:
    """Level of activity, 0 to LEVELS − 1: (cells, frames) int64.

    Equal activity gets the same level: a trace of zeros and events has fewer levels.
    """
    by_cell = np.ascontiguousarray(activity.T)
    levels = np.zeros(by_cell.shape, np.int64)
    for edge in np.quantile(by_cell, np.arange(1, LEVELS) / LEVELS, axis=1):
        levels += by_cell > edge[:, None]
    return levels


def _mutual_bits(index: np.ndarray, n_bins: int, levels: np.ndarray) -> np.ndarray:
    """From counts, without correction: (cells,) float64."""
    place = index * LEVELS
    size = n_bins * LEVELS
    counts = np.stack([np.bincount(place + level, minlength=size) for level in levels])
    joint = counts.reshape(-1, n_bins, LEVELS) / len(index)
    alone = joint.sum(2, keepdims=True) * joint.sum(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        bits = np.where(joint > 0, joint * np.log2(joint / alone), 0)
    return np.asarray(bits.sum(axis=(1, 2)))


def _lags(frames: int, shifts: int) -> np.ndarray:
    """Shifts of at least a tenth of the recording, always the same: (shifts,) int64."""
    rng = np.random.default_rng(0)
    least = max(1, frames // 10)
    return rng.integers(least, max(least + 1, frames - least + 1), shifts)
