"""The defaults: chosen on imaged recordings with place, direction, speed and untuned cells.

Through calcium kinetics, neuropil, noise and drift (`simulate.field`), one model with three
factors. The first row is the default; each other row changes one setting of it.

    python benchmarks/field.py [--seeds 5] [--only-default]
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch
from report import header, row

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
    "2 time latents": {"time_latents": 2},
    "4 time latents": {"time_latents": 4},
    "behaviour only": {"mode": "behavior"},
    "label steps over 1 frame": {"label_offset": 1, "time_offset": 1},
    "label steps over 5 frames": {"label_offset": 5, "time_offset": 5},
    "temperature 1": {"temperature": "fixed"},
    "no warm-up": {"warm_up": 0.0},
    "warm-up 1": {"warm_up": 1.0},
    "warm-up 100": {"warm_up": 100.0},
}


def main() -> None:
    """Fit every recording under every change and print auROC per factor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--others", type=int, default=1, help="recordings of the changed rows")
    parser.add_argument("--only-default", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    recordings = [field(frames=given.frames, seed=seed) for seed in range(given.seeds)]
    factors = list(recordings[0].factors)
    lines = [
        row("settings", "recordings", *(f"{f}: J⁺ mean (least), |J|" for f in factors), "seconds"),
        row(*["---"] * (len(factors) + 3)),
    ]
    for name, change in list(CHANGES.items())[: 1 if given.only_default else None]:
        used = recordings[: given.seeds if name == "default" else given.others]
        values, seconds = [], []
        for seed, simulation in enumerate(used):
            began = time.perf_counter()
            trained = fit(
                simulation.recording, simulation.factors, FitSettings(seed=seed, **change)
            )
            seconds.append(time.perf_counter() - began)
            values.append([])
            for method in ("inverted-neuron-gradient", "neuron-gradient"):
                found = attribute(trained, simulation.recording, method, frames=slice(0, None, 10))
                values[-1].append([auroc(found.score(f), simulation.truth[f]) for f in factors])
            goodness = {f: round(trained.goodness[f].goodness, 3) for f in factors}
            print(name, seed, values[-1], goodness, file=sys.stderr, flush=True)
        inverted, gradient = np.moveaxis(np.array(values), 1, 0)
        cells = [
            f"{inverted[:, i].mean():.3f} ({inverted[:, i].min():.3f}), {gradient[:, i].mean():.3f}"
            for i in range(len(factors))
        ]
        lines.append(row(name, len(used), *cells, f"{np.mean(seconds):.0f}"))
    print(header("The defaults, on simulated imaging"))
    print(
        f"200 cells (50 each of place, direction, speed, untuned), {given.frames:,} frames at "
        "10 Hz, one model with three factors. auROC of the inverted neuron gradient J⁺ and of the "
        "neuron gradient |J| against the truth.\n"
    )
    print("\n".join(lines), "\n")


if __name__ == "__main__":
    main()
