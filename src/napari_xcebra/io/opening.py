"""Remembers how a recording was opened, to open it the same way again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from napari_xcebra.errors import InputError
from napari_xcebra.files import read_json, whole
from napari_xcebra.io import OpenSettings, open_recording
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.variables import Kind
from napari_xcebra.settings import known_only

FILE = "opening.json"
ROLES = ("behavior", "trials", "events")
"""What files beside the recording can be."""

Find = Callable[[Path], Path | None]
"""Asked where a file is that is no longer in its place; None gives up."""


@dataclass(frozen=True)
class Opening:
    """Arguments of `open_recording`, kept.

    Parameters
    ----------
    path : Path
    behavior : tuple of Path
    footprints : Path or None
    kinds : mapping of str to kind
    settings : OpenSettings
    trials, events : tuple of Path
        Tables that hold nothing else.
    movie : Path or None
        None: one that is found beside the recording.
    """

    path: Path
    behavior: tuple[Path, ...] = ()
    footprints: Path | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    settings: OpenSettings = field(default_factory=OpenSettings)
    trials: tuple[Path, ...] = ()
    events: tuple[Path, ...] = ()
    movie: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All that is read, the recording first."""
        beside = () if self.footprints is None else (self.footprints,)
        return (self.path, *self.behavior, *self.trials, *self.events, *beside)

    def open(self) -> Recording:
        """The recording."""
        return open_recording(
            self.path,
            self.behavior,
            trials=self.trials,
            events=self.events,
            footprints=self.footprints,
            kinds=self.kinds,
            movie=self.movie,
            settings=self.settings,
        )

    def save(
        self, folder: str | os.PathLike[str], seen_from: str | os.PathLike[str] | None = None
    ) -> Path:
        """Write it into a folder of results, from where `load` finds the recording again.

        Parameters
        ----------
        folder : path
        seen_from : path, optional
            Folder that the file is going to be in, if that is another one.
        """
        folder = Path(folder)
        about = self.as_dict(folder if seen_from is None else Path(seen_from))
        with whole(folder / FILE) as file:
            file.write_text(json.dumps(about, indent=1), encoding="utf-8")
        return folder / FILE

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Opening:
        """What `save` wrote; a sentence if it is not there, or the recording is not."""
        folder = Path(folder)
        try:
            return cls.from_dict(read_json(folder / FILE), folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{folder / FILE} cannot be read ({error}).") from error

    def as_dict(self, folder: Path) -> dict[str, Any]:
        """Plain values, for a file in that folder."""
        return {
            "path": _place(self.path, folder),
            **{role: [_place(p, folder) for p in getattr(self, role)] for role in ROLES},
            "footprints": _place(self.footprints, folder) if self.footprints else None,
            "movie": _place(self.movie, folder) if self.movie else None,
            "kinds": dict(self.kinds),
            "settings": asdict(self.settings),
            "files": {n: _place(Path(p), folder) for n, p in _files(self.settings).items()},
        }

    @classmethod
    def from_dict(cls, about: Mapping[str, Any], folder: Path, find: Find | None = None) -> Opening:
        """From plain values of a file in that folder; `find` is asked for what was moved."""
        find = find or (lambda _: None)
        path = _found(about["path"], folder, find)
        # what lay beside the recording was probably moved with it
        moved = {Path(about["path"]["absolute"]).parent: path.parent}
        roles = {
            role: tuple(_found(place, folder, find, moved) for place in about.get(role, ()))
            for role in ROLES
        }
        footprints = about["footprints"] and _found(about["footprints"], folder, find, moved)
        files = {n: _found(p, folder, find, moved) for n, p in about.get("files", {}).items()}
        given = {**about["settings"], **{name: str(path) for name, path in files.items()}}
        settings = OpenSettings(**known_only(OpenSettings, given))
        movie = about.get("movie")
        return cls(
            path,
            footprints=footprints or None,
            kinds=dict(about["kinds"]),
            settings=settings,
            movie=_found(movie, folder, find, moved) if movie else None,
            **roles,
        )


def _files(settings: OpenSettings) -> dict[str, str]:
    """Settings that name a file, and the file."""
    knobs = [knob.name for knob in fields(settings) if knob.metadata["file"]]
    given = {name: getattr(settings, name) for name in knobs}
    return {name: text for name, text in given.items() if text and Path(text).is_file()}


def _place(path: Path, folder: Path) -> dict[str, str]:
    path = Path(path).absolute()
    try:
        relative = Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        relative = ""
    return {"absolute": str(path), "relative": relative}


def _found(
    place: Mapping[str, str],
    folder: Path,
    find: Find,
    moved: Mapping[Path, Path] | None = None,
) -> Path:
    """Where a file is now: where it was, in the same place seen from the folder, or as told."""
    path = Path(place["absolute"])
    candidates = [path]
    if place["relative"]:
        candidates.append(folder / place["relative"])
    candidates += [new / path.relative_to(old) for old, new in (moved or {}).items()
                   if path.is_relative_to(old)]  # fmt: skip
    for candidate in candidates:
        if candidate.exists():
            return candidate
    told = find(path)
    if told is None:
        raise InputError(f"{path} is no longer there: move it back, or say where it is now.")
    return told
