"""Chance as a tested statement: what labels shifted in time reach with the same encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.learn.labels import Labels, correlation_time

SHIFTS = 99
"""Shifts of the labels; the smallest p is 1 / (SHIFTS + 1)."""

LEAST_SAMPLES = 10
"""Independent samples below which nothing can be said: any two slow things look alike."""

NAN = float("nan")


@dataclass(frozen=True)
class Chance:
    """What shifted labels reach.

    Parameters
    ----------
    p : float
        Share of the shifts, the true labels among them, that reach what the true labels reach;
        NaN if it was not tested.
    low, high : float
        5 and 95 % of what shifted labels reach, in nats; NaN if it was not tested.
    samples : float
        Independent samples of the label: frames / frames after which it has forgotten itself.
    """

    p: float = NAN
    low: float = NAN
    high: float = NAN
    samples: float = NAN


def tested(labels: Labels, segment: np.ndarray, reached: Callable[[Labels], float]) -> Chance:
    """Test a goodness against labels shifted around the recording, by more than they remember.

    The encoder is that of the true labels. Labels that have nothing to do with the cells are as
    likely to reach more than any shift of them as to reach less, however slow they are; shifted
    around in even steps they keep their autocorrelation.

    Parameters
    ----------
    segment : (frames,) int64
        Trial of each frame.
    reached : callable
        Goodness on held-out frames for any labels.
    """
    frames = len(labels.known)
    memory = correlation_time(labels, segment, frames // 2)
    samples = labels.known.sum() / memory
    if samples < LEAST_SAMPLES:
        return Chance(samples=float(samples))
    shifts = np.linspace(memory, frames - memory, SHIFTS).round().astype(int)
    null = np.array([reached(shifted(labels, shift)) for shift in shifts])
    null = null[np.isfinite(null)]
    low, high = np.quantile(null, [0.05, 0.95])
    p = (1 + (null >= reached(labels)).sum()) / (1 + len(null))
    return Chance(float(p), float(low), float(high), float(samples))


def shifted(labels: Labels, frames: int) -> Labels:
    """Labels moved by so many frames, the last ones to the beginning."""
    return replace(labels, **{n: np.roll(v, frames, axis=0) for n, v in vars(labels).items()})
