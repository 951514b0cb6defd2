"""Finds finished runs: folders that `run`, `sessions`, a sweep or *Save…* wrote."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.attribution.methods import title_of_method
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.report.material import run_in
from napari_xcebra.sweeps import SweepFolder

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Goodness

_PARTS = {"fit", "joint", "members"}
"""Folders of a run or sweep that are none themselves."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One map of a finished run.

    Parameters
    ----------
    path : Path
        Its folder.
    name : str
        Recording as the sweep calls it; else the folder as it was found.
    attribution : Attribution
    goodness : mapping of str to Goodness
    varied : mapping of str to str
        What distinguishes it from other runs of its sweep, in words.
    """

    path: Path
    name: str
    attribution: Attribution
    goodness: Mapping[str, Goodness]
    varied: Mapping[str, str]

    @property
    def factors(self) -> tuple[str, ...]:
        """Factors that were asked for; the state that was not observed is none."""
        return tuple(name for name in self.attribution.factors if name != TIME)


def finished_runs(
    folders: Iterable[str | os.PathLike[str]], method: str
) -> tuple[list[FinishedRun], list[str]]:
    """All finished runs in some folders and those below them, and sentences on what is left out.

    Runs of a sweep whose labels were shifted are controls, and left out.
    """
    found: dict[Path, FinishedRun] = {}
    notes: list[str] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: name those that run or sweep wrote.")
        for place, name, varied in _places(folder):
            if isinstance(run := _loaded(place, name, varied, method), str):
                notes.append(run)
            else:
                found.setdefault(place.resolve(), run)
    if not found:
        why = f" {notes[0]}" if notes else ""
        raise InputError(
            f"No finished run was found in {', '.join(map(str, folders))}.{why} Name folders that "
            "run, sessions or sweep wrote, or a folder above them."
        )
    return list(found.values()), notes


def _places(folder: Path) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """Folder, name, and what was varied, of every run in a folder or below it."""
    if (folder / "sweep.json").exists():
        sweep = SweepFolder(folder)
        for member in sweep.members:
            if sweep.status(member.id) == "finished" and not member.shift:
                varied = {n: str(v) for n, v in member.varied.items() if n != "recording"}
                yield sweep.home(member.id), member.recording, varied
    elif any((folder / name).exists() for name in ("run.json", "fit/fit.json")):
        yield folder, folder.as_posix(), {}
    else:
        below = sorted(path for path in folder.iterdir() if path.is_dir())
        for path in below:
            if path.name not in _PARTS and not path.name.startswith(".") and not path.is_symlink():
                yield from _places(path)


def _loaded(place: Path, name: str, varied: dict[str, str], method: str) -> FinishedRun | str:
    """The run, or a sentence on why it is left out."""
    found = run_in(place)
    if not found.fit.complete:
        return f"{place} is left out: its training was stopped before the end."
    if method not in found.attributions:
        others = ", ".join(map(title_of_method, found.attributions)) or "no map"
        return f"{place} is left out: it has {others} and not {title_of_method(method)}."
    attribution = found.attributions[method]
    return FinishedRun(place, name, attribution, found.fit.goodness, varied)
