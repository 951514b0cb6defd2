"""Are the maps right, and do q-values keep their promise?

The grid of `ordinary.py`, whose cells are known to carry a variable or not, and what is hard for a
map: sharp fields, grid cells, cells that lead or follow, a variable that most cells carry beside an
unobserved state, confounds, the box model. auROC of every map with defaults; false discoveries and
power at q = 0.1; and how often anything is found where labels have nothing to do with the cells.
Of the real recordings, where they are at hand: rank correlation with held-out tuning, agreement
between two seeds, and with what the authors say.

    python benchmarks/maps.py [--seed 21] [--kept FILE] [--only KIND] [--nulls 20] [--picture FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from ordinary import FRAMES, KINDS, SHARES, TASKS, one_variable, with_labels
from real_recordings import Real, at_hand, ca1_information
from report import header, kept, row, typed
from scipy.stats import spearmanr

from napari_xcebra.attribution import Attribution, attribute, auroc, significance
from napari_xcebra.attribution.encoding.predictors import DRIFTS
from napari_xcebra.attribution.maps.both_routes import APART
from napari_xcebra.learn import Fit, FitSettings, fit
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.smoothing import gaussian_kernel, smoothed
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import Simulation, arena, box, field
from napari_xcebra.simulate.simulation import ornstein_uhlenbeck

RATE = 10.0
LEVEL = 0.1
SEEN = 0.02
"""Score from which on a route sees a cell."""
STRONG = 0.05
"""Score from which on a cell that carries a variable counts as strong."""
METHODS = {
    "both-routes": "both routes",
    "conditional-encoding": "from the variables",
    "generative-gradient": "from the encoder",
    "inverted-neuron-gradient": "J⁺",
    "neuron-gradient": "\\|J\\|",
}
EVERY = {"inverted-neuron-gradient": slice(None, None, 5), "neuron-gradient": slice(None, None, 5)}
RELIABLE = 0.5
"""Rank correlation of held-out tuning between halves, from which on it can be compared with."""


def _imaged(
    rates: np.ndarray, of: Variable, carries: np.ndarray, seed: int, hidden: dict | None = None
) -> Simulation:
    recording = Recording(rates, RATE, {of.name: of})
    simulation = Simulation(
        recording, {of.name: carries}, {of.name: (of.name,)}, hidden=hidden or {}, rates=rates
    )
    return field(simulation, seed=seed)


def _rising(drive: np.ndarray, slope: float, at: float) -> np.ndarray:
    return 1 / (1 + np.exp(-slope * (drive - at)))


def sharp_fields(seed: int, frames: int = 8000, cells: int = 100) -> Simulation:
    """Place fields of 10–20 cm on a belt of 2 m; the others have a belt of their own."""
    rng = np.random.default_rng([seed, 1])

    def belt_position() -> np.ndarray:
        speed = np.clip(15 + 6 * ornstein_uhlenbeck(rng, frames, 15), 0, None)
        return np.mod(np.cumsum(speed) / RATE, 200.0)

    position, carries = belt_position(), np.arange(cells) < 40
    rates = np.empty((frames, cells))
    for cell in range(cells):
        away = np.abs((position if carries[cell] else belt_position()) - rng.uniform(0, 200))
        width = rng.uniform(4, 8)
        rates[:, cell] = 0.02 + np.exp(-0.5 * np.square(np.minimum(away, 200 - away) / width))
    return _imaged(rates, Variable("position", position, "continuous", "cm"), carries, seed)


def leading(seed: int, frames: int = 8000, cells: int = 100) -> Simulation:
    """Cells that lead or follow a fast variable by up to half a second."""
    rng = np.random.default_rng([seed, 2])
    speed, carries = ornstein_uhlenbeck(rng, frames + 40, 7), np.arange(cells) < 40
    rates = np.empty((frames, cells))
    for cell in range(cells):
        lag = rng.integers(-5, 6)
        drive = speed if carries[cell] else ornstein_uhlenbeck(rng, frames + 40, 7)
        drive = drive[20 + lag : 20 + lag + frames]
        rates[:, cell] = _rising(drive, rng.choice([-2, 2]), rng.uniform(-0.5, 0.5))
    return _imaged(rates, Variable("speed", speed[20 : 20 + frames]), carries, seed)


def majority(share: int, seed: int, frames: int = 8000, cells: int = 100) -> Simulation:
    """Most cells rise with a variable, half of the others with a state that is independent."""
    rng = np.random.default_rng([seed, share])
    speed, state = (ornstein_uhlenbeck(rng, frames, time) for time in (20, 40))
    carries, rates = np.arange(cells) < share, np.empty((frames, cells))
    for cell in range(cells):
        drive = ornstein_uhlenbeck(rng, frames, 20) if cell % 2 else state
        drive = speed if carries[cell] else drive
        rates[:, cell] = _rising(drive, 1.5, rng.uniform(-0.5, 0.5))
    return _imaged(rates, Variable("speed", speed), carries, seed, {"state": state})


def simulations(seed: int) -> dict[str, Callable[[int], Simulation]]:
    """Recordings by name; each takes a seed, so that others of the kind can be made."""
    found: dict[str, Callable[[int], Simulation]] = {}
    number = 0
    for kind in KINDS:
        for share in SHARES:
            frames, events = FRAMES[number % 4], number % 5 == 4
            number += 1
            traces = "events" if events else "imaged"
            name = f"{kind}, {share} %, {frames:,} frames, {traces}"
            found[name] = partial(one_variable, kind, share, frames, events)
    for name, simulate in TASKS.items():
        for frames in (4000, 12_000):
            found[f"{name}, {frames:,} frames"] = lambda s, simulate=simulate, frames=frames: field(
                simulate(s, frames), seed=s
            )
    found["sharp fields"] = sharp_fields
    found["leading and following"] = leading
    found["arena with grid cells"] = lambda s: field(
        arena(place=20, grid=20, direction=20, speed=20, untuned=20, frames=12_000, seed=s), seed=s
    )
    found["confounded arena, single variables"] = lambda s: field(
        arena(place=25, grid=0, direction=25, speed=25, untuned=25, frames=12_000,
              confound=1.0, arousal=1.0, seed=s), seed=s,
    )  # fmt: skip
    for share in (60, 80):
        found[f"majority, {share} %"] = partial(majority, share)
    for d1 in (2, 5):
        found[f"box, d = {d1 + 2}"] = lambda s, d1=d1: box(d1=d1, d2=2, seed=s)
    return found


def measured(simulation: Simulation, seed: int) -> dict:
    """auROC by every map, false discoveries and power of every factor."""
    recording = simulation.recording
    factors = {name: list(v) for name, v in simulation.factors.items()}
    trained = fit(recording, factors, FitSettings(seed=seed))
    scores, seconds = {}, {}
    for method in METHODS:
        began = time.perf_counter()
        scores[method] = attribute(trained, recording, method, frames=EVERY.get(method))
        seconds[method] = time.perf_counter() - began
    random = attribute(_with_random_weights(trained, seed), recording, "generative-gradient")
    began = time.perf_counter()
    tested = _tested(trained, recording)
    seconds["test"] = time.perf_counter() - began
    found = {}
    for factor in factors:
        truth = np.asarray(simulation.truth[factor])
        strong = truth & (scores["conditional-encoding"].score(factor) > STRONG)
        about: dict = {
            "auroc": {m: auroc(s.score(factor), truth) for m, s in scores.items()},
            "carriers": int(truth.sum()),
            "random": auroc(random.score(factor), truth),
            "learned": bool(trained.goodness[factor].learned),
            "agreement": agreements(scores["both-routes"], factor, truth),
        }
        if tested is not None and np.isfinite(tested.q(factor)).any():
            at = tested.q(factor) <= LEVEL
            about |= {
                "found": int(at.sum()),
                "false": int((at & ~truth).sum()),
                "power": float(at[truth].mean()),
                "strong": int(strong.sum()),
                "strong_found": int((at & strong).sum()),
            }
        found[factor] = about
    return {"factors": found, "seconds": seconds}


def _with_random_weights(trained: Fit, seed: int) -> Fit:
    """The same fit with weights drawn anew, of the same spread: a control."""
    rng = np.random.default_rng(seed)
    weights = {
        name: (rng.normal(size=w.shape) * w.std()).astype(w.dtype)
        for name, w in trained.weights.items()
    }
    return replace(trained, weights=weights)


AGREEMENTS = ("variables alone", "encoder lower", "both", "encoder alone", "neither")


def agreements(scores: Attribution, factor: str, truth: np.ndarray) -> dict[str, list[int]]:
    """Of the cells that both routes, or one of them, see: how many there are, and carry it."""
    variables, encoder = (
        scores.detail(factor, "from_variables"),
        scores.detail(factor, "from_encoder"),
    )
    ratio = encoder / np.maximum(variables, 1e-9)
    seen = variables > SEEN
    groups = (
        seen & (ratio < APART),
        seen & (ratio >= APART) & (ratio < 0.5),
        seen & (ratio >= 0.5),
        ~seen & (encoder > SEEN),
        ~seen & (encoder <= SEEN),
    )
    return {
        name: [int(cells.sum()), int((cells & truth).sum())]
        for name, cells in zip(AGREEMENTS, groups, strict=True)
    }


def _tested(trained: Fit, recording: Recording):
    from napari_xcebra.errors import InputError

    try:
        return significance(trained, recording)
    except InputError:
        return None


def any_found(recording: Recording, factors: dict, seed: int) -> dict[str, int | None]:
    """Cells found of each factor; None where it could not be tested."""
    tested = _tested(fit(recording, factors, FitSettings(seed=seed)), recording)
    if tested is None:
        return dict.fromkeys(factors)
    return {
        f: int((tested.q(f) <= LEVEL).sum()) if np.isfinite(tested.q(f)).any() else None
        for f in factors
    }


NULLS = (("slow", 2000), ("slow", 4000), ("angle", 4000), ("rare state", 4000), ("fast", 4000))


def nulls(count: int, seed: int) -> dict[str, Callable[[], dict]]:
    """Recordings of the grid with the labels of another simulation."""
    found = {}
    for kind, frames in NULLS:
        for number in range(count):

            def measure(kind=kind, frames=frames, number=number) -> dict:
                own, other = (
                    one_variable(kind, 30, frames, False, seed + number + more)
                    for more in (0, 1000)
                )
                recording = with_labels(own.recording, other.recording.behavior)
                return any_found(recording, {kind: [kind]}, number)

            found[f"{kind}, {frames:,} frames: {number}"] = measure
    return found


def held_out_tuning(recording: Recording, names: list[str], smoothing: float) -> np.ndarray:
    """Held-out R² of a histogram of each cell over the variable, drift taken out: (cells,)."""
    labels = Labels.of(recording, names, "")
    if labels.is_discrete:
        bins = labels.code
    elif labels.angles.shape[1]:
        bins = np.floor(np.mod(labels.angles[:, 0], 2 * np.pi) / (2 * np.pi) * 16).astype(int)
    else:
        values = labels.linear[:, 0]
        edges = np.unique(np.quantile(values[labels.known], np.linspace(0, 1, 11)[1:-1]))
        bins = np.searchsorted(edges, values)
    columns = np.arange(recording.n_cells)
    kernel = gaussian_kernel(smoothing * recording.rate)
    traces = np.zeros((recording.n_frames, recording.n_cells))
    for here, some in smoothed(recording, columns, kernel):
        traces[here] = some
    known = np.flatnonzero(labels.known & ~np.asarray(recording.excluded))
    phase = np.pi * (known + 0.5) / recording.n_frames
    drift = np.c_[np.ones(len(known)), np.cos(phase[:, None] * np.arange(1, DRIFTS + 1))]
    traces[known] -= drift @ np.linalg.lstsq(drift, traces[known], rcond=None)[0]
    count = bins.max() + 1
    blocks = np.array_split(known, 10)
    sums = np.zeros((10, count, recording.n_cells))
    visits = np.zeros((10, count))
    for block, own in enumerate(blocks):
        np.add.at(sums[block], bins[own], traces[own])
        np.add.at(visits[block], bins[own], 1)
    missed, total = np.zeros(recording.n_cells), np.zeros(recording.n_cells)
    for block, own in enumerate(blocks):
        others = sums.sum(0) - sums[block], (visits.sum(0) - visits[block])[:, None]
        mean = others[0].sum(0) / others[1].sum()
        curve = (others[0] + 5 * mean) / (others[1] + 5)
        missed += np.square(traces[own] - curve[bins[own]]).sum(0)
        total += np.square(traces[own] - mean).sum(0)
    return 1 - missed / np.where(total > 0, total, 1)


ALONE = "worm, velocity alone"


def recordings_at_hand() -> dict[str, Callable[[], Real]]:
    """Real recordings, and one with but one of its factors: tuning to one knows of no other."""
    found = at_hand()

    def alone() -> Real:
        return replace(found["worm"](), factors={"velocity": ["velocity"]})

    return {**found, ALONE: alone} if found else {}


def of_real(name: str, seed: int) -> dict:
    """Rank correlations of the maps of a real recording."""
    real = recordings_at_hand()[name]()
    recording, factors = real.recording, real.factors
    fits = [fit(recording, factors, FitSettings(seed=s)) for s in (seed, seed + 1)]
    maps = {m: [attribute(f, recording, m) for f in fits] for m in METHODS}
    tested = _tested(fits[0], recording)
    found = {}
    for factor, names in factors.items():
        smoothing = fits[0].settings.smoothing
        tuning = held_out_tuning(recording, names, smoothing)
        halves = []
        for half in (0, 1):
            number = np.arange(recording.n_frames) * 20 // recording.n_frames
            away = np.asarray(recording.excluded) | (number % 2 == half)
            halves.append(held_out_tuning(replace(recording, excluded=away), names, smoothing))
        used = maps["conditional-encoding"][0].used
        about: dict = {
            "reliability": _ranks(*(h[used] for h in halves)),
            "cells": int(used.sum()),
            "tuning": {m: _ranks(a[0].score(factor)[used], tuning[used]) for m, a in maps.items()},
            "seeds": {m: _ranks(*(x.score(factor)[used] for x in a)) for m, a in maps.items()},
        }
        if tested is not None and np.isfinite(tested.q(factor)).any():
            alone = tested.beside_variables(factor)
            about["found"] = int((tested.q(factor) <= LEVEL).sum())
            about["beside variables"] = int((alone <= LEVEL).sum())
        if name == "CA1 events, active cells":
            theirs = ca1_information()
            about["authors"] = {m: _ranks(a[0].score(factor), theirs) for m, a in maps.items()}
            if tested is not None:
                found_here = tested.beside_variables(factor) <= LEVEL
                about["theirs found"] = int(found_here[~np.isnan(theirs)].sum())
            about["top 20"] = {m: _top(a[0].score(factor), theirs) for m, a in maps.items()}
        found[factor] = about
    return found


def _ranks(one: np.ndarray, other: np.ndarray) -> float:
    return float(spearmanr(one, other, nan_policy="omit").statistic)


def _top(scores: np.ndarray, theirs: np.ndarray, count: int = 20) -> int:
    """Of their first cells, how many are among ours."""
    mine, others = (set(np.argsort(-np.nan_to_num(s, nan=-1))[:count]) for s in (scores, theirs))
    return len(mine & others)


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--nulls", type=int, default=20, help="recordings of each kind of chance")
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    parser.add_argument("--only", default="", help="recordings with this in their name")
    parser.add_argument("--picture", type=Path)
    given = typed(parser, nulls=0, only="slow, 10 %")
    torch.set_num_threads(1)
    seed = given.seed

    def keep(name: str, measure: Callable[[], dict]) -> dict:
        began = time.perf_counter()
        result = kept(given.kept, f"{seed}: {name}", measure)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        return result

    rows: list[dict] = []
    for name, simulate in simulations(seed).items():
        if given.only in name:
            result = keep(name, lambda simulate=simulate: measured(simulate(seed), seed))
            for factor, about in result["factors"].items():
                rows.append({"name": name, "factor": factor, "seconds": result["seconds"]} | about)
    real = {
        name: keep(f"real: {name}", partial(of_real, name, seed))
        for name in recordings_at_hand()
        if given.only in f"real: {name}"
    }
    chance: dict[str, list[dict]] = defaultdict(list)
    for name, measure in nulls(given.nulls, seed).items():
        if given.only in f"null: {name}":
            chance[name.split(":")[0]].append(keep(f"null: {name}", measure))
    for name, load in at_hand().items():
        if given.only in f"null: real {name}":
            for change in CHANGES:
                result = keep(
                    f"null: real {name}: {change}",
                    lambda load=load, change=change: _changed(load(), change, seed),
                )
                chance["real, labels that are not theirs"].append(result)
    print(header("Maps"))
    print_maps(rows)
    print_real(real)
    print_chance(chance)
    if given.picture:
        draw(rows, given.picture)


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "reversed": lambda values: values[::-1].copy(),
    "shifted": lambda values: np.roll(values, len(values) // 3, axis=0),
}


def _changed(real, change: str, seed: int) -> dict:
    behavior = {
        n: replace(v, values=CHANGES[change](v.values)) for n, v in real.recording.behavior.items()
    }
    return any_found(with_labels(real.recording, behavior), real.factors, seed)


def _group(name: str) -> str:
    """Recordings of one variable by their kind, others by their name."""
    kind = name.split(", ")[0]
    return kind if kind in KINDS else name


def print_maps(rows: list[dict]) -> None:
    """The least auROC of a group, and false discoveries and power over it."""
    groups: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for each in rows:
        groups[_group(each["name"]), each["factor"]].append(each)
    print("auROC: the least of the group. False and found at q = 0.1; power of strong cells.\n")
    print(row("recordings", "factor", *METHODS.values(), "false / found", "power"))
    print(row(*["---"] * (len(METHODS) + 4)))
    for (name, factor), several in groups.items():
        tested = [r for r in several if "found" in r]
        strong = sum(r["strong"] for r in tested)
        print(
            row(
                f"{name} ({len(several)})" if name in KINDS else name,
                "" if factor == name else factor,
                *(f"{min(r['auroc'][m] for r in several):.3f}" for m in METHODS),
                f"{sum(r['false'] for r in tested)} / {sum(r['found'] for r in tested)}",
                f"{sum(r['strong_found'] for r in tested) / strong:.2f}" if strong else "–",
            )
        )
    long = [r for r in rows if r["name"].split(", ")[2:3] != ["2,000 frames"]]
    for method, title in METHODS.items():
        low = [r for r in long if r["auroc"][method] < 0.98]
        print(f"\n{title}: below 0.98 at 4,000 frames or more: {len(low)} of {len(long)}.")
        if method in tuple(METHODS)[:3]:
            for each in low:
                print(f"- {each['name']}, {each['factor']}: {each['auroc'][method]:.3f}")
    print_routes(rows)
    shares = [r["false"] / max(r["found"], 1) for r in rows if "found" in r]
    if shares:
        print(
            f"\nFalse discoveries at q = 0.1: {np.mean(shares):.3f} on average over {len(shares)}."
        )
        for each in rows:
            if "found" in each and each["false"] > 1 and each["false"] > 0.2 * each["found"]:
                print(f"- {each['name']}, {each['factor']}: {each['false']} of {each['found']}")


def print_routes(rows: list[dict]) -> None:
    """What the encoder's map owes to training, and how often cells carry what the routes say."""
    for method, title in METHODS.items():
        values = [r["auroc"][method] for r in rows]
        several = [r["auroc"][method] for r in rows if r["carriers"] >= 3]
        print(
            f"\n{title}: mean {np.mean(values):.3f}, least {min(values):.3f}; where at least three "
            f"cells carry the factor {np.mean(several):.3f} and {min(several):.3f}."
        )
    random = np.mean([r["random"] for r in rows])
    print(f"\nFrom an encoder with random weights: {random:.3f}.")
    unlearned = [f"{r['name']}, {r['factor']}" for r in rows if not r["learned"]]
    print(f"\nNot learned by the encoder: {', '.join(unlearned) or 'none'}.\n")
    print(row("cells seen to carry a factor by", "cells", "carry it"))
    print(row("---", "---", "---"))
    for name in AGREEMENTS:
        cells, right = np.sum([r["agreement"][name] for r in rows], axis=0)
        print(row(name, cells, f"{right / max(cells, 1):.2f}"))


