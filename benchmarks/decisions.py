"""Do other programs read the decisions that are written, and what if writing is cut short?

suite2p is looked for and left out if it is not there (it brings CUDA with it, so that it is not
among the requirements): install it without its dependencies to have its own loader asked.

    pip install --no-deps --target somewhere suite2p==1.1.0
    PYTHONPATH=somewhere python benchmarks/decisions.py [FOLDER OF SUITE2P WITH PLANES …]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from unittest.mock import MagicMock

import h5py
import numpy as np
from report import header, row, typed

from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.restoring import interrupted, repair, restore
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.recording import Recording
from napari_xcebra.recording.footprints import Footprints

NOT_NEEDED = (
    *("cellpose", "cellpose.metrics", "cellpose.models", "cellpose.core", "cellpose.transforms"),
    *("cellpose.utils", "pkg_resources", "rastermap", "rastermap.rastermap", "rastermap.mapping"),
    "torchvision",
)
"""What suite2p imports and its loader does not use; stood in for where it is not installed."""


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="of suite2p; simulated without")
    parser.add_argument("--kills", type=int, default=150)
    parser.add_argument("--frames", type=int, default=120_000, help="of a file of CaImAn")
    given = typed(parser, kills=3, frames=2000)
    print(header("Decisions, read by other programs"))
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        folders = given.folders or [simulated(home / "simulated")]
        print(row("folder", "opened", "read by", "flags that agree"))
        print(row("---", "---", "---", "---"))
        for i, folder in enumerate(folders):
            for opened in (".", "combined", "plane0", "plane1"):
                if (folder / opened).is_dir():
                    other_readers(folder, opened, home / f"copy{i}")
        killed(folders[0], home / "killed", given.kills)
        large(home / "large.hdf5", given.frames)


def simulated(folder: Path) -> Path:
    """Two planes and `combined`."""
    rng = np.random.default_rng(0)
    for name in ("plane0", "plane1"):
        traces = rng.random((200, 60)) + 1
        likely = {"probability": rng.random(60)}
        field = Footprints.on_a_grid(60)
        write_suite2p(Recording(traces, 15.0, footprints=field, cells=likely), folder / name)
    shutil.copytree(folder / "plane0", folder / "combined")
    for name in ("F", "Fneu", "spks", "iscell", "stat"):
        parts = [np.load(folder / f"plane{i}" / f"{name}.npy", allow_pickle=True) for i in (0, 1)]
        np.save(folder / "combined" / f"{name}.npy", np.concatenate(parts), allow_pickle=True)
    return folder


def other_readers(source: Path, opened: str, copy: Path) -> None:
    """Write decisions at random to a copy and compare what each reader finds with them."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    recording = open_recording(copy / opened)
    accepted = np.random.default_rng(1).random(recording.n_cells) > 0.5
    plan_output("suite2p", recording, copy / opened, accepted).write()
    expected = decided(source, opened, accepted)
    for reader, read in {"suite2p": suite2p_loader(), "roiextractors": roiextractors}.items():
        if read is None:
            continue
        found = []
        for name, flags in expected.items():
            try:
                found.append(f"{name} {int((read(copy / name) == flags).sum())} of {len(flags)}")
            except Exception as error:
                found.append(f"{name} cannot be opened by it ({type(error).__name__})")
        print(row(source.name, opened, f"{reader} {version(reader)}", "; ".join(found)))


def decided(source: Path, opened: str, accepted: np.ndarray) -> dict[str, np.ndarray]:
    """Flags that each folder should have: those decided on, and else those it had."""
    flags = {n: np.load(source / n / "iscell.npy")[:, 0] > 0 for n in ("plane0", "plane1")}
    if opened in flags:
        flags[opened] = accepted
    else:
        first = len(flags["plane0"])
        flags = {"plane0": accepted[:first], "plane1": accepted[first:]}
    return {**flags, "combined": np.concatenate(list(flags.values()))}


def suite2p_loader() -> Callable[[Path], np.ndarray] | None:
    """The function with which suite2p's window opens a folder."""
    for name in NOT_NEEDED:
        try:
            __import__(name)
        except Exception:
            sys.modules[name] = MagicMock()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    try:
        from suite2p.gui.io import load_files
    except ImportError as error:
        print(f"(suite2p is left out: {error})")
        return None
    return lambda folder: load_files(str(folder / "stat.npy"))[5]


def roiextractors(folder: Path) -> np.ndarray:
    from roiextractors import Suite2pSegmentationExtractor

    extractor = Suite2pSegmentationExtractor(folder.parent, plane_name=folder.name)
    return np.asarray(extractor.get_property("iscell", extractor.get_roi_ids())) > 0


def killed(source: Path, copy: Path, kills: int) -> None:
    """Kill a process that writes without pause, again and again."""
    shutil.copytree(source, copy, copy_function=shutil.copyfile)
    recording = open_recording(copy)
    originals = {file: file.read_bytes() for file in copy.glob("*/iscell.npy")}
    random.seed(0)
    caught = mixed = 0
    # on a busy machine the first may be killed before it has written anything
    plan_output("suite2p", recording, copy, np.ones(recording.n_cells, bool)).write()
    for i in range(kills):
        pid = os.fork()
        if pid == 0:
            rng = np.random.default_rng(i)
            while True:
                accepted = rng.random(recording.n_cells) > 0.5
                plan_output("suite2p", recording, copy, accepted).write()
        time.sleep(random.uniform(0.02, 0.25))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        caught += bool(interrupted(copy))
        repair(copy)
        *planes, combined = (
            np.load(copy / name / "iscell.npy") for name in ("plane0", "plane1", "combined")
        )
        mixed += not np.array_equal(np.concatenate(planes), combined)
    restore(copy)
    back = sum(file.read_bytes() == content for file, content in originals.items())
    print(
        f"\nKilled {kills} times while writing, {caught} times with some of the files in place: "
        f"planes and combined disagreed {mixed} times. Originals restored afterwards: {back} of "
        f"{len(originals)}."
    )


def large(path: Path, frames: int) -> None:
    """What a file of CaImAn of 1 GB costs."""
    cells = 1000
    with h5py.File(path, "w") as file:
        for name in ("C", "R"):
            file[f"estimates/{name}"] = np.zeros((cells, frames), np.float32)
        file["estimates/dims"] = (100, 100)
        weights = {"data": np.ones(cells), "indices": np.arange(cells)}
        weights |= {"indptr": np.arange(cells + 1), "shape": np.array([10_000, cells])}
        for name, values in weights.items():
            file[f"estimates/A/{name}"] = values
        file["params/data/fr"] = 20.0
    recording = open_recording(path)
    took = []
    for chosen in (2, 3):
        start = time.process_time()
        plan = plan_output("caiman", recording, path, np.arange(cells) % chosen > 0)
        planned = time.process_time()
        plan.write()
        took.append(f"{planned - start:.1f} s planning, {time.process_time() - planned:.1f} s")
    start = time.process_time()
    restore(path)
    print(
        f"\nCaImAn, {path.stat().st_size / 1e9:.1f} GB, processor time: first {took[0]} writing, "
        f"then {took[1]} writing; restoring {time.process_time() - start:.1f} s."
    )


if __name__ == "__main__":
    main()
