"""Simulates a head-fixed mouse on a belt: cells of place, speed, licking and a hidden state.

Variables go together as they do in labs: the mouse is slow, and licks, where it expects a reward.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

import numpy as np
from scipy.special import ndtr

from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Variable
from napari_xcebra.simulate.arena_model import running_rates, track_rates, with_baseline
from napari_xcebra.simulate.simulation import (
    Population,
    Simulation,
    check_cells,
    check_count,
    check_positive,
    joined,
    on_and_off,
    ornstein_uhlenbeck,
    population_of,
    smoothed,
    template_counts,
)

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
class _Laps:
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


def _run_laps(rng: np.random.Generator, frames: int, dt: float, length: float) -> _Laps:
    """Laps on a belt of some cm with a reward at `REWARD`; frames are `dt` seconds apart."""
    for_state, for_speed, for_pauses, for_laps, for_licks = rng.spawn(5)
    state = ornstein_uhlenbeck(for_state, frames, ENGAGEMENT_TIME / dt)
    swing = SPEED_SWING * ornstein_uhlenbeck(for_speed, frames, SPEED_TIME / dt)
    waits = on_and_off(for_pauses, frames, PAUSE_EVERY / dt, PAUSE_TIME / dt).astype(float)
    runs = 1 - smoothed(waits, PAUSE_SLOWING / dt)
    wished = USUAL_SPEED * runs * np.maximum(1 + swing + ENGAGEMENT_SWING * state, 0)
    position, speed = _run(for_laps, wished, dt, length)
    return _Laps(position, speed, _licks(for_licks, position, dt, length), state)


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

    laps = _run_laps(for_laps, frames, 1 / rate, length)
    population = _tuned_cells(for_tuning, laps, counts, length, rate)
    if untuned:
        templates = _tuned_cells(for_untuned, laps, template_counts(counts, untuned), length, rate)
        population = joined(population, templates.lookalikes(for_untuned, untuned))
    return _simulation(laps, population, length, rate, seed)


def _tuned_cells(
    rng: np.random.Generator, laps: _Laps, counts: Mapping[str, int], length: float, rate: float
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


def _mixed_rates(rng: np.random.Generator, laps: _Laps, cells: int, length: float) -> np.ndarray:
    """Place fields in which speed is a gain, (frames, cells)."""
    where = track_rates(rng, laps.position, cells, length)
    gain = running_rates(rng, laps.speed, cells, USUAL_SPEED)
    return where * (1 - MIXED_GAIN + MIXED_GAIN * gain)


def _simulation(
    laps: _Laps, population: Population, length: float, rate: float, seed: int
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
    return population.simulation(recording, FACTORS, {"engagement": laps.engagement})