def print_real(real: dict[str, dict]) -> None:
    """Rank correlations."""
    if not real:
        return
    print(
        "\nRank correlation with held-out tuning (and between two seeds). Found at q ≤ 0.1 (and "
        "beside the variables alone).\n"
    )
    print(row("real recording", "factor", "tuning of two halves", *METHODS.values(), "found"))
    print(row(*["---"] * (len(METHODS) + 4)))
    for name, factors in real.items():
        for factor, about in factors.items():
            print(
                row(
                    name,
                    factor,
                    f"{about['reliability']:.2f}",
                    *(f"{about['tuning'][m]:.2f} ({about['seeds'][m]:.2f})" for m in METHODS),
                    f"{about['found']} ({about['beside variables']}) of {about['cells']}"
                    if "found" in about
                    else "not tested",
                )
            )
            if "authors" in about:
                each = (
                    f"{title} {about['authors'][m]:.2f}, {about['top 20'][m]} of 20"
                    for m, title in METHODS.items()
                )
                print(row(name, "authors' information, top 20", "", *each, ""))


def print_chance(chance: dict[str, list[dict]]) -> None:
    """How often anything is found where there is nothing."""
    if not chance:
        return
    print("\nLabels that have nothing to do with the cells: recordings with a cell at q ≤ 0.1.\n")
    print(row("labels", "with a finding", "of"))
    print(row("---", "---", "---"))
    for name, several in chance.items():
        counts = [c for each in several for c in each.values() if c is not None]
        print(row(name, sum(c > 0 for c in counts), len(counts)))


def draw(rows: list[dict], path: Path) -> None:
    """auROC of every map, a line a method from the worst factor to the best."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for method, title in METHODS.items():
        values = np.sort([r["auroc"][method] for r in rows])
        axes.plot((np.arange(len(values)) + 1) / len(values), values, label=title.replace("\\", ""))
    axes.axhline(0.98, color="grey", lw=1)
    axes.set(xlabel="share of the factors", ylabel="auROC", ylim=(0.4, 1.01))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
