"""Recognises a recording in the arrays of one file (.npz, .mat) by names and shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.arrays.layout import layout_of
from napari_xcebra.io.clocks.timestamps import ascends, scale_of
from napari_xcebra.io.extraction import Behavior, Extraction, Series, Signal, finite_image
from napari_xcebra.io.footprint_files import Regions
from napari_xcebra.io.hdf5.traces import turned
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
FEW_COLUMNS = 3
"""An array with no more columns is a position or a pose rather than traces."""


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


def roles_of(arrays: Mapping[str, np.ndarray], path: Path) -> Roles:
    """Find the role of each array in a file, or raise a sentence that lists them.

    Parameters
    ----------
    arrays : mapping of str to array
        Vectors have one axis.
    path : Path
        For the sentence.
    """
    signals = _signals(arrays) or _only_wide(arrays, path)
    left = [name for name in arrays if name not in signals.values()]

    def take(names: tuple[str, ...], ndims: tuple[int, ...]) -> str | None:
        found = [n for n in left if _is_one(n, names) and arrays[n].ndim in ndims]
        if found:
            left.remove(found[0])
        return found[0] if found else None

    clock = next((n for n in left if scale_of(short(n)) is not None and ascends(arrays[n])), None)
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


def is_per_cell(name: str) -> bool:
    """Whether an array of that name has an entry per cell."""
    return _is_one(name, _ACCEPTED) or _is_one(name, _IDS)


def image_name(name: str) -> str:
    """What an image is called in a recording."""
    usual = (image for image, names in _IMAGES.items() if _is_one(name, names))
    return next(usual, short(name))


def _signals(arrays: Mapping[str, np.ndarray]) -> dict[Signal, str]:
    found: dict[Signal, str] = {}
    for signal, names in _SIGNALS.items():
        for wanted in names:
            for name, array in arrays.items():
                if _is_one(name, (wanted,)) and array.ndim == 2 and signal not in found:
                    found[signal] = name
    # neuropil alone does not describe cells
    return found if set(found) != {"neuropil"} else {}


def _only_wide(arrays: Mapping[str, np.ndarray], path: Path) -> dict[Signal, str]:
    wide = [n for n, a in arrays.items() if a.ndim == 2 and not _is_one(n, _FOOTPRINTS)]
    if len(wide) > 1:
        wide = [name for name in wide if min(arrays[name].shape) > FEW_COLUMNS]
    if len(wide) != 1:
        has = ", ".join(f"{n} {' × '.join(map(str, a.shape))}".strip() for n, a in arrays.items())
        raise InputError(
            f"{path} has no array called traces; it has: {has[:500] or 'none'}. Give the "
            "array of traces that name."
        )
    return {"traces": wide[0]}


def _is_one(name: str, names: tuple[str, ...]) -> bool:
    name = short(name)
    return any(name == n if len(n) == 1 else name.lower() == n.lower() for n in names)


def short(name: str) -> str:
    """Name of a field without that of its struct."""
    return name.rpartition(".")[2]


FEW_WORDS = 50
"""Words per frame are categories if no more than this many differ."""

Oriented = Callable[[str, bool], Any]


def extraction_of(
    arrays: Mapping[str, np.ndarray],
    path: Path,
    settings: OpenSettings,
    beside: Sequence[Regions],
    oriented: Oriented,
) -> Extraction:
    """Find traces, clock, footprints and behaviour among arrays.

    Parameters
    ----------
    arrays : mapping of str to array
        In memory, or mapped.
    path : Path
        Of the file, for sentences.
    settings : OpenSettings
    beside : sequence of Regions
        What lies beside the file and may say how many cells there are.
    oriented : callable
        Gives the traces (frames, cells) of an array by its name and whether its cells come first.
    """
    arrays = {name: _plain(array) for name, array in arrays.items() if array.size}
    roles = roles_of({n: a for n, a in arrays.items() if a.dtype.kind in "biuf"}, path)
    known = _regions(arrays, roles, path)
    name = next(iter(roles.signals.values()))
    shape = arrays[name].shape
    layout = layout_of(
        arrays[name],
        settings,
        name=f"{path.stem} {name}",
        per_frame=_lengths(arrays, roles),
        fits=fits([*known, *beside]),
    )
    n_cells, n_frames = shape if layout.cells_first else shape[::-1]
    rest = _Rest(arrays, roles, int(n_frames), int(n_cells))
    # the orientation of the others follows from their shape
    alike = {s: n for s, n in roles.signals.items() if arrays[n].shape in (shape, shape[::-1])}
    signals = {
        s: oriented(n, layout.cells_first == (arrays[n].shape == shape)) for s, n in alike.items()
    }
    footprints, notes = _footprints(known, rest.n_cells)
    if footprints is not None and settings.swap_axes:
        footprints = turned(footprints)
    images = rest.images(footprints)
    left_out = [n for n in roles.signals.values() if n not in alike.values()]
    left_out += [n for n in rest.unused() if n not in images]
    if left_out:
        notes.append(
            f"{path.name} also has {', '.join(left_out)}, which fit neither {n_frames} frames nor "
            f"{n_cells} cells: left out."
        )
    return Extraction(
        signals,
        rate=rest.rate(),
        times=rest.times(),
        cell_ids=rest.ids(),
        accepted=rest.accepted(),
        cells=rest.cells(),
        footprints=footprints,
        images={image_name(name): image for name, image in images.items()},
        behavior=Behavior(tuple(rest.series()), name=path.name),
        notes=(layout.note(f"{name} of {path.name}", shape), *notes),
    )


def fits(regions: Sequence[Regions]) -> Callable[[int], str | None]:
    """Function that gives the name of the first regions that match a number of cells, or None."""
    return lambda n_cells: next((r.name for r in regions if r.fit(n_cells)), None)


def rate_of(times: np.ndarray) -> float | None:
    """Frames per second of an ascending clock, averaged because its steps may be rounded."""
    steps = np.diff(times)
    if not len(steps):
        return None
    typical = float(np.median(steps))
    even = bool(np.abs(steps - typical).max() < 0.5 * typical)
    mean = float(times[-1] - times[0]) / len(steps) if even else typical
    return float(f"{1 / mean:.6g}")


@dataclass(frozen=True)
class _Rest:
    """The other arrays, once frames and cells are known."""

    arrays: Mapping[str, np.ndarray]
    roles: Roles
    n_frames: int
    n_cells: int

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
        return self.arrays[name].astype(np.float64) * (scale_of(short(name)) or 1.0)

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
            values = self._of(name, self.n_frames)
            if values is not None:
                found.append(Series(short(name), values))
        for name, words in self._words(self.n_frames).items():
            labels, codes = np.unique(words, return_inverse=True)
            if len(labels) <= FEW_WORDS:
                found.append(Series(short(name), codes, kind="discrete", labels=tuple(labels)))
        return found

    def cells(self) -> dict[str, np.ndarray]:
        if self.n_cells == self.n_frames:
            return {}
        found = {short(n): self._of(n, self.n_cells) for n in self.roles.rest}
        named = {short(n): words for n, words in self._words(self.n_cells).items()}
        return {n: v for n, v in found.items() if v is not None and v.ndim == 1} | named

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
        used = {s.name for s in self.series()} | set(self.cells())
        rest = [n for n in self.roles.rest if short(n) not in used]
        found = {"clock": self.times(), "ids": self.ids(), "accepted": self.accepted()}
        named = {role: getattr(self.roles, role) for role in found}
        return rest + [n for role, n in named.items() if n is not None and found[role] is None]

    def _of(self, name: str | None, length: int) -> np.ndarray | None:
        """Array with that many rows, transposed if need be; or None."""
        if name is None or self.arrays[name].ndim not in (1, 2):
            return None
        array = self.arrays[name]
        if len(array) == length:
            return array
        return array.T if array.shape[-1] == length else None

    def _words(self, length: int) -> dict[str, np.ndarray]:
        return {
            n: a for n, a in self.arrays.items() if a.dtype.kind == "U" and a.shape == (length,)
        }


def _lengths(arrays: Mapping[str, np.ndarray], roles: Roles) -> set[int]:
    """Lengths of arrays that may have an entry per frame."""
    no = {*roles.signals.values(), roles.footprints}
    return {max(a.shape) for n, a in arrays.items()
            if n not in no and a.ndim in (1, 2) and not is_per_cell(n)}  # fmt: skip


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
    return array.reshape(()) if array.size == 1 else array
