"""Trials and events: is what a task has found, in the right cells, and nothing else?

The choice task, imaged, with its trials and with cells that respond to rewards and licks: verdicts,
auROC of the first map, and false discoveries at q = 0.1, phase cells among them. The same task with
the values of its trials permuted, which no cell carries. A rare event and a balanced state, each
carried by a quarter of the cells or by none. Gratings of a real recording, with and without trials.

    python benchmarks/trials.py [--seeds 41 42] [--shuffles 15] [--kept FILE] [--only PART]
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from ordinary import RATE, tuned, variable
from real_recordings import at_hand
from report import header, kept, row, typed
from scipy.signal import lfilter
from scipy.stats import spearmanr

from napari_xcebra.attribution import attribute, auroc, scores_around, significance
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording, Trials, Variable, looks_like_an_event
from napari_xcebra.simulate import Simulation, field, task

LEVEL = 0.1
FRAMES = (8000, 20_000)
SIDED = ("stimulus", "choice", "outcome")


def imaged_task(seed: int, frames: int) -> Simulation:
    """The choice task with cells of rewards and licks, seen through a microscope."""
    return field(task(seed=seed, frames=frames, reward=10, lick=10), seed=seed)


def measured(simulation: Simulation, seed: int) -> dict:
    """Verdict, auROC and discoveries of every factor."""
    recording, kinds = simulation.recording, np.asarray(simulation.cell_kinds)
    factors = {name: list(v) for name, v in simulation.factors.items()}
    began = time.perf_counter()
    trained = fit(recording, factors, FitSettings(seed=seed))
    scores = attribute(trained, recording, "conditional-encoding")
    tested = significance(trained, recording)
    found = {}
    for name in factors:
        verdict, truth = trained.goodness[name], np.asarray(simulation.truth[name])
        at = tested.q(name) <= LEVEL
        found[name] = verdict.as_dict() | {
            "strength": verdict.strength,
            "auroc": auroc(scores.score(name), truth),
            "found": int(at.sum()),
            "false": int((at & ~truth).sum()),
            "phase": int((at & (kinds == "phase")).sum()),
            "power": float(at[truth].mean()),
        }
    return {"factors": found, "seconds": time.perf_counter() - began}


def with_permuted_trials(recording: Recording, rng: np.random.Generator) -> Recording:
    """The same recording in which each trial has the values of another."""
    trials, changed, columns = recording.trials, [], dict(recording.trials.columns)
    number = trials.number(recording.n_frames)
    for name in SIDED:
        known = np.flatnonzero(~np.isnan(trials.columns[name]))
        columns[name] = trials.columns[name].copy()
        columns[name][known] = columns[name][rng.permutation(known)]
        of = recording.behavior[name]
        changed.append(replace(of, values=np.where(of.known, columns[name][number], np.nan)))
    others = Trials(trials.first, trials.stop, columns, trials.words)
    return replace(recording.with_behavior(*changed), trials=others)


def shuffled(number: int, seed: int) -> dict:
    """Verdicts and discoveries in a task whose trials were permuted."""
    simulation = field(task(seed=seed + number, frames=5000), seed=seed + number)
    recording = with_permuted_trials(simulation.recording, np.random.default_rng([seed, number]))
    trained = fit(recording, {n: [n] for n in SIDED}, FitSettings(seed=seed))
    tested = significance(trained, recording)
    return {
        n: trained.goodness[n].as_dict()
        | {
            "strength": trained.goodness[n].strength,
            "found": int((tested.q(n) <= LEVEL).sum()),
        }
        for n in SIDED
    }


def rare_event(frames: int, rng: np.random.Generator) -> Variable:
    """An event in 3 % of the frames."""
    return Variable("event", (rng.random(frames) < 0.03).astype(float), "event", window=(0.5, 1.5))


def responding(of: Variable, cells: int, rng: np.random.Generator) -> np.ndarray:
    """Rates of cells that respond to an event: (frames, cells)."""
    kept = np.exp(-1 / (RATE * rng.uniform(0.3, 1.0, cells)))
    return np.column_stack([np.tanh(lfilter([1], [1, -k], of.values[:, 0])) for k in kept])


def events_and_states(kind: str, carried: bool, seed: int, frames: int = 6000) -> dict:
    """Kind and verdict of a rare event or a balanced state, in 25 cells of 100 or in none."""
    rng = np.random.default_rng([seed, carried, kind == "event"])

    def made() -> Variable:
        return rare_event(frames, rng) if kind == "event" else variable(kind, frames, rng)

    own, other = made(), made()
    tune = responding if kind == "event" else tuned
    other_kinds = ("slow", "fast", "angle", "balanced state")
    others = [tuned(variable(other_kinds[i % 4], frames, rng), 1, rng) for i in range(75)]
    rates = np.hstack([tune(own if carried else other, 25, rng), *others])
    recording = Recording(rates, RATE, {own.name: own})
    truth = {own.name: np.arange(100) < 25}
    imaged = field(Simulation(recording, truth, {own.name: (own.name,)}, rates=rates), seed=seed)
    trained = fit(imaged.recording, {own.name: [own.name]}, FitSettings(seed=seed))
    scores = attribute(trained, imaged.recording, "conditional-encoding").score(own.name)
    about = trained.goodness[own.name]
    return about.as_dict() | {
        "strength": about.strength,
        "guessed": "event" if looks_like_an_event(own.values, RATE) else "state",
        "auroc": auroc(scores, truth[own.name]) if carried else None,
    }


def gratings(seed: int, *, trials: bool) -> dict:
    """A real recording of gratings: verdict, cells found, and agreement with its tuning."""
    recording = at_hand()["V1 gratings"]().recording
    known = recording.behavior["direction"].known
    edges = np.diff(np.r_[0, known.astype(int), 0])
    first, stop = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    directions = recording.behavior["direction"].values[first, 0]
    if trials:
        recording = replace(recording, trials=Trials(first, stop, {"direction": directions}))
    trained = fit(recording, {"direction": ["direction"]}, FitSettings(seed=seed))
    scores = attribute(trained, recording, "conditional-encoding").score("direction")
    tested = significance(trained, recording).q("direction")
    strength, reliable = split_half_tuning(recording, first, stop, directions)
    about = trained.goodness["direction"]
    return about.as_dict() | {
        "strength": about.strength,
        "found": int((tested <= LEVEL).sum()),
        "reliable": int((reliable > 0.5).sum()),
        "reliable_found": int(((reliable > 0.5) & (tested <= LEVEL)).sum()),
        "rank": float(spearmanr(scores, strength)[0]),
        "rank_reliable": float(spearmanr(scores, reliable)[0]),
    }


def split_half_tuning(
    recording: Recording, first: np.ndarray, stop: np.ndarray, directions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Variance of the tuning that both halves of the trials share, and their correlation."""
    traces = np.asarray(recording.traces)
    means = np.array([traces[a:b].mean(0) for a, b in zip(first, stop, strict=True)])
    codes = np.unique(directions, return_inverse=True)[1]
    seen: dict[int, int] = {}
    half = np.array([seen.update({c: seen.get(c, -1) + 1}) or seen[c] % 2 for c in codes])
    curves = np.stack(
        [
            [means[(codes == c) & (half == h)].mean(0) for c in range(codes.max() + 1)]
            for h in (0, 1)
        ]
    )
    curves = curves - curves.mean(1, keepdims=True)
    shared = (curves[0] * curves[1]).mean(0)
    size = np.sqrt(np.square(curves).mean(1).prod(0))
    return shared / means.var(0), shared / np.maximum(size, 1e-12)


