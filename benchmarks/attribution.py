"""Attribution of every frame of a large recording, traces on disk: seconds and peak memory.

The encoder is trained for a few steps on the first frames, which is all that an attribution's time
depends on. Writes the traces to the folder for temporary files first (4 GB by default).

    python benchmarks/attribution.py [--cells 10000] [--frames 100000] [--window 1] [--workers 1]
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from report import header, row, typed
from scale import write_recording

from napari_xcebra.attribution import attribute
from napari_xcebra.learn import Fit, FitSettings, fit
from napari_xcebra.recording import Recording
from napari_xcebra.recording.traces import NpyTraces

TRAINED_ON = 3000
"""Frames."""


def trained(folder: Path, window: int) -> Fit:
    """A fit of the first frames."""
    traces = np.load(folder / "traces.npy", mmap_mode="r")[:TRAINED_ON]
    variable = np.load(folder / "variable.npy")[:TRAINED_ON]
    settings = FitSettings(time_latents=4, hidden_units=180, steps=2, window=window, lambda_=0.1)
    recording = Recording.from_arrays(np.array(traces), 10.0, {"variable": variable})
    return fit(recording, {"variable": ["variable"]}, settings)


class Memory:
    """Most memory of this process since it was first asked, looked at ten times a second.

    Pages of mapped files are told apart: the system takes them back as soon as it wants them.
    """

    def __init__(self) -> None:
        self.own, self.mapped = 0.0, 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        status = Path("/proc/self/status")
        while True:
            told = dict(line.split(":", 1) for line in status.read_text().splitlines())
            anonymous, file = (float(told[n].split()[0]) / 1024 for n in ("RssAnon", "RssFile"))
            self.own, self.mapped = max(self.own, anonymous), max(self.mapped, file)
            time.sleep(0.1)


def main() -> None:
    """Write, train, attribute, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--window", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    given = typed(parser, cells=50, frames=4000)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1, get_context("spawn")) as child:  # its memory is not ours
            child.submit(write_recording, Path(folder), given.cells, given.frames).result()
        learned = trained(Path(folder), given.window)
        traces = NpyTraces(Path(folder) / "traces.npy", cells_first=False)
        variable = np.load(Path(folder) / "variable.npy")
        recording = Recording.from_arrays(traces, 10.0, {"variable": variable})
        memory = Memory()
        time.sleep(0.5)
        before = memory.own
        began, clock = time.process_time(), time.perf_counter()
        result = attribute(learned, recording, workers=given.workers)
        spent, passed = time.process_time() - began, time.perf_counter() - clock
        assert np.isfinite(result.score("variable")).all()
    names = ("cells", "frames", "window", "workers", "s of the processor", "s by the clock")
    print(header("Attribution at full size"))
    print(row(*names, "MB before", "most MB", "most MB of mapped files"))
    print(row(*["---"] * 9))
    size = f"{given.cells:,}", f"{given.frames:,}", given.window, given.workers
    peaks = f"{before:.0f}", f"{memory.own:.0f}", f"{memory.mapped:.0f}"
    print(row(*size, f"{spent:.0f}", f"{passed:.0f}", *peaks))


if __name__ == "__main__":
    main()
