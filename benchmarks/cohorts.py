"""Simulate animals of two genotypes, run them as one sweep, and compare the genotypes.

    python benchmarks/cohorts.py

Eight animals, two days each. In the wild type 15 of 25 cells carry place and 5 direction, in the
knock-out the other way round; 5 carry speed in both.
"""

from __future__ import annotations

import argparse
import tempfile
import time

from report import header, typed

import napari_xcebra as xc
from napari_xcebra.batch import Sweep, run_sweep
from napari_xcebra.jobs.pool import ProcessPool
from napari_xcebra.learn import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.simulate import arena, field

FACTORS = {"place": ["position"], "direction": ["direction"], "speed": ["speed"]}


def recordings(animals: int, frames: int) -> dict[str, Recording]:
    """By a name that says animal, genotype and day."""
    made = {}
    for number in range(animals):
        place, genotype = (5, "KO") if number % 2 else (15, "WT")
        for day in (1, 2):
            simulated = arena(place=place, grid=0, direction=20 - place, speed=5, frames=frames,
                              seed=10 * number + day)  # fmt: skip
            name = f"m{number}_{genotype}_day{day}"
            made[name] = field(simulated, shape=(96, 96)).recording
    return made


def main() -> None:
    """Run them, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=4000)
    parser.add_argument("--animals", type=int, default=8)
    given = typed(parser, frames=800, animals=2)
    sweep = Sweep(recordings(given.animals, given.frames), FACTORS, FitSettings(steps=100))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ProcessPool(2) as pool:
        run_sweep(sweep, folder, pool)
        found = xc.cohort(folder, pattern="{animal}_{condition}_day{day}")
    print(header("Cohorts"))
    print(f"{__doc__.split('.py')[-1].strip()}\n")
    for line in found.summary().splitlines():
        print(f"- {line}")
    print(f"\n{len(sweep.members)} runs of 100 steps: {time.perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
