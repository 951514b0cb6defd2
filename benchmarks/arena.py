"""Table 3's question: place and grid cells against the rest, for position; and more.

The paper's arena (App. B.2: 20,000 frames; 100 place, grid, head-direction and speed cells each),
once with position as the only factor and once with position, direction and speed in one model,
without and with noise on the rates.

    python benchmarks/arena.py [--seeds 3] [--frames 20000]
"""

from __future__ import annotations

import argparse
import sys
from itertools import product

import numpy as np
import torch
from report import header, row

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.simulate import arena

METHODS = ("inverted-neuron-gradient", "neuron-gradient")


def main() -> None:
    """Fit every recording with one and with three factors and print auROC per factor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--steps", type=int, default=FitSettings().steps)
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        row("noise", "factors of the model", "factor", *METHODS, "goodness (nats)", "held-out R²"),
        row(*["---"] * 7),
    ]
    for noise, several in product(given.noise, (False, True)):
        found: dict[str, list[list[float]]] = {}
        for seed in range(given.seeds):
            simulation = arena(frames=given.frames, noise=noise, seed=seed)
            factors = dict(simulation.factors)
            if not several:
                factors = {"place": factors["place"]}
            settings = FitSettings(seed=seed, steps=given.steps)
            trained = fit(simulation.recording, factors, settings)
            maps = [
                attribute(trained, simulation.recording, method, frames=slice(0, None, 10))
                for method in METHODS
            ]
            for name in factors:
                scores = [auroc(m.score(name), simulation.truth[name]) for m in maps]
                fitted = trained.goodness[name]
                found.setdefault(name, []).append([*scores, fitted.goodness, fitted.r2])
                print(noise, several, seed, name, found[name][-1], file=sys.stderr, flush=True)
        for name, values in found.items():
            mean, least = np.mean(values, 0), np.min(values, 0)
            cells = [f"{mean[i]:.3f} (least {least[i]:.3f})" for i in range(2)]
            number = "position, direction, speed" if several else "position"
            lines.append(
                row(f"{noise:g} SD", number, name, *cells, *(f"{v:.2f}" for v in mean[2:]))
            )
    print(header("The navigating animal (paper's Table 3)"))
    print(
        f"{given.frames:,} frames, 400 cells, {given.seeds} recordings, default settings. auROC, "
        "mean (and least) over recordings; the paper reports 99.9–100 % for position.\n"
    )
    print("\n".join(lines), "\n")


if __name__ == "__main__":
    main()
