"""A recording in the arrays of one file (.npz, .mat), told apart by name and shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napari_xcebra.footprints import Footprints
from napari_xcebra.io.arrays.layout import layout_of
from napari_xcebra.io.arrays.names import Roles, image_name, is_per_cell, roles_of, short
from napari_xcebra.io.clocks.timestamps import scale_of
from napari_xcebra.io.extraction import Behavior, Extraction, Series
from napari_xcebra.io.footprint_files import Regions
from napari_xcebra.io.hdf5.traces import turned
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import InputError

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
    # of one recording; which way round the others lie is seen from their shape
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
    """Gives the name of the first regions that are as many as the cells, or None."""
    return lambda n_cells: next((r.name for r in regions if r.fit(n_cells)), None)


def rate_of(times: np.ndarray) -> float | None:
    """Frames per second of an ascending clock; over all of it, since its steps may be rounded."""
    steps = np.diff(times)
    if not len(steps):
        return None
    typical = float(np.median(steps))
    even = bool(np.abs(steps - typical).max() < 0.5 * typical)
    mean = float(times[-1] - times[0]) / len(steps) if even else typical
    return float(f"{1 / mean:.6g}")


@dataclass(frozen=True)
class _Rest:
    """What there is beside the traces, once frames and cells are known."""

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
        with np.errstate(over="ignore"):  # what float32 cannot hold counts as not finite
            images = {
                name: self.arrays[name].astype(np.float32)
                for name in self.roles.rest
                if self.arrays[name].shape == field
            }
        finite = {name: np.isfinite(image) for name, image in images.items()}
        return {
            name: np.where(finite[name], image, image[finite[name]].min())
            for name, image in images.items()
            if finite[name].any()
        }

    def unused(self) -> list[str]:
        """Arrays that found no place."""
        used = {s.name for s in self.series()} | set(self.cells())
        rest = [n for n in self.roles.rest if short(n) not in used]
        found = {"clock": self.times(), "ids": self.ids(), "accepted": self.accepted()}
        named = {role: getattr(self.roles, role) for role in found}
        return rest + [n for role, n in named.items() if n is not None and found[role] is None]

    def _of(self, name: str | None, length: int) -> np.ndarray | None:
        """Array with one row each of that many, or None."""
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
    """Lengths of arrays that may have an entry a frame."""
    no = {*roles.signals.values(), roles.footprints}
    return {max(a.shape) for n, a in arrays.items()
            if n not in no and a.ndim in (1, 2) and not is_per_cell(n)}  # fmt: skip


def _regions(arrays: Mapping[str, np.ndarray], roles: Roles, path: Path) -> list[Regions]:
    """Footprints in the same file, if there are."""
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
