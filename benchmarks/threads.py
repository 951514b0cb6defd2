"""Training steps a second by the clock on one thread, two, four …, from small steps to large ones.

To be run on a quiet machine: the clock counts what other programs take, too.

    python benchmarks/threads.py [--seconds 4]
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from products import shapes_of
from report import header, row, typed

from napari_xcebra.learn import FitSettings, Training
from napari_xcebra.recording import Recording

SIZES = [
    # cells, batch, window
    (50, 512, 1),
    (50, 2048, 1),
    (50, 512, 10),
    (500, 512, 1),
    (500, 2048, 1),
    (2000, 512, 1),
    (5000, 512, 1),
    (5000, 512, 10),
]
FRAMES = 12_000


def recording_of(cells: int) -> Recording:
    """Cells that respond to six latents, two of them observed."""
    rng = np.random.default_rng(0)
    latents = np.sin(np.cumsum(rng.normal(scale=0.1, size=(FRAMES, 6)), axis=0))
    drive = np.maximum(latents @ rng.normal(size=(6, cells)), 0)
    traces = (drive + rng.random(drive.shape) - 0.5).astype(np.float32)
    return Recording.from_arrays(traces, 10.0, {"variable": latents[:, 4:]})


def steps_a_second(training: Training, seconds: float) -> float:
    """Inverse of the median time of a step by the clock, after two that warm up."""
    run = training.run(1)
    spent: list[float] = []
    began = time.perf_counter()
    while len(spent) < 5 or time.perf_counter() - began < seconds:
        before = time.perf_counter()
        next(run)
        spent.append(time.perf_counter() - before)
    run.close()
    return float(1 / np.median(spent[2:]))


def main() -> None:
    """Time every size on every number of threads and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each number")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many of them")
    given = typed(parser, seconds=0.1, sizes=1)
    cores = os.cpu_count() or 1
    threads = [n for n in (1, 2, 4, 8, 16, 32) if n <= cores]
    names = ("cells", "batch", "window", "GFLOP a step", *(f"steps / s, {n}" for n in threads))
    print(header("Threads"))
    print(row(*names))
    print(row(*["---"] * len(names)))
    for cells, batch, window in SIZES[: given.sizes]:
        recording, found, work = recording_of(cells), [], 0.0
        for count in threads:
            settings = FitSettings(
                batch_size=batch, window=window, lambda_=0.1, settle=0.0, ramp=0.0, threads=count,
                stop_when_settled=False,
            )  # fmt: skip
            training = Training(recording, {"variable": ["variable"]}, settings)
            work = sum(2 * m * k * n for m, k, n in shapes_of(training)) / 1e9
            found.append(steps_a_second(training, given.seconds))
        print(row(cells, batch, window, f"{work:.1f}", *(f"{f:.3g}" for f in found)), flush=True)


if __name__ == "__main__":
    main()
