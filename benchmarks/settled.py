"""What does stopping cost and save, once neither maps nor losses change any more?

Each simulated recording is trained twice by the same seed, to the end and until it has settled.

    python benchmarks/settled.py [--kinds field box] [--seeds 3]
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from report import header, row, typed

from napari_xcebra.attribution import attribute
from napari_xcebra.attribution.ranks import auroc
from napari_xcebra.learn import FitSettings
from napari_xcebra.learn.fitting import finish
from napari_xcebra.learn.training.training import Training
from napari_xcebra.simulate import Simulation, box, field

KINDS = {"field": field, "box": box}
METHODS = {"inverted-neuron-gradient": "J⁺", "neuron-gradient": "|J|", "conditional-encoding": "CE"}


def measured(simulation: Simulation, settings: FitSettings) -> tuple[int, float, dict[str, str]]:
    """Steps, processor seconds of training, and auROC by each method, for each factor."""
    began = time.process_time()
    training = Training(simulation.recording, simulation.factors, settings)
    for _ in training.run():
        pass
    seconds = time.process_time() - began
    fit = finish(training, simulation.recording)
    found = {
        title: attribute(fit, simulation.recording, method, frames=slice(0, None, 10))
        for method, title in METHODS.items()
    }
    texts = {}
    for factor, truth in simulation.truth.items():
        if factor in simulation.factors:
            scores = [f"{t} {auroc(a.score(factor), truth):.3f}" for t, a in found.items()]
            texts[factor] = f"{', '.join(scores)}, {fit.goodness[factor].goodness:.2f} nats"
    return training.step, seconds, texts


def main() -> None:
    """Train every recording to the end, and until it has settled."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--frames", type=int, default=20_000)
    given = typed(parser, kinds=["box"], seeds=1, frames=2000)
    torch.set_num_threads(1)
    titles = ("recording", "seed", "stopping", "steps", "seconds", "factor: auROC, goodness")
    lines = [row(*titles), row(*["---"] * len(titles))]
    for kind in given.kinds:
        for seed in range(given.first, given.first + given.seeds):
            simulation = KINDS[kind](frames=given.frames, seed=seed)
            for stopping in (False, True):
                settings = FitSettings(seed=seed, stop_when_settled=stopping)
                steps, seconds, texts = measured(simulation, settings)
                words = "; ".join(f"{factor}: {text}" for factor, text in texts.items())
                when = "when settled" if stopping else "at the end"
                lines.append(row(kind, seed, when, steps, f"{seconds:.0f}", words))
                print(lines[-1], file=sys.stderr, flush=True)
    print(header("Stopping once it has settled"))
    print("\n".join(lines), "\n")


if __name__ == "__main__":
    main()