def when(seed: int) -> dict:
    """When choice appears in its cells, and stimulus in its own, by the time from the decision."""
    simulation = imaged_task(seed, 8000)
    factors = {name: list(v) for name, v in simulation.factors.items()}
    trained = fit(simulation.recording, factors, FitSettings(seed=seed))
    found = {}
    for name in ("stimulus", "choice", "outcome"):
        around = scores_around(
            trained, simulation.recording, "decision", name, window=(3.0, 3.0), bin=0.5
        )
        cells = np.asarray(simulation.truth[name])
        found[name] = {
            "seconds": around.seconds.tolist(),
            "own": np.nanmean(around.scores[:, cells], 1).tolist(),
            "others": np.nanmean(around.scores[:, ~cells], 1).tolist(),
        }
    return found


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[41, 42])
    parser.add_argument("--shuffles", type=int, default=15)
    parser.add_argument("--frames", type=int, nargs="+", default=list(FRAMES))
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    parser.add_argument("--only", default="", help="task, shuffled, kinds, when or gratings")
    given = typed(parser, seeds=[41], shuffles=1, frames=[3000], only="shuffled")
    torch.set_num_threads(1)
    print(header("Trials and events"))
    parts = {
        "task": print_tasks,
        "shuffled": print_shuffled,
        "kinds": print_kinds,
        "when": print_when,
        "gratings": print_gratings,
    }
    for name, part in parts.items():
        if given.only in name:
            part(given)


