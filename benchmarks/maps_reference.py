"""Our maps beside the reference's J⁺, in one run: which cells carry a variable?

The reference (PyPI `cebra`, with a k-d tree put into it) is trained once for each factor, as its
users do, and once for all of them, with two time latents and as many for a factor as its variable
has dimensions. J⁺ of ours with `FitSettings.paper()` has the same inputs, steps and latents. The
other maps are of one fit with all factors and defaults. Needs an environment with both (see
results/maps.md).

    python benchmarks/maps_reference.py [--seeds 31 32 33] [--frames 6000] [--kept FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from ordinary import TASKS
from reference import ReferenceSettings, ReferenceTraining
from report import header, kept, row, typed

from napari_xcebra.attribution import Attribution, attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.smoothing import gaussian_kernel, smoothed
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import Simulation, field

METHODS = ("both-routes", "generative-gradient", "conditional-encoding")
JPLUS = "inverted-neuron-gradient"
COLUMNS = ("reference", "one", "reference all", "all", *METHODS)
BESIDE = {"one": "reference", "all": "reference all"}
"""What each is compared with."""
TIME_LATENTS = 2
STEPS = FitSettings.paper().steps
RAMP = STEPS // 8, STEPS // 4
REFERENCE = ReferenceSettings(tree=True, projections=-1, steps=STEPS, ramp=RAMP)
SMOOTHING = FitSettings().smoothing
IMAGED = ("belt", "choice task", "arena")
EVERY = 10
"""J⁺ is averaged over every so many frames."""


def prepared(recording: Recording, seconds: float) -> np.ndarray:
    """Traces smoothed and standardised: (frames, cells) float32."""
    kernel = gaussian_kernel(seconds * recording.rate)
    columns = np.arange(recording.n_cells)
    traces = np.concatenate([t for _, t in smoothed(recording, columns, kernel)])
    return ((traces - traces.mean(0)) / np.maximum(traces.std(0), 1e-9)).astype(np.float32)


def of_reference(
    simulation: Simulation, factors: Sequence[str], seed: int
) -> dict[str, np.ndarray]:
    """Mean |J⁺| of the latents of each factor, by one model for all of them: (cells,) each."""
    recording = simulation.recording
    labels = {
        name: Labels.of(recording, simulation.factors[name], name).coordinates() for name in factors
    }
    traces = prepared(recording, SMOOTHING)
    latents = (TIME_LATENTS, *(each.shape[1] for each in labels.values()))
    training = ReferenceTraining(traces, labels, latents, REFERENCE, seed)
    training.train(REFERENCE.steps)
    jacobian = torch.as_tensor(training.jacobian(traces[::EVERY]))
    inverted = inverse(jacobian, torch.ones(sum(latents)), CUT_OFF).abs().mean(0).numpy()
    parts = pairwise(np.cumsum(latents))
    return {name: inverted[slice(*part)].mean(0) for name, part in zip(labels, parts, strict=True)}


def as_published(recording: Recording, factors: dict, seed: int) -> Attribution:
    """J⁺ of a fit with all that departs from the paper turned off."""
    settings = FitSettings.paper(seed=seed, smoothing=SMOOTHING, time_latents=TIME_LATENTS)
    every = slice(None, None, EVERY)
    return attribute(fit(recording, factors, settings), recording, JPLUS, frames=every)


def measured(simulation: Simulation, seed: int) -> dict[str, dict[str, float]]:
    """auROC of every factor by each map."""
    recording = simulation.recording
    factors = {name: list(v) for name, v in simulation.factors.items()}
    trained = fit(recording, factors, FitSettings(seed=seed))
    maps = {method: attribute(trained, recording, method) for method in METHODS}
    maps["all"] = as_published(recording, factors, seed)
    together, found = of_reference(simulation, list(factors), seed), {}
    for factor, names in factors.items():
        truth = np.asarray(simulation.truth[factor])
        found[factor] = {m: auroc(each.score(factor), truth) for m, each in maps.items()}
        one = as_published(recording, {factor: names}, seed)
        found[factor]["one"] = auroc(one.score(factor), truth)
        found[factor]["reference all"] = auroc(together[factor], truth)
        alone = of_reference(simulation, [factor], seed)[factor]
        found[factor]["reference"] = auroc(alone, truth)
        print(factor, found[factor], file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(31, 32, 33))
    parser.add_argument("--frames", type=int, default=6000)
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    given = typed(parser, frames=2000, seeds=(31,))
    torch.set_num_threads(1)
    print(header("Maps beside the reference"))
    titles = ("J⁺ of cebra, one factor", "paper, one", "cebra, all factors", "paper, all")
    print(row("recording", "seed", "factor", *titles, *METHODS))
    print(row(*["---"] * (3 + len(COLUMNS))))
    differences = []
    for seed in given.seeds:
        for name in IMAGED:

            def measure(name=name, seed=seed) -> dict:
                return measured(field(TASKS[name](seed, given.frames), seed=seed), seed)

            factors = kept(given.kept, f"{seed}: {name}, {given.frames}", measure)
            for factor, about in factors.items():
                print(row(name, seed, factor, *(f"{about[m]:.3f}" for m in COLUMNS)))
                differences += [(factor, about[m] - about[r]) for m, r in BESIDE.items()]
    for name, some in zip(BESIDE, (differences[::2], differences[1::2]), strict=True):
        print(f"\n{name}: {np.mean([by for _, by in some]):+.3f} on average.")
    low = [f"{factor} {by:+.3f}" for factor, by in differences if by < -0.03]
    print(
        f"\nMore than 0.03 below the reference: {len(low)} of {len(differences)}: {', '.join(low)}"
    )


if __name__ == "__main__":
    main()
