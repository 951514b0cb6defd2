"""Table 3's question: place and grid cells against the rest, for position; and more.

The paper's arena (App. B.2: 20,000 frames; 100 place, grid, head-direction and speed cells each),
once with position as the only factor and once with position, direction and speed in one model,
without and with noise on the rates. Beside it what labs compute of single cells.

    python benchmarks/arena.py [--seeds 3] [--frames 20000]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
from report import header, row, typed

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.attribution.single_cell import STATISTICS, cell_statistics
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.simulate import Simulation, arena

METHODS = ("inverted-neuron-gradient", "neuron-gradient")


GRID = "grid_score"
"""Finds grid cells, which are half of those that carry place."""


def main() -> None:
    """Fit every recording with one and with three factors and print auROC per factor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--steps", type=int, default=FitSettings().steps)
    given = typed(parser, frames=1500, seeds=1, noise=[1.0])
    torch.set_num_threads(1)
    maps = [
        row("noise", "factors of the model", "factor", *METHODS, "goodness (nats)", "held-out R²"),
        row(*["---"] * 7),
    ]
    single = [name for name in STATISTICS if name != GRID]
    statistics = [row("noise", "factor", *(name.replace("_", " ") for name in single))]
    statistics.append(row(*["---"] * (2 + len(single))))
    for noise in given.noise:
        simulations = [
            arena(frames=given.frames, noise=noise, seed=seed) for seed in range(given.seeds)
        ]
        for several in (False, True):
            number = "position, direction, speed" if several else "position"
            for name, values in fitted(simulations, several, given.steps).items():
                fit_columns = (f"{v:.2f}" for v in np.mean(values, 0)[2:])
                scores = summary(np.array(values)[:, :2])
                maps.append(row(f"{noise:g} SD", number, name, *scores, *fit_columns))
        for name, values in found_by_statistics(simulations, single).items():
            statistics.append(row(f"{noise:g} SD", name, *summary(np.array(values))))
    print(header("The navigating animal (paper's Table 3)"))
    print(
        f"{given.frames:,} frames, 400 cells, {given.seeds} recordings, default settings. auROC, "
        "mean (and least) over recordings; the paper reports 99.9–100 % for position.\n"
    )
    print("\n".join(maps), "\n")
    print("What labs compute of single cells, on the same recordings, auROC as above:\n")
    print("\n".join(statistics), "\n")


def fitted(
    simulations: list[Simulation], several: bool, steps: int
) -> dict[str, list[list[float]]]:
    """By factor and recording: auROC by each method, goodness, R²."""
    found: dict[str, list[list[float]]] = {}
    for seed, simulation in enumerate(simulations):
        factors = {n: v for n, v in simulation.factors.items() if several or n == "place"}
        trained = fit(simulation.recording, factors, FitSettings(seed=seed, steps=steps))
        maps = [
            attribute(trained, simulation.recording, method, frames=slice(0, None, 10))
            for method in METHODS
        ]
        for name in factors:
            scores = [auroc(m.score(name), simulation.truth[name]) for m in maps]
            goodness = trained.goodness[name]
            found.setdefault(name, []).append([*scores, goodness.goodness, goodness.r2])
            print(several, seed, name, found[name][-1], file=sys.stderr, flush=True)
    return found


def found_by_statistics(
    simulations: list[Simulation], names: list[str]
) -> dict[str, list[list[float]]]:
    """By factor and recording: auROC of each statistic; of those with a sign, of their size."""
    found: dict[str, list[list[float]]] = {}
    for simulation in simulations:
        computed = cell_statistics(simulation.recording, simulation.factors, names)
        for factor in simulation.factors:
            values = computed.of(factor)
            truth = simulation.truth[factor]
            scores = [auroc(STATISTICS[name].strength(values[name]), truth) for name in names]
            found.setdefault(factor, []).append(scores)
            print(factor, scores, file=sys.stderr, flush=True)
    return found


def summary(values: np.ndarray) -> list[str]:
    """Mean, and least, over recordings."""
    pairs = zip(values.mean(0), values.min(0), strict=True)
    return [f"{mean:.3f} (least {least:.3f})" for mean, least in pairs]


if __name__ == "__main__":
    main()
