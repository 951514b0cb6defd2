"""Several sessions: what is gained by carrying an encoder over, and by training together.

Imaged fields of one simulated animal on two days (other path, other brightness, a tenth of the
cells lost, a share of the others with another tuning), and of several animals with different cells.
Held-out R² and goodness, auROC of J⁺ against the truth, and R² of a linear decoder that was made on
the first recording ("same axes"): means over place, direction and speed. Seconds are processor time
of one thread, training and measuring the fit.

    python benchmarks/sessions.py [--seeds 2] [--only days|animals|joint] [--kept FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import header, kept, row, typed

from napari_xcebra.attribution import attribute, auroc
from napari_xcebra.learn import Fit, FitSettings, fit
from napari_xcebra.learn.adaptation import adapt
from napari_xcebra.learn.joint.consistency import session_consistency
from napari_xcebra.learn.joint.fitting import fit_sessions
from napari_xcebra.learn.quality.decoding import embedding_quality
from napari_xcebra.simulate import Simulation, arena, drifted, field

CELLS = {"place": 20, "grid": 0, "direction": 20, "speed": 20, "untuned": 20}
MINUTES = [15, 4]
RATE = 10
"""Frames a second."""
STEPS = (50, 200, 600)
FACTORS = ("place", "direction", "speed")
Keep = Callable[[str, Callable[[], Any]], Any]
"""Measures what is not measured yet, by name."""


def imaged(frames: int, seed: int, day: int = 0, remapped: float = 0.0) -> Simulation:
    """An animal under the microscope; on another day with drift, and a tenth of its cells lost."""
    animal = arena(**CELLS, frames=frames, seed=seed, day=day, remapped=remapped)
    seen = field(animal, seed=seed)
    return drifted(seen, seed=seed + day) if day else seen


def measured(trained: Fit, simulation: Simulation, first: tuple[Fit, Simulation]) -> dict[str, Any]:
    """Means over factors."""
    scores = attribute(trained, simulation.recording)
    goodness = [trained.goodness[name] for name in FACTORS]
    return {
        "r2": float(np.mean([g.r2 for g in goodness])),
        "nats": float(np.mean([g.goodness for g in goodness])),
        "auroc": float(
            np.mean([auroc(scores.score(name), simulation.truth[name]) for name in FACTORS])
        ),
        "same_axes": float(
            np.mean([_read(name, first, (trained, simulation)) for name in FACTORS])
        ),
    }


def _read(factor: str, one: tuple[Fit, Simulation], other: tuple[Fit, Simulation]) -> float:
    """R² of a linear decoder made on one recording and used on another."""
    (latents, target), (seen, true) = (_pair(factor, *each) for each in (one, other))
    design = np.c_[np.ones(len(latents)), latents]
    weights, *_ = np.linalg.lstsq(design, target, rcond=1e-6)
    missed = true - np.c_[np.ones(len(seen)), seen] @ weights
    return float(1 - np.square(missed).sum() / np.square(true - true.mean(0)).sum())


def _pair(factor: str, trained: Fit, simulation: Simulation) -> tuple[np.ndarray, np.ndarray]:
    part = trained.part(factor)
    variable = simulation.recording.variable(part.variables[0])
    values = variable.values
    if variable.kind == "circular":
        values = np.hstack([np.cos(values), np.sin(values)])
    return trained.embed(simulation.recording)[:, part.latents], values


def timed(train: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and processor seconds."""
    began = time.process_time()
    return train(), time.process_time() - began


@lru_cache(maxsize=1)
def first_recording(seed: int) -> tuple[Fit, Simulation]:
    """A quarter of an hour of an animal, with defaults."""
    simulation = imaged(60 * RATE * MINUTES[0], seed)
    return fit(simulation.recording, simulation.factors, FitSettings(seed=seed)), simulation


def carried(seed: int, frames: int, day: int, remapped: float, keep: Keep) -> dict[str, Any]:
    """One first recording, and everything that can be done with a second one."""
    base, before = first_recording(seed)
    second = imaged(frames, seed if day else seed + 100, day, remapped)
    factors, recording = before.factors, second.recording
    runs: dict[str, Callable[[], Fit]] = {}
    if day:
        runs["as it is, 0"] = lambda: _unadapted(base, recording)
        runs["own statistics, 0"] = lambda: adapt(base, recording, "statistics")
    for steps in STEPS[:-1]:
        runs[f"input layer, {steps}"] = lambda n=steps: adapt(
            base, recording, "input-layer", steps=n
        )
    for steps in STEPS:
        runs[f"afresh, {steps}"] = lambda n=steps: fit(
            recording, factors, FitSettings(seed=seed, steps=n)
        )

    def measure(run: Callable[[], Fit]) -> dict[str, Any]:
        trained, seconds = timed(run)
        return measured(trained, second, (base, before)) | {"seconds": seconds}

    return {name: keep(name, lambda r=run: measure(r)) for name, run in runs.items()}


