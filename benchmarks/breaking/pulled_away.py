"""Files cut off while they are in use, children stopped while their window dies, and signals."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import h5py
import numpy as np
import psutil

from breaking.processes import Fork, Tell, failure_of
from breaking.tally import Tally, World
from breaking.targets import CELLS, Caiman
from napari_xcebra.io import open_recording
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.jobs import Call
from napari_xcebra.jobs.calls import current_report
from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.recording.traces import IN_MEMORY

FRAMES = IN_MEMORY // (4 * CELLS) + 100_000
"""More than is held in memory."""
FORMATS = ("npy", "npz", "suite2p", "CaImAn")
GONE_WITHIN = 10.0
"""Seconds in which a child ends after its window did."""


def wait(seconds: float, _: np.ndarray) -> None:
    """Wait until it is stopped or time is over, with an array sent through a file."""
    report, until = current_report(), time.monotonic() + seconds
    while not report.stop() and time.monotonic() < until:
        time.sleep(0.05)


def waiting(seconds: float) -> Call:
    return Call(wait, (seconds, np.zeros(2**24, np.float32)))


def family(home: Path, rng: random.Random, tally: Tally) -> None:
    """Large files first, then windows with a child."""
    files(home, tally)
    windows(home, tally)


def files(home: Path, tally: Tally, formats: Sequence[str] = FORMATS) -> None:
    """Files of traces that are cut off, replaced or removed while they are read."""
    for name in formats:
        for change, changed in CHANGES.items():
            world = World.at(home)
            path = large_files()[name](world.shared)
            cut_off(path, changed, f"{name} {change}", tally)


def windows(home: Path, tally: Tally) -> None:
    """Windows that end in various ways while their child is idle, busy or stopped."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL):
        for stopped in (False, True):
            for busy in (False, True):
                world = World.at(home)
                window_ends(world, number, stopped=stopped, busy=busy, tally=tally)


# ------------------------------------------------------------ files


def large_files() -> dict[str, Callable[[Path], Path]]:
    """Traces that stay on disk, by format; holes, where the format allows, so that none is long."""

    def npy(folder: Path) -> Path:
        return _hollow(folder / "traces.npy", (FRAMES, CELLS))

    def npz(folder: Path) -> Path:
        np.savez(folder / "traces.npz", traces=np.zeros((FRAMES, CELLS), np.float32))
        return folder / "traces.npz"

    def suite2p(folder: Path) -> Path:
        some = Recording(np.ones((40, CELLS), np.float32), 15.0,
                         footprints=Footprints.on_a_grid(CELLS))  # fmt: skip
        home = write_suite2p(some, folder / "suite2p" / "plane0").parent
        for name in ("F.npy", "Fneu.npy", "spks.npy"):
            _hollow(home / "plane0" / name, (CELLS, FRAMES))
        return home

    def caiman(folder: Path) -> Path:
        Caiman().prepare(folder)
        path = folder / "results.hdf5"
        at_once = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        at_once.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        at_once.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        with h5py.File(path, "r+") as file:
            del file["estimates/C"]
            space = h5py.h5s.create_simple((CELLS, FRAMES))
            made = b"estimates/F_dff", h5py.h5t.IEEE_F32LE, space, at_once
            h5py.h5d.create(file.id, *made)
            file["estimates/C"] = file["estimates/F_dff"]
        return path

    return {"npy": npy, "npz": npz, "suite2p": suite2p, "CaImAn": caiman}


def _hollow(path: Path, shape: tuple[int, int]) -> Path:
    with path.open("wb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, about)
        file.truncate(file.tell() + 4 * shape[0] * shape[1])
    return path


def _large_in(path: Path) -> list[Path]:
    files = [path] if path.is_file() else list(path.rglob("*.npy"))
    return [file for file in files if file.stat().st_size > 2**20]


def truncated(file: Path) -> None:
    os.truncate(file, 4096)


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def halved(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def replaced(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(file.read_bytes()[: 2**20])
    other.replace(file)


def removed(file: Path) -> None:
    file.unlink()


CHANGES = {change.__name__: change for change in (truncated, emptied, halved, replaced, removed)}


def cut_off(path: Path, change: Callable[[Path], None], case: str, tally: Tally) -> None:
    """Open traces in a process, change their file, and read on: values or a sentence."""
    go, wait = os.pipe()[::-1]

    def work(tell: Tell) -> None:
        recording = open_recording(path, rate=10.0)
        recording.traces[:50, 1]
        tell("opened")
        os.read(wait, 1)
        for part in ((slice(-1000, None), 1), (FRAMES // 2, slice(None))):
            with contextlib.suppress(Exception):
                recording.traces[part]
        try:
            recording.traces[-100:, 2]
        except Exception as error:
            tell(failure_of(error))
        tell("read")

    fork = Fork(work)
    fork.wait_for_line()
    for file in _large_in(path):
        change(file)
    os.write(go, b"x")
    lines, in_time = fork.lines()
    os.close(go)
    os.close(wait)
    tally.trials += 1
    if not in_time:
        tally.broke("hang", case)
    elif "read" not in lines:
        said = f" ({lines[-1]})" if lines[-1:] != ["opened"] else ""
        tally.broke("other", f"{case}: the process dies{said}"[:200])
    for line in lines:
        if line.startswith("!") and "read" in lines:
            tally.broke("other", f"{case}: {line}".replace(str(path.parent), "…"))


# ------------------------------------------------------------ processes


PROGRAM = """
import signal, sys, time
# whoever started the trials in the background had these ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from breaking.pulled_away import waiting
from napari_xcebra.jobs import Worker
from napari_xcebra.jobs.events import Started

worker = Worker()
worker.submit(waiting(0)).wait()
if {busy}:
    events = worker.submit(waiting(600)).events()
    while not isinstance(next(events), Started):
        pass
print(worker.pid, flush=True)
time.sleep(600)
"""
NEXT = """
from breaking.pulled_away import waiting
from napari_xcebra.jobs import Worker

with Worker() as worker:
    worker.submit(waiting(0)).wait()
"""


def window_ends(world: World, number: int, *, stopped: bool, busy: bool, tally: Tally) -> None:
    """End a window that has a child, and look for what is left of both."""
    case = f"{signal.Signals(number).name}{', child stopped' * stopped}{', busy' * busy}"
    window = _started(world, PROGRAM.format(busy=busy))
    assert window.stdout is not None
    child = psutil.Process(int(window.stdout.readline()))
    if stopped:
        child.suspend()
    window.send_signal(number)
    tally.trials += 1
    try:
        window.wait(20)
    except subprocess.TimeoutExpired:
        tally.broke("hang", f"{case}: the window does not end")
        window.kill()
        window.wait()
    window.stdout.close()
    time.sleep(0.1)
    with contextlib.suppress(psutil.TimeoutExpired):
        child.wait(GONE_WITHIN)
    if child.is_running():
        tally.broke("hang", f"{case}: the child outlives its window")
        child.kill()
        with contextlib.suppress(psutil.TimeoutExpired):
            child.wait(5)
    time.sleep(0.2)
    if not any((world.own / "tmp").iterdir()):
        return
    # the next window may clear it away
    _started(world, NEXT).wait(60)
    for left in (world.own / "tmp").iterdir():
        tally.broke("left", f"{case}: {left.name.split('-')[0]}… in the temporary folder")


def _started(world: World, program: str) -> subprocess.Popen[bytes]:
    environment = world.environment()
    home = str(Path(__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([home, *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
