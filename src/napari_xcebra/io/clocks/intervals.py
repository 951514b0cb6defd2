"""Tells the usual steps of a clock from its gaps.

A camera whose frames come in pairs has steps of 15 ms and 85 ms by turns: both are usual, and
neither is a gap. So a step counts as usual if one in ten is as long.
"""

from __future__ import annotations

import numpy as np

GAP = 3.0
"""A step is a gap if it is longer than this many usual ones."""
OFTEN = 0.9
"""Share of the steps that are no longer than a usual one."""
UNEVEN, BRIEF = 10.0, 0.25
"""Steps that come often are still no usual ones if they are longer than this many medians and than
this many seconds: samples taken in bursts have pauses between."""
EVEN = 1.5
"""The usual steps of an even clock are no longer than this many of its short ones."""


def usual_step(steps: np.ndarray) -> float:
    """Longest step, in seconds, that is no pause.

    Parameters
    ----------
    steps : (steps,) float64
        Seconds between samples, all above 0; one at least.

    Examples
    --------
    >>> usual_step(np.array([0.015, 0.085] * 50 + [4.0]))
    0.085
    """
    median, often = np.quantile(steps, [0.5, OFTEN])
    return float(max(median, min(often, max(UNEVEN * median, BRIEF))))


def rate_of(times: np.ndarray) -> float | None:
    """Samples per second of an ascending clock; None for a single sample.

    Steps may be rounded, so they are averaged: all of them if they are even, and those that are no
    gaps if they alternate. Where a few are longer because frames were dropped, the median counts.
    """
    steps = np.diff(times)
    if not len(steps):
        return None
    short, typical = np.quantile(steps, [1 - OFTEN, 0.5])
    usual = usual_step(steps)
    if np.abs(steps - typical).max() < 0.5 * typical:
        typical = (times[-1] - times[0]) / len(steps)
    elif usual > EVEN * short:
        typical = steps[steps <= GAP * usual].mean()
    return float(f"{1 / typical:.6g}")
