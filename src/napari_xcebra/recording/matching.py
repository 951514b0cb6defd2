"""Holds which cells of several sessions are the same, and proposes it where nobody said so.

Two days are aligned by their images or by where their cells lie, whichever brings more cells
together; a small affine change is then fitted to the pairs. Cells are paired where they overlap and
lie close, each pair with a probability of being right that was calibrated on simulated days
(benchmarks/days.py). No cell is paired that is more likely to be another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.recording.recording import Recording
from napari_xcebra.spreadsheets import write_csv

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pandas as pd

MISSING = -1
"""In place of a cell that was not found in a session."""


@dataclass(frozen=True)
class Matching:
    """Cells matched across sessions: a row per cell, a column per session.

    Parameters
    ----------
    sessions : tuple of str
    ids : (cells, sessions) int64
        Id of the cell in each session, −1 where it was not found.
    positions : bool
        Whether `ids` count the ROIs of a session from 0 on, as programs that match cells do,
        instead of being the ids of the recording.
    source : str
        Where it came from.
    """

    sessions: tuple[str, ...]
    ids: np.ndarray
    positions: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        where = self.source or "The matching of cells"
        if self.ids.ndim != 2 or self.ids.shape[1] != len(self.sessions):
            raise InputError(
                f"{where} has shape {self.ids.shape}: a column for each of "
                f"{len(self.sessions)} sessions is needed."
            )
        for name, column in zip(self.sessions, self.ids.T, strict=True):
            cells, counts = np.unique(column[column != MISSING], return_counts=True)
            if (counts > 1).any():
                raise InputError(
                    f"{where} has cell {cells[counts > 1][0]} of session {name!r} in "
                    f"{counts.max()} rows: a cell can be matched only once."
                )

    def of(self, recordings: Mapping[str, Recording]) -> Matching:
        """The same for these sessions, by the ids of their recordings.

        Sessions are found by name; if none of the names is known, they are in the order given.
        """
        columns = self._columns(tuple(recordings))
        ids = self.ids[:, columns].copy()
        for column, (name, recording) in enumerate(recordings.items()):
            known = np.asarray(recording.cell_ids)
            found = ids[:, column] != MISSING
            cells = ids[found, column]
            wrong = cells >= len(known) if self.positions else ~np.isin(cells, known)
            if wrong.any():
                raise InputError(
                    f"{self.source or 'The matching'} names cell {cells[wrong][0]} of session "
                    f"{name!r}, which has {len(known)} ROIs but no such cell: does the file belong "
                    "to this session?"
                )
            if self.positions:
                ids[found, column] = known[cells]
        return Matching(tuple(recordings), ids, False, self.source)

    def _columns(self, sessions: Sequence[str]) -> list[int]:
        if set(sessions) <= set(self.sessions):
            return [self.sessions.index(name) for name in sessions]
        if len(sessions) == len(self.sessions) and not set(sessions) & set(self.sessions):
            return list(range(len(sessions)))
        raise InputError(
            f"{self.source or 'The matching'} is for the sessions {', '.join(self.sessions)}, but "
            f"these are {', '.join(sessions)}: the same names are needed, or as many sessions in "
            "the same order."
        )

    def between(self, one: str, other: str) -> dict[int, int]:
        """Ids of one session to ids of another, of the cells found in both."""
        pairs = self.ids[:, [self.sessions.index(one), self.sessions.index(other)]]
        return {int(a): int(b) for a, b in pairs if MISSING not in (a, b)}

    def repeated(self) -> Matching:
        """Only cells that were found in two sessions or more."""
        return replace(self, ids=self.ids[(self.ids != MISSING).sum(1) >= 2])


WEIGHTS = (2.97, 0.8, -3.37, 6.37)
"""Log odds that a pair is the same cell: a constant, per overlap (intersection over union), per
distance of the centres in radii, and per overlap beyond that of the next best cell."""
_LEAST = 0.5
"""Probability from which on a pair is proposed."""
_FEWEST = 8
"""Pairs from which on an affine change is fitted."""
_BY_CHANCE = 3.0
"""Times as many close pairs as at wrong places that two days must have to be of one field."""


_COLUMNS = (
    "session", "cell", "other_session", "other_cell", "confidence", "overlap", "distance",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ProposedMatching:
    """Cells that are likely to be the same, and how likely.

    Parameters
    ----------
    matching : Matching
        By ids of the recordings.
    pairs : DataFrame
        A row a pair: session, cell, other_session, other_cell, confidence (probability that it is
        right), overlap (intersection over union), distance (pixels, after alignment).
    notes : tuple of str
        How the sessions were aligned, and which could not be, in a sentence each.
    """

    matching: Matching
    pairs: pd.DataFrame
    notes: tuple[str, ...] = ()

    def to_csv(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the table that `read_matching` reads, and one of the confidence of every pair."""
        from pathlib import Path

        import pandas as pd

        ids = pd.DataFrame(self.matching.ids, columns=list(self.matching.sessions))
        ids = ids.astype("Int64").mask(ids == MISSING)
        path = Path(path)
        confidence = path.with_name(f"{path.stem}-confidence.csv")
        for table, place in ((ids, path), (self.pairs, confidence)):
            with whole(place) as file:
                write_csv(table, file)
        return [path, confidence]


