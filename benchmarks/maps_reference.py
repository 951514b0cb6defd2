"""Our maps beside the reference's J⁺, in one run: which cells carry a variable?

The reference (PyPI `cebra`, with a k-d tree put into it) is trained once for each factor, as its
users do, with two time latents and as many for the factor as its variable has dimensions, on
smoothed and standardised traces. Ours is one fit with all factors and defaults. Needs an
environment with both (see RESULTS.md).

    python benchmarks/maps_reference.py [--seed 21] [--frames 12000] [--kept FILE]
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

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.smoothing import gaussian_kernel, smoothed
from napari_xcebra.learn.model.inverse import CUT_OFF, inverse
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import Simulation, field

METHODS = ("inverted-neuron-gradient", "generative-gradient", "conditional-encoding")
TIME_LATENTS = 2
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
    traces = prepared(recording, FitSettings().smoothing)
    latents = (TIME_LATENTS, labels.shape[1])
    training = ReferenceTraining(traces, labels, latents, ReferenceSettings(tree=True), seed)
    training.train(ReferenceSettings().steps)
    jacobian = torch.as_tensor(training.jacobian(traces[::EVERY]))
    inverted = inverse(jacobian, torch.ones(sum(latents)), CUT_OFF).abs()
    return inverted[:, TIME_LATENTS:].mean((0, 1)).numpy()


def measured(simulation: Simulation, seed: int) -> dict[str, dict[str, float]]:
    """auROC of every factor by each map."""
    recording = simulation.recording
    factors = {name: list(v) for name, v in simulation.factors.items()}
    trained = fit(recording, factors, FitSettings(seed=seed))
    maps = {method: attribute(trained, recording, method) for method in METHODS}
    found = {}
    for factor in factors:
        truth = np.asarray(simulation.truth[factor])
        found[factor] = {m: auroc(each.score(factor), truth) for m, each in maps.items()}
        found[factor]["reference"] = auroc(of_reference(simulation, factor, seed), truth)
        print(factor, found[factor], file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--frames", type=int, default=12_000)
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    given = typed(parser, frames=2000)
    torch.set_num_threads(1)
    results = {
        name: kept(
            given.kept,
            f"{given.seed}: {name}",
            lambda simulate=simulate: measured(
                field(simulate(given.seed, given.frames), seed=given.seed), given.seed
            ),
        )
        for name, simulate in TASKS.items()
    }
    print(header("Maps beside the reference"))
    print(row("recording", "factor", "J⁺ of cebra, one model a factor", "J⁺", *METHODS[1:]))
    print(row(*["---"] * 6))
    for name, factors in results.items():
        for factor, about in factors.items():
            values = (f"{about[m]:.2f}" for m in ("reference", *METHODS))
            print(row(name, factor, *values))


if __name__ == "__main__":
    main()
