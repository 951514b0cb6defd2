"""Random processes that drive behaviour, cells and drifts."""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are imported when they are first used


def ornstein_uhlenbeck(
    rng: np.random.Generator, frames: int, timescale: float, columns: int | None = None
) -> np.ndarray:
    """Stationary Ornstein-Uhlenbeck processes of mean 0 and variance 1: (frames[, columns]).

    Parameters
    ----------
    timescale : float
        Frames after which the autocorrelation is 1/e; exact for any size of step.
    columns : int, optional
        Number of independent processes.
    """
    kept = np.exp(-1 / timescale)
    kicks = rng.standard_normal(frames if columns is None else (frames, columns))
    kicks[1:] *= np.sqrt(1 - kept**2)
    return scipy.signal.lfilter([1.0], [1.0, -kept], kicks, axis=0)


def correlation_time(activity: np.ndarray) -> np.ndarray:
    """Frames until the autocorrelation of each column falls below 1/e, at least 1: (columns,)."""
    frames = len(activity)
    centred = activity - activity.mean(axis=0)
    spectrum = np.fft.rfft(centred, 2 * frames, axis=0)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:frames]
    below = correlation < correlation[0] / np.e
    return np.where(below.any(axis=0), np.maximum(below.argmax(axis=0), 1.0), float(frames))


def smoothed(values: np.ndarray, timescale: float) -> np.ndarray:
    """Exponential moving average along the first axis; `timescale` in frames."""
    kept = np.exp(-1 / timescale)
    start = kept * values[:1]
    return scipy.signal.lfilter([1 - kept], [1.0, -kept], values, axis=0, zi=start)[0]


def on_and_off(rng: np.random.Generator, frames: int, off: float, on: float) -> np.ndarray:
    """Switch that stays off, then on, for random times without memory: (frames,) bool.

    `off` and `on` are the mean frames it stays so.
    """
    start, switches = bool(rng.random() < on / (off + on)), 1 - np.exp(-1 / np.array([off, on]))
    chances = (rng.random(frames)[:, None] < switches).tolist()
    states = [start]
    for from_off, from_on in chances[1:]:
        states.append(not from_on if states[-1] else from_off)
    return np.array(states)
