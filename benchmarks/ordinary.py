"""Ordinary recordings: is what is there found, what is not denied, and is the encoder worth it?

A grid of recordings that no constant was chosen on: one variable of seven kinds (slow, fast, an
angle, strictly periodic, balanced and rare states, gratings in fixed order), carried by 1 to 95 %
of 100 cells, at 2,000 to 20,000 frames, imaged or as sparse events; belt, choice task, arena and
confounded arena; and the real recordings where they are at hand. Each is fitted once with its
labels and once with labels that have nothing to do with it: those of another simulation, or the
same ones with no cell that carries them; of real recordings reversed, shifted by a third, and with
stretches permuted.

    python benchmarks/ordinary.py [--seed 0] [--kept FILE] [--picture ordinary.png] [--only KIND]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from real_recordings import at_hand
from report import header, kept, row, typed

from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.learn.quality.verdict import LARGEST_P
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import Simulation, arena, belt, field, task
from napari_xcebra.simulate.simulation import on_and_off, ornstein_uhlenbeck

RATE = 10.0
CELLS = 100
SHARES = (1, 3, 10, 25, 50, 70, 95)
FRAMES = (2000, 4000, 8000, 20_000)
TASKS: dict[str, Callable[[int, int], Simulation]] = {
    "belt": lambda seed, frames: belt(seed=seed, frames=frames),
    "choice task": lambda seed, frames: task(seed=seed, frames=frames, trials=False),
    "arena": lambda seed, frames: arena(seed=seed, frames=frames, untuned=20),
    "confounded arena": lambda seed, frames: arena(
        place=30, grid=0, direction=30, speed=30, mixed=30, untuned=60, frames=frames,
        confound=1.0, arousal=1.0, seed=seed,
    ),
}  # fmt: skip


def variable(kind: str, frames: int, rng: np.random.Generator) -> Variable:
    """A variable of a kind, at every frame."""
    times = np.arange(frames) / RATE
    if kind in ("slow", "fast"):
        return Variable(
            kind, ornstein_uhlenbeck(rng, frames, {"slow": 4, "fast": 0.7}[kind] * RATE)
        )
    if kind == "angle":
        turning = ornstein_uhlenbeck(rng, frames, 2 * RATE)
        return Variable(kind, np.mod(np.cumsum(turning) * 1.2 / RATE, 2 * np.pi), "circular", "rad")
    if kind == "periodic":
        return Variable(kind, 180 * np.mod(times / 12 + rng.random(), 1.0), "continuous", "cm")
    if kind == "ordered gratings":
        return Variable(kind, (np.floor(times / 3 + rng.integers(8)) % 8), "discrete")
    if kind == "balanced state":
        return Variable(kind, on_and_off(rng, frames, 4 * RATE, 4 * RATE).astype(float), "discrete")
    return Variable(kind, on_and_off(rng, frames, 16 * RATE, 0.8 * RATE).astype(float), "discrete")


REGULAR = ("periodic", "ordered gratings")
KINDS = ("slow", "fast", "angle", "periodic", "ordered gratings", "balanced state", "rare state")


def tuned(of: Variable, cells: int, rng: np.random.Generator) -> np.ndarray:
    """Rates of cells that carry a variable, 0 to 1: (frames, cells)."""
    values = of.values[:, 0]
    if of.kind == "discrete":
        codes = np.unique(values)
        # the first cell of a rare state is one that is active in it
        prefers = codes[(np.arange(cells) + len(codes) - 1) % len(codes)]
        return np.where(values[:, None] == prefers, 1.0, rng.uniform(0.1, 0.3, cells))
    if of.kind == "circular":
        return np.exp(2 * (np.cos(values[:, None] - rng.uniform(0, 2 * np.pi, cells)) - 1))
    ranks = np.argsort(np.argsort(values)) / len(values)
    if of.name == "fast":  # cells that rise or fall with it
        slopes = rng.choice([-1, 1], cells) * rng.uniform(4, 8, cells)
        return 1 / (1 + np.exp(-slopes * (ranks[:, None] - rng.uniform(0.3, 0.7, cells))))
    centres, width = rng.uniform(0.05, 0.95, cells), rng.uniform(0.06, 0.15, cells)
    return 0.05 + 0.95 * np.exp(-0.5 * np.square((ranks[:, None] - centres) / width))


def one_variable(kind: str, share: int, frames: int, events: bool, seed: int) -> Simulation:
    """A population of which a share carries one variable; the others live on their own."""
    rng = np.random.default_rng([seed, share, frames])
    carried = variable(kind, frames, rng)
    own = [variable(k, frames, rng) for k in ("slow", "fast", "angle", "balanced state") * 25]
    others = [tuned(each, 1, rng) for each in own[: CELLS - share]]
    rates = np.hstack([tuned(carried, share, rng), *others])
    truth = {kind: np.arange(CELLS) < share}
    recording = Recording(rates, RATE, {kind: carried})
    simulation = Simulation(recording, truth, {kind: (kind,)}, rates=rates)
    if not events:
        return field(simulation, seed=seed)
    counts = rng.poisson(rates * 3 / RATE).astype(np.float32)
    return replace(simulation, recording=replace(recording, traces=counts))


def recordings(seed: int) -> Iterator[tuple[str, Callable[[], list[Recording]], dict, bool]]:
    """Name, recording and others with labels that are none of it, factors, and whether carried."""
    number = 0
    for kind in KINDS:
        for share in SHARES:
            frames, events = FRAMES[number % 4], number % 5 == 4
            number += 1

            def made(kind=kind, share=share, frames=frames, events=events) -> list[Recording]:
                true = one_variable(kind, share, frames, events, seed)
                if kind in REGULAR:  # that of another simulation is the same, a little later
                    return [true.recording, one_variable(kind, 0, frames, events, seed).recording]
                other = one_variable(kind, share, frames, events, seed + 500)
                return [true.recording, with_labels(true.recording, other.recording.behavior)]

            traces = "events" if events else "imaged"
            yield f"{kind}, {share} %, {frames:,} frames, {traces}", made, {kind: [kind]}, True
    for name, simulate in TASKS.items():
        for frames in (4000, 12_000):

            def made(simulate=simulate, frames=frames) -> list[Recording]:
                true, other = (field(simulate(s, frames), seed=s) for s in (seed, seed + 500))
                return [true.recording, with_labels(true.recording, other.recording.behavior)]

            factors = {n: list(v) for n, v in simulate(seed, 300).factors.items()}
            yield f"{name}, {frames:,} frames", made, factors, True
    for name, load in at_hand().items():

        def made(load=load) -> list[Recording]:
            recording = load().recording
            changes = (_reversed, _shifted, _permuted)
            return [recording, *(_changed(recording, change) for change in changes)]

        yield f"real: {name}", made, load().factors, True


def with_labels(recording: Recording, behavior) -> Recording:
    return replace(recording, behavior=dict(behavior))


def _changed(recording: Recording, change: Callable[[np.ndarray], np.ndarray]) -> Recording:
    changed = {n: replace(v, values=change(v.values)) for n, v in recording.behavior.items()}
    return replace(recording, behavior=changed)


def _reversed(values: np.ndarray) -> np.ndarray:
    return values[::-1].copy()


def _shifted(values: np.ndarray) -> np.ndarray:
    return np.roll(values, len(values) // 3, axis=0)


def _permuted(values: np.ndarray) -> np.ndarray:
    """Twelve stretches in another order, none in its place."""
    stretches = np.array_split(values, 12)
    return np.concatenate([stretches[(5 * i + 7) % 12] for i in range(12)])


def measured(recording: Recording, factors: dict, seed: int) -> dict:
    """Verdicts of a fit with defaults, and its seconds."""
    began = time.perf_counter()
    done = fit(recording, factors, FitSettings(seed=seed))
    found = {n: g.as_dict() | {"strength": g.strength} for n, g in done.goodness.items()}
    return {"seconds": time.perf_counter() - began, "steps": done.steps, "factors": found}


def main() -> None:
    """Fit the grid, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--only", default="", help="recordings with this in their name")
    given = typed(parser, only="slow, 10 %")
    torch.set_num_threads(1)
    rows: list[dict] = []
    for name, made, factors, _ in recordings(given.seed):
        if given.only not in name:
            continue
        several: list[Recording] = []
        for number in range(4 if name.startswith("real") else 2):

            def measure(number=number, several=several, made=made, factors=factors) -> dict:
                several[:] = several or made()
                return measured(several[number], factors, given.seed)

            result = kept(given.kept, f"{given.seed}: {name}: {number}", measure)
            print(name, number, _in_short(result), file=sys.stderr, flush=True)
            for factor, about in result["factors"].items():
                if factor != "time":
                    seconds = result["seconds"]
                    rows.append(
                        {"name": name, "true": number == 0, "factor": factor, "seconds": seconds}
                        | about
                    )
    print(header("Ordinary recordings"))
    print_tables(rows)
    if given.picture:
        draw(rows, given.picture)


