"""Recognises a recording in the arrays of one file (.npz, .mat, .h5) by names and shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import (
    ascends,
    find_clock,
    find_own_clocks,
    rate_of,
    scale_of,
)
from napari_xcebra.io.containers.hdf5 import has_signature, turned
from napari_xcebra.io.containers.hdf5 import read_arrays as read_hdf5
from napari_xcebra.io.containers.matlab import cell_of, is_mat, joined, read_mat
from napari_xcebra.io.containers.npy import read_or_map
from napari_xcebra.io.containers.zarr import read_arrays as read_zarr
from napari_xcebra.io.extraction import (
    FEW_COLUMNS,
    Behavior,
    Extraction,
    Series,
    Signal,
    columns_of,
    finite_image,
)
from napari_xcebra.io.footprint_files import Regions
from napari_xcebra.io.orientation import (
    Evidence,
    FilesBeside,
    is_per_cell,
    layout_of,
    of_arrays,
    of_axes,
)
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.footprints import Footprints

# In the order in which they are looked for; a single letter has to have that case.
_SIGNALS: dict[Signal, tuple[str, ...]] = {
    "fluorescence": ("F", "fluorescence", "fluo", "f_raw", "raw_f", "raw_fluorescence"),
    "traces": ("traces", "trace", "calcium", "neural", "neural_data", "activity", "X", "C_raw",
               "calcium_traces", "neural_activity", "signals", "responses"),
    "dff": ("dff", "f_dff", "df_f", "dfof", "df_over_f", "delta_f", "deltaf_f", "dff_traces"),
    "denoised": ("C", "denoised", "c_dec"),
    "events": ("S", "spks", "deconv", "deconvolved", "spikes", "events", "spike_rate"),
    "neuropil": ("fneu", "f_neu", "neuropil"),
}  # fmt: skip
_RATES = ("rate", "fs", "fr", "framerate", "frame_rate", "fps", "sampling_rate", "imaging_rate")
_FOOTPRINTS = ("A", "labels", "label_image", "masks", "footprints", "rois", "roi_masks")
_ACCEPTED = ("accepted", "is_accepted", "iscell", "is_cell")
_IDS = ("ids", "cell_ids", "cell_id", "roi_ids", "roi_id", "unit_id", "unit_ids")
_IMAGES = {
    "mean": ("mean", "meanimg", "mean_image", "mean_img", "average", "avg"),
    "max": ("max", "max_proj", "maxproj", "max_image", "max_projection"),
    "correlation": ("cn", "corr", "correlation", "vcorr", "correlation_image"),
}
MOST_LISTED = 12
"""Arrays of a file that a sentence names."""


@dataclass(frozen=True)
class Roles:
    """The role of each array, by its name in the file.

    Parameters
    ----------
    signals : mapping of signal to name
        The first is the one that others are compared with.
    rate, clock, footprints, accepted, ids : str or None
    rest : tuple of str
        All other arrays.
    """

    signals: Mapping[Signal, str]
    rate: str | None
    clock: str | None
    footprints: str | None
    accepted: str | None
    ids: str | None
    rest: tuple[str, ...]


def _roles_of(arrays: Mapping[str, Any], path: Path, chosen: str = "") -> Roles:
    """Find the role of each array in a file, or raise a sentence that lists them.

    `chosen` is the array of the traces; empty to find it.
    """
    signals = _chosen(arrays, chosen) if chosen else _signals(arrays) or _only_wide(arrays, path)
    left = [name for name in arrays if name not in signals.values()]

    def take(names: tuple[str, ...], ndims: tuple[int, ...]) -> str | None:
        found = [n for n in left if _is_one(n, names) and arrays[n].ndim in ndims]
        if found:
            left.remove(found[0])
        return found[0] if found else None

    traces = next(iter(signals.values()))
    clock = next((n for n in left if _scale_in(n, traces) is not None and ascends(arrays[n])
                  and len(arrays[n]) in arrays[traces].shape), None)  # fmt: skip
    if clock:
        left.remove(clock)
    return Roles(
        signals,
        rate=take(_RATES, (0,)),
        clock=clock,
        footprints=take(_FOOTPRINTS, (2, 3)),
        accepted=take(_ACCEPTED, (1, 2)),
        ids=take(_IDS, (1,)),
        rest=tuple(left),
    )


def _scale_in(name: str, traces: str) -> float | None:
    """Seconds per unit of an array named like a clock, or like one of the traces; or None."""
    return scale_of(name[len(traces) + 1 :] if name.startswith(f"{traces}_") else short(name))


def _image_name(name: str) -> str:
    """What an image is called in a recording."""
    usual = (image for image, names in _IMAGES.items() if _is_one(name, names))
    return next(usual, short(name))


def _signals(arrays: Mapping[str, Any]) -> dict[Signal, str]:
    found: dict[Signal, str] = {}
    arrays = _like_traces(arrays)
    for signal, names in _SIGNALS.items():
        for wanted in names:
            for name in arrays:
                if _is_one(name, (wanted,)) and signal not in found:
                    found[signal] = name
    # neuropil alone does not describe cells
    return found if set(found) != {"neuropil"} else {}


def _like_traces(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays that may be traces: not of behaviour, and not narrow where others are wide."""
    kept = {n: a for n, a in arrays.items() if a.ndim == 2 and "behav" not in n.lower()}
    wide = {name: array for name, array in kept.items() if _is_wide(array)}
    return wide or kept


