"""As many points of a long signal as a screen can show, with its extremes kept.

What is drawn when 100,000 frames are looked at must not take longer than when 1,000 are.
Buckets have a power of two of frames and lie at multiples of it, so that a signal does not
flicker when it is scrolled.
"""

from __future__ import annotations

import numpy as np


class Extremes:
    """Lowest and highest value of a signal in buckets of 2, 4, 8 … frames.

    Parameters
    ----------
    values : (frames,) float
        NaN where there is none.
    """

    def __init__(self, values: np.ndarray) -> None:
        values = np.asarray(values)
        self._levels = [(values, values)]
        while len(self._levels[-1][0]) > 64:
            low, high = self._levels[-1]
            self._levels.append((_halved(low, np.fmin), _halved(high, np.fmax)))

    def between(self, first: int, last: int, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames and values to draw for first ≤ frame < last.

        Where there are more frames than points, between `points` and 4 × `points` come back,
        the lowest and the highest value of each bucket.
        """
        level = min(_level(last - first, points), len(self._levels) - 1)
        low, high = self._levels[level]
        if level == 0:
            return np.arange(first, last), low[first:last]
        bucket = np.arange(first >> level, min(((last - 1) >> level) + 1, len(low)))
        frames = np.repeat((bucket << level) + (1 << (level - 1)), 2)
        values = np.stack([low[bucket], high[bucket]], axis=1).ravel()
        return np.minimum(frames, len(self._levels[0][0]) - 1), values


def every_nth(
    values: np.ndarray, first: int, last: int, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Frames and values at even distances, for signals whose extremes mean nothing: angles."""
    step = 1 << _level(last - first, points)
    frames = np.arange(-(-first // step) * step, last, step)
    return frames, values[frames]


def joined(values: np.ndarray, part: np.ndarray, period: float | None = None) -> np.ndarray:
    """Whether a line leads from each point to the next: (points,) bool, the last False.

    Parameters
    ----------
    values : (points,) float
        No line leads to or from NaN.
    part : (points,) int
        No line leads from one part of the recording to another.
    period : float, optional
        No line leads across the wrap of an angle.
    """
    known = np.isfinite(values)
    lines = np.zeros(len(values), bool)
    lines[:-1] = known[1:] & known[:-1] & (part[1:] == part[:-1])
    if period is not None:
        with np.errstate(invalid="ignore"):
            lines[:-1] &= np.abs(np.diff(values)) < period / 2
    return lines


def steps(
    times: np.ndarray, values: np.ndarray, lines: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same signal as a staircase: each value stays until the next."""
    if len(times) < 2:
        return times, values, lines
    flat = np.repeat(lines, 2)[:-1]
    return np.repeat(times, 2)[1:], np.repeat(values, 2)[:-1], flat


def _level(frames: int, points: int) -> int:
    """Power of two of the frames a bucket has."""
    return max(0, int(np.floor(np.log2(max(frames, 1) / max(points, 1)))))


def _halved(values: np.ndarray, pick: np.ufunc) -> np.ndarray:
    even = values[: len(values) // 2 * 2]
    half = pick(even[::2], even[1::2])
    return half if len(even) == len(values) else np.append(half, values[-1])
