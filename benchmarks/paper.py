"""The paper's Tables 1 and 2 and Figs. 3, 8 and 10: which training and attribution find the map?

Box model (App. B.1), d = 4…9 latents of which two are z2. Table 1: z2 is observed, and its map
is asked for. Table 2: z1 is observed, and the map of z2, which is not, is asked for. auROC over
z2's latents × cells. Fig. 3 is Table 1 by number of latents; Fig. 8 (latents recovered up to a
linear map, Theorem 2) comes from the same fits; Fig. 10 is the navigating animal with noise.

The paper sets λ to 0.1 in all columns (App. B.1), and says how such a value is found: the highest
at which the loss stays at its minimum, with R² of the observed latents close to 1. What 0.1 means
depends on the loss beside it and on the scale of the cells, so `--choose` finds λ by that rule for
each way of training, on datasets that the tables do not use.

    python benchmarks/paper.py [--frames 100000] [--seeds 3] [--jobs 2] [--table 1 2]
        [--figure 3 8 10]
    python benchmarks/paper.py --choose
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from report import bootstrapped, header, row, typed

from napari_xcebra.attribution import METHODS, attribute, auroc
from napari_xcebra.learn import Fit, FitSettings, fit
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import Simulation, arena, box
from napari_xcebra.simulate.box_model import box_mixing

INVERTED, GRADIENT = "inverted-neuron-gradient", "neuron-gradient"
NAMES = {
    "feature-ablation": "Feature ablation",
    "shapley-shuffled": "Shapley, shuffled",
    "shapley-zeros": "Shapley, zeros",
    "integrated-gradients": "Integrated gradients",
    GRADIENT: "Neuron gradient",
    INVERTED: "Inverted neuron gradient",
}
MODES = {"supervised": "supervised", "behavior": "supervised contrastive", "hybrid": "hybrid"}
COLUMNS = {"1": tuple(product(MODES, (False, True))), "2": (("hybrid", False), ("hybrid", True))}
"""Way of training, and whether it is regularised, of the columns of each table."""
PAPER = {
    "1": {
        "feature-ablation": (83.1, 88.5, 84.0, 84.7, 82.9, 85.2),
        "shapley-shuffled": (82.0, 89.2, 83.3, 84.6, 81.6, 85.1),
        "shapley-zeros": (81.0, 84.9, 82.0, 82.4, 81.6, 83.2),
        "integrated-gradients": (81.0, 84.9, 81.9, 82.3, 83.9, 86.9),
        GRADIENT: (79.2, 93.0, 80.6, 86.7, 79.2, 88.0),
        INVERTED: (76.9, 92.9, 77.5, 86.1, 87.9, 98.2),
    },
    # as printed in the workshop version (2023) and the dissertation, whose Table 1 is the same
    "2": {
        "feature-ablation": (77.1, 86.7),
        "shapley-shuffled": (74.4, 87.5),
        "shapley-zeros": (75.8, 85.3),
        "integrated-gradients": (77.5, 86.8),
        GRADIENT: (69.3, 91.9),
        INVERTED: (84.2, 99.2),
    },
}
PINNED: dict[str, Any] = {
    "label_step": 0.35,
    "settle": 0.1,
    "ramp": 0.1,
    "stop_when_settled": False,
    "window": 1,
    "smoothing": 0.0,
    "batch_size": 512,
    "learning_rate": 0.003,
    "decay": 0.1,
    "penalty": "exact",
    "penalty_batch": 64,
    "similarity": "euclidean",
    "temperature": "matched",
    "temperature_value": 1.0,
    "include_positive": True,
    "bound": 20.0,
    "held_out": 0.2,
    "blocks": 8,
    "device": "cpu",
    "threads": 1,
}
"""Every setting that a result may depend on, so that a change of the defaults changes none."""
OFF: dict[str, Any] = {"hide": 0.0, "readout": 0.0, "deconvolve": False}
"""What the paper does not have."""
PINNED |= OFF
GRID = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
LAMBDA = {"supervised": 0.003, "behavior": 0.01, "hybrid": 0.1}
"""λ of each way of training: as `--choose` finds it, and the paper's own for the hybrid one.

