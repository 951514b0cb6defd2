"""Which maps stay right when variables go together?

An animal that runs faster away from the walls and, unobserved, when it is aroused; half of the
cells follow the arousal as well. Seen through calcium imaging; 25 cells each of place, direction
and speed, and 25 that carry nothing. auROC of every method of attribution beside what labs compute
of single cells, the unique variance in a regression on the observed variables, and the same
regression given the true arousal, which is the bound.

    python benchmarks/confounds.py [--seeds 5] [--frames 12000] [--keep FILE] [--fits DIR]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from report import header, kept, row, typed

from napari_xcebra.attribution import METHODS, attribute, auroc
from napari_xcebra.attribution.methods import method_named
from napari_xcebra.attribution.single_cell import cell_statistics
from napari_xcebra.learn import Fit, FitSettings, fit
from napari_xcebra.recording import Variable
from napari_xcebra.simulate import Simulation, arena, field

STRENGTHS = (0.0, 0.5, 1.0)
STATISTICS = ("spatial_information", "mutual_information", "correlation", "decoder_weight")
OBSERVED, BOUND = "regression on observed variables", "the same given the true arousal"
EVERY = 50
"""Captum's methods are averaged over every so many frames."""


def simulated(strength: float, seed: int, frames: int) -> Simulation:
    """An imaged animal whose speed goes with place and arousal by that much."""
    animal = arena(
        place=25,
        grid=0,
        direction=25,
        speed=25,
        untuned=25,
        frames=frames,
        confound=strength,
        arousal=strength,
        seed=seed,
    )
    return field(animal, seed=seed)


def main() -> None:
    """Measure every recording and print auROC per factor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="file in which results are kept as they come")
    parser.add_argument("--fits", type=Path, help="folder in which fits are kept")
    parser.add_argument("--table", action="store_true", help="print what is kept, measure nothing")
    parser.add_argument("--strengths", type=float, nargs="+", default=STRENGTHS)
    given = typed(parser, frames=1500, seeds=1, strengths=[0.5])
    torch.set_num_threads(1)
    found: dict[float, list[dict[str, dict[str, float]]]] = {s: [] for s in given.strengths}
    for strength in reversed(given.strengths):
        for seed in range(given.seeds):
            measured = kept(
                given.keep,
                f"{strength:g} {seed}",
                lambda strength=strength, seed=seed: (
                    None if given.table else scores(strength, seed, given.frames, given.fits)
                ),
            )
            found[strength] += [measured] if measured else []
    report(found, given.frames)


def scores(
    strength: float, seed: int, frames: int, fits: Path | None
) -> dict[str, dict[str, float]]:
    """auROC for every factor, by everything that ranks cells."""
    simulation = simulated(strength, seed, frames)
    recording, trained = simulation.recording, trained_on(simulation, strength, seed, fits)
    maps: dict[str, dict[str, np.ndarray]] = {}
    for method in METHODS:
        every = slice(0, None, EVERY) if method_named(method).slow else None
        result = attribute(trained, recording, method, frames=every)
        maps[method] = {name: result.score(name) for name in simulation.factors}
    statistics = cell_statistics(recording, simulation.factors, STATISTICS)
    for name in STATISTICS:
        maps[name] = {
            f: np.abs(statistics.of(f)[name])
            for f in simulation.factors
            if np.isfinite(statistics.of(f).get(name, np.nan)).any()
        }
    maps[OBSERVED] = regression(trained, simulation, given_state=False)
    maps[BOUND] = regression(trained, simulation, given_state=True)
    return {
        name: {f: auroc(score, simulation.truth[f]) for f, score in own.items()}
        for name, own in maps.items()
    } | {"arousal in time latents, R²": {"speed": state_r2(trained, simulation)}}


def trained_on(simulation: Simulation, strength: float, seed: int, fits: Path | None) -> Fit:
    """Default settings; from the folder of fits if it is there."""
    folder = fits / f"{strength:g}-{seed}" if fits else None
    if folder is not None and folder.exists():
        return Fit.load(folder)
    trained = fit(simulation.recording, simulation.factors, FitSettings(seed=seed))
    if folder is not None:
        trained.save(folder)
    return trained


def regression(trained: Fit, simulation: Simulation, given_state: bool) -> dict[str, np.ndarray]:
    """Conditional encoding without the time latents, or with the truth in their place."""
    recording, parts = simulation.recording, trained.parts[:-1]
    if given_state:
        recording = recording.with_behavior(Variable("arousal", simulation.hidden["arousal"]))
        parts = (*parts, replace(trained.parts[-1], name="arousal", variables=("arousal",)))
    known = replace(trained, parts=parts, goodness={})
    result = attribute(known, recording, "conditional-encoding")
    return {name: result.score(name) for name in simulation.factors}


def state_r2(trained: Fit, simulation: Simulation) -> float:
    """How much of the arousal a polynomial of the time latents tells."""
    latents = trained.embed(simulation.recording)[:, trained.parts[-1].latents]
    state = simulation.hidden["arousal"]
    columns = np.hstack([latents**power for power in range(4)])
    weights, *_ = np.linalg.lstsq(columns, state, rcond=None)
    return float(1 - np.var(state - columns @ weights) / np.var(state))


def report(found: dict[float, list[dict[str, dict[str, float]]]], frames: int) -> None:
    """Print the table, and how far ours is on the way to the bound."""
    print(header("Variables that go together"))
    counts = ", ".join(f"{len(own)} at {strength:g}" for strength, own in found.items())
    print(
        f"100 imaged cells, {frames:,} frames, default settings; recordings by strength: {counts}. "
        "auROC, mean (and least) over recordings.\n"
    )
    factors = ("place", "direction", "speed")
    titles = [f"{f}, {s:g}" for f in factors for s in found]
    print(row("ranked by", *titles))
    print(row(*["---"] * (1 + len(titles))))
    names = list(next(own[0] for own in found.values() if own))
    for name in names:
        cells = [
            _cell([r[name][f] for r in found[s] if f in r[name]]) for f in factors for s in found
        ]
        print(row(name.replace("_", " "), *cells))
    for strength, own in found.items():
        if strength == 0 or not own:
            continue
        ours, low, high = (
            np.mean([r[name]["speed"] for r in own])
            for name in ("conditional-encoding", OBSERVED, BOUND)
        )
        print(
            f"\nSpeed at strength {strength:g}: conditional encoding is "
            f"{(ours - low) / (high - low):.0%} of the way from {low:.3f} to {high:.3f}."
        )
    print()


def _cell(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ({np.min(values):.2f})" if values else "–"


if __name__ == "__main__":
    main()
