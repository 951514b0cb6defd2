"""Finds the journal of a recording: beside it, or in the user's data directory."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from napari_xcebra.curation.lines import summary_of
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import cells_fingerprint

DATA_DIRECTORY = "NAPARI_XCEBRA_DATA"
"""Environment variable that names another folder than the user's data directory."""

IN_FOLDER, BESIDE_FILE, ENDING = "napari-xcebra-curation", ".curation", ".jsonl"
FOLDER = "napari-xcebra"
"""Holds the journals of a recording that is a folder: napari opens all files of a folder as one
stack, and would fail on a journal, but it leaves folders alone. Earlier versions wrote them beside
the files; those are continued where they are."""
_OTHER = ".other-cells"


def journal_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path:
    """Where the journal of a recording is, or would be.

    Beside what the recording was opened from: in a folder in it, if that is one. In the user's data
    directory if that cannot be written to, or if the recording did not come from a path. One that
    is already in the data directory is continued, unless there is one beside the recording.

    Parameters
    ----------
    recording : Recording
    path : path, optional
        What the recording was opened from; its `source` if not given.
    name : str
        Name of a separate journal, such as that of a second curator.
    """
    own, near = own_path(recording, path, name=name), near_path(recording, path, name=name)
    if near is not None and _writable(near) and (near.exists() or not own.exists()):
        return near
    return own


def journals_of(recording: Recording, path: str | os.PathLike[str] | None = None) -> list[Path]:
    """All journals of a recording with decisions, under whatever name; the usual ones first."""
    source = source_of(recording, path)
    return (journals_beside(source) if source else []) + _with_decisions(own_path(recording, path))


def journals_beside(source: str | os.PathLike[str]) -> list[Path]:
    """All journals with decisions beside what a recording was opened from; the usual one first."""
    return _with_decisions(beside(Path(source)))


def _with_decisions(usual: Path) -> list[Path]:
    like = [file for each in _places(usual) for file in _like(each, "*") if _OTHER not in file.name]
    return sorted(filter(_has_decisions, like), key=lambda file: (file != usual, file.name))


def _has_decisions(file: Path) -> bool:
    try:
        return summary_of(file) is not None
    except InputError:  # a file of another program with a similar name
        return False


def near_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path | None:
    """Journal beside what a recording was opened from; None if that is not there."""
    source = source_of(recording, path)
    return None if source is None else beside(source, name)


def beside(source: Path, name: str = "") -> Path:
    """Journal beside a file, or in a folder.

    >>> beside(Path("mouse3.nwb"), "Ann").as_posix()
    'mouse3.nwb.curation-Ann.jsonl'
    """
    ending = f"{_named(name)}{ENDING}"
    # a .zarr is a folder only to the file system
    if source.is_dir() and source.suffix.lower() != ".zarr":
        inside = source / FOLDER / f"{IN_FOLDER}{ending}"
        return next((place for place in _places(inside) if place.exists()), inside)
    return source.with_name(f"{source.name}{BESIDE_FILE}{ending}")


def own_path(
    recording: Recording, path: str | os.PathLike[str] | None = None, *, name: str = ""
) -> Path:
    """Journal in the user's data directory, found again by what the cells are."""
    about = cells_fingerprint(recording)
    telling = [about[each] for each in ("cells", "frames", "ids", "pixels")]
    if about["pixels"] is None:  # without footprints, only the traces tell cells apart
        telling.append(f"{about['sample']:.6e}")
    source = source_of(recording, path)
    title = re.sub(r"[^\w-]+", "-", source.name if source else "recording").strip("-")
    key = f"{zlib.crc32(repr(telling).encode()):08x}"
    return data_directory() / "curation" / f"{title}-{key}{_named(name)}{ENDING}"


def data_directory() -> Path:
    """The user's data directory for this program."""
    import platformdirs

    told = os.environ.get(DATA_DIRECTORY)
    return Path(told or platformdirs.user_data_dir("napari-xcebra", appauthor=False))


def source_of(recording: Recording, path: str | os.PathLike[str] | None = None) -> Path | None:
    """What a recording was opened from, if that is a file or folder that is there."""
    told = os.fspath(path) if path else recording.source
    return Path(told).absolute() if told and Path(told).exists() else None


def other_cells_path(place: Path, day: str) -> Path:
    """Free name for a journal that turned out to be of other cells."""
    wanted = place.with_name(f"{place.stem}{_OTHER}-{day}{ENDING}")
    free, number = wanted, 2
    while free.exists():
        free = wanted.with_name(f"{wanted.stem}-{number}{ENDING}")
        number += 1
    return free


def of_other_cells(place: Path) -> list[Path]:
    """Journals that were put aside, the latest last."""
    found = (file for each in _places(place) for file in _like(each, f"{_OTHER}*"))
    return sorted(found, key=lambda file: file.stat().st_mtime)


def make_room(place: Path) -> None:
    """Make the folder for a journal in a recording's folder, if there is none."""
    if place.parent.name == FOLDER:
        place.parent.mkdir(exist_ok=True)


def _places(place: Path) -> list[Path]:
    """Where a journal of a recording that is a folder may be, now and in earlier versions."""
    if not place.name.startswith(IN_FOLDER):
        return [place]
    folder = place.parent.parent if place.parent.name == FOLDER else place.parent
    return [folder / FOLDER / place.name, folder / place.name]


def _like(place: Path, pattern: str) -> Iterator[Path]:
    """Files beside a journal whose name has the same beginning."""
    itself = re.sub(r"([*?\[])", r"[\1]", place.stem)
    return place.parent.glob(f"{itself}{pattern}{ENDING}")


def _writable(place: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    folder = place.parent if place.parent.exists() else place.parent.parent
    return all(
        os.access(each, os.W_OK, effective_ids=effective)
        for each in (folder, place)
        if each.exists()
    )


def _named(name: str) -> str:
    """Part of a file name for a journal's name.

    >>> _named("Ann / 2"), _named("")
    ('-Ann-2', '')
    """
    plain = re.sub(r"[^\w-]+", "-", name).strip("-")
    if name and not plain:
        raise InputError(f"{name!r} cannot be part of a file name: letters or numbers are needed.")
    return f"-{plain}" if plain else ""
