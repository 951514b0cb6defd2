"""Models that `cebra` trained, opened here: are the cells found that carry a variable?

Four recordings on which the inverse of the encoder's Jacobian, the map of the paper, fails: an
angle carried by 70 % of 100 cells, a balanced state by 95 %, and stimulus and choice of a task.
`cebra` 0.6.1 trains on each as its users do (``CEBRA.fit`` and ``CEBRA.save``), and with the
objectives of xCEBRA (the state of its solver is saved); `open_cebra` opens both files. All maps
are then of the very same encoder.

    python benchmarks/cebra_models.py [--seeds 3] [--kept FILE] [--picture cebra_models.png]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import cebra
import numpy as np
import torch
from ordinary import one_variable
from reference import ReferenceSettings, ReferenceTraining
from report import header, kept, row, typed

from napari_xcebra import attribute, open_cebra
from napari_xcebra.attribution import auroc
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import Simulation, field, task

MAPS = {
    "neuron-gradient": "|J|",
    "inverted-neuron-gradient": "J⁺",
    "generative-gradient": "from the encoder",
    "conditional-encoding": "from the variables",
}
TIME_LATENTS = 2
FRAMES, STEPS = 6000, 600


def cases(frames: int) -> dict[str, tuple[Callable[[int], Simulation], str]]:
    """Recordings by name, each with the factor that is looked at."""

    def choices(seed: int) -> Simulation:
        return field(task(seed=seed, frames=frames, trials=False), seed=seed)

    return {
        "angle, 70 %": (lambda seed: one_variable("angle", 70, frames, False, seed), "angle"),
        "balanced state, 95 %": (
            lambda seed: one_variable("balanced state", 95, frames, False, seed),
            "balanced state",
        ),
        "stimulus": (choices, "stimulus"),
        "choice": (choices, "choice"),
    }


def standardised(recording: Recording) -> np.ndarray:
    """Traces as a user of `cebra` z-scores them."""
    traces = np.asarray(recording.traces, np.float32)
    return (traces - traces.mean(0)) / traces.std(0)


def saved_estimator(traces: np.ndarray, labels: Labels, steps: int, folder: Path) -> Path:
    """A file of ``CEBRA.save``, with the model's usual normalised embedding."""
    y = labels.code.astype(np.int64) if labels.is_discrete else labels.coordinates()
    model = cebra.CEBRA(
        "offset1-model",
        batch_size=512,
        learning_rate=0.003,
        max_iterations=steps,
        output_dimension=max(3, labels.dimensions + 1),
        num_hidden_units=64,
        time_offsets=5,
        device="cpu",
    )
    model.fit(traces, y)
    model.save(str(folder / "estimator.pt"))
    return folder / "estimator.pt"


def saved_solver(
    traces: np.ndarray, labels: Labels, steps: int, seed: int, folder: Path
) -> tuple[Path, ReferenceSettings]:
    """The state of a solver with the objectives of xCEBRA: time on all latents, labels on some."""
    settings = ReferenceSettings(tree=True, projections=-1, steps=steps, time_offset=5)
    y, latents = labels.coordinates(), (TIME_LATENTS, labels.dimensions)
    run = ReferenceTraining(traces, y, latents, settings, seed)
    run.train(steps)
    torch.save(run.solver.state_dict(), folder / "solver.pt")
    return folder / "solver.pt", settings


def measured(simulation: Simulation, factor: str, steps: int, seed: int) -> dict[str, dict]:
    """AuROC of every map of both models."""
    recording = simulation.recording
    variables = list(simulation.factors[factor])
    labels = Labels.of(recording, variables, factor)
    traces, truth = standardised(recording), np.asarray(simulation.truth[factor])
    torch.manual_seed(seed)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = saved_estimator(traces, labels, steps, folder)
        found["CEBRA.save"] = open_cebra(path, recording, {factor: variables})
        path, settings = saved_solver(traces, labels, steps, seed, folder)
        found["xCEBRA, solver"] = open_cebra(
            path,
            recording,
            {factor: variables},
            latents={factor: slice(TIME_LATENTS, None)},
            architecture=settings.model,
        )
    results = {}
    for model, fit in found.items():
        used = np.isin(np.asarray(recording.cell_ids), fit.inputs.cell_ids)
        results[model] = {"notes": list(fit.notes[1:]), "goodness": fit.goodness[factor].strength}
        for method in MAPS:
            every = slice(None, None, 5) if "neuron" in method else None
            scores = np.asarray(attribute(fit, recording, method, frames=every).score(factor))
            results[model][method] = float(auroc(scores[used], truth[used]))
    return results


def main() -> None:
    """Train, save, open, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=11, help="first seed")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--steps", type=int, default=STEPS, help="of the reference")
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    parser.add_argument("--picture", type=Path)
    given = typed(parser, seeds=1, frames=3000, steps=12)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    results: dict[tuple[str, str], list[dict]] = {}
    for name, (simulate, factor) in cases(given.frames).items():
        for seed in range(given.first, given.first + given.seeds):

            def measure(simulate=simulate, factor=factor, seed=seed) -> dict:
                return measured(simulate(seed), factor, given.steps, seed)

            found = kept(given.kept, f"{name}: {seed}: {given.frames}: {given.steps}", measure)
            print(name, seed, found, file=sys.stderr, flush=True)
            for model, scores in found.items():
                results.setdefault((name, model), []).append(scores)
    print(header("Models of cebra, opened"))
    print(f"Mean auROC over {given.seeds} recordings, and the least.\n")
    print(row("recording", "model", *MAPS.values()))
    print(row(*["---"] * (2 + len(MAPS))))
    for (name, model), each in results.items():
        values = [[scores[method] for scores in each] for method in MAPS]
        print(row(name, model, *(f"{np.mean(v):.2f}, {np.min(v):.2f}" for v in values)))
    if given.picture:
        draw(results, given.picture)


def draw(results: dict[tuple[str, str], list[dict]], path: Path) -> None:
    """A dot a recording: the same encoders, by each map."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    models = list(dict.fromkeys(model for _, model in results))
    names = list(dict.fromkeys(name for name, _ in results))
    for axes, model in zip(figure.subplots(1, len(models), sharey=True), models, strict=True):
        for place, method in enumerate(MAPS):
            for number, name in enumerate(names):
                values = [scores[method] for scores in results[name, model]]
                at = np.full(len(values), place + 0.14 * (number - 1.5))
                axes.scatter(at, values, s=26, color=f"C{number}", label="" if place else name)
        axes.axhline(0.5, color="grey", lw=1, ls=":")
        axes.set_xticks(
            range(len(MAPS)), [words.replace(" the ", " the\n") for words in MAPS.values()]
        )
        axes.set(title=model, ylim=(0, 1.03))
    figure.axes[0].set_ylabel("auROC of the cells that carry it")
    figure.axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
