"""Which null keeps the promise of q? False discoveries and power at q = 0.1, by simulated truth.

Recordings of three kinds: the box model, rates of a navigating animal with noise, and the same seen
through calcium imaging. In two thirds of those with an animal, speed goes with place and with an
unobserved state that half of the cells follow (strength 0.5 and 1). All have cells that are active
and carry nothing observed. Candidates:

- trace: what is left of a factor's columns against the trace, and the trace shifted (the default);
- remainder: the same, but what everything else does not predict of the trace is shifted;
- observed: as trace, beyond the other observed variables only, without the unobserved state;
- plain: as trace, each factor by itself;
- decoys: shifted copies of real cells trained along, ranked among them by J⁺ (some recordings);
- retrained: J⁺ against the J⁺ of encoders trained on shifted labels (some recordings).

    python benchmarks/significance.py [--recordings 20] [--keep FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from report import header, kept, row
from scipy.stats import false_discovery_control

from napari_xcebra.attribution import attribute, significance
from napari_xcebra.learn import Fit, FitSettings, fit
from napari_xcebra.recording import Recording, Variable
from napari_xcebra.simulate import Simulation, arena, box, field

KINDS = ("box", "arena", "field")
LEVEL = 0.1
STRONG = 0.02
"""Share of variance that a factor alone explains in a strong cell, given the true hidden state."""
SHIFTED_LABELS = 9
CANDIDATES = ("trace", "remainder", "observed", "plain", "decoys", "retrained")


def simulated(kind: str, number: int, frames: int) -> tuple[Simulation, FitSettings]:
    """Recording of that kind and number, and settings to fit it with."""
    short = FitSettings(steps=200, batch_size=256, seed=number)
    if kind == "box":
        settings = replace(short, lambda_=0.05, smoothing=0.0, time_latents=2)
        return box(frames=frames, noise=0.2, seed=number), settings
    strength = (0.0, 0.5, 1.0)[number % 3]
    simulation = arena(
        place=10,
        grid=5,
        direction=15,
        speed=15,
        mixed=6,
        untuned=15,
        frames=frames,
        noise=0.0 if kind == "field" else 1.5,
        confound=strength,
        arousal=strength,
        seed=number,
    )
    return (field(simulation, seed=number) if kind == "field" else simulation), short


def main() -> None:
    """Test every recording by every candidate and print rates of errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=20, help="of each kind")
    parser.add_argument("--frames", type=int, default=8000)
    parser.add_argument("--all", type=int, default=7, help="of each kind with all quick candidates")
    parser.add_argument("--slow", type=int, default=2, help="of each kind with slow candidates")
    parser.add_argument("--keep", type=Path, help="file in which results are kept as they come")
    parser.add_argument("--table", action="store_true", help="print what is kept, measure nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for number in range(given.recordings):
        for kind in KINDS:
            which = (kind, number, given.frames, number < given.all, number < given.slow)
            measure = partial(lambda *of: None if given.table else list(measured(*of)), *which)
            outcomes = kept(given.keep, f"{kind} {number}", measure)
            found += [{"kind": kind, "number": number, **o} for o in outcomes or ()]
    report(found, given.frames)


def measured(
    kind: str, number: int, frames: int, others: bool, slow: bool
) -> Iterator[dict[str, object]]:
    """Outcomes of the candidates for every factor of one recording."""
    simulation, settings = simulated(kind, number, frames)
    recording = simulation.recording
    trained = fit(recording, simulation.factors, settings)
    strong = strong_cells(simulation, trained)
    behavior = tuple(part for part in trained.parts if part.name in simulation.factors)
    tests = {"trace": significance(trained, recording)}
    if others:
        tests["remainder"] = significance(trained, recording, null="remainder")
        tests["observed"] = significance(replace(trained, parts=behavior), recording)
    for part in behavior:
        q = {name: test.q(part.name) for name, test in tests.items()}
        if others:
            q["plain"] = significance(replace(trained, parts=(part,)), recording).q(part.name)
        if slow and part is behavior[-1]:
            q["decoys"] = by_decoys(simulation, settings, part.name)
            q["retrained"] = by_retraining(simulation, settings, trained, part.name)
        for candidate, values in q.items():
            yield outcome(candidate, part.name, values, simulation, strong)


def outcome(
    candidate: str,
    factor: str,
    q: np.ndarray,
    simulation: Simulation,
    strong: dict[str, np.ndarray],
) -> dict[str, object]:
    """What is found at q = 0.1, rightly and wrongly."""
    truth = simulation.truth[factor]
    found, wanted = q <= LEVEL, truth & strong[factor]
    return {
        "candidate": candidate,
        "factor": factor,
        "found": int(found.sum()),
        "false": int((found & ~truth).sum()),
        "lit": int((found & ~truth & lit_by(simulation, truth)).sum()),
        "true": int((found & truth).sum()),
        "carrying": int(truth.sum()),
        "strong": int(wanted.sum()),
        "strong found": int((found & wanted).sum()),
    }


def lit_by(simulation: Simulation, carries: np.ndarray) -> np.ndarray:
    """(cells,) bool, cells that share pixels with one that carries the factor."""
    footprints = simulation.recording.footprints
    if footprints is None:
        return np.zeros(len(carries), bool)
    pixel = footprints.row * footprints.shape[1] + footprints.column
    lit = np.isin(pixel, pixel[carries[footprints.cell]])
    return np.bincount(footprints.cell, lit, len(carries)) > 0


def strong_cells(simulation: Simulation, trained: Fit) -> dict[str, np.ndarray]:
    """Cells in which a factor explains much, given all others and the true hidden state."""
    recording, parts = simulation.recording, []
    for part in trained.parts:
        if part.name in simulation.factors:
            parts.append(part)
            continue
        hidden = [Variable(name, state) for name, state in simulation.hidden.items()]
        recording = recording.with_behavior(*hidden)
        names = tuple(variable.name for variable in hidden)
        parts.append(replace(part, name="hidden", variables=names))
    known = replace(trained, parts=tuple(parts), goodness={})
    scores = attribute(known, recording, "conditional-encoding")
    return {name: scores.score(name) > STRONG for name in simulation.factors}


def by_decoys(simulation: Simulation, settings: FitSettings, factor: str) -> np.ndarray:
    """q from the share of decoys among the cells that score as high by J⁺."""
    recording, rng = simulation.recording, np.random.default_rng(settings.seed)
    traces = np.asarray(recording.traces)
    frames, cells = traces.shape
    source = rng.permutation(cells)[: cells // 2]
    moved = [np.roll(traces[:, c], int(rng.integers(frames // 4, 3 * frames // 4))) for c in source]
    both = Recording(np.c_[traces, np.array(moved).T], recording.rate, recording.behavior)
    trained = fit(both, simulation.factors, settings)
    score = attribute(trained, both, frames=slice(0, None, 10)).score(factor)
    real, decoys = score[:cells], score[cells:]
    above = (1 + (decoys >= real[:, None]).sum(1)) / (1 + len(decoys))
    return false_discovery_control(above)


def by_retraining(
    simulation: Simulation, settings: FitSettings, trained: Fit, factor: str
) -> np.ndarray:
    """q from the scores that all cells get by J⁺ when labels are shifted before training."""
    recording, rng = simulation.recording, np.random.default_rng(settings.seed)
    every = slice(0, None, 10)
    score, chance = attribute(trained, recording, frames=every).score(factor), []
    for _ in range(SHIFTED_LABELS):
        by = int(rng.integers(recording.n_frames // 4, 3 * recording.n_frames // 4))
        variables = [
            replace(v, values=np.roll(v.values, by, axis=0)) for v in recording.behavior.values()
        ]
        shifted = recording.with_behavior(*variables)
        wrong = fit(shifted, simulation.factors, settings)
        chance.append(attribute(wrong, shifted, frames=every).score(factor))
    pooled = np.concatenate(chance)
    p = (1 + (pooled >= score[:, None]).sum(1)) / (1 + len(pooled))
    return false_discovery_control(p)


def report(found: list[dict], frames: int) -> None:
    """Print the tables."""
    print(header("Significance: false discoveries and power at q = 0.1"))
    numbers = ", ".join(
        f"{len({o['number'] for o in found if o['kind'] == kind})} {kind}" for kind in KINDS
    )
    print(
        f"{frames:,} frames; recordings: {numbers}. False discovery proportion, mean over "
        "recordings and factors ± standard error over recordings; power over all carrying cells, "
        f"and over strong ones (R² of the factor alone above {STRONG:g} given the true hidden "
        "state).\n"
    )
    titles = ("recordings", "false", "false, no light shared", "power, strong", "power, all")
    print(row("candidate", "kind", *titles))
    print(row(*["---"] * 7))
    for candidate in CANDIDATES:
        for kind in KINDS:
            _print_row((candidate, kind), [
                o for o in found if o["candidate"] == candidate and o["kind"] == kind
            ])  # fmt: skip
    print("\nThe default by factor, and by how strongly variables go together:\n")
    print(row("factor", "strength", *titles))
    print(row(*["---"] * 7))
    ours = [o for o in found if o["candidate"] == "trace" and o["kind"] != "box"]
    for factor in ("place", "direction", "speed"):
        for place, strength in enumerate((0, 0.5, 1)):
            _print_row((factor, strength), [
                o for o in ours if o["factor"] == factor and o["number"] % 3 == place
            ])  # fmt: skip
    print()


def _print_row(names: tuple[object, ...], chosen: list[dict]) -> None:
    if not chosen:
        return
    strong = sum(o["strong found"] for o in chosen) / max(sum(o["strong"] for o in chosen), 1)
    power = sum(o["true"] for o in chosen) / sum(o["carrying"] for o in chosen)
    recordings = len({(o["kind"], o["number"]) for o in chosen})
    false = [_false(chosen, but) for but in ("", "lit")]
    print(row(*names, recordings, *false, f"{strong:.2f}", f"{power:.2f}"))


def _false(chosen: list[dict], but: str) -> str:
    """Mean false discovery proportion, without counting those of one cause."""
    each: dict[object, list[float]] = {}
    for o in chosen:
        less = o[but] if but else 0
        proportion = (o["false"] - less) / max(o["found"] - less, 1)
        each.setdefault((o["kind"], o["number"]), []).append(proportion)
    means = np.array([np.mean(values) for values in each.values()])
    error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return f"{means.mean():.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
