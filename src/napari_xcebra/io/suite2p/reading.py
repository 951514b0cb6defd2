"""Reads suite2p output: a plane folder, `combined`, or a folder of planes.

The planes of a folder become one recording: their cells are numbered on as in `combined`, and
their footprints and images are stacked. `combined` is used if it is what was asked for, or if
there are no planes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.containers.npy import read_npy
from napari_xcebra.io.extraction import Extraction
from napari_xcebra.io.failures import sentence_on_failure
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.io.suite2p.folders import (
    COMBINED,
    FILES,
    folders_at,
    is_extracted,
    plane_number,
)
from napari_xcebra.io.suite2p.plane import read_plane
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.traces import JoinedTraces

NAME = "suite2p (a folder with F.npy, or with plane folders)"

_FRAMES_APART = 10
"""Frames by which planes of one volume may differ (it is one, as a rule)."""


def sniff(path: Path) -> bool:
    """Whether the folder, or plane folders in it, have files with suite2p names."""
    try:
        return bool(folders_at(path))
    except OSError:
        return False


def load(path: Path, settings: OpenSettings) -> Extraction:
    """What suite2p found, in one plane or in all."""
    with sentence_on_failure(path):
        return _loaded(path, settings)


def _loaded(path: Path, settings: OpenSettings) -> Extraction:
    folders = folders_at(path)
    if not folders:
        raise InputError(f"{path} has no F.npy, neither in it nor in plane folders.")
    _check_links(path, folders)
    extracted = [folder for folder in folders if is_extracted(folder)]
    planes = {folder.name: read_plane(folder, settings) for folder in extracted}
    if not planes:
        raise InputError(f"{path} has no F.npy: suite2p extracted no traces.")
    whole = stacked(planes, path) if len(planes) > 1 else next(iter(planes.values()))
    empty = [f"{f.name} has no F.npy: left out." for f in folders if f.name not in planes]
    others = () if folders[0] == path or path.is_file() else _other_cells(folders[0], whole)
    return replace(whole, notes=(*whole.notes, *empty, *others))


def _check_links(path: Path, folders: Sequence[Path]) -> None:
    """Raise if a file that would be read lies elsewhere: only what was given is read."""
    root = (path.parent if path.is_file() else path).resolve()
    inside = folders[0] == path or path.is_file()
    read = folders if inside else [*folders, folders[0].parent / COMBINED]
    for file in (folder / name for folder in read for name in FILES):
        if file != path and file.is_file() and not file.resolve().is_relative_to(root):
            raise InputError(
                f"{file} is a link that leads out of {root}: put the file itself there, or open "
                "the folder it is in."
            )


def stacked(planes: Mapping[str, Extraction], path: Path) -> Extraction:
    """One extraction of several planes, in their order."""
    parts = list(planes.values())
    lengths = [part.n_frames for part in parts]
    if max(lengths) - min(lengths) > _FRAMES_APART:
        raise InputError(
            f"{path} has planes of {min(lengths)} to {max(lengths)} frames: they are not from one "
            "recording. Open a single plane."
        )
    notes = _joined_notes(planes)
    if max(lengths) > min(lengths):
        notes += (f"Planes have {min(lengths)} to {max(lengths)} frames: cut to the shortest.",)
    places = [part.footprints for part in parts]
    counts = [part.n_cells for part in parts]
    shared = [name for name in parts[0].signals if all(name in part.signals for part in parts)]
    n_frames, first = min(lengths), parts[0]
    starts = None if first.starts is None else first.starts[first.starts < n_frames]
    return Extraction(
        {name: JoinedTraces(tuple(part.signals[name] for part in parts)) for name in shared},
        next((part.rate for part in parts if part.rate), None),
        cell_ids=np.arange(sum(counts)),
        accepted=_joined_flags(parts),
        cells=_joined_columns(planes),
        footprints=Footprints.stacked(places, counts) if any(places) else None,
        images=_stacked_images(parts),
        excluded=_excluded(parts, n_frames),
        starts=starts,
        neuropil_coefficient=first.neuropil_coefficient,
        pixel_size=first.pixel_size,
        notes=notes,
    )


def _joined_notes(planes: Mapping[str, Extraction]) -> tuple[str, ...]:
    """Notes of the planes: shared ones once, the others with the name of their plane."""
    everywhere = set.intersection(*(set(part.notes) for part in planes.values()))
    first = next(iter(planes.values()))
    shared = [note for note in first.notes if note in everywhere]
    single = [
        f"{name}: {note}"
        for name, part in planes.items()
        for note in part.notes
        if note not in everywhere
    ]
    rates = {part.rate for part in planes.values()}
    if len(rates) > 1:
        single.append(f"Planes have different rates: {next(r for r in rates if r):g} Hz is used.")
    return (*shared, *single)


def _joined_flags(parts: Sequence[Extraction]) -> np.ndarray | None:
    if all(part.accepted is None for part in parts):
        return None
    every = [np.ones(p.n_cells, bool) if p.accepted is None else p.accepted for p in parts]
    return np.concatenate(every)


def _joined_columns(planes: Mapping[str, Extraction]) -> dict[str, np.ndarray]:
    """Columns on the cells of all planes; NaN where a plane lacks them."""
    parts = list(planes.values())
    names = dict.fromkeys(name for part in parts for name in part.cells)
    columns = {
        name: np.concatenate([p.cells.get(name, np.full(p.n_cells, np.nan)) for p in parts])
        for name in names
    }
    numbers = [plane_number(Path(name)) for name in planes]
    columns["plane"] = np.repeat(numbers, [part.n_cells for part in parts])
    columns["roi"] = np.concatenate([np.arange(part.n_cells) for part in parts])
    return columns


def _stacked_images(parts: Sequence[Extraction]) -> dict[str, np.ndarray]:
    """Images (planes, height, width); what a plane lacks has the least value of the others."""
    stacks = {}
    for name in dict.fromkeys(name for part in parts for name in part.images):
        found = {i: part.images[name] for i, part in enumerate(parts) if name in part.images}
        height, width = np.max([_field(part) for part in parts], axis=0)
        least = min(image.min() for image in found.values())
        stacks[name] = np.full((len(parts), height, width), least, np.float32)
        for i, image in found.items():
            stacks[name][i, : image.shape[0], : image.shape[1]] = image
    return stacks


def _field(part: Extraction) -> tuple[int, ...]:
    images = [image.shape for image in part.images.values()]
    return part.footprints.shape if part.footprints is not None else (*images, (0, 0))[0]


def _excluded(parts: Sequence[Extraction], n_frames: int) -> np.ndarray | None:
    marked = [part.excluded[:n_frames] for part in parts if part.excluded is not None]
    return np.any(marked, axis=0) if marked else None


def _other_cells(plane: Path, whole: Extraction) -> tuple[str, ...]:
    """A note if `combined` has other cells or other decisions."""
    combined = plane.parent / COMBINED
    if plane.name == COMBINED or not (combined / "iscell.npy").is_file():
        return ()
    try:
        flags = read_npy(combined / "iscell.npy")[:, 0] > 0
    except (InputError, IndexError):
        return ()
    if len(flags) != whole.n_cells:
        but = f"has {len(flags)} ROIs, the planes have {whole.n_cells}"
    elif whole.accepted is not None and (flags != whole.accepted).any():
        but = f"has other decisions on {int((flags != whole.accepted).sum())} cells"
    else:
        return ()
    return (f"The folder combined {but}: open it instead if that is what you want.",)