There `--choose` finds 0.03, which has R² 0.994 instead of 0.986 and J⁺ a point lower.
"""
LOST_R2 = 0.005
"""Held-out R² of the observed latents that λ may cost, on average, to be chosen."""
UNUSED_SEED = 100
"""First dataset on which λ is chosen; the tables use 0, 1, 2 …"""
ARENA_FRAMES = 20_000
NOISE = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Of Fig. 10, in standard deviations of each cell."""
NOISE_LAMBDA = {"hybrid": 3.0, "supervised": 0.1}
"""Of the arena, chosen on dataset 100 as above: the highest tried (0.1, 1, 3; 0.003, 0.01, 0.1)."""


@dataclass(frozen=True)
class Task:
    """One dataset of a table."""

    table: str
    d: int
    seed: int
    frames: int

    @property
    def observed(self) -> str:
        """Latents that are recorded as behaviour."""
        return "z2" if self.table == "1" else "z1"

    @property
    def hidden(self) -> int:
        """Number of latents that are not."""
        return self.d - 2 if self.table == "1" else 2

    def simulation(self) -> Simulation:
        """The dataset."""
        return box(d1=self.d - 2, d2=2, observed=self.observed, frames=self.frames, seed=self.seed)


@dataclass(frozen=True)
class Found:
    """What one fit gave.

    Parameters
    ----------
    scores : dict of method to auROC
    r2 : float
        Held-out R² of the observed latents.
    recovered : dict of (latents, part of the embedding) to R²
        After a linear map, at fresh points; only of a hybrid fit.
    exact : dict of method to auROC
        Of the exact optimum, where it is not one.
    """

    task: Task
    mode: str
    regularised: bool
    scores: dict[str, float]
    r2: float
    recovered: dict[tuple[str, str], float]
    exact: dict[str, float]


def settings_for(task: Task, mode: str, lambda_: float) -> FitSettings:
    """The same for all combinations but for λ; the number of steps follows that of latents."""
    outputs = task.d if mode == "hybrid" else task.d - task.hidden
    return FitSettings(
        mode=mode,
        time_latents=task.hidden,
        lambda_=lambda_,
        steps=1000 if task.d <= 6 else 1600,
        hidden_units=min(max(30 * outputs, 64), 256),
        seed=task.seed,
        **PINNED,
    )


def one_dataset(task: Task) -> list[Found]:
    """All combinations on one dataset."""
    torch.set_num_threads(1)
    simulation = task.simulation()
    exact = exact_scores(task, simulation)
    found = []
    for mode, regularised in COLUMNS[task.table]:
        settings = settings_for(task, mode, LAMBDA[mode] if regularised else 0.0)
        trained = fit(simulation.recording, simulation.factors, settings)
        scores = scores_of(task, simulation, trained, NAMES)
        r2 = trained.goodness[task.observed].r2
        recovered = recovery(task, simulation, trained) if mode == "hybrid" else {}
        found.append(Found(task, mode, regularised, scores, r2, recovered, exact))
    return found


