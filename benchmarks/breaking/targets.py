"""What is written to disk, each as a number that is written and found again, whole or mixed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pandas as pd

from breaking.samples import recording as plain_recording
from napari_xcebra.attribution.result import Attribution
from napari_xcebra.batch import Member, SweepFolder
from napari_xcebra.batch.running import MemberResult
from napari_xcebra.curation import Curation, Journal
from napari_xcebra.curation.changes import read_journal
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.restoring import repair, restore
from napari_xcebra.io.formats.suite2p.writing import write_suite2p
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn.data.factors import Factor, Part
from napari_xcebra.learn.data.inputs import Inputs
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Footprints, Recording
from napari_xcebra.runs import Run
from napari_xcebra.workspace_file import Opened, WorkspaceFile, load_workspace, save_workspace

CELLS = 16
START = 2**CELLS - 1
"""Number that is there before anything is written: all cells accepted."""
METHODS = ("inverted-neuron-gradient", "neuron-gradient")
PARTS = (Part("place", ("x",), 0, 1, "euclidean", 1.0),)
Write = Callable[[int], None]


class Mixed(Exception):
    """Parts of several versions are there, or some are missing."""


class Target:
    """Something that is written in a folder, again and again with another number."""

    name = ""
    column = "mixed"
    """Where it is counted if an acknowledged number is not there."""

    def prepare(self, folder: Path) -> None:
        """Write the first version, with the number `START`."""
        self.write(folder, START)

    @contextmanager
    def opened(self, folder: Path) -> Iterator[Write]:
        """What writes a number; returning means that it counts."""
        yield lambda number: self.write(folder, number)

    def write(self, folder: Path, number: int) -> None:
        raise NotImplementedError

    def found(self, folder: Path) -> int:
        """The number that is there, as the next window finds it; `Mixed` if there is not one."""
        raise NotImplementedError

    def left(self, folder: Path) -> list[str]:
        """Temporary files that are still there after a later write has succeeded."""
        hidden = (file.name for file in folder.rglob(".*") if file.is_file())
        return [name for name in hidden if not name.endswith((".written", ".lock"))]


def bits(number: int, cells: int = CELLS) -> np.ndarray:
    """(cells,) bool."""
    return np.array([number >> cell & 1 for cell in range(cells)], bool)


def number_of(flags: np.ndarray) -> int:
    return sum(1 << cell for cell, flag in enumerate(flags) if flag)


def one(*numbers: int) -> int:
    """The number that all parts agree on."""
    if len(set(numbers)) > 1:
        raise Mixed(f"parts of {len(set(numbers))} versions")
    return numbers[0]


class Suite2p(Target):
    """Two planes and `combined`, whose decisions are written together with a table."""

    name, column = "suite2p decisions", "lost"

    def prepare(self, folder: Path) -> None:
        home = folder / "suite2p"
        rng = np.random.default_rng(0)
        half = CELLS // 2
        for plane in ("plane0", "plane1"):
            traces = rng.random((40, half)).astype(np.float32) + 1
            field = Footprints.on_a_grid(half)
            write_suite2p(Recording(traces, 15.0, footprints=field), home / plane)
        shutil.copytree(home / "plane0", home / "combined")
        for name in ("F", "Fneu", "spks", "iscell", "stat"):
            parts = [np.load(home / p / f"{name}.npy", allow_pickle=True)
                     for p in ("plane0", "plane1")]  # fmt: skip
            np.save(home / "combined" / f"{name}.npy", np.concatenate(parts), allow_pickle=True)

    def write(self, folder: Path, number: int) -> None:
        home = folder / "suite2p"
        plan_output("suite2p", open_recording(home), home, bits(number)).write()

    def found(self, folder: Path) -> int:
        home = folder / "suite2p"
        # a write that was cut short is told to whoever opens the recording, and then undone
        if any("was interrupted" in note for note in open_recording(home).notes):
            repair(home)
        first, second, combined = (
            np.load(home / name / "iscell.npy")[:, 0] > 0
            for name in ("plane0", "plane1", "combined")
        )
        numbers = [number_of(np.concatenate([first, second])), number_of(combined)]
        table = home / "napari-xcebra-decisions.csv"
        if table.exists():
            numbers.append(number_of(pd.read_csv(table)["accepted"].to_numpy(bool)))
        return one(*numbers)

    def restore(self, folder: Path) -> None:
        restore(folder / "suite2p")

    def originals(self, folder: Path) -> dict[str, bytes]:
        files = (folder / "suite2p").rglob("iscell.npy")
        return {file.parent.name: file.read_bytes() for file in files}


class Caiman(Target):
    """One file of CaImAn, in which accepted and rejected components are lists."""

    name, column = "CaImAn decisions", "lost"

    def prepare(self, folder: Path) -> None:
        with h5py.File(folder / "results.hdf5", "w") as file:
            file["estimates/C"] = np.random.default_rng(0).random((CELLS, 40))
            file["estimates/dims"] = (4, CELLS)
            weights = {"data": np.ones(CELLS), "indices": np.arange(CELLS)}
            weights |= {"indptr": np.arange(CELLS + 1), "shape": np.array([4 * CELLS, CELLS])}
            for name, values in weights.items():
                file[f"estimates/A/{name}"] = values
            file["params/data/fr"] = 20.0
            file["estimates/idx_components"] = np.arange(CELLS)
            file["estimates/idx_components_bad"] = np.zeros(0, int)

    def write(self, folder: Path, number: int) -> None:
        path = folder / "results.hdf5"
        plan_output("caiman", open_recording(path), path, bits(number)).write()

    def found(self, folder: Path) -> int:
        path = folder / "results.hdf5"
        if any("was interrupted" in note for note in open_recording(path).notes):
            repair(path)
        with h5py.File(path) as file:
            accepted, rejected = (
                np.isin(np.arange(CELLS), file[f"estimates/idx_components{bad}"][()])
                for bad in ("", "_bad")
            )
        return one(number_of(accepted), number_of(~rejected))

    def restore(self, folder: Path) -> None:
        restore(folder / "results.hdf5")

    def originals(self, folder: Path) -> dict[str, bytes]:
        return {"results.hdf5": (folder / "results.hdf5").read_bytes()}


def fit_of(number: int) -> Fit:
    """A fit that has the number in its description and in its weights."""
    used = np.arange(CELLS)
    return Fit(
        settings=FitSettings(steps=1),
        parts=PARTS,
        inputs=Inputs(used, np.zeros(CELLS), np.ones(CELLS), 0.0),
        weights={"w": np.full(5000, number, np.float32)},
        scale=np.ones(1, np.float32),
        history={"lambda": np.zeros(1)},
        goodness={"place": Goodness("place", 5.0, 6.2, 1.2, 0.05, 1.2, 0.5, True)},
        steps=number,
        source=str(number),
        versions={},
    )


def number_of_fit(fit: Fit) -> int:
    return one(fit.steps, int(fit.source), int(fit.weights["w"][0]))


def run_of(number: int) -> Run:
    """A run with the number in each of its parts; every other has scores by a second method."""
    fit = fit_of(number)
    scores = [
        Attribution(
            method=method,
            aggregate="mean",
            parts=PARTS,
            cell_ids=np.arange(CELLS),
            latent_scores=np.full((1, CELLS), number, np.float32),
            n_frames=number,
            strengths={"place": "weak"},
            verdicts={"place": ""},
            fit=fit,
        )
        for method in METHODS[: 1 + number % 2]
    ]
    factors = {"place": Factor(["x"])}
    return Run(f"run {number}", "2026-11-16T09:30:00", factors, fit, {s.method: s for s in scores})


def number_of_run(run: Run) -> int:
    number = one(int(run.name.split()[1]), number_of_fit(run.fit))
    if list(run.attributions) != list(METHODS[: 1 + number % 2]):
        raise Mixed("a run with the scores of another version")
    for scores in run.attributions.values():
        one(number, scores.n_frames, int(scores.latent_scores[0, 0]))
    return number


class SavedFit(Target):
    name = "fit"

    def write(self, folder: Path, number: int) -> None:
        fit_of(number).save(folder / "fit")

    def found(self, folder: Path) -> int:
        return number_of_fit(Fit.load(folder / "fit"))


class SavedRun(Target):
    name = "run"

    def write(self, folder: Path, number: int) -> None:
        run_of(number).save(folder / "run")

    def found(self, folder: Path) -> int:
        return number_of_run(Run.load(folder / "run"))


class Workspace(Target):
    """A recording with two runs."""

    name = "workspace"

    def prepare(self, folder: Path) -> None:
        save_recording(plain_recording(), folder / "recording.npz")
        super().prepare(folder)

    def write(self, folder: Path, number: int) -> None:
        opening = Opening(folder / "recording.npz")
        runs = [run_of(number), replace(run_of(number), created="later")]
        opened = Opened("mine", opening.open(), opening=opening, runs=runs)
        save_workspace(WorkspaceFile([opened], 0, [{"run": number}]), folder / "workspace")

    def found(self, folder: Path) -> int:
        loaded = load_workspace(folder / "workspace")
        if len(loaded.opened[0].runs) != 2:
            raise Mixed(f"{len(loaded.opened[0].runs)} runs of 2")
        return one(int(loaded.shown[0]["run"]), *map(number_of_run, loaded.opened[0].runs))

    def left(self, folder: Path) -> list[str]:
        runs = [f"runs/{each.name}" for each in (folder / "workspace" / "runs").iterdir()]
        return super().left(folder) + (runs if len(runs) > 2 else [])


class SweepMembers(Target):
    """Members of a sweep, each with its run, its table and its description."""

    name = "sweep"
    factors: ClassVar = {"place": Factor(["x"])}

    def write(self, folder: Path, number: int) -> None:
        run = run_of(number)
        result = MemberResult(run.fit, run.attributions[METHODS[0]], float(number), "here")
        settings = FitSettings(steps=1)
        member = Member(
            f"{number:010d}", "mine", self.factors, settings, 0.0, METHODS[0], {"seed": number}
        )
        SweepFolder(folder).keep(member, result)

    def found(self, folder: Path) -> int:
        """The last member that counts as finished; all of them must be whole."""
        sweep, last = SweepFolder(folder), START
        for home in sorted((folder / "members").iterdir()):
            if sweep.status(home.name) != "finished":
                continue
            run, table = sweep.run(home.name), pd.read_csv(home / "attribution.csv")
            scores = run.attributions[METHODS[0]]
            number = one(
                int(home.name), int(sweep.read(home.name)["seconds"]), number_of_fit(run.fit),
                scores.n_frames, int(table["score"].iloc[0]),
            )  # fmt: skip
            last = number if number != START else last
        return last


class SavedRecording(Target):
    name = "recording"

    def write(self, folder: Path, number: int) -> None:
        made = plain_recording()
        traces = np.full((100, 5), number, np.float32)
        save_recording(
            Recording(traces, 10.0, source=str(number), footprints=made.footprints),
            folder / "recording.npz",
        )

    def found(self, folder: Path) -> int:
        loaded = open_recording(folder / "recording.npz")
        return int(np.asarray(loaded.traces)[0, 0])


class Decisions(Target):
    """A journal: every number is a decision on the cell of that number."""

    name, column = "journal", "lost"
    cells = range(START + 1)

    def prepare(self, folder: Path) -> None:
        with self.opened(folder) as write:
            write(START)

    @contextmanager
    def opened(self, folder: Path) -> Iterator[Write]:
        journal = Journal(folder / "journal.jsonl", curator="Ann")
        with Curation(self.cells, journal=journal) as curation:
            yield lambda number: curation.decide([number], "accepted")

    def found(self, folder: Path) -> int:
        """The last one; all from the first on must be there."""
        decided = self.decided(folder)
        expected = [START, *range(decided[1], decided[-1] + 1)] if len(decided) > 1 else [START]
        if decided != expected:
            raise Mixed("decisions are missing or doubled")
        with Curation(self.cells, journal=Journal(folder / "journal.jsonl")) as curation:
            accepted = np.flatnonzero(curation.status == 1).tolist()
        if accepted != sorted(decided):
            raise Mixed("the curation has other decisions than its journal")
        return decided[-1]

    @staticmethod
    def decided(folder: Path) -> list[int]:
        steps: list[Any] = read_journal(folder / "journal.jsonl").steps
        return [int(entry["cells"][0]) for entry in steps if entry["do"] == "decide"]


TARGETS: tuple[Target, ...] = (Suite2p(), Caiman(), SavedFit(), SavedRun(), Workspace(),
                               SweepMembers(), SavedRecording(), Decisions())  # fmt: skip
