"""Behaviour on a clock of its own, and back on the frames of the recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from napari_xcebra.recording import Variable

JITTER = 0.01
"""Error of measured behaviour, in standard deviations of each variable."""


def measure_behavior(
    rng: np.random.Generator, behavior: Mapping[str, Variable], rate: float, behavior_rate: float
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, Variable]]:
    """Behaviour as another device would have recorded it, and brought back to the frames.

    The simulated behaviour is known at the frames only: on a faster clock it is interpolated.

    Parameters
    ----------
    rng : numpy.random.Generator
    behavior : mapping of str to Variable
        On the frames.
    rate, behavior_rate : float
        Frames, and samples of behaviour, per second.

    Returns
    -------
    times : (samples,) float64
        Seconds from the first frame; they reach past the last one.
    measured : dict of str to (samples, k) float64
    on_frames : dict of str to Variable
        The measured values at the frames.
    """
    frames = np.arange(max(len(v.values) for v in behavior.values())) / rate
    times = np.arange(int(np.ceil(frames[-1] * behavior_rate)) + 1) / behavior_rate
    measured, on_frames = {}, {}
    for name, variable in behavior.items():
        values = _with_jitter(rng, resampled(variable, frames, times), variable)
        measured[name] = values
        on_frames[name] = replace(
            variable, values=resampled(replace(variable, values=values), times, frames)
        )
    return times, measured, on_frames


def resampled(variable: Variable, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Values at new times, (times, k): linear, the short way around for circular variables.

    Discrete variables take the value of the nearest time.
    """
    if variable.kind == "discrete":
        after = np.clip(np.searchsorted(old, new), 1, len(old) - 1)
        nearest = np.where(new - old[after - 1] < old[after] - new, after - 1, after)
        return variable.values[nearest]
    values = variable.values
    if variable.kind == "circular":
        values = np.unwrap(values, axis=0, period=variable.period)
    values = np.stack([np.interp(new, old, column) for column in values.T], axis=1)
    return values % variable.period if variable.kind == "circular" else values


def _with_jitter(rng: np.random.Generator, values: np.ndarray, variable: Variable) -> np.ndarray:
    """Measurement error; it takes no value beyond those that occur, so no speed is negative."""
    if variable.kind == "discrete":
        return values
    error = JITTER * rng.standard_normal(values.shape)
    if variable.kind == "circular":
        return (values + error * variable.period / np.sqrt(12)) % variable.period
    low, high = variable.values.min(axis=0), variable.values.max(axis=0)
    return np.clip(values + error * variable.values.std(axis=0), low, high)
