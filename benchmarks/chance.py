"""Theorem 1 in practice: labels that mean nothing are called so, labels that do are not.

Twenty recordings of three kinds; each with its labels, with its labels shifted in time by about
half the recording (autocorrelation kept), and with its labels shuffled.

    python benchmarks/chance.py [--recordings 20] [--keep FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from report import header, kept, row, typed

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import Simulation, arena, box, field

TREATMENTS = ("true", "shifted", "shuffled")


def simulated(kind: str, number: int) -> tuple[Simulation, FitSettings]:
    """Recording of that kind and number, and settings to fit it with."""
    if kind == "box":
        d1 = 2 + number % 3
        settings = FitSettings(smoothing=0.0, time_latents=d1, steps=200, seed=number)
        return box(d1=d1, frames=10_000, seed=number), settings
    if kind == "arena":
        simulation = arena(
            place=20, grid=20, direction=20, speed=20, frames=10_000, noise=1.0, seed=number
        )
        return simulation, FitSettings(steps=200, seed=number)
    return field(cells=120, seed=number), FitSettings(seed=number)


def treated(recording: Recording, treatment: str, rng: np.random.Generator) -> Recording:
    """Recording with its labels as they are, shifted, or shuffled."""
    frames = recording.n_frames
    order = np.arange(frames)
    if treatment == "shifted":
        order = np.roll(order, int(rng.integers(int(0.3 * frames), int(0.7 * frames))))
    elif treatment == "shuffled":
        order = rng.permutation(frames)
    variables = [replace(v, values=v.values[order]) for v in recording.behavior.values()]
    return recording.with_behavior(*variables)


def outcomes(kind: str, number: int, treatment: str) -> Iterator[tuple[str, bool, float, float]]:
    """Of each factor: whether it is called above chance, its goodness, auROC of its map."""
    simulation, settings = simulated(kind, number)
    rng = np.random.default_rng([number, TREATMENTS.index(treatment)])
    recording = treated(simulation.recording, treatment, rng)
    trained = fit(recording, simulation.factors, settings)
    found = attribute(trained, recording, frames=slice(0, None, 20))
    for factor in simulation.factors:
        goodness = trained.goodness[factor]
        score = auroc(found.score(factor), simulation.truth[factor])
        outcome = (bool(goodness.above_chance), goodness.goodness, score)
        print(number, kind, factor, treatment, outcome, goodness.error, file=sys.stderr, flush=True)
        yield factor, *outcome


def main() -> None:
    """Fit every recording under every treatment and count wrong verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", default=["box", "arena", "field"])
    parser.add_argument("--keep", type=Path, help="file in which results are kept as they come")
    parser.add_argument("--table", action="store_true", help="print what is kept, measure nothing")
    given = typed(parser, recordings=1, kinds=["box"])
    torch.set_num_threads(1)
    results: dict[tuple[str, str, str], list[tuple[bool, float, float]]] = {}
    for number in range(given.recordings):
        kind = given.kinds[number % len(given.kinds)]
        for treatment in TREATMENTS:
            measure = partial(
                lambda *of: None if given.table else list(outcomes(*of)), kind, number, treatment
            )
            for factor, *outcome in kept(given.keep, f"{kind} {number} {treatment}", measure) or ():
                results.setdefault((kind, factor, treatment), []).append(tuple(outcome))
    print(header("Chance (Theorem 1)"))
    print(
        f"{given.recordings} recordings, each with its labels, with labels shifted in time and "
        "with labels shuffled. Goodness of fit on held-out blocks in nats, and the auROC that the "
        "map reaches all the same.\n"
    )
    print(row("recording", "factor", "labels", "fits", "called above chance", "goodness", "auROC"))
    print(row(*["---"] * 7))
    wrong = total = 0
    for (kind, factor, treatment), own in sorted(results.items()):
        above = sum(outcome[0] for outcome in own)
        wrong += len(own) - above if treatment == "true" else above
        total += len(own)
        goodness, score = (np.array([o[i] for o in own]) for i in (1, 2))
        span = f"{goodness.min():.2f} to {goodness.max():.2f}"
        print(row(kind, factor, treatment, len(own), above, span, f"{score.mean():.2f}"))
    print(f"\nWrong verdicts: {wrong} of {total}.\n")


if __name__ == "__main__":
    main()