def _in_short(result: dict) -> str:
    each = (
        f"{n} {g['strength']} p {g['p'] or float('nan'):.2g} {g['goodness']:.2f} nats "
        f"R² {g['r2']:.2f} / {g['ridge_r2']:.2f}"
        for n, g in result["factors"].items()
        if n != "time"
    )
    return f"{result['seconds']:.1f} s, " + "; ".join(each)


def print_tables(rows: list[dict]) -> None:
    """What was denied, what was invented, and the encoder beside the regression."""
    true, false = ([r for r in rows if r["true"] is t] for t in (True, False))
    tested = [r for r in true if r["strength"] != "not tested"]
    denied = [r for r in tested if r["strength"] == "at chance"]
    tried = [r for r in false if r["strength"] != "not tested"]
    invented = [r for r in tried if r["strength"] != "at chance"]
    behind = [r for r in true if lead(r) < -0.02]
    overconfident = [r for r in true if r["ridge_r2"] > 0.1 and r["goodness"] < -0.1]
    print(row("over the grid", "variables", "of"))
    print(row("---", "---", "---"))
    print(row("carried, and denied", len(denied), len(tested)))
    print(row("not carried, and called present", len(invented), len(tried)))
    print(
        row("not tested (too slow or too regular)", len(rows) - len(tested) - len(tried), len(rows))
    )
    print(row("encoder more than 0.02 behind the ridge regression", len(behind), len(true)))
    print(row("goodness below −0.1 nats where ridge has R² > 0.1", len(overconfident), len(true)))
    groups: dict[str, list[dict]] = defaultdict(list)
    for each in rows:
        groups[each["name"].split(", ")[0]].append(each)
    print("\nHeld-out R² (accuracy of discrete variables), mean over the group.\n")
    print(row("recordings", "found", "invented", "encoder", "ridge with lags", "seconds"))
    print(row(*["---"] * 6))
    for group, several in groups.items():
        own = [r for r in several if r["true"]]
        null = [r for r in several if not r["true"]]
        print(
            row(
                group,
                f"{sum(r['strength'] in ('clear', 'weak') for r in own)} of {len(own)}",
                f"{sum(r['strength'] in ('clear', 'weak') for r in null)} of {len(null)}",
                f"{np.mean([score(r)[0] for r in own]):.2f}",
                f"{np.mean([score(r)[1] for r in own]):.2f}",
                f"{np.mean([r['seconds'] for r in own]):.0f}",
            )
        )
    for title, several in (("Denied", denied), ("Invented", invented), ("Behind", behind)):
        print(f"\n{title}:", "none." if not several else "")
        for each in several:
            own, ridge = score(each)
            p = float("nan") if each["p"] is None else each["p"]
            print(f"- {each['name']}, {each['factor']}: {own:.2f} ({ridge:.2f}), p {p:.2g}")


