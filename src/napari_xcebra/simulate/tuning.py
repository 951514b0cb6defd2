"""Tunes cells to position, head direction and speed: from behaviour to rates.

Every function returns (frames, cells) float32 rates between 0 and about 1. In the arena, shapes
are those of RatInABox (George et al. 2024) with the parameters of the paper's App. B.2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from napari_xcebra.simulate.trajectory import SIDE, SPEED_SCALE

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