def scores_of(
    task: Task, simulation: Simulation, trained: Fit, methods: Iterable[str]
) -> dict[str, float]:
    """The auROC of the map of z2 by each method."""
    part = trained.part("z2" if task.observed == "z2" else TIME)
    scores = {}
    for method in methods:
        # the mean over frames settles long before all frames are used
        few = slice(0, None, max(1, task.frames // (2000 if "neuron" in method else 500)))
        found = attribute(trained, simulation.recording, method, frames=few).latent_scores
        scores[method] = map_auroc(found[part.latents], simulation.truth["z2"])
    return scores


def map_auroc(scores: np.ndarray, truth: np.ndarray) -> float:
    """The auROC of (latents, cells) scores against the cells that carry the latents."""
    return auroc(scores.ravel(), np.broadcast_to(truth, scores.shape).ravel())


def exact_scores(task: Task, simulation: Simulation) -> dict[str, float]:
    """The auROC of z2's map for an encoder of z2 that is at the optimum of Eq. 10 (App. A.4).

    There J_f has the rows of J_g⁺ that belong to z2, for cells of unit variance. If the encoder
    has the other latents as well, J_f⁺ is J_g, whose auROC is 1, and |J_f| is the same.
    """
    some = slice(0, None, max(1, task.frames // 500))
    latents = [simulation.hidden[name][some] for name in ("z1", "z2")]
    mixing = box_mixing(task.seed, d1=task.d - 2, d2=2)
    j_g = mixing.jacobian(*latents) / mixing(*latents).std(0)[:, None]
    j_f = np.linalg.pinv(j_g)[:, -2:]
    maps = {GRADIENT: np.abs(j_f), INVERTED: np.abs(np.linalg.pinv(j_f)).transpose(0, 2, 1)}
    return {name: map_auroc(m.mean(0), simulation.truth["z2"]) for name, m in maps.items()}


def recovery(task: Task, simulation: Simulation, trained: Fit) -> dict[tuple[str, str], float]:
    """R² of both sets of latents from both parts, at points all over the box, never seen before.

    The affine map is fitted on frames of the recording.
    """
    d1 = task.d - 2
    points = np.random.default_rng(10_000 + task.seed).uniform(-1, 1, (5000, task.d))
    fresh = {"z1": points[:, :d1], "z2": points[:, d1:]}
    traces = box_mixing(task.seed, d1=d1, d2=2)(fresh["z1"], fresh["z2"])
    seen, unseen = (
        np.c_[np.ones(len(each)), each]
        for each in (
            trained.embed(simulation.recording),
            trained.embed(Recording(traces=traces, rate=10.0)),
        )
    )
    unobserved = "z1" if task.observed == "z2" else "z2"
    found = {}
    for part, (name, latents) in product(
        trained.parts, [("observed", task.observed), ("hidden", unobserved)]
    ):
        columns = [0, *range(1 + part.start, 1 + part.stop)]
        weights, *_ = np.linalg.lstsq(seen[:, columns], simulation.hidden[latents], rcond=None)
        error = fresh[latents] - unseen[:, columns] @ weights
        r2 = 1 - error.var(0) / fresh[latents].var(0)
        found[name, "time" if part.name == TIME else "observed"] = float(r2.mean())
    return found


def print_table(table: str, found: Sequence[Found]) -> None:
    """One table as markdown, the paper's numbers beside ours."""
    columns = COLUMNS[table]
    names = [f"{MODES[m]}, {f'λ = {LAMBDA[m]:g}' if r else 'none'}" for m, r in columns]
    print(f"### Table {table}: map of z2, {'observed' if table == '1' else 'not observed'}\n")
    print(row("attribution", *names))
    print(row("---", *["---"] * len(columns)))
    reached = []
    for method, name in NAMES.items():
        cells = []
        for column, theirs in zip(columns, PAPER[table][method], strict=True):
            mean, low, high = (100 * v for v in bootstrapped(of(found, *column, method)))
            cells.append(f"{mean:.1f} [{low:.1f}, {high:.1f}] ({theirs})")
            reached.append(mean >= theirs - 1)
        print(row(name, *cells))
    decoded = ([f.r2 for f in found if (f.mode, f.regularised) == c] for c in columns)
    print(row("held-out R² of the observed latents", *(f"{np.mean(r2):.3f}" for r2 in decoded)))
    print(
        f"\n{sum(reached)} of {len(reached)} are within 1 point of the paper's value or above it."
    )
    print(optimum(found), "\n")


def optimum(found: Sequence[Found]) -> str:
    """What theory gives for the regularised columns on the same mixing functions."""
    gradient, inverted = (100 * np.mean([f.exact[m] for f in found]) for m in (GRADIENT, INVERTED))
    two = f"{inverted:.1f} of an encoder with two outputs (supervised, supervised contrastive) and "
    return (
        "At the exact optimum of Eq. 10 on these mixing functions the neuron gradient has "
        f"{gradient:.1f} in every regularised column, and the inverted neuron gradient "
        f"{two if {f.mode for f in found} - {'hybrid'} else ''}100 of one with all (hybrid)."
    )


def of(
    found: Iterable[Found], mode: str, regularised: bool, method: str, d: int | None = None
) -> list[float]:
    """Scores of one cell of a table, over datasets, all or those with d latents."""
    return [
        f.scores[method]
        for f in found
        if (f.mode, f.regularised) == (mode, regularised) and d in (None, f.task.d)
    ]


def print_by_latents(found: Sequence[Found], latents: Sequence[int]) -> None:
    """Fig. 3: the hybrid fit's inverted neuron gradient, and supervised baselines, by d."""
    drawn = [("hybrid", True, INVERTED)]
    shown = (GRADIENT, "feature-ablation", "integrated-gradients", "shapley-shuffled")
    drawn += [("supervised", r, m) for r, m in product((True, False), shown)]
    print("### Fig. 3: Table 1 by number of latents\n")
    print(row("training", "attribution", *(f"d = {d}" for d in latents), "mean (paper's)"))
    print(row(*["---"] * (3 + len(latents))))
    for mode, regularised, method in drawn:
        theirs = PAPER["1"][method][COLUMNS["1"].index((mode, regularised))]
        means = [100 * np.mean(of(found, mode, regularised, method, d)) for d in latents]
        training = f"{mode}, {'regularised' if regularised else 'none'}"
        values = (f"{mean:.1f}" for mean in means)
        print(row(training, NAMES[method], *values, f"{np.mean(means):.1f} ({theirs})"))
    print()


def print_recovered(found: Sequence[Found], latents: Sequence[int]) -> None:
    """Fig. 8, Theorem 2: how well the latents are recovered up to a linear map."""
    print("### Fig. 8: latents recovered by the hybrid fit, R² at fresh points\n")
    print(row("hidden", "λ", "latents", "from the part", *(f"d = {d}" for d in latents), "mean"))
    print(row(*["---"] * (5 + len(latents))))
    for table, regularised in product(sorted({f.task.table for f in found}), (True, False)):
        fits = [f for f in found if f.recovered and f.regularised == regularised]
        fits = [f for f in fits if f.task.table == table]
        for key in product(("observed", "hidden"), ("observed", "time")):
            means = [np.mean([f.recovered[key] for f in fits if f.task.d == d]) for d in latents]
            setting = ("z1" if table == "1" else "z2", LAMBDA["hybrid"] if regularised else 0)
            print(row(*setting, *key, *(f"{m:.3f}" for m in means), f"{np.mean(means):.3f}"))
    print()


def one_arena(task: tuple[float, int, int]) -> dict[str, tuple[float, float, float]]:
    """Position in an arena with noise: inverted and neuron gradient, R²; by way of training."""
    noise, seed, frames = task
    torch.set_num_threads(1)
    simulation = arena(frames=frames, noise=noise, seed=seed)
    found = {}
    for mode, lambda_ in NOISE_LAMBDA.items():
        # it begins at the labels, without which position may end folded over
        changed = {**PINNED, "label_step": 0.3, "smoothing": 0.25, "readout": 10.0}
        settings = FitSettings(
            mode=mode,
            time_latents=2,
            lambda_=lambda_,
            steps=600,
            hidden_units=120,
            seed=seed,
            **changed,
        )
        trained = fit(simulation.recording, {"place": simulation.factors["place"]}, settings)
        part = trained.part("place")
        scores = (
            attribute(trained, simulation.recording, method, frames=slice(0, None, 10))
            for method in (INVERTED, GRADIENT)
        )
        both = [map_auroc(s.latent_scores[part.latents], simulation.truth["place"]) for s in scores]
        found[mode] = (both[0], both[1], trained.goodness["place"].r2)
    return found


def print_noise(found: dict[float, list[dict]], seeds: int) -> None:
    """Fig. 10: the navigating animal with noise on its cells."""
    print("### Fig. 10: noise on the cells of the navigating animal\n")
    print(
        f"{ARENA_FRAMES:,} frames, 400 cells, position observed; mean of {seeds} recordings, auROC "
        "in %, held-out R² of position. The paper's text says only that results are excellent.\n"
    )
    names = [f"{mode}: J⁺, \\|J\\|, R²" for mode in NOISE_LAMBDA]
    print(row("noise", *names))
    print(row(*["---"] * (1 + len(names))))
    for noise, fits in found.items():
        means = (np.mean([f[mode] for f in fits], 0) for mode in NOISE_LAMBDA)
        cells = (f"{100 * j:.1f}, {100 * n:.1f}, {r2:.2f}" for j, n, r2 in means)
        print(row(f"{noise:g} SD", *cells))
    print()


def one_choice(task: tuple[Task, str, float]) -> tuple[float, float, float, float]:
    """R², goodness in nats, and the auROC of both gradients, of one fit with that λ."""
    torch.set_num_threads(1)
    dataset, mode, lambda_ = task
    simulation = dataset.simulation()
    settings = settings_for(dataset, mode, lambda_)
    trained = fit(simulation.recording, simulation.factors, settings)
    goodness = trained.goodness[dataset.observed]
    scores = scores_of(dataset, simulation, trained, (INVERTED, GRADIENT))
    return goodness.r2, goodness.goodness, scores[INVERTED], scores[GRADIENT]


def choose(given: argparse.Namespace, run: Callable[..., Iterable]) -> None:
    """Print what every λ does to each way of training, and the one that the rule picks."""
    datasets = [
        Task("1", d, UNUSED_SEED + seed, given.frames)
        for d, seed in product(given.latents, range(given.seeds))
    ]
    print(header("λ for the paper's tables"))
    print(
        f"{given.frames:,} frames, d = {given.latents}, datasets {UNUSED_SEED} to "
        f"{UNUSED_SEED + given.seeds - 1}, which the tables do not use; z2 observed. Chosen: the "
        f"highest λ that costs at most {LOST_R2} of R².\n"
    )
    print(row("training", "λ", "held-out R²", "goodness (nats)", "auROC of J⁺", "of \\|J\\|", ""))
    print(row(*["---"] * 7))
    for mode in MODES:
        tasks = [(dataset, mode, lambda_) for lambda_ in GRID for dataset in datasets]
        found = np.array(list(run(one_choice, tasks))).reshape(len(GRID), len(datasets), 4).mean(1)
        kept = np.flatnonzero(found[:, 0] >= found[0, 0] - LOST_R2)
        for number, (lambda_, means) in enumerate(zip(GRID, found, strict=True)):
            values = (
                f"{mean:.{digits}f}" for mean, digits in zip(means, (4, 3, 3, 3), strict=True)
            )
            print(row(MODES[mode], f"{lambda_:g}", *values, "chosen" if number == kept[-1] else ""))
    print()


def measure(given: argparse.Namespace, run: Callable[..., Iterable]) -> None:
    """Run all datasets and print the tables and figures that were asked for."""
    began = time.perf_counter()
    needed = {*given.table, *({"1"} if "3" in given.figure else ())}
    needed |= {"1", "2"} if "8" in given.figure and not needed else set()
    seeds = range(given.seeds)
    tasks = [
        Task(table, d, seed, given.frames)
        for seed, table, d in product(seeds, sorted(needed), given.latents)
    ]
    found: list[Found] = []
    for task, fits in zip(tasks, run(one_dataset, tasks), strict=True):
        print(task, fits[-1].scores[INVERTED], fits[-1].r2, file=sys.stderr, flush=True)
        found += fits
    noisy = list(product(NOISE, seeds, [ARENA_FRAMES])) if "10" in given.figure else []
    arenas: dict[float, list[dict]] = {}
    for (noise, *_), fits in zip(noisy, run(one_arena, noisy), strict=True):
        print(noise, fits, file=sys.stderr, flush=True)
        arenas.setdefault(noise, []).append(fits)
    print(header("The paper's tables and figures"))
    if found:
        print(
            f"Box model, {given.frames:,} frames (paper: 100,000), d = {given.latents}, datasets "
            f"each: {given.seeds} (paper: 10). auROC in %, mean [95 % interval], the paper's mean "
            f"in brackets. {(time.perf_counter() - began) / 60:.0f} minutes.\n"
        )
    first = [f for f in found if f.task.table == "1"]
    for table in given.table:
        print_table(table, [f for f in found if f.task.table == table])
    if "3" in given.figure:
        print_by_latents(first, given.latents)
    if "8" in given.figure:
        print_recovered(found, given.latents)
    if "10" in given.figure:
        print_noise(arenas, given.seeds)


def main() -> None:
    """Measure tables and figures, or choose λ for them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--latents", type=int, nargs="+", default=[4, 5, 6, 7, 8, 9])
    parser.add_argument("--table", nargs="*", choices=["1", "2"], default=["1", "2"])
    parser.add_argument("--figure", nargs="*", choices=["3", "8", "10"], default=["3", "8", "10"])
    parser.add_argument("--choose", action="store_true", help="find λ for each way of training")
    parser.add_argument("--jobs", type=int, default=1)
    given = typed(parser, frames=2000, seeds=1, latents=[4], table=["1"], figure=[])
    assert set(NAMES) <= set(METHODS)
    with ProcessPoolExecutor(given.jobs) as pool:
        (choose if given.choose else measure)(given, pool.map)


if __name__ == "__main__":
    main()
