"""Shared folders made to lead the program astray: lists, links and workspaces that name others."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from breaking.processes import Fork, Tell, failure_of
from breaking.tally import Tally, World, differences, snapshot
from breaking.targets import Caiman, Suite2p, Workspace, bits, fit_of, run_of
from napari_xcebra.curation import open_curation
from napari_xcebra.io import open_recording
from napari_xcebra.io.decisions.outputs import plan_output
from napari_xcebra.io.decisions.restoring import plan_restore
from napari_xcebra.workspace_file import load_workspace

LIST = ".napari-xcebra-unfinished.json"
PLANTED = ".napari-xcebra-1700000000-planted.npy"
OWN_NAMES = ("iscell.npy", "napari-xcebra-decisions.csv", "results.hdf5", "napari-xcebra-curation",
        "napari-xcebra", "session.json", "recording-", "runs", "run", "fit",
        "results.hdf5.curation")  # fmt: skip
"""How names begin that the program may make, replace and remove in a shared folder."""
WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.safetensors")
"""Weights of ours are named by their content; `weights-resnet.safetensors` is somebody else's."""


def lists(world: World) -> Iterator[tuple[str, str]]:
    """Lists of unfinished files, by what they try."""
    chapter = world.thesis / "chapter.tex"
    stat = chapter.stat()
    known = (stat.st_size, stat.st_mtime_ns)
    up = "../thesis"
    places: dict[str, list[Any]] = {
        "two at once": [["a", f"{up}/.env", None, 0, 0], ["b", None, f"{up}/.git", -1, -1]],
        "a file to be staged": [["a", f"{up}/.env", None, 0, 0]],
        "a folder to be held": [["b", None, f"{up}/.git", -1, -1]],
        "a file of known size to be removed": [[f"{up}/chapter.tex", None, None, *known]],
        "a planted file to be put elsewhere": [[f"{up}/run.sh", None, PLANTED, -1, -1]],
        "a planted file over another": [[f"{up}/chapter.tex", PLANTED, PLANTED, *known]],
        "an absolute path": [[str(chapter), None, None, *known]],
        "through a link": [["link/chapter.tex", None, None, *known]],
        "a temporary name through a link": [["a", f"link/{PLANTED}", None, 0, 0]],
        "traces": [["F.npy", None, None, -1, -1]],
        "the temporary file of another folder": [["a", f"{up}/{PLANTED}", None, 0, 0]],
        "two levels up": [["../../home/.bashrc", None, None, -1, -1]],
        "nothing": [],
        "numbers that are none": [["a", None, None, float("nan"), 1e400]],
        "short": [["a"]],
        "words": ["abcde"],
    }  # fmt: skip
    here = {"pid": os.getppid(), "started": 0, "host": platform.node()}
    for name, each in places.items():
        yield name, json.dumps({"pid": 1, "started": 0, "host": "x", "places": each})
        yield f"{name}, this computer", json.dumps({**here, "places": each})
    yield "deep", '{"pid": 1, "places": ' + "[" * 100_000
    yield "a word", '"abc"'
    yield "no JSON", "\0" * 100
    yield "a large number", '{"pid": 1' + "0" * 5000 + "}"


def attacked(world: World, target: Suite2p | Caiman) -> tuple[Path, Path]:
    """A recording to be sent around: where it is opened, and the folder of its list."""
    target.prepare(world.shared)
    path = world.shared / ("suite2p" if isinstance(target, Suite2p) else "results.hdf5")
    home = path if path.is_dir() else world.shared
    if path.is_dir():
        # beside the thesis
        path = path.rename(world.home / "shared2p")
        home = path
    (home / PLANTED).write_text("rm -rf ~")
    (home / "link").symlink_to(world.thesis)
    return path, home


def actions(path: Path, kind: str) -> dict[str, Callable[[], object]]:
    """What a window does in a folder; in this order."""

    def exported() -> None:
        plan_output(kind, open_recording(path), path, bits(5)).write()

    def curated() -> None:
        with open_curation(open_recording(path), path, curator="Ann") as curation:
            curation.decide([1], "accepted")

    return {
        "preview": lambda: plan_output(kind, open_recording(path), path, bits(5)),
        "export": exported,
        "curate": curated,
        "restore": lambda: plan_restore(path).write(),
    }


def family(home: Path, rng: random.Random, tally: Tally) -> None:
    """Lists and links, then workspaces and results, each in a world of its own."""
    for target in (Suite2p(), Caiman()):
        decisions(home, tally, target)
    results(home, tally)


def decisions(home: Path, tally: Tally, target: Suite2p | Caiman) -> None:
    """Folders in which decisions are previewed, written, made and taken back."""
    kind = "suite2p" if isinstance(target, Suite2p) else "caiman"
    for name, text in list(lists(World.at(home))):
        world = World.at(home)
        path, place = attacked(world, target)
        if "another folder" in name or "through a link" in name:
            (world.thesis / PLANTED).write_text("a draft")
        (place / LIST).write_text(text)
        _tried(world, place, actions(path, kind), f"{kind}, list: {name}", tally)
    for name in links(kind):
        world = World.at(home)
        path, place = attacked(world, target)
        plan_output(kind, open_recording(path), path, bits(3)).write()
        _plant(world, place, name)
        _tried(world, place, actions(path, kind), f"{kind}, link: {name}", tally)


