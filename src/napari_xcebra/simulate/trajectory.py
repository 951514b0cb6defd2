"""Simulates an animal that forages in a square box: position, heading and speed.

The constants are those of RatInABox (George et al. 2024), which were fitted to rats in an open
field: speed and turning are Ornstein-Uhlenbeck processes, and walls push the animal back.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, erfc, hypot, log, pi, sin, sqrt

import numpy as np

from napari_xcebra.simulate.processes import ornstein_uhlenbeck, smoothed

SIDE = 1.0
"""Length of a wall, in m."""
SPEED_SCALE = 0.08
"""Rayleigh scale of speed, in m/s; its mean is 0.10 m/s."""
SPEED_TIME = 0.7
"""Coherence time of speed, in s."""
TURN_STD = np.deg2rad(120)
"""Standard deviation of rotational velocity, in rad/s."""
TURN_TIME = 0.08
"""Coherence time of rotational velocity, in s."""
HEAD_TIME = 0.15
"""Time over which movement is smoothed into head direction, in s."""
REPEL_DISTANCE = 0.1
"""Distance from a wall at which it begins to push, in m."""
REPEL_STRENGTH = 1.0
"""Stiffness of the push, 1 being just enough to stop an animal of usual speed."""
STEP = 0.025
"""Longest step of the integration, in s; turns are faster than most frames."""
AROUSAL_TIME = 15.0
"""Coherence time of the unobserved state, in s."""
WALL_SHARE, AROUSAL_SHARE = 0.72, 0.57
"""Shares of speed (as correlations of its normal drive) taken by confounds of strength 1."""


@dataclass(frozen=True)
class Trajectory:
    """Behaviour of the animal, frame by frame.

    Parameters
    ----------
    position : (frames, 2) float64
        In m, from 0 to `SIDE`.
    direction : (frames,) float64
        Head direction in rad, from 0 to 2π.
    speed : (frames,) float64
        In m/s.
    arousal : (frames,) float64
        Slow state that nobody observes, of mean 0 and variance 1.
    """

    position: np.ndarray
    direction: np.ndarray
    speed: np.ndarray
    arousal: np.ndarray


def forage(
    rng: np.random.Generator,
    frames: int,
    dt: float,
    *,
    confound: float = 0.0,
    arousal: float = 0.0,
) -> Trajectory:
    """Random foraging in the box, with frames `dt` seconds apart.

    Parameters
    ----------
    confound : float
        0 to 1, how much faster the animal is away from the walls.
    arousal : float
        0 to 1, how much of its speed follows the unobserved state.
    """
    for_state, for_speed, for_turns, for_start = rng.spawn(4)
    substeps = int(np.ceil(dt / STEP))
    step, n = dt / substeps, frames * substeps
    state = ornstein_uhlenbeck(for_state, n, AROUSAL_TIME / step)
    wall_share, state_share = confound * WALL_SHARE, arousal * AROUSAL_SHARE
    own_share = np.sqrt(1 - wall_share**2 - state_share**2)
    drive = own_share * ornstein_uhlenbeck(for_speed, n, SPEED_TIME / step) + state_share * state
    turns = TURN_STD * step * ornstein_uhlenbeck(for_turns, n, TURN_TIME / step)
    path = _walk(drive, turns, wall_share, step, for_start.uniform(0.2, 0.8, 2) * SIDE)
    velocity = smoothed(path[:, 2:], HEAD_TIME / step)[::substeps]
    return Trajectory(
        position=path[::substeps, :2].copy(),
        direction=np.arctan2(velocity[:, 1], velocity[:, 0]) % (2 * np.pi),
        speed=np.hypot(*path[::substeps, 2:].T),
        arousal=state[::substeps].copy(),
    )


def _walk(
    drive: np.ndarray, turns: np.ndarray, wall_share: float, step: float, start: np.ndarray
) -> np.ndarray:
    """Integrate the path: (steps, 4) of x, y and velocity.

    Walls make each step depend on the one before, so this is a loop, on plain floats because
    these are several times faster than arrays of two.
    """
    x, y = start.tolist()
    heading = 2 * pi * (x + y)
    stiffness = REPEL_STRENGTH * (SPEED_SCALE / REPEL_DISTANCE) ** 2 * step
    # Under even coverage the distance from the nearest wall has this mean and deviation.
    usual, spread = SIDE / 6, SIDE / sqrt(72)
    path = []
    for base, turn in zip(drive.tolist(), turns.tolist(), strict=True):
        wall = min(x, SIDE - x, y, SIDE - y)
        speed = _rayleigh(base + wall_share * (wall - usual) / spread)
        heading += turn
        vx, vy = speed * cos(heading), speed * sin(heading)
        if wall < REPEL_DISTANCE:
            vx += stiffness * (max(REPEL_DISTANCE - x, 0) - max(REPEL_DISTANCE - SIDE + x, 0))
            vy += stiffness * (max(REPEL_DISTANCE - y, 0) - max(REPEL_DISTANCE - SIDE + y, 0))
            # A push turns the animal; how fast it runs is its own affair.
            scale = speed / max(hypot(vx, vy), 1e-12)
            vx, vy = vx * scale, vy * scale
            heading = atan2(vy, vx)
        x, y = x + vx * step, y + vy * step
        if not (0 <= x <= SIDE and 0 <= y <= SIDE):
            vx, vy = (vx if 0 <= x <= SIDE else -vx), (vy if 0 <= y <= SIDE else -vy)
            x, y, heading = min(max(x, 0.0), SIDE), min(max(y, 0.0), SIDE), atan2(vy, vx)
        path.append((x, y, vx, vy))
    return np.array(path)


def _rayleigh(normal: float) -> float:
    """Speed in m/s from a standard normal value, by matching quantiles."""
    return SPEED_SCALE * sqrt(-2 * log(0.5 * erfc(min(normal, 6.0) / sqrt(2))))
