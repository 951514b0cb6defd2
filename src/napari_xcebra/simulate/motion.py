"""Simulates an animal that forages in a square box, and tunes cells to position, heading, speed.

The constants are those of RatInABox (George et al. 2024), which were fitted to rats in an open
field: speed and turning are Ornstein-Uhlenbeck processes, and walls push the animal back. Shapes of
the tuning are RatInABox's too, with the parameters of the paper's App. B.2; rates are (frames,
cells) float32 between 0 and about 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, erfc, hypot, log, pi, sin, sqrt

import numpy as np
from scipy.special import expit

from napari_xcebra.simulate.simulation import ornstein_uhlenbeck, smoothed

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


PLACE_WIDTH = 0.2
"""Width of a place field, in m."""
SURROUND = 1.5
"""Width of the inhibitory surround, in widths of the field."""
GRID_SCALES = (0.3, 0.4)
"""Distance between grid fields in each module, in m."""
GRID_ORIENTATIONS = (0.0, 0.1)
"""Orientation of each module, in rad."""
GRID_WIDTH = 4 / (3 * np.sqrt(3))
"""Full width of a grid field, in wavelengths of the cosines."""
DIRECTION_WIDTHS = (35.0, 55.0)
"""Range of widths of head direction tuning, in degrees."""
TRACK_WIDTHS = (0.04, 0.12)
"""Range of widths (standard deviations) of place fields of a track, in its length."""
FALLING_SHARE = 0.35
"""Share of the saturating speed cells that fall with speed."""
BASELINES = (0.03, 0.12)
"""Range of what cells fire at rest, in their peak rate."""


def place_rates(rng: np.random.Generator, position: np.ndarray, cells: int) -> np.ndarray:
    """Place cells: a difference of Gaussians around a centre each, centres spread evenly."""
    centres = _spread_centres(rng, cells)
    squared = _squared_distance(position.astype(np.float32), centres)
    near = np.exp(-squared / np.float32(2 * PLACE_WIDTH**2))
    far = np.exp(-squared / np.float32(2 * (SURROUND * PLACE_WIDTH) ** 2))
    difference = (near * SURROUND**2 - far) / (SURROUND**2 - 1)
    # A rate cannot be negative, so the trough of the surround becomes zero.
    trough = _deepest_surround()
    return np.maximum((difference - trough) / (1 - trough), 0)


def _deepest_surround() -> float:
    ratio = SURROUND**2
    near = ratio ** (-2 * ratio / (ratio - 1))
    far = ratio ** (-2 / (ratio - 1))
    return float((near * ratio - far) / (ratio - 1))


def _spread_centres(rng: np.random.Generator, cells: int) -> np.ndarray:
    """(cells, 2) float32 positions on a jittered lattice, in m."""
    across = int(np.ceil(np.sqrt(cells)))
    lattice = np.stack(np.divmod(rng.permutation(across**2)[:cells], across), axis=1)
    return (SIDE * (lattice + rng.uniform(0, 1, (cells, 2))) / max(across, 1)).astype(np.float32)


def _squared_distance(position: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return ((position[:, None, 0] - centres[:, 0]) ** 2) + (
        (position[:, None, 1] - centres[:, 1]) ** 2
    )


def grid_rates(rng: np.random.Generator, position: np.ndarray, cells: int) -> np.ndarray:
    """Grid cells: three rectified cosines, in modules of one scale and orientation each."""
    module = np.arange(cells) % len(GRID_SCALES)
    scale, turn = np.array(GRID_SCALES)[module], np.array(GRID_ORIENTATIONS)[module]
    offset = rng.uniform(0, 1, (cells, 2)) * scale[:, None] * 2
    rates = np.zeros((len(position), cells), np.float32)
    for third in range(3):
        # Cosines of wavelength √3/2 `scale` give fields that are `scale` apart.
        angle, wave = turn + third * np.pi / 3, 4 * np.pi / (np.sqrt(3) * scale)
        direction = np.stack([np.cos(angle), np.sin(angle)]) * wave
        phase = (offset.T * direction).sum(axis=0)
        rates += np.cos(position.astype(np.float32) @ direction.astype(np.float32) - phase)
    level = (2 * np.cos(np.sqrt(3) * np.pi * GRID_WIDTH / 2) + 1) / 3
    return np.maximum((rates / 3 - level) / (1 - level), 0).astype(np.float32)


def direction_rates(rng: np.random.Generator, direction: np.ndarray, cells: int) -> np.ndarray:
    """Head direction cells: von Mises tuning, preferred directions all around."""
    turn = 2 * np.pi / max(cells, 1)
    preferred = (np.arange(cells) + rng.uniform(-0.5, 0.5, cells)) * turn
    sharpness = 1 / np.deg2rad(rng.uniform(*DIRECTION_WIDTHS, cells)) ** 2
    return np.exp(sharpness * (np.cos(direction[:, None] - preferred) - 1)).astype(np.float32)


def speed_rates(rng: np.random.Generator, speed: np.ndarray, cells: int) -> np.ndarray:
    """Speed cells: half rise linearly from an offset, half are sigmoids, some of them falling."""
    slope, offset = rng.uniform(0.3, 0.6, cells), rng.uniform(0, 0.1, cells)
    middle = rng.uniform(0.7, 2.0, cells) * SPEED_SCALE
    width = rng.uniform(0.25, 0.5, cells) * SPEED_SCALE
    sign = np.where(rng.random(cells) < 0.4, -1, 1)
    linear = offset + slope * speed[:, None] / (2 * SPEED_SCALE)
    sigmoid = offset + (1 - offset) * expit(sign * (speed[:, None] - middle) / width)
    return np.where(rng.random(cells) < 0.5, linear, sigmoid).astype(np.float32)


def track_rates(
    rng: np.random.Generator, position: np.ndarray, cells: int, length: float
) -> np.ndarray:
    """Place cells of a track: a Gaussian field each, centres spread evenly from end to end."""
    centres = length * (np.arange(cells) + rng.uniform(0, 1, cells)) / max(cells, 1)
    widths = length * rng.uniform(*TRACK_WIDTHS, cells)
    return np.exp(-(((position[:, None] - centres) / widths) ** 2) / 2).astype(np.float32)


def running_rates(
    rng: np.random.Generator, speed: np.ndarray, cells: int, usual: float
) -> np.ndarray:
    """Speed cells that saturate: sigmoids, some of them falling; `usual` is a middling speed."""
    middle, width = usual * rng.uniform(0.4, 1.4, cells), usual * rng.uniform(0.15, 0.35, cells)
    sign = np.where(rng.random(cells) < FALLING_SHARE, -1, 1)
    return expit(sign * (speed[:, None] - middle) / width).astype(np.float32)


def with_baseline(rng: np.random.Generator, rates: np.ndarray) -> np.ndarray:
    """Rates of cells that never fall silent, each with a baseline of its own."""
    baseline = rng.uniform(*BASELINES, rates.shape[1])
    return (baseline + (1 - baseline) * rates).astype(np.float32)
