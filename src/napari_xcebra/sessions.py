"""A session on disk: which recordings, their runs, and what was shown.

A folder with ``session.json`` and a folder for each run. Recordings stay where they are; the file
says where, also relative to itself, and how to tell that it is still the same recording. Those
that did not come from a path are saved along.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from napari_xcebra.curation.order import centroids_of
from napari_xcebra.errors import InputError
from napari_xcebra.files import read_description, whole
from napari_xcebra.fingerprint import fingerprint, same_sample
from napari_xcebra.footprints import Footprints
from napari_xcebra.io import open_recording, save_recording
from napari_xcebra.opening import Opening
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

KIND = "napari-xcebra session"
FORMAT = 1
FILE = "session.json"


@dataclass(eq=False)
class Opened:
    """A recording in use.

    Parameters
    ----------
    name : str
        Different for each recording of a session.
    recording : Recording
    token : str
        What its layers carry, to be found by.
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
        """Label image of the cells; on a grid where the source does not say where they are."""
        where = self.recording.footprints or Footprints.on_a_grid(self.recording.n_cells)
        return where.label_image()

    @cached_property
    def centers(self) -> np.ndarray:
        """(cells, 2 or 3) float64, middle of each cell in the label image; NaN if it has none."""
        where = self.recording.footprints or Footprints.on_a_grid(self.recording.n_cells)
        return centroids_of(where, self.recording.n_cells)

    @property
    def path(self) -> Path | None:
        """What it was opened from; None for arrays and samples."""
        return self.opening.path if self.opening else None

    def run(self, name: str) -> Run | None:
        """Run of that name."""
        return next((run for run in self.runs if run.name == name), None)

    def run_of(self, fit: Fit) -> Run | None:
        """Run with that fit, whatever it is called by now; None if it was removed."""
        return next((run for run in self.runs if run.fit is fit), None)


@dataclass(frozen=True)
class SavedSession:
    """What a session file holds.

    Parameters
    ----------
    opened : sequence of Opened
    current : int
        Which of them the docks work on; -1 for none.
    shown : mapping
        View settings, as plain values.
    """

    opened: Sequence[Opened]
    current: int = -1
    shown: Mapping[str, Any] = field(default_factory=dict)


def name_of(source: str) -> str:
    """What to call a recording; the folders that suite2p names itself do not tell which it is.

    >>> name_of("data/mouse 3/suite2p/plane0"), name_of("data/mouse 3.nwb"), name_of("")
    ('mouse 3 plane0', 'mouse 3.nwb', 'recording')
    """
    *folders, name = Path(source).parts or ("recording",)
    if not re.fullmatch(r"plane\d+|combined|suite2p", name):
        return name
    telling = [folder for folder in folders if folder not in ("suite2p", "/", "..")]
    return " ".join([*telling[-1:], name])


def save_session(session: SavedSession, folder: str | PathLike[str]) -> Path:
    """Write a session to a folder; ``session.json`` comes last, so that it is whole.

    Runs go to new folders, and those of an earlier save are removed after the file names the new
    ones: whenever it is interrupted, the file names folders that are complete.
    """
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    mark = uuid4().hex[:8]
    recordings = []
    for number, opened in enumerate(session.opened):
        runs = []
        for count, run in enumerate(opened.runs):
            place = Path("runs") / f"{mark}-{number}-{count}"
            run.save(folder / place)
            runs.append(place.as_posix())
        about: dict[str, Any] = {"name": opened.name, "runs": runs}
        about["fingerprint"] = fingerprint(opened.recording)
        if opened.opening is None:
            about["file"] = f"recording-{mark}-{number}.npz"
            save_recording(opened.recording, folder / about["file"])
        else:
            about["opening"] = opened.opening.as_dict(folder)
        recordings.append(about)
    described = {
        "kind": KIND,
        "format": FORMAT,
        "recordings": recordings,
        "current": session.current,
        "shown": dict(session.shown),
    }
    before = _files_of(folder)
    with whole(folder / FILE) as temporary:
        temporary.write_text(json.dumps(described, indent=1), encoding="utf-8")
    _remove(folder, before - _files_of(folder))
    return folder


def load_session(
    folder: str | PathLike[str], find: Callable[[Path], Path | None] | None = None
) -> SavedSession:
    """Open what `save_session` wrote.

    Parameters
    ----------
    folder : path
        The folder, or the ``session.json`` in it.
    find : callable, optional
        Asked where a recording or behaviour file is that is no longer in its place; None from it
        gives up.
    """
    folder = Path(folder).absolute()
    folder = folder.parent if folder.name == FILE else folder
    about = read_description(folder / FILE, "session", FORMAT)
    opened = []
    try:
        for each in about["recordings"]:
            opening = None
            if "opening" in each:
                opening = Opening.from_dict(each["opening"], folder, find)
                recording = opening.open()
            else:
                recording = open_recording(folder / Path(each["file"]).name)
            _check_same(recording, each)
            runs = [Run.load(_inside(folder, place), recording) for place in each["runs"]]
            opened.append(Opened(str(each["name"]), recording, opening=opening, runs=runs))
        return SavedSession(opened, int(about["current"]), dict(about["shown"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{folder / FILE} is damaged ({type(error).__name__}: {error})."
        ) from error


def _check_same(recording: Recording, about: Mapping[str, Any]) -> None:
    saved, found = about["fingerprint"], fingerprint(recording)
    same = same_sample(saved, found)
    if (saved["cells"], saved["frames"]) != (found["cells"], found["frames"]) or not same:
        raise InputError(
            f"{recording.source} is not the recording that the session was saved with: that one "
            f"had {saved['cells']} cells and {saved['frames']} frames, this one has "
            f"{found['cells']} and {found['frames']}"
            + ("." if not same else ", or its traces were changed since.")
        )


def _inside(folder: Path, place: str) -> Path:
    """Folder of a run, which must lie inside the session's."""
    path = (folder / place).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{folder / FILE} names {place}, which is outside its folder.")
    return path


def _files_of(folder: Path) -> set[str]:
    """What the session file names, relative to its folder."""
    try:
        recordings = read_description(folder / FILE, "session", FORMAT)["recordings"]
        runs = {run for each in recordings for run in each["runs"]}
        return runs | {each["file"] for each in recordings if "file" in each}
    except (InputError, KeyError, TypeError):
        return set()


def _remove(folder: Path, places: set[str]) -> None:
    for place in places:
        path = _inside(folder, place)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