def propose_matching(recordings: Mapping[str, Recording]) -> ProposedMatching:
    """Which accepted cells of several sessions are the same, by their footprints and images.

    Parameters
    ----------
    recordings : mapping of str to Recording
        At least two sessions of one field of view, in their order.
    """
    import pandas as pd

    fields = {name: _PlacedCells.of(recording, name) for name, recording in recordings.items()}
    if len(fields) < 2:
        raise InputError("Cells are matched between two sessions or more: only one is given.")
    sizes = {name: each.pixel_size for name, each in recordings.items() if each.pixel_size}
    if sizes and max(sizes.values()) > 1.05 * min(sizes.values()):
        told = ", ".join(f"{name}: {size:.3g} µm" for name, size in sizes.items())
        raise InputError(f"The sessions have pixels of other sizes ({told}): match them elsewhere.")
    names, rows, notes = list(fields), list[dict[str, object]](), list[str]()
    track = {name: np.full(len(each.ids), MISSING) for name, each in fields.items()}
    track[names[0]] = np.arange(len(fields[names[0]].ids))
    tracks = len(fields[names[0]].ids)
    for number, name in enumerate(names[1:], 1):
        for before in reversed(names[:number]):  # a cell may be back after a day without it
            pairs, note = _paired(fields[before], fields[name])
            notes.append(f"{before} and {name}: {note}")
            taken = set(track[name][track[name] != MISSING].tolist())
            for pair in pairs:
                whose = track[before][pair.first]
                if track[name][pair.second] == MISSING and whose not in taken:
                    track[name][pair.second] = whose
                    taken.add(whose)
                    rows.append({
                        "session": before, "cell": int(fields[before].ids[pair.first]),
                        "other_session": name, "other_cell": int(fields[name].ids[pair.second]),
                        "confidence": round(pair.confidence, 4),
                        "overlap": round(pair.overlap, 4), "distance": round(pair.distance, 3),
                    })  # fmt: skip
        new = track[name] == MISSING
        track[name][new] = tracks + np.arange(int(new.sum()))
        tracks += int(new.sum())
    ids = np.full((tracks, len(names)), MISSING, np.int64)
    for column, name in enumerate(names):
        ids[track[name], column] = fields[name].ids
    matching = Matching(tuple(names), ids, False, "The proposed matching").repeated()
    return ProposedMatching(matching, pd.DataFrame(rows, columns=list(_COLUMNS)), tuple(notes))


@dataclass(frozen=True)
class _Pair:
    first: int
    second: int
    confidence: float
    overlap: float
    distance: float


@dataclass(frozen=True, eq=False)
class _PlacedCells:
    """Where the accepted cells of a session lie.

    Parameters
    ----------
    ids : (cells,) int64
    cell, plane : (pixels,) int
    place : (pixels, 2) float
        Row and column.
    image : (height, width) float, or None
        The mean image; planes side by side.
    """

    ids: np.ndarray
    cell: np.ndarray
    plane: np.ndarray
    place: np.ndarray
    image: np.ndarray | None
    sizes: np.ndarray = field(init=False)
    centers: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        sizes = np.bincount(self.cell, minlength=len(self.ids))
        sums = [np.bincount(self.cell, x, len(self.ids)) for x in (*self.place.T, self.plane)]
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "centers", np.stack(sums, 1) / np.maximum(sizes, 1)[:, None])

    @classmethod
    def of(cls, recording: Recording, name: str) -> _PlacedCells:
        footprints = recording.footprints
        if footprints is None:
            raise InputError(f"{name} has no footprints: its cells cannot be matched by place.")
        used = np.flatnonzero(np.asarray(recording.accepted))
        number = np.full(recording.n_cells, MISSING)
        number[used] = np.arange(len(used))
        kept = number[footprints.cell] != MISSING
        *planes, row, column = (np.asarray(each)[kept] for each in footprints.pixels)
        cell = number[np.asarray(footprints.cell)[kept]]
        has = np.bincount(cell, minlength=len(used)) > 0
        cell = (np.cumsum(has) - 1)[cell]
        image = recording.images.get("mean")
        flat = None if image is None or np.ndim(image) != 2 else np.asarray(image, float)
        plane = planes[0] if planes else np.zeros(len(row), int)
        ids = np.asarray(recording.cell_ids)[used][has]
        return cls(ids, cell, plane, np.stack([row, column], 1).astype(float), flat)

    @property
    def radius(self) -> float:
        """Of a disc as large as the median cell, in pixels."""
        return float(np.sqrt(np.median(self.sizes) / np.pi)) if len(self.sizes) else 1.0

    def moved(self, affine: np.ndarray) -> _PlacedCells:
        """Itself after an affine change of rows and columns: (3, 2), with the shift last."""
        return replace(self, place=self.place @ affine[:2] + affine[2])


