"""The papers' tables and figures with today's code, in as many sittings as it takes.

Every result is one fit, kept as it comes in `benchmarks/published/results/`; a run that is stopped
or killed loses the one it was at. Rounds come one after the other: the first dataset of every
table, then the second … `docs/paper.md` is made of what there is, ours beside theirs.

    python benchmarks/paper.py [--until 00:25] [--rounds 60] [--only box arena …] [--plan]
    python benchmarks/paper.py --page          # the page alone
    make paper                                 # both
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import torch
from published import fits, page
from published.identifiability import CASES, identifiability_fit
from published.results import FOLDER, Measurement, Results, in_turn
from report import typed

MODES = ("hybrid", "behavior", "supervised")
PRESETS = ("default", "paper")
COLUMNS = tuple(product(PRESETS, (True, False), MODES))
LATENTS = (4, 9, 6, 5, 7, 8)
"""Of the box model, in the order in which they are measured."""
NOISE = (0.5, 1.0, 2.0, 4.0)
"""Of Fig. 10, in standard deviations of each cell."""
DATASETS, SEEDS = 10, 10
SIZES = (
    *(("time", 0, d) for d in (6, 3, 4, 8, 2, 5, 7, 9, 10)),
    *(("behavior", d, 0) for d in (3, 2, 4, 6, 5)),
    *(("hybrid", d2, d1) for d1, d2 in product((3, 2, 4), repeat=2)),
)
"""Of Fig. 6: training, latents of the variable and of time."""


def box_plan(frames: int) -> list[Measurement]:
    """Tables 1 and 2: a dataset and number of latents a round."""
    plan = []
    for number, (dataset, d) in enumerate(product(range(DATASETS), LATENTS)):
        for observed, (preset, regularised, mode) in product(("z2", "z1"), COLUMNS):
            if observed == "z1" and mode != "hybrid":
                continue
            key = {"observed": observed, "d": d, "dataset": dataset, "mode": mode}
            key |= {"regularised": regularised, "preset": preset, "frames": frames}
            plan.append(Measurement("box", key, fits.box_fit, number))
    return plan


def arena_plan(frames: int, simulator: str) -> list[Measurement]:
    """Tables 3 to 5, Figs. 4 and 10: one recording, as in the paper, and a new start a round."""
    plan = []
    for seed, noise in product(range(SEEDS), (0.0, *NOISE)):
        for preset, regularised, mode in COLUMNS:
            if noise and not (regularised and mode == "hybrid"):
                continue
            key = {"simulator": simulator, "noise": noise, "dataset": 0, "seed": seed}
            key |= {"mode": mode, "regularised": regularised, "preset": preset, "frames": frames}
            plan.append(Measurement("arena", key, fits.arena_fit, 3 * seed))
    return plan


def grid_plan(frames: int, source: str) -> list[Measurement]:
    """Fig. 7: a simulated population of grid cells a round, or the recording at hand."""
    keys = (
        {"source": source, "dataset": n, "mode": mode, "regularised": True, "preset": preset}
        for n, preset, mode in product(range(DATASETS), PRESETS, ("hybrid", "supervised"))
    )
    every = [Measurement("grid", k | {"frames": frames}, fits.grid_fit, k["dataset"]) for k in keys]
    return [each for each in every if source == "simulated" or each.round == 0]


def dimension_plan(frames: int) -> list[Measurement]:
    """Fig. 6: a new start a round, two for the first, as it takes two to compare."""
    return [
        Measurement(
            "dimension",
            {"mode": mode, "factor_latents": of_factor, "time_latents": max(of_time, 1)}
            | {"seed": seed, "preset": preset, "frames": frames},
            fits.dimension_fit,
            max(seed - 1, 0) + (2 if preset == "paper" else 0),
        )
        for preset, (mode, of_factor, of_time), seed in product(PRESETS, SIZES, range(SEEDS))
    ]


def identifiability_plan(steps: int) -> list[Measurement]:
    """All rows with ten latents, then with five; encoders trained on the latents beside them."""
    plan = []
    supervised = {(c.space, c.marginal, c.model_space): row for row, c in enumerate(CASES)}
    for seed, latents in product(range(5), (10, 5)):
        for row in range(len(CASES)):
            key = {"row": row, "latents": latents, "seed": seed, "steps": steps}
            of = 2 * seed + (latents == 5)
            kinds = (
                ("contrastive", "supervised") if row in supervised.values() else ("contrastive",)
            )
            for kind in kinds:
                made = Measurement(
                    "identifiability", key | {"training": kind}, identifiability_fit, of
                )
                plan.append(made)
    return plan


def measure(plan: list[Measurement], results: Results, until: float) -> None:
    """What is not there yet, one after the other, as long as there is time."""
    for number, each in enumerate(plan):
        if results.has(each):
            continue
        if time.time() > until:
            break
        began = time.process_time()
        words = f"{number + 1}/{len(plan)} {each.table} {' '.join(map(str, each.key.values()))}"
        try:
            result = each.measure(**each.key)
        except Exception:  # one that fails is told, and tried again by the next run
            print(f"{words} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            continue
        results.keep(each, result, time.process_time() - began)
        print(words, file=sys.stderr, flush=True)


def end_of(clock: str | None) -> float:
    """Seconds of the clock at which nothing more is begun: the next such time of the day, UTC."""
    if clock is None:
        return float("inf")
    now = datetime.now(tz=UTC)
    hour, minute = map(int, clock.split(":"))
    then = now.replace(hour=hour, minute=minute, second=0)
    return (then if then > now else then + timedelta(days=1)).timestamp()


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--until", metavar="HH:MM", help="begin nothing after this time (UTC)")
    parser.add_argument("--rounds", type=int, default=DATASETS * len(LATENTS))
    tables = ("box", "arena", "grid", "dimension", "identifiability")
    parser.add_argument("--only", nargs="+", choices=tables, default=tables)
    parser.add_argument("--results", type=Path, default=FOLDER, metavar="FOLDER")
    parser.add_argument("--frames", type=int, default=100_000, help="of the box model")
    parser.add_argument("--steps", type=int, default=4000, help="of identifiability")
    parser.add_argument("--simulator", choices=["ratinabox", "own"], default="ratinabox")
    parser.add_argument("--grid-cells", default="simulated", metavar="PATH", help="a recording")
    parser.add_argument("--plan", action="store_true", help="print what is there of each table")
    parser.add_argument("--page", action="store_true", help="only write the page")
    quick = {"results": None, "frames": 1500, "steps": 5, "simulator": "own", "rounds": 1}
    given = typed(parser, **quick)
    results = Results(given.results or Path("paper-quick"))
    small = given.frames < 20_000
    torch.set_num_threads(1)
    made = {
        "box": lambda: box_plan(given.frames),
        "arena": lambda: arena_plan(given.frames if small else 20_000, given.simulator),
        "grid": lambda: grid_plan(given.frames if small else 20_000, given.grid_cells),
        "dimension": lambda: dimension_plan(given.frames if small else 20_000),
        "identifiability": lambda: identifiability_plan(given.steps),
    }
    plan = [each for name in given.only for each in made[name]() if each.round < given.rounds]
    if given.plan:
        for name in given.only:
            own = [each for each in plan if each.table == name]
            print(f"{name}: {sum(map(results.has, own))} of {len(own)}")
        return
    if not given.page:
        measure(in_turn(plan), results, end_of(given.until))
    page.write(results, page.DOCS if results.folder == FOLDER else results.folder)


if __name__ == "__main__":
    main()
