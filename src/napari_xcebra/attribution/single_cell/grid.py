"""Computes the grid score, the six-fold symmetry of a map (Sargolini et al. 2006; App. B.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.single_cell.tuning import Column, binned, tuning_map

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
    return np.where(flat, np.nan, _ring_scores(autocorrelogram(maps)))


def autocorrelogram(maps: np.ndarray) -> np.ndarray:
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
    """Where the central peak of each autocorrelogram ends, in a trough or below 0: (cells,)."""
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
