"""Simulates a navigating animal: its place, grid, head direction and speed cells (App. B.2).

Beside the paper's clean case, what makes real recordings hard can be added step by step: variables
that go together, an unobserved state, mixed selectivity, cells that carry nothing, noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Variable
from napari_xcebra.simulate.motion import (
    Trajectory,
    direction_rates,
    forage,
    grid_rates,
    place_rates,
    speed_rates,
)
from napari_xcebra.simulate.simulation import (
    Population,
    Simulation,
    check_cells,
    check_count,
    check_number,
    check_positive,
    check_strength,
    joined,
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

    trajectory = forage(for_path, frames, dt, **strengths)
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
        population = aroused(for_arousal, trajectory, population, arousal)
    source = f"seed {seed}" + (f", day {day}" if day else "")
    return _simulation(trajectory, population, for_noise, dt, noise, source, strengths)


def _tuned_cells(
    rng: np.random.Generator, trajectory: Trajectory, counts: Mapping[str, int]
) -> Population:
    """Cells of one variable each, `counts` of them by kind."""
    for_place, for_grid, for_direction, for_speed = rng.spawn(4)
    rates = np.hstack(
        [
            place_rates(for_place, trajectory.position, counts["place"]),
            grid_rates(for_grid, trajectory.position, counts["grid"]),
            direction_rates(for_direction, trajectory.direction, counts["direction"]),
            speed_rates(for_speed, trajectory.speed, counts["speed"]),
        ]
    )
    kinds = np.repeat(list(counts), list(counts.values()))
    truth = {factor: kinds == factor for factor in FACTORS}
    truth["place"] = truth["place"] | (kinds == "grid")
    return Population(rates, kinds, truth)


def _remapped(
    population: Population,
    trajectory: Trajectory,
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
    rng: np.random.Generator, trajectory: Trajectory, cells: int, strength: float
) -> Population:
    """Cells of two variables: every other one multiplies them, the rest add them."""
    single = np.stack(
        [
            place_rates(rng, trajectory.position, cells),
            direction_rates(rng, trajectory.direction, cells),
            speed_rates(rng, trajectory.speed, cells),
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
    rng: np.random.Generator, trajectory: Trajectory, cells: int, strength: float
) -> Population:
    """Cells that look like tuned ones, one by one, but follow a random process of their own."""
    counts = template_counts(("place", "grid", "direction", "speed"), cells)
    found = _tuned_cells(rng, trajectory, counts).lookalikes(rng, cells)
    mean = found.rates.mean(axis=0)
    return replace(found, rates=mean + np.float32(strength) * (found.rates - mean))


def aroused(
    rng: np.random.Generator, trajectory: Trajectory, population: Population, strength: float
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
    trajectory: Trajectory,
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