def print_tasks(given: argparse.Namespace) -> None:
    """A row a recording and factor."""
    print(row("choice task", "factor", "verdict", "p", "first map", "false / found", "power"))
    print(row(*["---"] * 7))
    every, phase = [], 0
    for frames in given.frames:
        for seed in given.seeds:
            name = f"{frames:,} frames, seed {seed}"
            result = kept(given.kept, name, lambda s=seed, f=frames: measured(imaged_task(s, f), s))
            print(name, f"{result['seconds']:.0f} s", file=sys.stderr, flush=True)
            for factor, about in result["factors"].items():
                every.append(about)
                phase += about["phase"] if factor == "stimulus" else 0
                print(row(name, factor, about["strength"], f"{about['p']:.2g}",
                          f"{about['auroc']:.3f}", f"{about['false']} / {about['found']}",
                          f"{about['power']:.2f}"), flush=True)  # fmt: skip
    false, found = (sum(a[what] for a in every) for what in ("false", "found"))
    denied = sum(a["strength"] not in ("clear", "weak") for a in every)
    below = sum(a["auroc"] < 0.98 for a in every)
    print(
        f"\nDenied: {denied} of {len(every)}. First map below 0.98: {below}. False discoveries: "
        f"{false} of {found}. Phase cells named as stimulus cells: {phase}.\n"
    )


def print_shuffled(given: argparse.Namespace) -> None:
    """How often something is found in trials whose values were permuted."""
    several = []
    for number in range(given.shuffles):
        result = kept(given.kept, f"shuffled {number}, {given.seeds[0]}",
                      lambda n=number: shuffled(n, 100 * given.seeds[0]))  # fmt: skip
        several += list(result.values())
        p = ", ".join(f"{about['p']:.3f}" for about in result.values())
        print(f"shuffled {number}: p {p}", file=sys.stderr, flush=True)
    invented = sum(a["strength"] in ("clear", "weak") for a in several)
    p = np.array([a["p"] for a in several])
    print(f"Trials permuted, 5,000 frames: {invented} of {len(several)} variables called present; "
          f"p below 0.05 in {int((p < 0.05).sum())}, below 0.5 in {int((p < 0.5).sum())}; "
          f"a cell at q ≤ 0.1 in {sum(a['found'] > 0 for a in several)}.\n")  # fmt: skip


def print_kinds(given: argparse.Namespace) -> None:
    """A rare event and a balanced state, carried and not."""
    print(row("variable", "carried", "kind as guessed", "verdict", "p", "first map"))
    print(row(*["---"] * 6))
    for kind in ("event", "balanced state"):
        for carried in (True, False):
            for seed in given.seeds:

                def measure(kind=kind, carried=carried, seed=seed) -> dict:
                    return events_and_states(kind, carried, seed)

                about = kept(given.kept, f"{kind}, {carried}, {seed}", measure)
                map_ = "" if about["auroc"] is None else f"{about['auroc']:.3f}"
                print(row(kind, carried, about["guessed"], about["strength"], f"{about['p']:.2g}",
                          map_), flush=True)  # fmt: skip
    print()


def print_when(given: argparse.Namespace) -> None:
    """Scores by the time from the decision, mean over the cells that carry a factor and others."""
    result = kept(given.kept, f"when, {given.seeds[0]}", lambda: when(given.seeds[0]))
    seconds = next(iter(result.values()))["seconds"]
    print(row("s from the decision", *(f"{s:g}" for s in seconds)))
    print(row(*["---"] * (len(seconds) + 1)))
    for name, about in result.items():
        print(row(f"{name}, its cells", *(f"{s:.2f}" for s in about["own"])))
        print(row(f"{name}, other cells", *(f"{s:.2f}" for s in about["others"])))
    print()


def print_gratings(given: argparse.Namespace) -> None:
    """The real recording, without and with its trials."""
    if "V1 gratings" not in at_hand():
        return
    print(row("V1 gratings, 20 cells, 80 trials", "verdict", "p", "accuracy", "q ≤ 0.1",
              "of those with reliable tuning", "rank correlation with tuning"))  # fmt: skip
    print(row(*["---"] * 7))
    for trials in (False, True):
        about = kept(given.kept, f"gratings, {trials}",
                     lambda t=trials: gratings(given.seeds[0], trials=t))  # fmt: skip
        print(row("with trials" if trials else "without trials", about["strength"],
                  f"{about['p']:.2g}", f"{about['accuracy']:.2f}", about["found"],
                  f"{about['reliable_found']} of {about['reliable']}",
                  f"{about['rank']:.2f}"), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
