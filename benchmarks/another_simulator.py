"""Does it hold on recordings that another program simulated? Animal and cells of RatInABox.

Nothing in the program was chosen on these. Place, grid, head direction and speed cells of
RatInABox (`pip install ratinabox==1.15.3`) in a box of 1 m, beside cells that follow slow states
of their own; spikes, calcium (0.8 s), drift and noise are added here. A lure is a variable that no
cell has seen. All settings are the defaults.

    python benchmarks/another_simulator.py [--seeds 1 2 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from report import header, row, typed
from scipy.signal import lfilter

from napari_xcebra.attribution import attribute
from napari_xcebra.learn import fit
from napari_xcebra.recording import Recording

RATE = 10.0
DECAY = np.exp(-1 / (0.8 * RATE))
MIXES = {
    "a few": {"place": 4, "grid": 0, "heading": 3, "speed": 2, "none": 91},
    "half": {"place": 25, "grid": 15, "heading": 20, "speed": 6, "none": 54},
    "nearly all": {"place": 45, "grid": 20, "heading": 25, "speed": 10, "none": 5},
}
"""Cells of each kind."""
CARRIED_BY = {"position": ("place", "grid"), "heading": ("heading",), "speed": ("speed",)}
METHODS = ("conditional-encoding", "generative-gradient", "inverted-neuron-gradient")


def explored(mix: dict[str, int], frames: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rates from 0 to 1 of the cells that carry something, and the behaviour."""
    import ratinabox
    from ratinabox import Agent, Environment
    from ratinabox.Neurons import GridCells, HeadDirectionCells, PlaceCells, SpeedCell

    ratinabox.verbose = False
    animal = Agent(Environment(), {"dt": 1 / RATE})
    cells = [
        PlaceCells(animal, {"n": mix["place"], "widths": 0.18}),
        *([GridCells(animal, {"n": mix["grid"], "gridscale": (0.3, 0.6)})] if mix["grid"] else ()),
        HeadDirectionCells(animal, {"n": mix["heading"], "angular_spread_degrees": 40}),
        *(SpeedCell(animal) for _ in range(mix["speed"])),
    ]
    rates, ways = [], []
    for _ in range(frames):
        animal.update()
        for each in cells:
            each.update()
        rates.append(np.concatenate([np.ravel(each.firingrate)[: each.n] for each in cells]))
        angle = np.arctan2(*animal.head_direction[::-1])
        ways.append([*animal.pos, angle, np.linalg.norm(animal.velocity)])
    way = np.array(ways)
    behavior = {"position": way[:, :2], "heading": way[:, 2], "speed": way[:, 3]}
    found = np.array(rates)
    return found / np.maximum(found.max(axis=0), 1e-9), behavior


def imaged(rates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Calcium of spikes, with drift and noise: (frames, cells)."""
    frames, cells = rates.shape
    spikes = rng.poisson(0.4 * rates * rng.lognormal(0, 0.5, cells) + 0.005)
    period, phase = rng.uniform(1500, 6000, cells), rng.uniform(0, 6, cells)
    drift = 0.3 * np.sin(2 * np.pi * np.arange(frames)[:, None] / period + phase)
    return lfilter([1], [1, -DECAY], spikes, axis=0) + drift + rng.normal(0, 0.7, rates.shape)


def simulated(mix: dict[str, int], frames: int, seed: int) -> tuple[Recording, np.ndarray]:
    """Recording, and the kind of each cell."""
    np.random.seed(seed)  # noqa: NPY002 -- the package draws from the global generator
    rng = np.random.default_rng(seed)
    carrying, behavior = explored(mix, frames)
    states = lfilter([0.2], [1, -0.98], rng.normal(size=(frames, mix["none"])), axis=0)
    idle = np.maximum(states, 0) / np.maximum(states.max(axis=0), 1e-9)
    lure = np.convolve(rng.normal(size=frames + 59), np.ones(60) / 60, "valid")
    recording = Recording.from_arrays(
        imaged(np.hstack([carrying, idle]), rng).astype(np.float32),
        rate=RATE,
        behavior=behavior | {"lure": lure},
        kinds={"heading": "circular"},
    )
    return recording, np.repeat(list(mix), list(mix.values()))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--frames", type=int, default=6000)
    given = typed(parser, seeds=[1], frames=600)
    print(header("Cells of another simulator"))
    titles = ["carrying", "seed", "variable", "cells", "verdict", "R²", "ridge", *METHODS, "fit, s"]
    print(row(*titles))
    print(row(*["---"] * len(titles)))
    for name, mix in MIXES.items():
        for seed in given.seeds:
            measure(name, mix, given.frames, seed)


def measure(name: str, mix: dict[str, int], frames: int, seed: int) -> None:
    """Train with the defaults, and print a row for each variable."""
    recording, kinds = simulated(mix, frames, seed)
    begun = time.perf_counter()
    fitted = fit(recording, {variable: [variable] for variable in recording.behavior})
    seconds = time.perf_counter() - begun
    maps = [attribute(fitted, recording, method) for method in METHODS]
    for variable in recording.behavior:
        carrying = np.isin(kinds, CARRIED_BY.get(variable, ()))
        good = fitted.goodness[variable]
        areas = [area(each.score(variable), carrying) for each in maps]
        decoded = (f"{good.r2:.2f}", f"{good.ridge_r2:.2f}")
        words = [name, seed, variable, carrying.sum(), good.strength, *decoded, *areas]
        print(row(*words, f"{seconds:.0f}"), flush=True)


def area(scores: np.ndarray, carrying: np.ndarray) -> str:
    """How well scores tell cells that carry a variable from the others: area under the ROC."""
    if not carrying.any():
        return "–"
    ranks = np.argsort(np.argsort(np.nan_to_num(scores, nan=-np.inf))) + 1
    n, m = carrying.sum(), (~carrying).sum()
    return f"{(ranks[carrying].sum() - n * (n + 1) / 2) / (n * m):.3f}"


if __name__ == "__main__":
    main()
