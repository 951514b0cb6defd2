"""The defaults: chosen on imaged recordings with place, direction, speed and untuned cells.

Through calcium kinetics, neuropil, noise and drift (`simulate.field`), one model with three
factors. The first row is the default; each other row changes one setting of it.

    python benchmarks/field.py [--seeds 5] [--only default "2 time latents"] [--keep FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from report import header, kept, row, typed

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.simulate import field

CHANGES: dict[str, dict[str, object]] = {
    "default": {},
    "λ = 0.3": {"lambda_": 0.3},
    "λ = 1": {"lambda_": 1.0},
    "λ = 3": {"lambda_": 3.0},
    "λ = 10": {"lambda_": 10.0},
    "no smoothing": {"smoothing": 0.0},
    "smoothing 0.5 s": {"smoothing": 0.5},
    "1 time latent": {"time_latents": 1},
    "4 time latents": {"time_latents": 4},
    "behaviour only": {"mode": "behavior"},
    "label steps over 1 frame": {"label_offset": 1, "time_offset": 1},
    "label steps over 5 frames": {"label_offset": 5, "time_offset": 5},
    "temperature 1": {"temperature": "fixed"},
    "no readout": {"readout": 0.0},
    "readout 100": {"readout": 100.0},
    "no cells hidden": {"hide": 0.0},
    "not deconvolved": {"deconvolve": False},
}


METHODS = ("inverted-neuron-gradient", "neuron-gradient", "conditional-encoding")


def scores(name: str, seed: int, frames: int) -> dict[str, list[float]]:
    """auROC of each factor by every method, seconds of the processor, and λ."""
    simulation = field(frames=frames, seed=seed)
    began = time.process_time()
    settings = FitSettings(seed=seed, **CHANGES[name])
    trained = fit(simulation.recording, simulation.factors, settings)
    found = {"seconds": [time.process_time() - began], "lambda": [float(trained.lambda_)]}
    for method in METHODS:
        every = None if method == "conditional-encoding" else slice(0, None, 10)
        result = attribute(trained, simulation.recording, method, frames=every)
        found[method] = [auroc(result.score(f), simulation.truth[f]) for f in simulation.factors]
    print(name, seed, found, file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Fit every recording under every change and print auROC per factor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--others", type=int, default=1, help="recordings of the changed rows")
    parser.add_argument("--only", nargs="+", default=list(CHANGES), help="these rows")
    parser.add_argument("--keep", type=Path, help="file in which results are kept as they come")
    given = typed(parser, frames=1500, seeds=1, only=["default"])
    torch.set_num_threads(1)
    factors = ("place", "direction", "speed")
    titles = [f"{f}: J⁺ mean (least), |J|, conditional encoding (least)" for f in factors]
    lines = [
        row("settings", "recordings", *titles, "λ", "seconds"),
        row(*["---"] * (len(factors) + 4)),
    ]
    for name in given.only:
        used = range(given.seeds if name == "default" else given.others)
        found = [
            kept(given.keep, f"{name} {seed}", partial(scores, name, seed, given.frames))
            for seed in used
        ]
        inverted, gradient, beyond = (np.array([one[m] for one in found]) for m in METHODS)
        cells = [
            f"{inverted[:, i].mean():.3f} ({inverted[:, i].min():.3f}), {gradient[:, i].mean():.3f}"
            f", {beyond[:, i].mean():.3f} ({beyond[:, i].min():.3f})"
            for i in range(len(factors))
        ]
        lambdas = [one["lambda"][0] for one in found]
        span = f"{min(lambdas):.2g} to {max(lambdas):.2g}"
        seconds = np.mean([one["seconds"][0] for one in found])
        lines.append(row(name, len(used), *cells, span, f"{seconds:.0f}"))
    print(header("The defaults, on simulated imaging"))
    print(
        f"200 cells (50 each of place, direction, speed, untuned), {given.frames:,} frames at "
        "10 Hz, one model with three factors. auROC of the inverted neuron gradient J⁺, of the "
        "neuron gradient |J| and of conditional encoding against the truth; seconds of the "
        "processor.\n"
    )
    print("\n".join(lines), "\n")


if __name__ == "__main__":
    main()
