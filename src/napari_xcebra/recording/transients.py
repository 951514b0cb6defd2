"""Finds the largest transients of a trace."""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are imported when they are first used

COUNT = 5
APART = 3.0
"""Seconds between two transients at least."""
SMOOTHING = 0.2
"""Seconds over which a trace is averaged before peaks are looked for."""
BLOCK = 30.0
"""Seconds whose median is the baseline there."""
ABOVE_NOISE = 4.0
"""Standard deviations of the noise that a transient rises above the baseline."""


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