def _unadapted(base: Fit, recording: Any) -> Fit:
    """Carried over with the first day's mean and spread of every cell."""
    found = adapt(base, recording, "statistics")
    which = [list(base.inputs.cell_ids).index(cell) for cell in found.inputs.cell_ids]
    inputs = replace(found.inputs, mean=base.inputs.mean[which], scale=base.inputs.scale[which])
    unadapted = replace(found, inputs=inputs)
    decoded = embedding_quality(unadapted, recording).table()
    r2 = decoded[decoded["decoder"] == "linear"].set_index("factor")["r2"]
    nothing = float("nan")  # goodness is measured with a recording's own statistics only
    goodness = {
        name: replace(g, r2=float(r2.get(name, nothing)), goodness=nothing)
        for name, g in found.goodness.items()
    }
    return replace(unadapted, goodness=goodness)


def together(seed: int, frames: int, keep: Keep) -> dict[str, Any]:
    """Three animals, one by one and together."""
    animals = {f"animal {i}": imaged(frames, 3 * seed + i) for i in range(3)}
    recordings = {name: each.recording for name, each in animals.items()}
    factors = animals["animal 0"].factors
    steps = FitSettings().steps
    runs: dict[str, Callable[[], Mapping[str, Fit]]] = {
        "one by one": lambda: {
            name: fit(r, factors, FitSettings(seed=seed)) for name, r in recordings.items()
        },
    }
    for own, times in (("input layer", 1), ("encoder", 1)):
        runs[f"together, own {own}, {times * steps} steps"] = lambda o=own, n=times: (
            fit_sessions(recordings, factors, FitSettings(seed=seed, steps=n * steps), own=o).fits
        )

    def measure(run: Callable[[], Mapping[str, Fit]]) -> dict[str, Any]:
        fits, seconds = timed(run)
        first = (fits["animal 0"], animals["animal 0"])
        each = [measured(fits[n], animals[n], first) for n in list(fits)]
        agreement = session_consistency(fits, recordings)
        means = {key: float(np.mean([e[key] for e in each])) for key in ("r2", "nats", "auroc")}
        return means | {
            "same_axes": float(np.mean([e["same_axes"] for e in each[1:]])),
            "consistency": float(np.mean([agreement.mean(f) for f in FACTORS])),
            "seconds": seconds,
        }

    return {name: keep(name, lambda r=run: measure(r)) for name, run in runs.items()}


def table(title: str, results: list[dict[str, Any]], columns: list[str]) -> str:
    """Means over seeds."""
    lines = [f"### {title}", "", row("", *columns), row("---", *["---:"] * len(columns))]
    for name in results[0]:
        cells = []
        for column in columns:
            values = [each[name].get(column, float("nan")) for each in results]
            digits = 1 if column == "seconds" else 2 if column != "auroc" else 3
            mean = float(np.mean(values))
            cells.append("–" if np.isnan(mean) else f"{mean:.{digits}f}")
        lines.append(row(name, *cells))
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=["days", "animals", "joint"])
    parser.add_argument("--minutes", type=int, nargs="+", default=MINUTES)
    parser.add_argument("--kept", type=Path, help="file of results, to go on from")
    arguments = typed(parser, seeds=1, only="days", minutes=[2])
    torch.set_num_threads(1)
    print(header("Several sessions"))
    columns = ["r2", "nats", "auroc", "same_axes", "seconds"]
    cases: dict[str, tuple[str, Callable[[int, Keep], dict[str, Any]], list[str]]] = {}
    for minutes in arguments.minutes:
        frames, length = 60 * RATE * minutes, f"{minutes} min"
        for remapped in (0.0, 0.3) if minutes == MINUTES[0] else (0.0,):
            cases[f"days: the same cells, {length}, {remapped:.0%} of them remapped"] = (
                "days",
                lambda seed, keep, n=frames, r=remapped: carried(seed, n, 1, r, keep),
                columns,
            )
        cases[f"animals: other cells, {length}"] = (
            "animals",
            lambda seed, keep, n=frames: carried(seed, n, 0, 0.0, keep),
            columns,
        )
        cases[f"joint: three animals, {length} each"] = (
            "joint",
            lambda seed, keep, n=frames: together(seed, n, keep),
            [*columns[:4], "consistency", "seconds"],
        )
    chosen = {title: case for title, case in cases.items() if arguments.only in (None, case[0])}
    results: dict[str, list[dict[str, Any]]] = {title: [] for title in chosen}
    for seed in range(arguments.seeds):
        for title, (_, measure, _) in chosen.items():
            case = f"{title}, seed {seed}: "
            results[title].append(
                measure(seed, lambda name, run, c=case: kept(arguments.kept, c + name, run))
            )
    for title, (_, _, shown) in chosen.items():
        print(table(title, results[title], shown))


if __name__ == "__main__":
    main()
