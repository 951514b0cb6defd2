"""How many latents: the 3 + 3 box model of the paper's App. C (Fig. 6c).

python benchmarks/dimension.py [--frames 10000] [--steps 200] [--seeds 3]
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from report import header, row, typed

from napari_xcebra.learn import FitSettings
from napari_xcebra.learn.quality.consistency import suggest_dimension
from napari_xcebra.simulate import box


def main() -> None:
    """Compare seeds at every number of latents, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--latents", type=int, nargs="+", default=[2, 3, 4])
    given = typed(parser, frames=1500, seeds=2, latents=[2, 3])
    torch.set_num_threads(1)
    simulation = box(d1=3, d2=3, observed="z2", frames=given.frames, seed=0)
    settings = FitSettings(
        steps=given.steps, batch_size=128, learning_rate=0.01, label_step=0.35, smoothing=0.0
    )
    began = time.process_time()
    found = suggest_dimension(
        simulation.recording,
        simulation.factors,
        settings,
        time_latents=given.latents,
        factor_latents=given.latents,
        seeds=given.seeds,
        on_progress=lambda done, total: print(done, total, file=sys.stderr, flush=True),
    )
    assert found is not None
    print(header("How many latents"))
    print(
        f"Box model with 3 hidden and 3 observed latents, {given.frames:,} frames, "
        f"{given.steps} steps, batch 128, {given.seeds} seeds: consistency R² after affine "
        "alignment, mean ± standard error over pairs of seeds. "
        f"{time.process_time() - began:.0f} s of processor time.\n"
    )
    print(row("observed \\ time latents", *given.latents))
    print(row(*["---"] * (len(given.latents) + 1)))
    for size in given.latents:
        line = [d for d in found.tried if d.factor_latents == size]
        print(row(size, *(f"{d.mean:.3f} ± {d.error:.3f}" for d in line)))
    print(f"\nSuggested (observed + time): {found.reason}\n")


if __name__ == "__main__":
    main()