def _paired(one: _PlacedCells, other: _PlacedCells) -> tuple[list[_Pair], str]:
    """Cells of two sessions that are likely the same, and how they were aligned."""
    if not len(one.ids) or not len(other.ids):
        return [], "one of them has no accepted cells."
    affine = _alignment(one, other)
    pairs = _likely(one, other.moved(affine))
    far = 6 * one.radius * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    wrong = [_likely(one, other.moved(_shifted_by(affine, step))) for step in far]
    # in a crowded field cells meet at any place, but their centres do not
    close, *elsewhere = [sum(pair.distance <= 0.5 * one.radius for pair in each)
                         for each in (pairs, *wrong)]  # fmt: skip
    if close < max(3.0, _BY_CHANCE * float(np.mean(elsewhere))):
        return [], (
            f"no alignment was found ({close} cells would match, {np.mean(elsewhere):.0f} at wrong "
            "places): none is matched."
        )
    moved = np.hypot(*(other.moved(affine).centers - other.centers)[:, :2].mean(0))
    return pairs, (
        f"moved by {moved:.1f} pixels; {len(pairs)} of {len(one.ids)} and {len(other.ids)} cells "
        f"matched, about {sum(1 - pair.confidence for pair in pairs):.0f} of them wrongly."
    )


def _alignment(one: _PlacedCells, other: _PlacedCells) -> np.ndarray:
    """Affine change of the other session that brings most cells together."""
    steps = [np.zeros(2), *_image_shifts(one, other)]
    identity = np.vstack([np.eye(2), np.zeros(2)])
    tried = [_shifted_by(identity, step) for step in steps]
    near = [_mutual(one, other.moved(each)) for each in tried]
    affine = tried[int(np.argmax([len(each[0]) for each in near]))]
    for _ in range(3):
        first, second = _mutual(one, other.moved(affine))
        if len(first) < _FEWEST:
            break
        there, here = other.centers[second, :2], one.centers[first, :2]
        design = np.column_stack([there, np.ones(len(there))])
        for _ in range(3):  # pairs that do not fit are other cells
            fitted = np.linalg.lstsq(design, here, rcond=None)[0]
            off = np.hypot(*(design @ fitted - here).T)
            good = off <= 2.5 * np.median(off) + 1e-9
            design, here = design[good], here[good]
        if np.abs(fitted[:2] - np.eye(2)).max() > 0.15:  # no day stretches a brain that much
            break
        affine = fitted
    return affine


def _image_shifts(one: _PlacedCells, other: _PlacedCells) -> list[np.ndarray]:
    """Shifts of rows and columns that images suggest: the mean images, and where cells lie."""
    from skimage.registration import phase_cross_correlation

    size = np.ceil(np.maximum(one.place.max(0), other.place.max(0)) + 1).astype(int)

    def drawn(each: _PlacedCells) -> np.ndarray:
        image = np.zeros(size)
        inside = each.centers[:, :2].round().astype(int)
        np.add.at(image, tuple(inside.T), 1.0)
        return gaussian_filter(image, 0.6 * one.radius)

    pictures = [(drawn(one), drawn(other))]
    if one.image is not None and other.image is not None and one.image.shape == other.image.shape:
        wide = 3 * one.radius  # without the light that falls off towards the edges
        pictures += [tuple(gaussian_filter(i, 0.7) - gaussian_filter(i, wide)
                           for i in (one.image, other.image))]  # fmt: skip
    return [
        np.asarray(phase_cross_correlation(a, b, upsample_factor=4, normalization=how)[0])
        for a, b in pictures
        for how in ("phase", None)
    ]


