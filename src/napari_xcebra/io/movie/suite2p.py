"""Opens the registered movie of suite2p: the `data.bin` of a plane, or of all planes.

It holds 16-bit integers, frame after frame, and nothing else; its size is in the options beside it.
`data_raw.bin` is the movie before registration, and not opened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.movie.like import Like
from napari_xcebra.io.suite2p.facts import Facts, read_facts
from napari_xcebra.io.suite2p.folders import COMBINED, folders_at, is_extracted, planes_in
from napari_xcebra.recording.movies.frames import PlainFrames, TiledFrames
from napari_xcebra.recording.movies.movie import Movie

NAME = "suite2p (data.bin)"
FILE = "data.bin"
STORED = np.dtype("<i2")


def sniff(path: Path) -> bool:
    """Whether it is called as suite2p calls it, or is a folder of suite2p that has one."""
    try:
        if path.is_file():
            return path.name == FILE
        return any((folder / FILE).is_file() for folder in _planes(path))
    except OSError:
        return False


def load(path: Path, like: Like) -> Movie:
    """Movie of a plane; of a folder of planes, of all planes that were extracted."""
    if path.is_file():
        frames = _frames(path, read_facts(path.parent), like.field)
        return Movie((frames,), path, rate=read_facts(path.parent).rate)
    folders = folders_at(path)
    if not folders:
        raise InputError(f"{path} has no suite2p output: choose a {FILE}, or its folder.")
    if folders[0].name == COMBINED:
        return _tiled(folders[0], planes_in(folders[0].parent))
    used = [folder for folder in folders if is_extracted(folder)] or folders
    every = [read_facts(folder) for folder in used]
    planes = tuple(
        _frames(_file_of(folder, facts), facts, like.field)
        for folder, facts in zip(used, every, strict=True)
    )
    source = planes[0].path if len(planes) == 1 else path
    return Movie(planes, source, stacked=len(planes) > 1, rate=every[0].rate)


def _planes(path: Path) -> list[Path]:
    folders = folders_at(path)
    combined = bool(folders) and folders[0].name == COMBINED
    return planes_in(folders[0].parent) if combined else folders


def _file_of(folder: Path, facts: Facts) -> Path:
    """The file beside the options, or else where the options say."""
    if (folder / FILE).is_file():
        return folder / FILE
    named = facts.entries.get("reg_file")
    there = Path(named) if isinstance(named, str) and len(named) < 4096 else None
    if there is not None and there.name == FILE and there.is_file():
        return there
    raise InputError(
        f"{folder.name} has no {FILE}: suite2p was told to delete it, or it was not copied."
    )


def _frames(path: Path, facts: Facts, field: tuple[int, int] | None) -> PlainFrames:
    """Frames of a plane; the size is that of the options, or of the recording."""
    field = facts.field or field
    if field is None:
        raise InputError(
            f"{path} does not say how large its frames are: put the ops.npy of suite2p beside it."
        )
    size = math.prod(field) * STORED.itemsize
    frames, rest = divmod(path.stat().st_size, size)
    if not frames or rest:
        height, width = field
        raise InputError(
            f"{path} has {path.stat().st_size:,} bytes, which is not a whole number of frames of "
            f"{height} × {width} pixels: it is incomplete, or belongs to another recording."
        )
    return PlainFrames(path, (frames, *field), STORED, range(0, frames * size, size))


def _tiled(combined: Path, planes: Sequence[Path]) -> Movie:
    """Movie of all planes side by side, as in the folder `combined`."""
    every = [read_facts(folder) for folder in planes]
    parts = tuple(
        _frames(_file_of(folder, facts), facts, None)
        for folder, facts in zip(planes, every, strict=True)
    )
    if not parts:
        raise InputError(f"{combined.parent} has no plane folders: their movies are needed.")
    corners = tuple(_corner(facts, number, parts) for number, facts in enumerate(every))
    ends = [(top + part.shape[1], left + part.shape[2])
            for part, (top, left) in zip(parts, corners, strict=True)]  # fmt: skip
    height, width = np.max(ends, axis=0).tolist()
    frames = min(part.shape[0] for part in parts)
    return Movie((TiledFrames(parts, corners, (frames, height, width)),), combined.parent)


def _corner(facts: Facts, number: int, parts: Sequence[PlainFrames]) -> tuple[int, int]:
    """Where suite2p puts a plane: where it says, or in rows that make about a square."""
    top, left = (facts.number(name, low=0, high=2**20) for name in ("dy", "dx"))
    if top is not None and left is not None:
        return int(top), int(left)
    _, height, width = parts[number].shape
    across = min(math.ceil(math.sqrt(height * width * len(parts)) / width), len(parts))
    return number // across * height, number % across * width