def _chosen(arrays: Mapping[str, Any], name: str) -> dict[Signal, str]:
    """The array that the user chose, as the signal that its name says."""
    known = (s for s, names in _SIGNALS.items() if s != "neuropil" and _is_one(name, names))
    return {next(known, "traces"): name}


def _only_wide(arrays: Mapping[str, Any], path: Path) -> dict[Signal, str]:
    wide = [n for n, a in arrays.items() if a.ndim == 2 and not _is_one(n, _FOOTPRINTS)]
    if len(wide) > 1:
        wide = [name for name in wide if min(arrays[name].shape) > FEW_COLUMNS]
    if not wide:
        raise InputError(
            f"{path} has no array of traces, frames × cells; it has: {listed(arrays)}."
        )
    if len(wide) > 1:
        raise InputError(
            f"{path} has several arrays that may be the traces: set `array` to the name of one, "
            f"such as {wide[0]}. It has: {listed(arrays)}."
        )
    return {"traces": wide[0]}


def _array_named(name: str, arrays: Mapping[str, Any], path: Path) -> str:
    """Full name of the array that the user chose, who may leave out what it lies in.

    Raises
    ------
    InputError
        If there is none of that name, several, or one without frames and cells.
    """
    asked = name.strip().strip("/").replace("/", ".")
    same = [n for n in arrays if n.replace("/", ".") == asked]
    found = same or [n for n in arrays if short(n) == asked]
    if len(found) != 1:
        has = "several arrays" if found else "no array"
        raise InputError(f"{path} has {has} called {name} (`array`); it has: {listed(arrays)}.")
    array = arrays[found[0]]
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{found[0]} of {path} has {_size_of(array)} values: numbers with two axes, frames and "
            "cells, are needed (`array`)."
        )
    return found[0]


def listed(arrays: Mapping[str, Any]) -> str:
    """Names and sizes of arrays, those like traces first; of the elements of a cell only some."""
    cells: dict[str, list[str]] = {}
    for name in arrays:
        cells.setdefault(cell_of(name), []).append(name)
    order = sorted(cells, key=lambda cell: not _is_wide(arrays[cells[cell][0]]))
    told = [_told(cells[cell], arrays) for cell in order[:MOST_LISTED]]
    more = len(order) - len(told)
    return ", ".join([*told, *([f"and {more} more"] if more else [])]) or "no arrays of numbers"


def _size_of(array: Any) -> str:
    """Size of an array, such as "136 × 1137"."""
    return " × ".join(map(str, array.shape)) or "1"


def _told(names: list[str], arrays: Mapping[str, Any]) -> str:
    first = f"{names[0]} {_size_of(arrays[names[0]])}"
    return f"{first} to {names[-1]} {_size_of(arrays[names[-1]])}" if len(names) > 1 else first


def _is_wide(array: Any) -> bool:
    """Whether an array may be traces: two axes, and more than a few columns."""
    return array.ndim == 2 and min(array.shape) > FEW_COLUMNS


def _is_one(name: str, names: tuple[str, ...]) -> bool:
    name = short(name)
    plain = re.sub(r"[\s_-]", "", name).lower()
    return any(name == n if len(n) == 1 else plain == n.replace("_", "").lower() for n in names)


