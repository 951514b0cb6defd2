"""Commands that write, each as a number that is written and found again."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

from breaking.processes import PATIENCE, Fork, Tell
from breaking.samples import recording as sample
from breaking.targets import START, Mixed, Target, one
from napari_xcebra.cli import main
from napari_xcebra.errors import InputError
from napari_xcebra.files import GUARDED
from napari_xcebra.io import save_recording
from napari_xcebra.recording import Recording

FRAMES = 300
STEPS = 4
OTHER = 7
"""Number that is written over the first; every number is a seed."""


def call(*typed: object) -> tuple[int, str]:
    """Exit code of a command and what it printed, in this process."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main([str(each) for each in typed])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, said.getvalue()


def in_fork(work: Callable[[], object], seconds: float = 4 * PATIENCE) -> list[str]:
    """What a function gives, as lines, from a process of its own; failures begin with a mark."""

    def told(tell: Tell) -> None:
        tell(json.dumps(work()))

    lines, in_time = Fork(told).lines(seconds)
    return lines if in_time else [*lines, "!hang"]


def called(*typed: object, seconds: float = 4 * PATIENCE) -> tuple[int, str]:
    """As `call`, in a process of its own; -1 with what happened if it ended in another way."""
    lines = in_fork(lambda: call(*typed), seconds)
    if lines and lines[0].startswith("["):
        code, said = json.loads(lines[0])
        return int(code), str(said)
    return -1, " ".join(lines) or "!no answer"


def recording(seed: int = 0) -> Recording:
    """Five cells, of which the first ones follow the position."""
    rng = np.random.default_rng(seed)
    place = np.cumsum(rng.standard_normal((FRAMES, 2)), 0)
    traces = rng.random((FRAMES, 5)) + 1
    traces[:, :2] += np.abs(place)
    made = sample()
    return Recording.from_arrays(
        traces.astype(np.float32), rate=10.0, footprints=made.footprints, images=made.images,
        behavior={"position": place},
    )  # fmt: skip


def training(folder: Path, number: int, out: str, command: str = "run") -> list[object]:
    """Arguments that train on the recording in a folder."""
    path = folder / "recording.npz"
    typed: list[object] = [command, path, "--factor", "place=position", "--out", folder / out]
    return [*typed, "--steps", STEPS, "--seed", number, "--quiet"]


@contextlib.contextmanager
def unguarded() -> Iterator[None]:
    """Files are read without a child, which would be started anew in every fork."""
    before = os.environ.get(GUARDED)
    os.environ[GUARDED] = "0"
    try:
        yield
    finally:
        os.environ.pop(GUARDED)
        if before is not None:
            os.environ[GUARDED] = before


class Command(Target):
    """A command of the command line, called again with another number."""

    def typed(self, folder: Path, number: int) -> list[object]:
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        in_fork(lambda: str(save_recording(recording(), folder / "recording.npz")))
        code, said = called(*self.typed(folder, START))
        if code:
            raise RuntimeError(said)

    def write(self, folder: Path, number: int) -> None:
        code, said = call(*self.typed(folder, number))
        if "Traceback" in said:
            raise RuntimeError(said.splitlines()[-1])
        if code:
            raise InputError(said)


class RunOver(Command):
    """`run --out` over an earlier run: the fit, tables and pictures of one of them."""

    name = "run over a run"

    def typed(self, folder: Path, number: int) -> list[object]:
        return training(folder, number, "out")

    def found(self, folder: Path) -> int:
        code, said = called("info", folder / "out")  # which may mend what was cut short
        if code:
            raise Mixed(f"info: {said}")
        about = json.loads((folder / "out" / "fit" / "fit.json").read_text())
        tables = {name: _sum(folder / "out" / name) for name in TABLES}
        numbers = [n for n in (START, OTHER) if _tables(n) == tables]
        if not numbers:
            raise Mixed("tables of several versions, or of none")
        return one(int(about["settings"]["seed"]), numbers[0])


TABLES = ("attribution.csv", "painted.png", "learning.png")
"""Files of a run that are the same whenever it is made again."""


@functools.cache
def _tables(number: int) -> dict[str, str]:
    """What `TABLES` hold after a run that nobody disturbed."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as home:
        in_fork(lambda: str(save_recording(recording(), Path(home) / "recording.npz")))
        called(*training(Path(home), number, "out"))
        return {name: _sum(Path(home) / "out" / name) for name in TABLES}


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"


class OfARun(Command):
    """A file that is made of one of two runs."""

    file = ""

    def prepare(self, folder: Path) -> None:
        in_fork(lambda: str(save_recording(recording(), folder / "recording.npz")))
        for number in (START, OTHER):
            code, said = called(*training(folder, number, f"run-{number}"))
            if code:
                raise RuntimeError(said)
        super().prepare(folder)

    def typed(self, folder: Path, number: int) -> list[object]:
        return [self.name, folder / f"run-{number}", "--out", folder / self.file]


class Report(OfARun):
    name, file = "report", "report.html"

    def found(self, folder: Path) -> int:
        text = (folder / self.file).read_text()
        if not text.rstrip().endswith("</html>"):
            raise Mixed("half a page")
        return START if f"run-{START}" in text else OTHER


class ExportNwb(OfARun):
    name, file = "export-nwb", "run.nwb"

    def found(self, folder: Path) -> int:
        texts: list[str] = []
        with h5py.File(folder / self.file) as file:
            file.visititems(lambda _, item: texts.append(_text(item)))
        joined = "".join(texts)
        return START if str(START) in joined else OTHER


def _text(item: object) -> str:
    if isinstance(item, h5py.Dataset) and item.dtype.kind == "O":
        return str(item[()])
    return str(dict(item.attrs)) if isinstance(item, h5py.Group | h5py.Dataset) else ""


class Sweep(Command):
    """A sweep of one seed, repeated with another into the same folder: a member is added."""

    name = "sweep command"

    def typed(self, folder: Path, number: int) -> list[object]:
        config = folder / f"sweep-{number}.toml"
        config.write_text(
            f'[[recordings]]\nname = "mine"\npath = "recording.npz"\n[factors]\n'
            f'place = ["position"]\n[settings]\nsteps = {STEPS}\nseed = {number}\n'
        )
        return ["sweep", config, "--out", folder / "out", "--processes", 1, "--quiet"]

    def found(self, folder: Path) -> int:
        code, said = called("verify", folder / "out")
        if code:
            raise Mixed(f"verify: {said}")
        pd.read_csv(folder / "out" / "summary.csv")
        seeds = {json.loads(p.read_text())["settings"]["seed"]
                 for p in (folder / "out" / "members").glob("*/member.json")}  # fmt: skip
        if START not in seeds:
            raise Mixed("the earlier member is gone")
        return OTHER if OTHER in seeds else START


COMMANDS: tuple[Command, ...] = (RunOver(), Report(), ExportNwb(), Sweep())