def score(about: dict) -> tuple[float, float]:
    """Of the encoder and of the regression: accuracy if discrete, else R²."""
    if about["accuracy"] is not None:
        return about["accuracy"], about["ridge_accuracy"]
    return about["r2"], about["ridge_r2"]


def lead(about: dict) -> float:
    """By how much the encoder is better; a regression that knows nothing is no yardstick."""
    own, ridge = score(about)
    return own - (ridge if about["accuracy"] is not None else max(ridge, 0.0))


def draw(rows: list[dict], path: Path) -> None:
    """Encoder against regression, a dot a variable, and p of those carried and not carried."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    true = [r for r in rows if r["true"]]
    for discrete, colour, title in ((False, "#1f77b4", "R²"), (True, "#d95f02", "accuracy")):
        own = [score(r) for r in true if (r["accuracy"] is not None) is discrete]
        if own:
            left.scatter(*np.array(own)[:, ::-1].T, s=18, color=colour, label=title, alpha=0.7)
    left.plot([0, 1], [0, 1], color="grey", lw=1)
    left.set(
        xlabel="ridge regression with lags, held out",
        ylabel="encoder, held out",
        xlim=(-0.1, 1.02),
        ylim=(-0.1, 1.02),
    )
    left.legend(frameon=False)
    for is_true, colour, title in ((True, "#1b9e77", "carried"), (False, "#7570b3", "not carried")):
        p = np.sort(
            [max(r["p"], 1e-12) for r in rows if r["true"] is is_true and r["p"] is not None]
        )
        right.plot(p, (np.arange(len(p)) + 1) / len(p), color=colour, label=title)
    right.axvline(LARGEST_P, color="grey", lw=1)
    right.set(xscale="log", xlabel="p", ylabel="share of the variables")
    right.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
