"""λ by itself: the map that `lambda_="auto"` gives, beside those of fixed λ.

The paper's box model with 4 to 9 latents, and imaged fields with place, direction and speed cells.
Every fit is a line of a file, so that a run that was stopped goes on where it was.

    python benchmarks/lambda_auto.py [--seeds 5] [--first 0] [--kinds box field] [--keep FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import bootstrapped, header, row, typed

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.simulate import Simulation, box, field

LAMBDAS: dict[str, list[float | str]] = {
    "box": [0.001, 0.01, 0.1, 1.0, "auto"],
    "field": [0.1, 1.0, 3.0, 10.0, "auto"],
}


def simulated(kind: str, latents: int, seed: int) -> tuple[Simulation, dict[str, Any]]:
    """One recording, and the settings that all λ share."""
    if kind == "field":
        simulation = field(cells=100, frames=10_000, seed=seed)
        return simulation, {"time_latents": 1, "steps": 400, "batch_size": 256, "seed": seed}
    simulation = box(d1=latents - 2, d2=2, observed="z2", frames=20_000, seed=seed)
    return simulation, {
        "time_latents": latents - 2,
        "steps": 300 if latents <= 6 else 450,
        "batch_size": 256,
        "label_step": 0.35,
        "smoothing": 0.0,
        "seed": seed,
    }


def tasks(kinds: list[str], seeds: range) -> Iterator[tuple[str, int, int, float | str]]:
    """Kind, latents, seed and λ of every fit; whole seeds first."""
    for seed in seeds:
        for kind in kinds:
            for latents in range(4, 10) if kind == "box" else [0]:
                for lambda_ in LAMBDAS[kind]:
                    yield kind, latents, seed, lambda_


def measured(kind: str, latents: int, seed: int, lambda_: float | str) -> dict[str, Any]:
    """One fit: auROC of J⁺ and |J|, goodness and what was chosen."""
    simulation, settings = simulated(kind, latents, seed)
    began = time.process_time()
    trained = fit(
        simulation.recording, simulation.factors, FitSettings(lambda_=lambda_, **settings)
    )
    seconds = time.process_time() - began
    found: dict[str, Any] = {"key": [kind, latents, seed, lambda_], "seconds": seconds}
    for name, method in (("J+", "inverted-neuron-gradient"), ("J", "neuron-gradient")):
        scores = attribute(trained, simulation.recording, method, frames=slice(0, None, 20))
        found[name] = {f: auroc(scores.score(f), simulation.truth[f]) for f in simulation.factors}
    found["goodness"] = {name: g.as_dict() for name, g in trained.goodness.items()}
    found["lambda"] = float(trained.history["lambda"][-1])
    found["notes"] = trained.notes
    return found


def kept(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Fits that are already in the file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {tuple(one["key"]): one for one in map(json.loads, lines)}


def main() -> None:
    """Fit what is not in the file yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--only", nargs="+", help="only these λ")
    parser.add_argument("--kinds", nargs="+", default=["field", "box"])
    parser.add_argument("--keep", type=Path, default=Path("lambda_auto.jsonl"))
    parser.add_argument("--only-print", action="store_true")
    given = typed(parser, seeds=1, only=["0.1"], kinds=["field"])
    torch.set_num_threads(1)
    done = kept(given.keep)
    for task in tasks(given.kinds, range(given.first, given.first + given.seeds)):
        if task in done or given.only_print or (given.only and str(task[3]) not in given.only):
            continue
        done[task] = measured(*task)
        with given.keep.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[task]) + "\n")
        print(task, done[task]["J+"], done[task]["lambda"], file=sys.stderr, flush=True)
    print(header("λ by itself"))
    if "box" in given.kinds:
        print_box({key: one for key, one in done.items() if key[0] == "box"})
    if "field" in given.kinds:
        print_field({key: one for key, one in done.items() if key[0] == "field"})


def print_box(done: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """auROC of J⁺ by λ and number of latents."""
    scores: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (_, latents, _, lambda_), one in done.items():
        scores[lambda_][latents].append(one["J+"]["z2"])
    latents = sorted({key[1] for key in done})
    seeds = len({key[2] for key in done})
    print(f"Box model, 20,000 frames, batch 256, 300 steps (450 from d = 7 on), {seeds} seeds; "
          "auROC of J⁺ in %, mean over seeds.\n")  # fmt: skip
    print(row("λ", *(f"d = {d}" for d in latents), "all [95 % interval]", "least", "chosen"))
    print(row(*["---"] * (len(latents) + 4)))
    for lambda_ in (one for one in LAMBDAS["box"] if one in scores):
        each = [scores[lambda_][d] for d in latents]
        values = [value for several in each for value in several]
        print(row(lambda_, *(f"{100 * np.mean(v):.1f}" for v in each), *_summary(values),
                  _chosen(done, lambda_)))  # fmt: skip
    print()


def print_field(done: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """auROC of J⁺ and |J| by λ and factor."""
    seeds = len({key[2] for key in done})
    factors = list(next(iter(done.values()))["J+"])
    print(f"Imaged field, 100 cells, 10,000 frames, batch 256, 400 steps, {seeds} recordings; "
          "auROC of J⁺ in %: mean (least), and mean of |J|.\n")  # fmt: skip
    print(row("λ", *factors, "all [95 % interval]", "least", "chosen"))
    print(row(*["---"] * (len(factors) + 4)))
    for lambda_ in LAMBDAS["field"]:
        ours = [one for key, one in done.items() if key[3] == lambda_]
        if not ours:
            continue
        cells = []
        for factor in factors:
            inverse, plain = ([100 * one[m][factor] for one in ours] for m in ("J+", "J"))
            cells.append(f"{np.mean(inverse):.1f} ({np.min(inverse):.1f}), {np.mean(plain):.1f}")
        values = [one["J+"][f] for one in ours for f in factors]
        print(row(lambda_, *cells, *_summary(values), _chosen(done, lambda_)))
    print()


def _summary(values: list[float]) -> tuple[str, str]:
    mean, low, high = bootstrapped(values)
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]", f"{100 * min(values):.1f}"


def _chosen(done: dict[tuple[Any, ...], dict[str, Any]], lambda_: float | str) -> str:
    chosen = [one["lambda"] for key, one in done.items() if key[3] == lambda_]
    return f"{min(chosen):.2g} to {max(chosen):.2g}" if lambda_ == "auto" else ""


if __name__ == "__main__":
    main()
