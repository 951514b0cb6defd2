"""Recordings that change once results were made of them: old results are not given out as new."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from breaking.commands import Sweep, called, in_fork, recording, training
from breaking.tally import Tally
from breaking.targets import START
from napari_xcebra.curation import open_curation
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.learn.data.factors import Factor
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.workspace_file import Opened, WorkspaceFile, load_workspace, save_workspace

SAID = re.compile(
    r"chang|differ|not the (same )?recording|another|other (cells|traces|recording)|no longer", re.I
)
"""A word about it is enough where results are only shown beside the recording."""


def noise(made: Recording) -> Recording:
    """All traces replaced but for the five frames that a small sample would look at."""
    traces = np.random.default_rng(9).random(made.traces.shape).astype(np.float32)
    kept = np.linspace(0, made.n_frames - 1, 5).astype(int)
    traces[kept] = made.traces[kept]
    return replace(made, traces=traces)


def one_value(made: Recording) -> Recording:
    traces = made.traces.copy()
    traces[100, 3] += 0.5
    return replace(made, traces=traces)


def signs(made: Recording) -> Recording:
    return replace(made, traces=-made.traces)


def two_cells_swapped(made: Recording) -> Recording:
    return replace(made, traces=made.traces[:, [0, 4, 2, 3, 1]])


def cells_reversed(made: Recording) -> Recording:
    return replace(made, traces=made.traces[:, ::-1].copy())


def frames_rolled(made: Recording) -> Recording:
    return replace(made, traces=np.roll(made.traces, 40, 0))


def footprints_in_another_order(made: Recording) -> Recording:
    """The same pixel counts, on other cells."""
    assert made.footprints is not None
    moved = made.n_cells - 1 - made.footprints.cell
    order = np.argsort(moved, kind="stable")
    parts = {name: getattr(made.footprints, name)[order] for name in ("row", "column", "weight")}
    return replace(made, footprints=replace(made.footprints, cell=moved[order], **parts))


def another_rate(made: Recording) -> Recording:
    return replace(made, rate=12.0)


def another_behavior(made: Recording) -> Recording:
    """A variable that runs the other way."""
    turned = {v.name: replace(v, values=v.values[::-1].copy()) for v in made.behavior.values()}
    return replace(made, behavior=turned)


CHANGES: tuple[Callable[[Recording], Recording], ...] = (
    noise, one_value, signs, two_cells_swapped, cells_reversed, frames_rolled,
    footprints_in_another_order, another_rate, another_behavior,
)  # fmt: skip


def family(
    home: Path,
    rng: random.Random,
    tally: Tally,
    changes: tuple[Callable[[Recording], Recording], ...] = CHANGES,
) -> None:
    """Make results once; then change the recording in each way, and ask for them."""
    template = home / "template"
    shutil.rmtree(home, ignore_errors=True)
    template.mkdir(parents=True)
    in_fork(lambda: str(save_recording(recording(), template / "recording.npz")))
    called(*training(template, START, "run"))
    in_fork(lambda: _results(template))
    called(*Sweep().typed(template, START))
    uses = {"sweep": _sweep, "report": _report, "export-nwb": _export, "attribute": _attribute,
            "decisions": _decisions, "workspace": _workspace}  # fmt: skip
    for name, use in uses.items():
        # what complains about a recording that did not change is no check
        _try(use, template, None, tally, name)
        for change in changes:
            if not _concerns(name, change):
                continue
            _try(use, template, change, tally, name)


def _concerns(use: str, change: Callable[[Recording], Recording]) -> bool:
    """Traces computed in another way have the same cells; moved footprints the same traces."""
    if use == "decisions":
        return change in (cells_reversed, footprints_in_another_order)
    if use == "sweep":  # nothing of a fit comes from footprints
        return change is not footprints_in_another_order
    return True


def _results(folder: Path) -> str:
    """A workspace with the recording and its run, and a decision on its first cells."""
    opening = Opening(folder / "recording.npz")
    made = opening.open()
    fit = Fit.load(folder / "run" / "fit")
    run = Run("mine", "2026-11-16T09:30:00", {"place": Factor(["position"])}, fit, {})
    opened = Opened("mine", made, opening=opening, runs=[run])
    save_workspace(WorkspaceFile([opened], 0), folder / "workspace")
    with open_curation(made, opening.path, curator="Ann") as curation:
        curation.decide([0, 1], "rejected")
    return "made"


def _try(
    use: Callable[[Path], str],
    template: Path,
    change: Callable[[Recording], Recording] | None,
    tally: Tally,
    name: str,
) -> None:
    # results name the recording where it is, so that the place must be the same
    aside = template.with_name("aside")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(template, aside)
    if change is not None:
        in_fork(lambda: str(save_recording(change(recording()), template / "recording.npz")))
    answer = use(template)
    case = f"{name}, {change.__name__.replace('_', ' ') if change else 'nothing changed'}"
    tally.trials += 1
    tally.words[answer.split(":")[0]] += 1
    if answer.startswith("!"):
        tally.broke("other", f"{case}: {answer}"[:300])
    elif change is not None and answer.startswith("old"):
        tally.broke("silent", f"{case}: {answer}"[:300])
    elif change is None and not answer.startswith("old"):
        tally.broke("lost", f"{case}: {answer}"[:300])
    shutil.rmtree(template)
    aside.rename(template)


def _command(*typed: object) -> str:
    code, said = called(*typed)
    if code < 0 or "Traceback" in said:
        return f"!{said}"
    if code:
        return f"refused: {said}"
    said = re.sub(r"\S*/\S*", "…", said)  # names of folders say nothing
    return f"said: {said}" if SAID.search(said) else "old: without a word"


def _sweep(folder: Path) -> str:
    before = {p: p.read_bytes() for p in folder.glob("out/members/*/attribution.csv")}
    answer = _command(*Sweep().typed(folder, START))
    after = {p: p.read_bytes() for p in folder.glob("out/members/*/attribution.csv")}
    return "made anew:" if answer.startswith("old") and after != before else answer


def _report(folder: Path) -> str:
    return _command("report", folder / "run", "--out", folder / "page.html")


def _export(folder: Path) -> str:
    return _command("export-nwb", folder / "run", "--out", folder / "run.nwb")


def _attribute(folder: Path) -> str:
    fit, path = folder / "run" / "fit", folder / "recording.npz"
    return _command("attribute", fit, path, "--out", folder / "scores", "--quiet")


def _in_python(work: Callable[[], str]) -> str:
    lines = in_fork(work)
    line = lines[-1] if lines else "!no answer"
    return f"refused: {line}" if line.startswith("-") else line.strip('"')


def _decisions(folder: Path) -> str:
    """Decisions on cells whose place in the list is another now."""

    def work() -> str:
        path = folder / "recording.npz"
        with open_curation(open_recording(path), path, curator="Ann") as curation:
            decided = np.flatnonzero(curation.status != 0).tolist()
            said = " ".join(curation.notes)
        if decided == [0, 1] and not SAID.search(said):
            return "old: without a word"
        return f"said: {said}" if said else f"moved: {decided}"

    return _in_python(work)


def _workspace(folder: Path) -> str:
    def work() -> str:
        loaded = load_workspace(folder / "workspace")
        mine = loaded.opened[0]
        said = " ".join((*mine.recording.notes, *mine.recording.warnings))
        return f"said: {said}" if re.search("changed|differ", said) else "old: without a word"

    return _in_python(work)
