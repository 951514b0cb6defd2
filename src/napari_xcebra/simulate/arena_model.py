"""Simulates a navigating animal: its place, grid, head direction and speed cells (App. B.2).

Beside the paper's clean case, what makes real recordings hard can be added step by step: variables
that go together, an unobserved state, mixed selectivity, cells that carry nothing, noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import atan2, cos, erfc, hypot, log, pi, sin, sqrt

import numpy as np
from scipy.special import expit, ndtr

from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Variable
from napari_xcebra.simulate.simulation import (
    Population,
    Simulation,
    check_cells,
    check_count,
    check_number,
    check_positive,
    check_strength,
    joined,
    ornstein_uhlenbeck,
    smoothed,
    template_counts,
)

FACTORS = {"place": ("position",), "direction": ("direction",), "speed": ("speed",)}
AROUSED_SHARE = 0.5
"""Share of the cells that follow the unobserved state, if there is one."""


def arena(
    *,
    place: int = 100,
    grid: int = 100,
    direction: int = 100,
    speed: int = 100,
    mixed: int = 0,
    untuned: int = 0,
    frames: int = 20_000,
    dt: float = 0.1,
    noise: float = 0.0,
    confound: float = 0.0,
    arousal: float = 0.0,
    mixed_strength: float = 1.0,
    untuned_strength: float = 1.0,
    seed: int = 0,
    day: int = 0,
    remapped: float = 0.0,
) -> Simulation:
    """Cells of an animal that forages in a box of 1 m × 1 m.

    Parameters
    ----------
    place, grid, direction, speed : int
        Number of cells that carry one variable; grid cells carry place.
    mixed : int
        Number of cells that carry two of place, direction and speed.
    untuned : int
        Number of cells that are active but carry nothing.
    frames : int
    dt : float
        Seconds between frames.
    noise : float
        Standard deviation of noise on the traces, in standard deviations of each cell.
    confound : float
        0 to 1, how much faster the animal runs away from the walls. At 1 the correlation of speed
        with the distance from the nearest wall is about 0.65.
    arousal : float
        0 to 1, how strongly an unobserved slow state drives both the speed of the animal and a
        random half of the cells, of all kinds. At 1 its correlation with speed is about 0.55.
        Cells that follow it do not for that reason carry speed.
    mixed_strength : float
        0 to 1, weight of the second variable of a mixed cell; at 0 it carries only the first.
    untuned_strength : float
        0 to 1, how much the rates of untuned cells vary; at 0 they are constant.
    seed : int
        Another animal: other cells, another path.
    day : int
        Another day of the same animal: the same cells with the same tuning, on another path.
    remapped : float
        0 to 1, share of the cells of one variable whose tuning is another one on this day.

    Returns
    -------
    Simulation
        Truth and factors "place", "direction", "speed"; truth also has "arousal" where that is
        above 0. The state itself is `hidden["arousal"]`. Rates are between 0 and about 1.

    Examples
    --------
    >>> simulation = arena(place=5, grid=5, direction=5, speed=5, frames=500)
    >>> {factor: int(cells.sum()) for factor, cells in simulation.truth.items()}
    {'place': 10, 'direction': 5, 'speed': 5}
    """
    counts = {"place": place, "grid": grid, "direction": direction, "speed": speed}
    check_cells({**counts, "mixed": mixed, "untuned": untuned})
    check_count("frames", frames, 2)
    check_positive("dt", dt)
    check_number("noise", noise, 0)
    strengths = {"confound": confound, "arousal": arousal}
    weights = {
        "mixed_strength": mixed_strength,
        "untuned_strength": untuned_strength,
        "remapped": remapped,
    }
    for name, value in {**strengths, **weights}.items():
        check_strength(name, value)
    streams = np.random.default_rng(check_count("seed", seed)).spawn(6)
    for_path, for_tuning, for_mixed, for_untuned, for_arousal, for_noise = streams
    if check_count("day", day):
        of_day = np.random.default_rng([seed, day]).spawn(3)
        for_path, for_untuned, for_noise = of_day

    trajectory = _forage(for_path, frames, dt, **strengths)
    population = _tuned_cells(for_tuning, trajectory, counts)
    if remapped:
        population = _remapped(population, trajectory, counts, remapped, [seed, day, 1])
    if mixed:
        cells = _mixed_cells(for_mixed, trajectory, mixed, mixed_strength)
        population = joined(population, cells)
    if untuned:
        cells = _untuned_cells(for_untuned, trajectory, untuned, untuned_strength)
        population = joined(population, cells)
    if arousal:
        population = _aroused(for_arousal, trajectory, population, arousal)
    source = f"seed {seed}" + (f", day {day}" if day else "")
    return _simulation(trajectory, population, for_noise, dt, noise, source, strengths)


def _tuned_cells(
    rng: np.random.Generator, trajectory: _Trajectory, counts: Mapping[str, int]
) -> Population:
    """Cells of one variable each, `counts` of them by kind."""
    for_place, for_grid, for_direction, for_speed = rng.spawn(4)
    rates = np.hstack(
        [
            _place_rates(for_place, trajectory.position, counts["place"]),
            _grid_rates(for_grid, trajectory.position, counts["grid"]),
            _direction_rates(for_direction, trajectory.direction, counts["direction"]),
            _speed_rates(for_speed, trajectory.speed, counts["speed"]),
        ]
    )
    kinds = np.repeat(list(counts), list(counts.values()))
    truth = {factor: kinds == factor for factor in FACTORS}
    truth["place"] = truth["place"] | (kinds == "grid")
    return Population(rates, kinds, truth)


def _remapped(
    population: Population,
    trajectory: _Trajectory,
    counts: Mapping[str, int],
    share: float,
    seed: Sequence[int],
) -> Population:
    """Cells of which a share has another tuning to the same variable."""
    rng = np.random.default_rng(seed)
    other = _tuned_cells(rng, trajectory, counts).rates
    # cells of a kind are in the order of what they prefer: the order has to change, too
    ends = np.cumsum(list(counts.values()))
    order = np.concatenate([rng.permutation(k) for k in np.split(np.arange(ends[-1]), ends[:-1])])
    other = other[:, order]
    changed = rng.permutation(other.shape[1]) < round(share * other.shape[1])
    return replace(population, rates=np.where(changed, other, population.rates))


def _mixed_cells(
    rng: np.random.Generator, trajectory: _Trajectory, cells: int, strength: float
) -> Population:
    """Cells of two variables: every other one multiplies them, the rest add them."""
    single = np.stack(
        [
            _place_rates(rng, trajectory.position, cells),
            _direction_rates(rng, trajectory.direction, cells),
            _speed_rates(rng, trajectory.speed, cells),
        ]
    )
    order = rng.permuted(np.tile(np.arange(3), (cells, 1)), axis=1)
    first, second = (single[order[:, i], :, np.arange(cells)].T for i in (0, 1))
    product = first * (1 - strength + strength * second)
    total = (first + strength * second) / (1 + strength)
    truth = {
        factor: (order[:, 0] == i) | ((order[:, 1] == i) & (strength > 0))
        for i, factor in enumerate(FACTORS)
    }
    rates = np.where(np.arange(cells) % 2 == 0, product, total).astype(np.float32)
    return Population(rates, np.full(cells, "mixed"), truth)


def _untuned_cells(
    rng: np.random.Generator, trajectory: _Trajectory, cells: int, strength: float
) -> Population:
    """Cells that look like tuned ones, one by one, but follow a random process of their own."""
    counts = template_counts(("place", "grid", "direction", "speed"), cells)
    found = _tuned_cells(rng, trajectory, counts).lookalikes(rng, cells)
    mean = found.rates.mean(axis=0)
    return replace(found, rates=mean + np.float32(strength) * (found.rates - mean))


def _aroused(
    rng: np.random.Generator, trajectory: _Trajectory, population: Population, strength: float
) -> Population:
    """Add the unobserved state to the rates of a random half of the cells."""
    rates, cells = population.rates, population.rates.shape[1]
    follows = rng.permutation(cells) < np.ceil(AROUSED_SHARE * cells)
    usual = rates.std(axis=0)
    usual[usual == 0] = usual.max() or 1.0
    # The state as a quantile, of variance 1: it adds to a rate and never makes it negative.
    quantile = np.sqrt(12) * ndtr(trajectory.arousal)
    gain = strength * rng.uniform(0.4, 1.0, cells) * usual * follows
    added = (quantile[:, None] * gain).astype(np.float32)
    return Population(rates + added, population.kinds, {**population.truth, "arousal": follows})


def _simulation(
    trajectory: _Trajectory,
    population: Population,
    rng: np.random.Generator,
    dt: float,
    noise: float,
    source: str,
    strengths: Mapping[str, float],
) -> Simulation:
    """Noise on the rates, and everything put in its place."""
    traces = population.rates
    if noise:
        spread = (noise * traces.std(axis=0)).astype(np.float32)
        traces = traces + spread * rng.standard_normal(traces.shape, np.float32)
    hard = ", ".join(f"{name} {value:g}" for name, value in strengths.items())
    description = (
        f"Animal foraging in a box of 1 m × 1 m for {len(traces) * dt:.0f} s; cells: {population}; "
        f"{hard}; noise {noise:g}."
    )
    recording = Recording(
        traces=traces,
        rate=1 / dt,
        behavior={
            "position": Variable("position", trajectory.position, unit="m"),
            "direction": Variable("direction", trajectory.direction, "circular", unit="rad"),
            "speed": Variable("speed", trajectory.speed, unit="m/s"),
        },
        source=f"simulated arena, {source}",
        notes=(description,),
    )
    return population.simulation(recording, FACTORS, {"arousal": trajectory.arousal})


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
class _Trajectory:
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


def _forage(
    rng: np.random.Generator,
    frames: int,
    dt: float,
    *,
    confound: float = 0.0,
    arousal: float = 0.0,
) -> _Trajectory:
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
    return _Trajectory(
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


def _place_rates(rng: np.random.Generator, position: np.ndarray, cells: int) -> np.ndarray:
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


def _grid_rates(rng: np.random.Generator, position: np.ndarray, cells: int) -> np.ndarray:
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


def _direction_rates(rng: np.random.Generator, direction: np.ndarray, cells: int) -> np.ndarray:
    """Head direction cells: von Mises tuning, preferred directions all around."""
    turn = 2 * np.pi / max(cells, 1)
    preferred = (np.arange(cells) + rng.uniform(-0.5, 0.5, cells)) * turn
    sharpness = 1 / np.deg2rad(rng.uniform(*DIRECTION_WIDTHS, cells)) ** 2
    return np.exp(sharpness * (np.cos(direction[:, None] - preferred) - 1)).astype(np.float32)


def _speed_rates(rng: np.random.Generator, speed: np.ndarray, cells: int) -> np.ndarray:
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
