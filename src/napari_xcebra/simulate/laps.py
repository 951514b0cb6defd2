"""A mouse that runs laps on a belt: where it is, how fast it runs, when it licks."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np

from napari_xcebra.simulate.processes import on_and_off, ornstein_uhlenbeck, smoothed

USUAL_SPEED = 26.0
"""Speed of a mouse that neither waits nor expects a reward, in cm/s."""
SPEED_TIME, SPEED_SWING = 1.5, 0.3
"""Coherence time of speed, in s, and its standard deviation, in the usual speed."""
LAP_SWING = 0.15
"""Standard deviation of the logarithm of speed from lap to lap."""
PAUSE_EVERY, PAUSE_TIME, PAUSE_SLOWING = 30.0, 2.5, 0.3
"""Mean time between pauses, mean length of one, and time constant of stopping, in s."""
ENGAGEMENT_TIME, ENGAGEMENT_SWING = 30.0, 0.12
"""Coherence time of the unobserved state, in s, and what it adds, in the usual speed."""
REWARD = 0.75
"""Place of the reward, in lengths of the belt."""
APPROACH, LEAVING = 16.0, 6.0
"""Distances before and after the reward within which the mouse is slow, in cm."""
SLOWING = 0.7
"""Share of its speed that it loses at the reward."""
LICKS = 7.0
"""Licks per second of a mouse that licks."""
LICK_BEFORE, LICK_AFTER = (16.0, 5.0), (5.0, 2.0)
"""Distances from the reward at which licking begins and ends: mean and deviation, in cm."""
LICKED_SHARE = 0.85
"""Share of the laps in which the mouse licks for the reward."""
STRAY_EVERY, STRAY_TIME = 25.0, 1.0
"""Mean time between bouts of licking at other places, and mean length of one, in s."""


@dataclass(frozen=True)
class Laps:
    """Behaviour of the mouse, frame by frame.

    Parameters
    ----------
    position : (frames,) float64
        In cm from the start of the belt.
    speed : (frames,) float64
        In cm/s.
    lick : (frames,) bool
        Whether the mouse licked during the frame.
    engagement : (frames,) float64
        Slow state that nobody observes, of mean 0 and variance 1.
    """

    position: np.ndarray
    speed: np.ndarray
    lick: np.ndarray
    engagement: np.ndarray


def run_laps(rng: np.random.Generator, frames: int, dt: float, length: float) -> Laps:
    """Laps on a belt with a reward at `REWARD`.

    Parameters
    ----------
    rng : numpy.random.Generator
    frames : int
    dt : float
        Seconds between frames.
    length : float
        Length of the belt, in cm.
    """
    for_state, for_speed, for_pauses, for_laps, for_licks = rng.spawn(5)
    state = ornstein_uhlenbeck(for_state, frames, ENGAGEMENT_TIME / dt)
    swing = SPEED_SWING * ornstein_uhlenbeck(for_speed, frames, SPEED_TIME / dt)
    waits = on_and_off(for_pauses, frames, PAUSE_EVERY / dt, PAUSE_TIME / dt).astype(float)
    runs = 1 - smoothed(waits, PAUSE_SLOWING / dt)
    wished = USUAL_SPEED * runs * np.maximum(1 + swing + ENGAGEMENT_SWING * state, 0)
    position, speed = _run(for_laps, wished, dt, length)
    return Laps(position, speed, _licks(for_licks, position, dt, length), state)


def _run(
    rng: np.random.Generator, wished: np.ndarray, dt: float, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """Position and speed: a loop, since how fast the mouse is depends on where it is."""
    x, reward, pace = rng.uniform(0, length), REWARD * length, 1.0
    path = []
    for wish in wished.tolist():
        distance = (reward - x) / APPROACH if x < reward else (x - reward) / LEAVING
        speed = pace * wish * (1 - SLOWING * exp(-(distance**2) / 2))
        path.append((x, speed))
        x += speed * dt
        if x >= length:
            x, pace = x % length, exp(LAP_SWING * rng.standard_normal())
    position, speeds = np.array(path).T
    return position, speeds


def _licks(rng: np.random.Generator, position: np.ndarray, dt: float, length: float) -> np.ndarray:
    """Frames with a lick: mostly before the reward, at times elsewhere, in some laps none."""
    lap = np.cumsum(np.diff(position, prepend=position[0]) < 0)
    laps = lap[-1] + 1
    begins = -np.maximum(rng.normal(*LICK_BEFORE, laps), 0)
    ends = np.maximum(rng.normal(*LICK_AFTER, laps), 0)
    licked = rng.random(laps) < LICKED_SHARE
    beyond = position - REWARD * length
    for_reward = licked[lap] & (begins[lap] < beyond) & (beyond < ends[lap])
    stray = on_and_off(rng, len(position), STRAY_EVERY / dt, STRAY_TIME / dt)
    return (for_reward | stray) & (rng.random(len(position)) < LICKS * dt)