def _shifted_by(affine: np.ndarray, step: np.ndarray) -> np.ndarray:
    return np.vstack([affine[:2], affine[2] + step])


def _mutual(one: _PlacedCells, other: _PlacedCells) -> tuple[np.ndarray, np.ndarray]:
    """Cells that are each other's nearest, within a radius."""
    # a plane is further away than any cell
    scale = np.array([1.0, 1.0, 1e6])
    near, second = cKDTree(other.centers * scale).query(one.centers * scale)
    _, first = cKDTree(one.centers * scale).query(other.centers * scale)
    both = (first[second] == np.arange(len(second))) & (near <= one.radius)
    return np.flatnonzero(both), second[both]


def pair_features(
    one: _PlacedCells, other: _PlacedCells
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells that overlap, and what tells whether they are the same.

    Returns
    -------
    first, second : (pairs,) int64
    features : (pairs, 4) float64
        As `WEIGHTS` weighs them: 1, overlap, distance in radii, overlap beyond the next best.
    """
    low = np.minimum(one.place.min(0), other.place.min(0)).round() - 1
    height, width = (np.maximum(one.place.max(0), other.place.max(0)) - low + 3).astype(int)

    def masks(each: _PlacedCells) -> sparse.csr_array:
        row, column = (each.place - low).round().astype(np.int64).T
        at = (each.plane.astype(np.int64) * height + row) * width + column
        shape = (len(each.ids), int(max(one.plane.max(), other.plane.max()) + 1) * height * width)
        made = sparse.csr_array((np.ones(len(at), np.float32), (each.cell, at)), shape=shape)
        made.data[:] = 1
        return made

    shared = sparse.coo_array(masks(one) @ masks(other).T)
    first, second = shared.coords
    overlap = shared.data / (one.sizes[first] + other.sizes[second] - shared.data)
    away = np.hypot(*(one.centers[first] - other.centers[second])[:, :2].T)
    beyond = overlap - np.maximum(_next_best(first, overlap), _next_best(second, overlap))
    features = np.stack([np.ones(len(first)), overlap, away / one.radius, beyond], 1)
    return first, second, features


def _next_best(cell: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """For every pair, the largest overlap of its cell in another pair; 0 without one."""
    order = np.lexsort((-overlap, cell))
    best, after = np.zeros(cell.max(initial=0) + 1), np.zeros(cell.max(initial=0) + 1)
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    best[cell[order][starts]] = overlap[order][starts]
    seconds = starts[np.diff(starts, append=len(order)) > 1] + 1
    after[cell[order][seconds]] = overlap[order][seconds]
    return np.where(overlap >= best[cell], after[cell], best[cell])


def _likely(one: _PlacedCells, other: _PlacedCells) -> list[_Pair]:
    """Pairs that are more likely the same cell than not, each cell in one; the surest first."""
    first, second, features = pair_features(one, other)
    odds = features @ np.array(WEIGHTS)
    kept = odds > np.log(_LEAST / (1 - _LEAST))
    first, second, features, odds = first[kept], second[kept], features[kept], odds[kept]
    if not len(odds):
        return []
    n, m = len(one.ids), len(other.ids)
    graph = sparse.coo_array((np.ones(len(first)), (first, n + second)), shape=(n + m, n + m))
    _, group = connected_components(graph, directed=False)
    found: list[_Pair] = []
    for members in np.split(*_by_group(group[first])):
        rows, row = np.unique(first[members], return_inverse=True)
        columns, column = np.unique(second[members], return_inverse=True)
        gain = np.zeros((len(rows), len(columns)))
        gain[row, column] = odds[members]
        chosen = set(zip(*linear_sum_assignment(gain, maximize=True), strict=True))
        for at, pair in zip(members, zip(row, column, strict=True), strict=True):
            if pair in chosen:
                confidence = 1 / (1 + np.exp(-odds[at]))
                distance = features[at, 2] * one.radius
                found.append(_Pair(int(first[at]), int(second[at]), float(confidence),
                                   float(features[at, 1]), float(distance)))  # fmt: skip
    return sorted(found, key=lambda pair: -pair.confidence)


def _by_group(group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions in the order of their group, and where the next group begins."""
    order = np.argsort(group, kind="stable")
    return order, np.flatnonzero(np.diff(group[order])) + 1
