"""Computes single numbers on a cell and a variable: bits, correlations, weights, grid scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.single_cell.tuning import (
    MOST_VALUES,
    Column,
    TuningMap,
    binned,
    known_frames,
    tuning_map,
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
RIDGES = tuple(10.0 ** np.arange(-4, 4))
"""Ridges to choose from, in units of the variance of the traces."""
BLOCKS = 10
"""Contiguous blocks of time, every other one of which is held out to choose the ridge."""
DECODED_FRAMES = 20_000
"""Most frames, evenly spaced: with more, the decoder would take minutes."""
EVENT_BINS = 8
"""Bins of time around an event."""
BINS = 30
"""Along the longer side of the arena."""
FEWEST_BINS = 10
"""Along the shorter side; a track is too narrow to show a grid."""
SMOOTH = 1.0
"""Standard deviation of the smoothing of the map, in bins."""
FEWEST_OVERLAP = 20
"""Bins that a map and its shifted copy must have in common."""
IN_PHASE, OUT_OF_PHASE = (60, 120), (30, 90, 150)
"""Rotations in degrees after which a hexagonal grid looks the same, and after which it does not."""


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


def correlation(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray, *, ranks: bool = False
) -> np.ndarray:
    """Correlation of activity with the variable.

    With one continuous column, Pearson's r. Else the multiple correlation R ≥ 0 with all columns
    together: a circular one as cosine and sine (circular-linear correlation), a discrete one as
    its values (η: R² is the share of variance between values).

    Parameters
    ----------
    activity : (frames, cells) float
    columns : sequence of Column
    used : (frames,) bool
    ranks : bool
        Of the ranks of activity and of continuous columns instead (Spearman).

    Returns
    -------
    (cells,) float64
        −1 to 1; NaN if the cell or the variable is constant.
    """
    design, frames = _regressors(columns, used, ranks=ranks)
    y = activity[frames]
    if ranks:
        # several times as fast as by column
        y = scipy.stats.rankdata(np.ascontiguousarray(y.T), axis=1).T
    y = y.astype(np.float64)
    y -= y.mean(axis=0)
    length = np.sqrt(np.square(y).sum(axis=0))
    directions = _orthonormal(design)
    if directions.shape[1] == 0:
        return np.full(activity.shape[1], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        along = (directions.T @ y) / np.where(length > 0, length, np.nan)
    if len(columns) == 1 and columns[0].kind == "continuous":
        return np.asarray(along[0] * np.sign(directions[:, 0] @ design[:, 0]))
    return np.asarray(np.sqrt(np.square(along).sum(axis=0)))


def rank_correlation(
    activity: np.ndarray, columns: Sequence[Column], used: np.ndarray
) -> np.ndarray:
    """Correlation of ranks (Spearman's ρ); see `correlation`."""
    return correlation(activity, columns, used, ranks=True)


def decoder_weight(activity: np.ndarray, columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    """Weight of each cell in a linear decoder of the variable from all cells together.

    Ridge regression of the standardised variable (a circular one as cosine and sine, a discrete
    one as its values) on standardised traces, with the ridge that decodes held-out blocks of time
    best. A weight is large where a cell helps *beside all others*: two cells that say the same
    share it, and a cell may have one because it cancels the noise of another (Haufe et al. 2014).

    Parameters
    ----------
    activity : (frames, cells) float
        All cells that may be decoded from.
    columns : sequence of Column
    used : (frames,) bool

    Returns
    -------
    (cells,) float64
        Norm of the weights of a cell over what is decoded, ≥ 0; NaN for constant cells.
    """
    design, frames = _regressors(columns, used)
    every = -(-len(frames) // DECODED_FRAMES)
    target, _ = _standardised(design[::every])
    x, moves = _standardised(activity[frames[::every]].astype(np.float64))
    weights = np.full((activity.shape[1], target.shape[1]), np.nan)
    if moves.any():
        weights[moves] = _ridge_weights(x[:, moves], target)
    return np.asarray(np.sqrt(np.square(weights).sum(axis=1)))


def _regressors(
    columns: Sequence[Column], used: np.ndarray, *, ranks: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """What activity is regressed on, or decoded: (frames in use, _regressors), centred; the frames.

    A continuous column is itself, or its rank; a circular one its cosine and sine; a discrete one
    an indicator of each of its values; time from an event an indicator of each of 8 bins.
    """
    frames = known_frames(columns, used)
    parts = []
    for column in columns:
        values = column.values[frames]
        if column.kind == "circular":
            angle = 2 * np.pi / column.period * values
            parts += [np.cos(angle), np.sin(angle)]
        elif column.kind == "discrete":
            parts += _indicators(column, values)
        elif column.kind == "event":
            parts += list(np.eye(EVENT_BINS)[binned(column, used, EVENT_BINS).index[frames]].T)
        else:
            parts.append(scipy.stats.rankdata(values) if ranks else values)
    design = np.stack(parts, axis=1)
    return design - design.mean(axis=0), frames


def _indicators(column: Column, values: np.ndarray) -> list[np.ndarray]:
    different = np.unique(values)
    if len(different) > MOST_VALUES:
        raise InputError(
            f"{column.name} is discrete with {len(different)} different values, too many to "
            f"compare ({MOST_VALUES} at most): set its kind to continuous."
        )
    return [(values == value).astype(np.float64) for value in different]


def _orthonormal(design: np.ndarray) -> np.ndarray:
    """Orthonormal directions that span the columns: (frames, rank)."""
    scale = np.sqrt(np.square(design).sum(axis=0))
    design = design[:, scale > 0] / scale[scale > 0]
    left, size, _ = np.linalg.svd(design, full_matrices=False)
    return left[:, size > 1e-8 * max(1.0, size.max(initial=0.0))]


def _standardised(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean 0 and variance 1, and which columns vary.

    Unlike `standardise.standardised`, a column that changes by rounding alone counts as constant.
    """
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-9 * np.abs(values).max(axis=0, initial=0.0)
    return centred / np.where(varies, spread, 1), varies


def _ridge_weights(x: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weights with the ridge that decodes held-out blocks best: (cells, targets)."""
    block = np.arange(len(x)) * BLOCKS // len(x)
    trained, held_out = block % 2 == 0, block % 2 == 1
    errors = []
    for weights in _along_ridges(x[trained], target[trained], RIDGES):
        errors.append(np.square(target[held_out] - x[held_out] @ weights).sum())
    return _along_ridges(x, target, [RIDGES[int(np.argmin(errors))]])[0]


def _along_ridges(x: np.ndarray, target: np.ndarray, ridges: Sequence[float]) -> list[np.ndarray]:
    """(XᵀX / n + ridge)⁻¹ Xᵀy / n for several ridges, from one decomposition."""
    variances, axes = np.linalg.eigh(x.T @ x / len(x))
    along = axes.T @ (x.T @ target / len(x))
    return [axes @ (along / (np.maximum(variances, 0) + ridge)[:, None]) for ridge in ridges]


def grid_score(activity: np.ndarray, columns: Sequence[Column], used: np.ndarray) -> np.ndarray:
    """How much a map looks the same after a rotation by 60° but not by 30°.

    The map (30 bins of equal sides, smoothed by 1 bin) is correlated with itself at every shift.
    Of this autocorrelogram a ring is taken: from where the central peak ends outwards. The score is
    the lowest correlation of the ring with itself turned by 60° and 120°, less the highest after a
    turn of 30°, 90° and 150°; the ring whose outer edge gives the highest score counts, since the
    spacing of the grid is not known. (App. B.2 has 90° among both; Sargolini et al. do not.)

    Parameters
    ----------
    activity : (frames, cells) float
    columns : two Column
        Position of the animal, in the same unit.
    used : (frames,) bool

    Returns
    -------
    (cells,) float64
        −2 to 2; NaN where the arena is too narrow or the map is flat.
    """
    across, up = columns
    sides = [np.ptp(c.values[used & ~np.isnan(c.values)], axis=0) for c in columns]
    if min(sides) < max(sides) * FEWEST_BINS / BINS:
        return np.full(activity.shape[1], np.nan)
    width = max(sides) / BINS
    across_bins, up_bins = (
        binned(column, used, max(1, round(side / width)))
        for column, side in zip((across, up), sides, strict=True)
    )
    maps = tuning_map(activity, across_bins, up_bins, SMOOTH).mean
    largest = np.nanmax(np.abs(maps), axis=(0, 1))
    flat = np.nanmax(maps, axis=(0, 1)) - np.nanmin(maps, axis=(0, 1)) <= 1e-9 * largest
    return np.where(flat, np.nan, _ring_scores(_autocorrelogram(maps)))


def _autocorrelogram(maps: np.ndarray) -> np.ndarray:
    """Correlation of each map with itself at every shift.

    Parameters
    ----------
    maps : (bins up, bins across, cells) float
        NaN in the same bins of every cell: those not visited.

    Returns
    -------
    (2 bins up − 1, 2 bins across − 1, cells) float
        No shift in the middle; 0 where too few bins overlap or one of the maps is flat there.
    """
    known = ~np.isnan(maps).all(axis=2)
    there = known[..., None].astype(np.float64)
    # a shift changes no correlation, but the sums of squares below keep more digits near zero
    values = np.where(known[..., None], maps - np.nanmean(maps, axis=(0, 1)), 0)
    number = np.round(_overlaps(there, there))
    total, squares, products = (
        _overlaps(values, there),
        _overlaps(np.square(values), there),
        _overlaps(values, values),
    )
    # the sums of the other map are those of this one at the opposite shift
    other, other_squares = total[::-1, ::-1], squares[::-1, ::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = products - total * other / number
        spread = (squares - total**2 / number) * (other_squares - other**2 / number)
        correlation = covariance / np.sqrt(np.maximum(spread, 0))
    biggest = np.square(values).sum(axis=(0, 1)) ** 2
    certain = (number >= FEWEST_OVERLAP) & (spread > 1e-9 * biggest)
    return np.where(certain, np.clip(correlation, -1, 1), 0)


def _overlaps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Σ over bins of one × other shifted, for every shift: (2 up − 1, 2 across − 1, cells)."""
    up, across = one.shape[:2]
    size = [scipy.fft.next_fast_len(2 * n - 1, real=True) for n in (up, across)]
    product = scipy.fft.rfft2(one, size, axes=(0, 1)) * np.conj(
        scipy.fft.rfft2(other, size, axes=(0, 1))
    )
    found = scipy.fft.irfft2(product, size, axes=(0, 1))
    return np.roll(found, (up - 1, across - 1), axis=(0, 1))[: 2 * up - 1, : 2 * across - 1]


def _ring_scores(correlogram: np.ndarray) -> np.ndarray:
    """Best score over rings of all outer radii: (cells,)."""
    up, across, cells = correlogram.shape
    middle = np.array([(up - 1) / 2, (across - 1) / 2])
    radius = np.hypot(*np.ogrid[-middle[0] : middle[0] + 1, -middle[1] : middle[1] + 1])
    inner = _peak_radius(correlogram, radius)
    turned = {
        angle: scipy.ndimage.rotate(correlogram, angle, axes=(0, 1), reshape=False, order=1)
        for angle in IN_PHASE + OUT_OF_PHASE
    }
    best = np.full(cells, np.nan)
    for outer in range(4, int(middle.min()) + 1):
        inside = radius <= outer
        ring = (radius[inside][:, None] > inner) & (outer >= inner + 3)
        own = correlogram[inside]
        agreement = {
            angle: _correlation_within(own, other[inside], ring) for angle, other in turned.items()
        }
        same = np.minimum.reduce([agreement[angle] for angle in IN_PHASE])
        different = np.maximum.reduce([agreement[angle] for angle in OUT_OF_PHASE])
        best = np.fmax(best, same - different)
    return best


def _peak_radius(correlogram: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Where the central peak of each _autocorrelogram ends, in a trough or below 0: (cells,)."""
    rings = np.round(radius).astype(np.int64)
    last = min(correlogram.shape[:2]) // 2
    profile = np.stack([correlogram[rings == r].mean(axis=0) for r in range(last + 1)])
    ends = (np.diff(profile, axis=0) > 0) | (profile[1:] < 0)
    return np.where(ends.any(axis=0), ends.argmax(axis=0), last)


def _correlation_within(one: np.ndarray, other: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Pearson's r over the bins that count for each cell: (cells,), NaN where it has none."""
    number = where.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        one = np.where(where, one - np.sum(one, axis=0, where=where) / number, 0)
        other = np.where(where, other - np.sum(other, axis=0, where=where) / number, 0)
        size = np.sqrt(np.square(one).sum(axis=0) * np.square(other).sum(axis=0))
        return np.where(size > 0, (one * other).sum(axis=0) / size, np.nan)
