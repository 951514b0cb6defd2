"""Tables 1 and 2 of the paper: which combination of training and attribution finds the map?

Box model (App. B.1), d = 4…9 latents of which two are z2. Table 1: z2 is observed, and its map
is asked for. Table 2: z1 is observed, and the map of z2, which is not, is asked for. auROC over
z2's latents × cells.

    python benchmarks/paper.py [--frames 100000] [--seeds 3] [--jobs 2] [--table 1 2]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
import torch
from report import bootstrapped, header, row

from napari_xcebra.attribution import METHODS, attribute, auroc
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.learn.parts import TIME
from napari_xcebra.simulate import box

NAMES = {
    "feature-ablation": "Feature ablation",
    "shapley-shuffled": "Shapley, shuffled",
    "shapley-zeros": "Shapley, zeros",
    "integrated-gradients": "Integrated gradients",
    "neuron-gradient": "Neuron gradient",
    "inverted-neuron-gradient": "Inverted neuron gradient",
}
# columns: supervised none, regularised; supervised contrastive none, reg.; hybrid none, reg.
PAPER_1 = {
    "feature-ablation": (83.1, 88.5, 84.0, 84.7, 82.9, 85.2),
    "shapley-shuffled": (82.0, 89.2, 83.3, 84.6, 81.6, 85.1),
    "shapley-zeros": (81.0, 84.9, 82.0, 82.4, 81.6, 83.2),
    "integrated-gradients": (81.0, 84.9, 81.9, 82.3, 83.9, 86.9),
    "neuron-gradient": (79.2, 93.0, 80.6, 86.7, 79.2, 88.0),
    "inverted-neuron-gradient": (76.9, 92.9, 77.5, 86.1, 87.9, 98.2),
}
PAPER_2 = {"inverted-neuron-gradient": (None, 99.2)}
MODES = {"supervised": "supervised", "behavior": "supervised contrastive", "hybrid": "hybrid"}


def settings_for(d: int, hidden: int, mode: str, regularised: bool, seed: int) -> FitSettings:
    """The same for all combinations; only the number of steps follows the number of latents."""
    return FitSettings(
        mode=mode,
        time_latents=hidden,
        lambda_=0.1 if regularised else 0.0,
        steps=500 if d <= 6 else 800,
        label_step=0.35,
        warm_up=0.0,  # the paper's objective from the first step on
        stop_when_settled=False,
        smoothing=0.0,
        seed=seed,
    )


def one_dataset(task: tuple[str, int, int, int]) -> list[tuple[str, str, bool, str, float, float]]:
    """All combinations on one dataset: (table, mode, regularised, method, auROC, R²)."""
    table, d, seed, frames = task
    torch.set_num_threads(1)
    observed, modes = ("z2", list(MODES)) if table == "1" else ("z1", ["hybrid"])
    simulation = box(d1=d - 2, d2=2, observed=observed, frames=frames, seed=seed)
    hidden = d - 2 if observed == "z2" else 2
    rows = []
    for mode, regularised in product(modes, (False, True)):
        settings = settings_for(d, hidden, mode, regularised, seed)
        trained = fit(simulation.recording, simulation.factors, settings)
        r2 = trained.goodness[observed].r2
        part = trained.part("z2" if observed == "z2" else TIME)
        for method in NAMES:
            # the mean over frames settles long before all frames are used
            few = slice(0, None, 50 if method.endswith("neuron-gradient") else 200)
            scores = attribute(trained, simulation.recording, method, frames=few)
            found = scores.latent_scores[part.latents]
            truth = np.broadcast_to(simulation.truth["z2"], found.shape)
            rows.append((table, mode, regularised, method, auroc(found.ravel(), truth.ravel()), r2))
    return rows


def main() -> None:
    """Run all datasets and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--latents", type=int, nargs="+", default=[4, 5, 6, 7, 8, 9])
    parser.add_argument("--table", nargs="+", default=["1", "2"])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    assert set(NAMES) <= set(METHODS)
    began = time.perf_counter()
    tasks = [
        (table, d, seed, given.frames)
        for seed, table, d in product(range(given.seeds), given.table, given.latents)
    ]
    found: dict[tuple[str, str, bool, str], list[float]] = defaultdict(list)
    by_d: dict[tuple[str, int], list[float]] = defaultdict(list)
    r2s: dict[tuple[str, str, bool], list[float]] = defaultdict(list)
    with ProcessPoolExecutor(given.jobs) as pool:
        for task, rows in zip(tasks, pool.map(one_dataset, tasks), strict=True):
            print(task, rows[-1], file=sys.stderr, flush=True)
            for table, mode, regularised, method, score, r2 in rows:
                found[table, mode, regularised, method].append(score)
                if (mode, regularised, method) == ("hybrid", True, "inverted-neuron-gradient"):
                    by_d[table, task[1]].append(score)
                if method == "neuron-gradient":
                    r2s[table, mode, regularised].append(r2)
    print(header("The paper's Tables 1 and 2"))
    print(
        f"Box model, {given.frames:,} frames (paper: 100,000), d = {given.latents}, "
        f"{given.seeds} datasets each (paper: 10). auROC in %, mean [95 % interval], the paper's "
        f"mean in brackets. {(time.perf_counter() - began) / 60:.0f} minutes.\n"
    )
    if "1" in given.table:
        print_table("1", found, PAPER_1, MODES, r2s)
    if "2" in given.table:
        print_table("2", found, PAPER_2, {"hybrid": "hybrid"}, r2s)
    print("Hybrid, regularised, inverted neuron gradient by number of latents:\n")
    print(row("d", *given.latents))
    print(row("---", *["---"] * len(given.latents)))
    for table in given.table:
        means = (f"{100 * np.mean(by_d[table, d]):.1f}" for d in given.latents)
        print(row(f"Table {table}", *means))
    print()


def print_table(table: str, found: dict, paper: dict, modes: dict, r2s: dict) -> None:
    """One table as markdown, the paper's numbers beside ours."""
    columns = list(product(modes, (False, True)))
    names = [f"{modes[m]}, {'regularised' if r else 'none'}" for m, r in columns]
    print(f"### Table {table}: map of z2, {'observed' if table == '1' else 'not observed'}\n")
    print(row("attribution", *names))
    print(row("---", *["---"] * len(columns)))
    for method, name in NAMES.items():
        cells = []
        for number, (mode, regularised) in enumerate(columns):
            mean, low, high = bootstrapped(found[table, mode, regularised, method])
            theirs = paper.get(method, (None,) * len(columns))[number]
            beside = f" ({theirs})" if theirs is not None else ""
            cells.append(f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}]{beside}")
        print(row(name, *cells))
    decoded = (f"{np.mean(r2s[table, m, r]):.3f}" for m, r in columns)
    print(row("held-out R² of the observed latents", *decoded), "\n")


if __name__ == "__main__":
    main()
