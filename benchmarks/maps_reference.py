"""Our maps beside the reference's J⁺, in one run: which cells carry a variable?

The reference (PyPI `cebra`, with a k-d tree put into it) is trained once for each factor, as its
users do, with two time latents and as many for the factor as its variable has dimensions. J⁺ of
ours with `FitSettings.paper()` has the same inputs, steps and latents, with one model a factor and
with one model for all of them. The other maps are of one fit with all factors and defaults. Needs
an environment with both (see results/maps.md).

    python benchmarks/maps_reference.py [--seeds 31 32 33] [--frames 6000] [--kept FILE]
"""

from __future__ import annotations

import argparse
import sys
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
COLUMNS = ("reference", "one", "all", *METHODS)
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


def of_reference(simulation: Simulation, factor: str, seed: int) -> np.ndarray:
    """Mean |J⁺| of the latents of a factor, by a model of its own: (cells,)."""
    recording = simulation.recording
    labels = Labels.of(recording, simulation.factors[factor], factor).coordinates()
    traces = prepared(recording, SMOOTHING)
    latents = (TIME_LATENTS, labels.shape[1])
    training = ReferenceTraining(traces, labels, latents, REFERENCE, seed)
    training.train(REFERENCE.steps)
    jacobian = torch.as_tensor(training.jacobian(traces[::EVERY]))
    inverted = inverse(jacobian, torch.ones(sum(latents)), CUT_OFF).abs()
    return inverted[:, TIME_LATENTS:].mean((0, 1)).numpy()


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
    found = {}
    for factor, names in factors.items():
        truth = np.asarray(simulation.truth[factor])
        found[factor] = {m: auroc(each.score(factor), truth) for m, each in maps.items()}
        one = as_published(recording, {factor: names}, seed)
        found[factor]["one"] = auroc(one.score(factor), truth)
        found[factor]["reference"] = auroc(of_reference(simulation, factor, seed), truth)
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
    titles = ("J⁺ of cebra", "J⁺, paper, one factor", "J⁺, paper, all factors")
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
                differences += [(factor, about[m] - about["reference"]) for m in ("one", "all")]
    low = [f"{factor} {by:+.3f}" for factor, by in differences if by < -0.03]
    print(
        f"\nMore than 0.03 below the reference: {len(low)} of {len(differences)}: {', '.join(low)}"
    )


if __name__ == "__main__":
    main()
