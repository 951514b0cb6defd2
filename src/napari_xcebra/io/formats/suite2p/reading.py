"""Reads suite2p output: a plane folder, `combined`, or a folder of planes.

The planes of a folder become one recording: their cells are numbered on as in `combined`, and
their footprints and images are stacked. `combined` is used if it is what was asked for, or if
there are no planes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.io.containers.npy import mapped_header, read_npy
from napari_xcebra.io.extraction import Extraction, Signal
from napari_xcebra.io.formats.suite2p.folder import (
    COMBINED,
    FILES,
    Facts,
    columns_of,
    folders_at,
    footprints_of,
    is_all_shared,
    is_extracted,
    mixed,
    plane_number,
    plane_of,
    planes_in,
    read_facts,
    read_flags,
    read_stat,
)
from napari_xcebra.io.movie.finding import Like
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.movies import Movie, PlainFrames, TiledFrames
from napari_xcebra.recording.traces import JoinedTraces, LazyTraces, NpyTraces

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
    planes = {folder.name: _read_plane(folder, settings) for folder in extracted}
    if not planes:
        raise InputError(f"{path} has no F.npy: suite2p extracted no traces.")
    whole = _stacked(planes, path) if len(planes) > 1 else next(iter(planes.values()))
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


def _stacked(planes: Mapping[str, Extraction], path: Path) -> Extraction:
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


SIGNALS: dict[Signal, str] = {
    "fluorescence": "F.npy",
    "neuropil": "Fneu.npy",
    "events": "spks.npy",
}
_WITHOUT = {
    "Fneu.npy": "neuropil cannot be subtracted",
    "spks.npy": "there are no deconvolved events",
    "iscell.npy": "every ROI counts as a cell",
    "stat.npy": "the positions of the cells are unknown",
}
_LAST = 16
"""Frames at the end of `combined` that are looked at for zeros."""


def _read_plane(folder: Path, settings: OpenSettings) -> Extraction:
    """What suite2p found in a plane.

    Cells have the number of their ROI. Traces stay on disk.
    """
    signals, left_out = _signals(folder, settings)
    n_frames, n_cells = signals["fluorescence"].shape
    facts = read_facts(folder)
    notes = [f"Written by suite2p {facts.version}."] if facts.version else []
    notes += [
        f"There is no {name}: {but}."
        for name, but in _WITHOUT.items()
        if not (folder / name).is_file()
    ]
    notes += left_out
    if "events" in signals and not facts.deconvolved:
        del signals["events"]
        notes.append("spks.npy is empty: suite2p was told not to deconvolve.")
    cells, footprints, on_rois = _rois(folder / "stat.npy", n_cells, facts.field)
    accepted = None
    if (folder / "iscell.npy").is_file():
        accepted, likely = read_flags(folder / "iscell.npy", n_cells)
        cells |= {} if likely is None else {"probability": likely}
    if (folder / "redcell.npy").is_file():
        cells["red"], likely = read_flags(folder / "redcell.npy", n_cells)
        cells |= {} if likely is None else {"red_probability": likely}
    found = plane_of(facts, signals, cells, accepted, footprints, [*notes, *on_rois])
    if "plane" in cells and (filled := _filled_frames(signals["fluorescence"], cells["plane"])):
        excluded = np.zeros(n_frames, bool) if found.excluded is None else found.excluded
        excluded[-filled:] = True
        note = f"The last {filled} frames are left out: not all planes have them."
        found = replace(found, excluded=excluded, notes=(*found.notes, note))
    return found


def _rois(
    file: Path, n_cells: int, field: tuple[int, int] | None
) -> tuple[dict[str, np.ndarray], Footprints | None, tuple[str, ...]]:
    """What is known of each ROI, where it lies, and notes; nothing if there is no such file."""
    if not file.is_file():
        return {}, None, ()
    rois = read_stat(file, n_cells)
    footprints, notes = footprints_of(rois, field, file)
    if shared := sum(is_all_shared(roi) for roi in rois):
        notes = (
            *notes,
            f"{shared} ROIs share every pixel with others: suite2p measures no fluorescence for "
            "them unless overlap is allowed.",
        )
    return columns_of(rois), footprints, tuple(notes)


def _signals(folder: Path, settings: OpenSettings) -> tuple[dict[Signal, LazyTraces], list[str]]:
    """F.npy and the other traces that fit it, and notes on those that do not and are not needed.

    Without events, F and Fneu suffice; without neuropil, F only suffices if the user says so.
    """
    if not (folder / "F.npy").is_file():
        raise InputError(f"{folder} has no F.npy: suite2p did not extract traces into it.")
    signals: dict[Signal, LazyTraces] = {}
    shape, notes = None, []
    needless = {
        "events": settings.traces != "events",
        "neuropil": settings.traces in ("raw", "events") or settings.neuropil == 0,
    }
    for signal, name in SIGNALS.items():
        path = folder / name
        if not path.is_file():
            continue
        try:
            shape = _check_shape(path, shape)
        except InputError as error:
            if needless.get(signal):
                notes.append(f"{name} is left out, so that {_WITHOUT[name]}: {error}")
                continue
            if signal == "neuropil":
                raise InputError(
                    f"{error} To use F.npy without subtracting neuropil, set `neuropil` to 0."
                ) from error
            raise
        signals[signal] = NpyTraces(path, cells_first=True)
    return signals, notes


def _check_shape(path: Path, needed: tuple[int, ...] | None) -> tuple[int, ...]:
    """Cells and frames of a file of traces; raises if they are not those needed."""
    header = mapped_header(path)
    if header.dtype.kind not in "biuf" or len(header.shape) != 2 or 0 in header.shape:
        raise InputError(
            f"{path} has an array of shape {header.shape} and type {header.dtype}: numbers, "
            "cells × frames, are needed."
        )
    for there, n, what in zip(
        header.shape, needed or header.shape, ("cells", "frames"), strict=True
    ):
        if there != n:
            raise mixed(path.parent, n, path.name, there, what)
    return header.shape


def _filled_frames(fluorescence: LazyTraces, plane: np.ndarray) -> int:
    """Number of frames at the end that some plane of `combined` lacks.

    Planes of a volume may differ by a frame; suite2p fills the shorter ones with zeros.
    """
    n_frames, n_cells = fluorescence.shape
    last = slice(max(n_frames - _LAST, 0), n_frames)
    zero = fluorescence.block(last, slice(0, n_cells)) == 0
    filled = 0
    for number in np.unique(plane):
        dark = zero[:, plane == number].all(axis=1)
        if not dark.all():
            filled = max(filled, int(np.argmin(dark[::-1])))
    return filled


MOVIE = "suite2p (data.bin)"
FILE = "data.bin"
STORED = np.dtype("<i2")


def sniff_movie(path: Path) -> bool:
    """Whether it is called as suite2p calls it, or is a folder of suite2p that has one."""
    try:
        if path.is_file():
            return path.name == FILE
        return any((folder / FILE).is_file() for folder in _planes(path))
    except OSError:
        return False


def load_movie(path: Path, like: Like) -> Movie:
    """Opens the registered movie of a plane, or of all planes of a folder that were extracted.

    It holds 16-bit integers, frame after frame, and nothing else; its size is in the options
    beside it. `data_raw.bin` is the movie before registration, and not opened.
    """
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
