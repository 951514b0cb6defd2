"""Saves a workspace and opens it again: recordings, their runs, and what was shown.

A workspace file is a folder with ``session.json``, as it was once called, and a folder for each
run. Recordings stay in place; the file has their paths, also relative to itself, and a fingerprint
that tells whether a recording is still the same. Recordings without a path are saved with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from napari_xcebra.checksums import (
    Listed,
    differences,
    entry_of,
    listed_by,
    listed_in,
    remove_listed,
    while_unchanged,
)
from napari_xcebra.curation.order import centroids_of
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, refuse_link, write_description
from napari_xcebra.io import save_recording
from napari_xcebra.io.opening import Opening
from napari_xcebra.locks import locked
from napari_xcebra.recording.fingerprint import Fingerprint, check_same
from napari_xcebra.recording.footprints import CellShapes, Footprints, drawn_labels
from napari_xcebra.recording.recording import Recording
from napari_xcebra.runs import FILE as RUN
from napari_xcebra.runs import Run, remove_run

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

KIND = "napari-xcebra session"
FORMAT = 1
FILE = "session.json"
_RUN = re.compile(r"runs/[0-9a-f]{8}-[0-9]+-[0-9]+")
_RECORDING = re.compile(r"recording-[0-9a-f]{8}-[0-9]+\.npz")
"""Names that `save_workspace` gives: no other is read or removed."""


@dataclass(eq=False)
class Opened:
    """A recording in use.

    Parameters
    ----------
    name : str
        Unique within a workspace.
    recording : Recording
    token : str
        By which its layers are found.
    opening : Opening or None
        How it was opened; None where it was not opened from a path.
    runs : list of Run
    """

    name: str
    recording: Recording
    token: str = field(default_factory=lambda: uuid4().hex)
    opening: Opening | None = None
    runs: list[Run] = field(default_factory=list)

    @cached_property
    def labels(self) -> np.ndarray:
        """Label image of the cells, accepted ones on top."""
        return drawn_labels(self.footprints, np.asarray(self.recording.accepted))

    @cached_property
    def shapes(self) -> CellShapes:
        """Outlines and neighbours of the cells."""
        return CellShapes(self.footprints, self.recording.n_cells)

    @cached_property
    def centers(self) -> np.ndarray:
        """(cells, 2 or 3) float64, centre of each cell in the label image; NaN without pixels."""
        return centroids_of(self.footprints, self.recording.n_cells)

    @property
    def footprints(self) -> Footprints:
        """Where the cells are; on a grid if the source does not say."""
        return self.recording.footprints or Footprints.on_a_grid(self.recording.n_cells)

    @property
    def path(self) -> Path | None:
        """What it was opened from; None for arrays and samples."""
        return self.opening.path if self.opening else None

    def run(self, name: str) -> Run | None:
        """Run of that name."""
        return next((run for run in self.runs if run.name == name), None)

    def run_of(self, fit: Fit) -> Run | None:
        """Run with that fit, even if renamed; None if it was removed."""
        return next((run for run in self.runs if run.fit is fit), None)


@dataclass(frozen=True)
class WorkspaceFile:
    """What a workspace file holds.

    Parameters
    ----------
    opened : sequence of Opened
    current : int
        Number of the recording that the docks work on; -1 for none.
    shown : sequence of mapping
        View settings of each recording, as plain values.
    """

    opened: Sequence[Opened]
    current: int = -1
    shown: Sequence[Mapping[str, Any]] = ()

    @property
    def front(self) -> Opened | None:
        """The recording that the docks work on."""
        inside = 0 <= self.current < len(self.opened)
        return self.opened[self.current] if inside else None


def is_workspace(path: Path) -> bool:
    """Whether a path is that of a workspace file, by its name."""
    return path.name == FILE or (path / FILE).is_file()


def save_workspace(workspace: WorkspaceFile, folder: str | PathLike[str]) -> Path:
    """Write a workspace to a folder; ``session.json`` comes last, so that it is whole.

    Runs go to new folders. Those of an earlier save are removed once the file names the new ones,
    so that an interrupted save leaves a file whose folders are complete.
    """
    folder = Path(folder).absolute()
    refuse_link(folder / "runs")
    with locked(folder):
        before, written = listed_by(folder / FILE), dict[str, Any]()
        try:
            described = _described(workspace, folder, written)
            write_description(folder / FILE, {**described, "files": written})
        except BaseException:
            named = listed_by(folder / FILE)
            _remove(folder, {name: each for name, each in written.items() if name not in named})
            raise
        _remove(folder, before)
    return folder


def _described(workspace: WorkspaceFile, folder: Path, written: dict[str, Any]) -> dict[str, Any]:
    """What the file says; runs and recordings without a path are written, and listed."""
    mark = uuid4().hex[:8]
    recordings = []
    for number, (opened, shown) in enumerate(zip_longest(workspace.opened, workspace.shown)):
        runs = []
        for count, run in enumerate(opened.runs):
            place = f"runs/{mark}-{number}-{count}"
            run.save(folder / place)
            written[f"{place}/{RUN}"] = entry_of(folder / place / RUN)
            runs.append(place)
        about: dict[str, Any] = {"name": opened.name, "runs": runs, "shown": dict(shown or {})}
        about["fingerprint"] = opened.recording.fingerprint.as_dict()
        if opened.opening is None:
            about["file"] = f"recording-{mark}-{number}.npz"
            save_recording(opened.recording, folder / about["file"])
            written[about["file"]] = entry_of(folder / about["file"])
        else:
            about["opening"] = opened.opening.as_dict(folder)
        recordings.append(about)
    return {
        "kind": KIND,
        "format": FORMAT,
        "recordings": recordings,
        "current": workspace.current,
        # where earlier versions look for it
        "shown": recordings[workspace.current]["shown"] if recordings else {},
    }


def load_workspace(
    folder: str | PathLike[str],
    find: Callable[[Path], Path | None] | None = None,
    read: Callable[[Opening], Recording] = Opening.open,
) -> WorkspaceFile:
    """Open what `save_workspace` wrote.

    Parameters
    ----------
    folder : path
        The folder, or the ``session.json`` in it.
    find : callable, optional
        Asked for the new place of a recording or behaviour file that was moved; None gives up.
    read : callable
        Opens a recording; a window does so in another process.
    """
    folder = Path(folder).absolute()
    folder = folder.parent if folder.name == FILE else folder
    return while_unchanged(folder / FILE, lambda: _read(folder, find, read))


def _read(
    folder: Path,
    find: Callable[[Path], Path | None] | None,
    read: Callable[[Opening], Recording],
) -> WorkspaceFile:
    about = read_description(folder / FILE, "session", FORMAT, called="workspace")
    files = listed_in(about, folder / FILE)
    opened = []
    try:
        for each in about["recordings"]:
            opening, made_of = None, Fingerprint.from_dict(each["fingerprint"])
            if "opening" in each:
                opening = Opening.from_dict(each["opening"], folder, find)
                recording = read(opening)
            else:
                recording = read(Opening(_place(folder, each["file"], _RECORDING, files)))
            if note := check_same(made_of, recording, "the workspace"):
                recording = replace(recording, warnings=(*recording.warnings, note))
            places = [_place(folder, run, _RUN, files) for run in each["runs"]]
            runs = [Run.load(place, recording) for place in places]
            opened.append(Opened(str(each["name"]), recording, opening=opening, runs=runs))
        current = int(about["current"])
        # earlier versions kept the view of the recording in front alone
        of_front = [about["shown"] if number == current else {} for number in range(len(opened))]
        shown = [
            dict(each.get("shown", front))
            for each, front in zip(about["recordings"], of_front, strict=True)
        ]
        return WorkspaceFile(opened, current, shown)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{folder / FILE} is damaged ({type(error).__name__}: {error})."
        ) from error


def _place(folder: Path, named: str, pattern: re.Pattern[str], files: Listed | None) -> Path:
    """Path of what the file names: it has a name of ours, lies inside, and is what was saved."""
    path = (folder / named).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{folder / FILE} names {named}, which is outside its folder.")
    if not pattern.fullmatch(named):
        raise InputError(f"{folder / FILE} names {named}, which no workspace file is saved with.")
    if files is not None:
        listed = f"{named}/{RUN}" if pattern is _RUN else named
        wrong = differences(folder, {listed: files[listed]})
        if wrong:
            raise InputError(
                f"{folder} does not hold a complete workspace ({wrong[0]}): save it again, or "
                "restore the folder from a copy."
            )
    return path


def _remove(folder: Path, files: Listed) -> None:
    """Remove what earlier saves wrote; a file from elsewhere may name anything."""
    for name, wanted in files.items():
        place = name.removesuffix(f"/{RUN}")
        if _RUN.fullmatch(place) and not (folder / "runs").is_symlink():
            remove_run(folder / place, wanted)
        elif _RECORDING.fullmatch(name):
            remove_listed(folder, {name: wanted})
