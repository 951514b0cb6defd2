"""Has anything become slower? In under a minute, against a stored baseline.

Times what a session is made of on one thread, in units of a fixed matrix product that is timed in
turns with it, so that machines and busy hours compare. Ends with exit code 1 if something takes
more than a fifth longer than the baseline.

    python benchmarks/quick.py [--store] [--baseline FILE]        or: make bench-quick
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from report import header, row
from threadpoolctl import threadpool_limits

from napari_xcebra.attribution import attribute
from napari_xcebra.learn import FitSettings, Training
from napari_xcebra.learn.data.inputs import inputs_for
from napari_xcebra.learn.fitting import finish
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import box

BASELINE = Path(__file__).with_suffix(".json")
BORNE = 1.2
"""Times the baseline that a cost may be."""
ROUNDS = 7
"""Turns of each measurement; the least of them counts, which other programs disturb least."""
IMPORT_ALLOWED = 0.1
"""Seconds that `import napari_xcebra` may take."""

Work = tuple[Callable[[], object], int]
"""What to time, and how often it does what is asked about."""


def works() -> dict[str, Work]:
    """What is timed, by name."""
    simulation = box(d1=4, d2=2, frames=20_000)
    recording, factors = simulation.recording, simulation.factors
    settings = FitSettings(
        time_latents=4,
        lambda_=0.1,
        settle=0.0,
        ramp=0.0,
        steps=100_000,
        smoothing=0.0,
        stop_when_settled=False,
    )

    def steps(every: int, **changes: object) -> Work:
        changed = FitSettings(**{**settings.as_dict(), **changes})
        run = Training(recording, factors, changed).run(every)
        return partial(next, run), every

    short = Training(recording, factors, FitSettings(**{**settings.as_dict(), "steps": 1}))
    list(short.run())
    trained = finish(short, recording)
    rng = np.random.default_rng(0)
    many = Recording.from_arrays(rng.normal(size=(10_000, 400)), 10.0)
    return {
        "training step": steps(8),
        "training step, λ = 0": steps(8, lambda_=0.0),
        "training step, batch 2,048": steps(1, batch_size=2048),
        "training step, window 5": steps(1, window=5),
        "pairs of a batch": (partial(short.sampler.draw, 512 * 32, rng), 32),
        "attribution of 1,000 frames": (
            partial(
                attribute,
                trained,
                recording,
                "inverted-neuron-gradient",  # the map of the paper, which the baseline has
                frames=slice(0, 2000),
                workers=1,
            ),
            2,
        ),
        "inputs of 1,000 frames × 400 cells": (
            partial(inputs_for, many, np.arange(9000), FitSettings()),
            10,
        ),
    }


def measure() -> dict[str, float]:
    """Cost of each, in fixed products."""
    a, b, out = torch.randn(512, 512), torch.randn(512, 512), torch.empty(512, 512)
    unit = partial(torch.mm, a, b, out=out)
    costs = {}
    for name, (work, times) in works().items():
        work()
        least, product = np.inf, np.inf
        for _ in range(ROUNDS):
            product = min(product, *(spent(unit) for _ in range(5)))
            least = min(least, spent(work) / times)
            product = min(product, *(spent(unit) for _ in range(5)))
        costs[name] = least / product
    return costs


def spent(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


def import_seconds() -> float:
    """What `import napari_xcebra` takes beyond an empty interpreter, the least of five each."""
    return _started("import napari_xcebra") - _started("pass")


def _started(code: str) -> float:
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(time.perf_counter() - began)
    return min(taken)


def slower(costs: Mapping[str, float], baseline: Mapping[str, float]) -> list[str]:
    """Names of what costs too much more than it did."""
    return [name for name, cost in costs.items() if cost > BORNE * baseline.get(name, np.inf)]


def report(costs: Mapping[str, float], baseline: Mapping[str, float]) -> str:
    """A table of costs and speeds."""
    lines = [row("", "cost, in products of 512 × 512", "speed / baseline", ""), row(*["---"] * 4)]
    dropped = slower(costs, baseline)
    for name, cost in costs.items():
        known = baseline.get(name)
        speed = f"{known / cost:.2f}" if known else "new"
        lines.append(row(name, f"{cost:.2f}", speed, "SLOWER" if name in dropped else ""))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if something has become slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="make this run the baseline")
    parser.add_argument("--baseline", type=Path, default=BASELINE)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        costs = measure()
    baseline: dict[str, float] = {}
    if given.baseline.exists() and not given.store:
        baseline = json.loads(given.baseline.read_text())
    print(header("Quick check of speed"))
    print(report(costs, baseline))
    took = import_seconds()
    print(
        f"\n`import napari_xcebra` takes {took:.3f} s more than an empty interpreter "
        f"(at most {IMPORT_ALLOWED:g} s is wanted)."
    )
    if given.store:
        rounded = {name: round(cost, 3) for name, cost in costs.items()}
        given.baseline.write_text(json.dumps(rounded, indent=2, ensure_ascii=False) + "\n")
    return 1 if slower(costs, baseline) else 0


if __name__ == "__main__":
    sys.exit(main())