def short(name: str) -> str:
    """Name of a field without that of its struct, or of a dataset without its groups."""
    return re.split(r"[./]", name)[-1]


FEW_WORDS = 50
"""Words per frame are categories if no more than this many differ."""

Oriented = Callable[[str, bool], Any]


def extraction_of(
    arrays: Mapping[str, Any],
    path: Path,
    settings: OpenSettings,
    beside: FilesBeside,
    oriented: Oriented,
    *,
    elements: Mapping[str, np.ndarray] | None = None,
    starts: Mapping[str, np.ndarray] | None = None,
    axes: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Extraction:
    """Find traces, clock, footprints and behaviour among arrays.

    Parameters
    ----------
    arrays : mapping of str to array
        In memory, mapped, or traces on disk.
    path : Path
        Of the file, for sentences.
    settings : OpenSettings
    beside : FilesBeside
        What else may say how many cells and frames there are.
    oriented : callable
        Gives the traces (frames, cells) of an array by its name and whether its cells come first.
    elements : mapping of str to array, optional
        Further arrays, used only if `settings` names them.
    starts : mapping of str to (trials,) int64, optional
        Arrays that were put together of trials, and where each begins.
    axes : mapping of str to sequence of str, optional
        What the file calls the axes of its arrays.
    """
    starts = starts or {}
    arrays = {name: _plain(array) for name, array in arrays.items() if math.prod(array.shape)}
    chosen = ""
    if settings.array:
        every = {**arrays, **(elements or {})}
        chosen = _array_named(settings.array, every, path)
        arrays[chosen] = every[chosen]
    numbers = {n: a for n, a in arrays.items() if a.dtype.kind in "biuf"}
    roles = _roles_of(numbers, path, chosen)
    known = _regions(arrays, roles, path)
    name = next(iter(roles.signals.values()))
    shape = arrays[name].shape
    rate = settings.rate or (None if roles.rate is None else float(arrays[roles.rate]))
    no = {*roles.signals.values(), roles.footprints}
    others = {short(n): a for n, a in arrays.items() if n not in no and not _are_names(a)}
    layout = layout_of(
        arrays[name],
        settings,
        [
            *of_arrays(shape, others),
            *_of_program(roles, shape, arrays),
            *of_axes(axes.get(name, ())),
            *beside.evidence(shape, rate, known),
        ],
        name=f"{name} of {path.name}",
    )
    n_cells, n_frames = shape if layout.cells_first else shape[::-1]
    rest = _Rest(arrays, roles, int(n_frames), int(n_cells), frozenset(starts))
    # the orientation of the others follows from their shape
    signals = {
        signal: oriented(each, layout.cells_first == (arrays[each].shape == shape))
        for signal, each in roles.signals.items()
        if arrays[each].shape in (shape, shape[::-1])
    }
    footprints, notes = _footprints(known, rest.n_cells)
    if footprints is not None and settings.swap_axes:
        footprints = turned(footprints)
    images = rest.images(footprints)
    unused = [each for signal, each in roles.signals.items() if signal not in signals]
    unused += [each for each in rest.unused() if each not in images]
    return Extraction(
        signals,
        rate=rest.rate(),
        times=rest.times(),
        cell_ids=rest.ids(),
        accepted=rest.accepted(),
        cells=rest.cells(),
        footprints=footprints,
        images={_image_name(name): image for name, image in images.items()},
        behavior=Behavior(tuple(rest.series()), name=path.name),
        starts=_trial_starts(starts.get(name), int(n_frames)),
        notes=(
            layout.note(f"{name} of {path.name}", shape),
            *notes,
            *rest.notes_on(unused, path.name),
        ),
    )


def names_of_arrays(path: Path) -> list[str]:
    """Names of the arrays of a file that may be traces, for the setting `array`."""
    arrays: Mapping[str, Any]
    if path.is_dir():
        arrays = read_zarr(path)
    elif is_mat(path):
        found = joined(read_mat(path))
        arrays = {**found.arrays, **found.elements}
    else:
        arrays = read_hdf5(path) if has_signature(path) else read_or_map(path)
    return [name for name, array in arrays.items() if _is_wide(array)]


def _trial_starts(starts: np.ndarray | None, n_frames: int) -> np.ndarray | None:
    """First frames of the trials that traces were put together of; None if of cells."""
    # a vector for each cell has its length as the step, which leads beyond the frames
    return starts if starts is not None and starts[-1] < n_frames and len(starts) > 1 else None


def _of_program(
    roles: Roles, shape: tuple[int, ...], arrays: Mapping[str, np.ndarray]
) -> list[Evidence]:
    """The names that suite2p and CaImAn give to traces, which both write cells × frames."""
    names = {short(n) for n in roles.signals.values() if arrays[n].shape == shape}
    for program, usual in (("suite2p", {"F", "Fneu", "spks"}), ("CaImAn", {"C", "S", "F_dff"})):
        if len(names & usual) > 1:
            called = " and ".join(sorted(names & usual))
            return [Evidence(True, 2.0, f"{called} are names of {program}", False)]
    return []


@dataclass(frozen=True)
class _Rest:
    """The other arrays, once frames and cells are known."""

    arrays: Mapping[str, np.ndarray]
    roles: Roles
    n_frames: int
    n_cells: int
    joined: frozenset[str] = frozenset()

    def rate(self) -> float | None:
        if self.roles.rate is not None:
            rate = float(self.arrays[self.roles.rate])
            return rate if 0 < rate < np.inf else None
        times = self.times()
        return None if times is None else rate_of(times)

    def times(self) -> np.ndarray | None:
        name = self.roles.clock
        if name is None or len(self.arrays[name]) != self.n_frames:
            return None
        traces = next(iter(self.roles.signals.values()))
        return self.arrays[name].astype(np.float64) * (_scale_in(name, traces) or 1.0)

    def ids(self) -> np.ndarray | None:
        ids = self._of(self.roles.ids, self.n_cells)
        if ids is None or len(np.unique(ids)) != self.n_cells or (ids != np.round(ids)).any():
            return None
        return ids.astype(np.int64)

    def accepted(self) -> np.ndarray | None:
        accepted = self._of(self.roles.accepted, self.n_cells)
        if accepted is None:
            return None
        # suite2p has a probability beside the decision
        return (accepted if accepted.ndim == 1 else accepted[:, 0]) > 0

    def series(self) -> list[Series]:
        found = []
        for name in self.roles.rest:
            if self.is_like_traces(name) or self._is_of_cells(name):
                continue
            values = self._of(name, self.n_frames)
            if values is not None and not _counts(values) and not _is_index(name, values):
                found.append(Series(short(name), values))
        for name, words in self._words(self.n_frames).items():
            labels, codes = np.unique(words, return_inverse=True)
            if len(labels) <= FEW_WORDS and not self._is_of_cells(name):
                found.append(Series(short(name), codes, kind="discrete", labels=tuple(labels)))
        return [*found, *self._timed()]

    def _timed(self) -> list[Series]:
        """Arrays with a clock of their own, which counts from the same moment as the frames'."""
        frames, sizes = self.times(), {self.n_frames, self.n_cells}
        arrays = {n: self.arrays[n] for n in self.roles.rest if self.arrays[n].ndim in (1, 2)}
        arrays = {n: a for n, a in arrays.items() if not sizes & {*a.shape}}
        if frames is None:
            return []
        own, found = find_own_clocks(arrays), []
        used = {clock.name for clock in own.values()}
        for name, array in arrays.items():
            beside = {short(n): a for n, a in arrays.items() if n != name and len(a) in array.shape}
            clock = own.get(name) or find_clock(beside, counters=False)[0]
            if name in used or clock is None or _scale_in(name, "") is not None:
                continue
            values = array if len(array) == len(clock.seconds) else array.T
            narrow = values.reshape(len(values), -1).shape[1] <= FEW_COLUMNS
            known = clock.seconds[np.isfinite(clock.seconds)]
            if narrow and known.min() < frames[-1] and known.max() > frames[0]:
                found.append(Series(short(name), values, clock.seconds, times_in=clock.times_in))
        return found

    def cells(self) -> dict[str, np.ndarray]:
        """What is known of each cell, (cells,) each; two columns of coordinates are two."""
        found: dict[str, np.ndarray] = {}
        for name in (*self.roles.rest, *self._words(self.n_cells)):
            values = self._of(name, self.n_cells) if self._is_of_cells(name) else None
            if values is not None and not self.is_like_traces(name):
                found |= columns_of(short(name), values)
        return found

    def _is_of_cells(self, name: str) -> bool:
        """Whether it has an entry per cell; its name tells if there are as many frames."""
        shape = self.arrays[name].shape
        if self.n_cells not in shape:
            return False
        return is_per_cell(short(name)) or self.n_frames not in shape

    def images(self, footprints: Footprints | None) -> dict[str, np.ndarray]:
        """Arrays of the size of the field of view."""
        field = footprints.shape[-2:] if footprints is not None else None
        images = {
            name: finite_image(self.arrays[name])
            for name in self.roles.rest
            if self.arrays[name].shape == field
        }
        return {name: image for name, image in images.items() if image is not None}

    def unused(self) -> list[str]:
        """Arrays that were not used."""
        series = self.series()
        used = {s.name for s in series} | set(self.cells())
        rest = [n for n in self.roles.rest if not {short(n), f"{short(n)}_1"} & used]
        timed = {len(s.times) for s in series if s.times is not None}
        rest = [n for n in rest if not {*self.arrays[n].shape} & timed]  # their clocks
        found = {"clock": self.times(), "ids": self.ids(), "accepted": self.accepted()}
        named = {role: getattr(self.roles, role) for role in found}
        return rest + [n for role, n in named.items() if n is not None and found[role] is None]

    def notes_on(self, unused: Sequence[str], file: str) -> list[str]:
        """Sentences on arrays that were not used: some may be the traces just as well."""
        versions = [name for name in unused if self.is_like_traces(name)]
        others = [name for name in unused if name not in versions]
        notes = []
        if versions:
            have = "has" if len(versions) == 1 else "have"
            notes.append(
                f"{', '.join(versions)} of {file} {have} the size of the traces as well: set "
                "`array` to use one instead."
            )
        if others:
            are = "is" if len(others) == 1 else "are"
            notes.append(
                f"{file} also has {', '.join(others)}, which {are} neither a value, or a few, for "
                f"each of {self.n_frames} frames nor of {self.n_cells} cells: left out."
            )
        return notes

    def _of(self, name: str | None, length: int) -> np.ndarray | None:
        """Array with that many rows, transposed if need be; or None."""
        array = None if name is None else self.arrays[name]
        if not isinstance(array, np.ndarray) or array.ndim not in (1, 2):
            return None
        if len(array) == length:
            return array
        if name in self.joined and array.size == length:
            return array.reshape(-1)  # a line for each trial
        return array.T if array.shape[-1] == length else None

    def is_like_traces(self, name: str) -> bool:
        """Whether it is another version of the traces rather than behaviour."""
        return sorted(self.arrays[name].shape) == sorted((self.n_frames, self.n_cells)) and (
            min(self.n_frames, self.n_cells) > FEW_COLUMNS
        )

    def _words(self, length: int) -> dict[str, np.ndarray]:
        return {
            n: a for n, a in self.arrays.items() if a.dtype.kind == "U" and a.shape == (length,)
        }


def _counts(values: np.ndarray) -> bool:
    """Whether every column only numbers the rows."""
    whole = values.dtype.kind in "iu" and len(values) > 2
    return whole and bool((np.diff(values.astype(np.int64), axis=0) == 1).all())


def _is_index(name: str, values: np.ndarray) -> bool:
    """Whether it is the index of a table: it rises in even steps."""
    if short(name).lower() not in ("index", "idx") or not ascends(values) or len(values) < 2:
        return False
    return bool(np.ptp(np.diff(values)) <= 1e-3 * np.median(np.diff(values)))


def _are_names(array: np.ndarray) -> bool:
    """Whether they are words that all differ, which name cells rather than frames."""
    return array.dtype.kind == "U" and len(np.unique(array)) == array.size


def _regions(arrays: Mapping[str, np.ndarray], roles: Roles, path: Path) -> list[Regions]:
    """Footprints in the same file, if any."""
    name = roles.footprints
    return [] if name is None else [Regions(f"{name} of {path.name}", arrays[name])]


def _footprints(known: Sequence[Regions], n_cells: int) -> tuple[Footprints | None, list[str]]:
    try:
        return next((regions.of_cells(n_cells) for regions in known), None), []
    except InputError as error:
        return None, [f"No footprints were used: {error}"]


def _plain(array: np.ndarray) -> np.ndarray:
    """A single number without axes."""
    return array.reshape(()) if math.prod(array.shape) == 1 else array
