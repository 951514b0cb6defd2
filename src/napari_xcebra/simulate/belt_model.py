"""A head-fixed mouse on a belt, and its cells of place, speed, licking and a hidden state.

Variables go together as they do in labs: the mouse is slow, and licks, where it expects a reward.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtr

from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate.laps import USUAL_SPEED, Laps, run_laps
from napari_xcebra.simulate.population import (
    Population,
    check_cells,
    joined,
    lookalikes,
    population_of,
    template_counts,
)
from napari_xcebra.simulate.processes import smoothed
from napari_xcebra.simulate.simulation import Simulation, check_count, check_positive
from napari_xcebra.simulate.tuning import running_rates, track_rates, with_baseline

FACTORS = {name: (name,) for name in ("position", "speed", "lick")}
CARRIED = {
    "position": ("place", "mixed"),
    "speed": ("speed", "mixed"),
    "lick": ("lick",),
    "engagement": ("hidden",),
}
"""Kinds of cells that carry each factor, and the hidden state."""
LICK_TIMES = (0.2, 0.5)
"""Range of times over which lick cells take licks together, in s."""
MIXED_GAIN = 0.75
"""Share of the rate of a mixed cell that depends on speed."""


def belt(
    *,
    place: int = 45,
    speed: int = 15,
    lick: int = 10,
    hidden: int = 10,
    mixed: int = 15,
    untuned: int = 25,
    length: float = 180.0,
    frames: int = 12_000,
    rate: float = 10.0,
    seed: int = 0,
) -> Simulation:
    """Cells of a mouse that runs laps on a belt for a reward.

    The mouse slows down before the reward, at three quarters of the belt, and licks around it in
    most laps. Speed also varies by itself and from lap to lap, and the mouse pauses at times. At
    the end of the belt it is at its start again; place fields do not reach across.

    Parameters
    ----------
    place : int
        Number of cells with a place field on the belt.
    speed : int
        Number of cells that rise, or fall, with speed, up to a limit.
    lick : int
        Number of cells that follow licks.
    hidden : int
        Number of cells that follow an unobserved slow state, which also makes the mouse a little
        faster. They do not for that reason carry speed.
    mixed : int
        Number of place cells whose rate depends on speed.
    untuned : int
        Number of cells that are active but carry nothing.
    length : float
        Length of the belt, in cm.
    frames : int
    rate : float
        Frames per second.
    seed : int

    Returns
    -------
    Simulation
        Truth and factors "position", "speed", "lick"; truth also has "engagement" where there are
        hidden cells. The state itself is `hidden["engagement"]`. Rates are between 0 and 1.

    Examples
    --------
    >>> simulation = belt(place=6, speed=4, lick=3, hidden=2, mixed=3, untuned=2, frames=500)
    >>> {factor: int(cells.sum()) for factor, cells in simulation.truth.items()}
    {'position': 9, 'speed': 7, 'lick': 3, 'engagement': 2}
    """
    counts = {"place": place, "speed": speed, "lick": lick, "hidden": hidden, "mixed": mixed}
    check_cells({**counts, "untuned": untuned})
    check_positive("length", length)
    check_count("frames", frames, 2)
    check_positive("rate", rate)
    streams = np.random.default_rng(check_count("seed", seed)).spawn(3)
    for_laps, for_tuning, for_untuned = streams

    laps = run_laps(for_laps, frames, 1 / rate, length)
    population = tuned_cells(for_tuning, laps, counts, length, rate)
    if untuned:
        kinds = template_counts(counts, untuned)
        templates = tuned_cells(for_untuned, laps, kinds, length, rate).rates
        rates = {"untuned": lookalikes(for_untuned, templates, untuned)}
        population = joined(population, population_of(rates, CARRIED))
    return _simulation(laps, population, length, rate, seed)


def tuned_cells(
    rng: np.random.Generator, laps: Laps, counts: Mapping[str, int], length: float, rate: float
) -> Population:
    """Cells that carry a variable or the hidden state, `counts` of them by kind."""
    for_place, for_speed, for_lick, for_hidden, for_mixed, for_baseline = rng.spawn(6)
    rates = {
        "place": track_rates(for_place, laps.position, counts["place"], length),
        "speed": running_rates(for_speed, laps.speed, counts["speed"], USUAL_SPEED),
        "lick": _lick_rates(for_lick, laps.lick, counts["lick"], rate),
        "hidden": _state_rates(for_hidden, laps.engagement, counts["hidden"]),
        "mixed": _mixed_rates(for_mixed, laps, counts["mixed"], length),
    }
    return population_of({k: with_baseline(for_baseline, r) for k, r in rates.items()}, CARRIED)


def _lick_rates(rng: np.random.Generator, lick: np.ndarray, cells: int, rate: float) -> np.ndarray:
    """Licks of the last few hundred milliseconds, (frames, cells)."""
    times = rate * rng.uniform(*LICK_TIMES, cells)
    licks = [smoothed(lick.astype(float), time) for time in times]
    return np.array(licks).reshape(cells, len(lick)).T


def _state_rates(rng: np.random.Generator, state: np.ndarray, cells: int) -> np.ndarray:
    """Sigmoids of the state, every other one falling, (frames, cells)."""
    slope = rng.uniform(1, 2, cells) * np.where(np.arange(cells) % 2, -1, 1)
    rates: np.ndarray = ndtr(slope * (state[:, None] - rng.uniform(-0.5, 0.5, cells)))
    return rates


def _mixed_rates(rng: np.random.Generator, laps: Laps, cells: int, length: float) -> np.ndarray:
    """Place fields in which speed is a gain, (frames, cells)."""
    where = track_rates(rng, laps.position, cells, length)
    gain = running_rates(rng, laps.speed, cells, USUAL_SPEED)
    return where * (1 - MIXED_GAIN + MIXED_GAIN * gain)


def _simulation(
    laps: Laps, population: Population, length: float, rate: float, seed: int
) -> Simulation:
    frames = len(population.rates)
    description = (
        f"Mouse running laps on a belt of {length:g} cm for {frames / rate:.0f} s; "
        f"cells: {population}."
    )
    recording = Recording(
        traces=population.rates,
        rate=rate,
        behavior={
            "position": Variable("position", laps.position, unit="cm"),
            "speed": Variable("speed", laps.speed, unit="cm/s"),
            "lick": Variable("lick", laps.lick, "discrete"),
        },
        source=f"simulated belt, seed {seed}",
        notes=(description,),
    )
    unseen = population.truth["engagement"].any()
    return Simulation(
        recording=recording,
        truth={f: c for f, c in population.truth.items() if f in FACTORS or unseen},
        factors=FACTORS,
        hidden={"engagement": laps.engagement},
        rates=population.rates,
        cell_kinds=population.kinds,
        description=description,
    )