def results(home: Path, tally: Tally) -> None:
    """Workspaces and runs that are opened and saved."""
    for name, plant in workspaces().items():
        world = World.at(home)
        plant(world)
        steps = {
            "load": lambda world=world: load_workspace(world.shared / "workspace"),
            "save": lambda world=world: Workspace().write(world.shared, 8),
        }
        _tried(world, world.shared, steps, f"workspace: {name}", tally)
    for name, step in saved_beside(World.at(home)).items():
        world = World.at(home)
        for folder in (world.shared, world.thesis):
            (folder / "weights-resnet.safetensors").write_text("weeks of training")
        _tried(world, world.shared, {"save": step}, name, tally)


def _tried(
    world: World,
    place: Path,
    steps: dict[str, Callable[[], object]],
    case: str,
    tally: Tally,
) -> None:
    """Take the steps in a process, and compare everything that is not ours."""
    tally.trials += 1
    before = _not_ours(world, place)

    def work(tell: Tell) -> None:
        os.environ.update(world.environment())
        for name, step in steps.items():
            try:
                step()
            except Exception as error:
                tell(f"{name} {failure_of(error)}")

    lines, in_time = Fork(work).lines()
    if not in_time:
        tally.broke("hang", case)
    for line in lines:
        if " !" in line:
            tally.broke("other", f"{case}: {line.replace(str(world.home), '…')}"[:160])
    if touched := differences(before, _not_ours(world, place)):
        tally.broke("outside", f"{case}: {', '.join(touched)}"[:160])


def _not_ours(world: World, place: Path) -> dict[str, str]:
    everything = snapshot(world.home, without=("own",))
    inside = place.relative_to(world.home).as_posix()
    return {
        name: content
        for name, content in everything.items()
        if not (name.startswith(inside) and Path(name).name.lstrip(".").startswith(OWN_NAMES))
        and not (name.startswith(f"{inside}/") and "/runs/" in name and "thesis" not in name)
        and not (name.startswith(inside) and WEIGHTS.fullmatch(Path(name).name))
    }


def links(kind: str) -> list[str]:
    """Names of ours that are links out of the folder."""
    shared = [".napari-xcebra.lock", LIST, f"{LIST}.tmp"]
    if kind == "suite2p":
        return [*shared, "napari-xcebra-decisions.csv", "napari-xcebra-curation.jsonl",
                "plane0/iscell.npy.original", "plane0/iscell.npy.previous",
                "plane0/.iscell.npy.written", "new napari-xcebra-curation.jsonl",
                "new napari-xcebra-decisions.csv"]  # fmt: skip
    return [*shared, "results.hdf5.curation.jsonl", "results.hdf5.previous",
            "results.hdf5.original", ".results.hdf5.written",
            "new results.hdf5.curation.jsonl"]  # fmt: skip


def _plant(world: World, place: Path, name: str) -> None:
    """Put a link in the place of a file of ours: to the thesis, or to what is not there yet."""
    file = place / name.removeprefix("new ")
    file.unlink(missing_ok=True)
    file.symlink_to(world.thesis / ("new.txt" if name.startswith("new ") else "chapter.tex"))


def workspaces() -> dict[str, Callable[[World], None]]:
    """Workspace files by what they name."""

    def naming(*runs: str, file: str | None = None, link: str = "") -> Callable[[World], None]:
        def plant(world: World) -> None:
            Workspace().prepare(world.shared)
            folder = world.shared / "workspace"
            shutil.copytree(world.thesis, folder / "thesis")
            if link:
                shutil.rmtree(folder / link, ignore_errors=True)
                (folder / link).symlink_to(world.thesis)
            about = json.loads((folder / "session.json").read_text())
            each = about["recordings"][0]
            each["runs"] = list(runs)
            if file is not None:
                each["file"] = file
                del each["opening"]
            (folder / "session.json").write_text(json.dumps(about))

        return plant

    def deep(world: World) -> None:
        Workspace().prepare(world.shared)
        (world.shared / "workspace" / "session.json").write_text("[" * 100_000)

    return {
        "the folder itself": naming("."),
        "a thesis in it": naming("thesis"),
        "a thesis beside it": naming("../../thesis"),
        "a thesis by way of runs": naming("runs/../thesis"),
        "an absolute path": naming("/etc"),
        "a link by a name of ours": naming("runs/0123abcd-0-0", link="runs/0123abcd-0-0"),
        "a folder of runs that is a link": naming("runs/0123abcd-0-0", link="runs"),
        "a file of the thesis": naming(file="thesis/chapter.tex"),
        "a file beside it": naming(file="../../thesis/chapter.tex"),
        "an empty name": naming("", file=""),
        "deep": deep,
    }


def saved_beside(world: World) -> dict[str, Callable[[], object]]:
    """Results saved where files of others have names like ours, or the folder is a link."""

    def beside_other_weights() -> None:
        fit_of(1).save(world.shared)

    def into_link() -> None:
        (world.shared / "run").mkdir()
        (world.shared / "run" / "fit").symlink_to(world.thesis)
        run_of(1).save(world.shared / "run")

    return {
        "a fit beside other weights": beside_other_weights,
        "a run whose fit is a link": into_link,
    }
