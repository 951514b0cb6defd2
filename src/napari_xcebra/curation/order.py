"""Orders and filters the queue of cells, and says which of the extractor's calls are doubtful."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from napari_xcebra.attribution.ranks import relative_ranks
from napari_xcebra.curation.changes import STATUSES, Status
from napari_xcebra.curation.evidence import CellEvidence, expected_calls
from napari_xcebra.errors import InputError
from napari_xcebra.recording.footprints import Footprints
from napari_xcebra.recording.recording import Recording
from napari_xcebra.text import percent

ORDERS = (
    "doubt",
    "score",
    "q-value",
    "instability",
    "disagreement",
    "position",
    "property",
    "random",
    "id",
)


def ordered(
    order: str,
    cell_ids: np.ndarray,
    *,
    score: np.ndarray | None = None,
    q: np.ndarray | None = None,
    spread: np.ndarray | None = None,
    extractor: np.ndarray | None = None,
    centroids: np.ndarray | None = None,
    doubt: np.ndarray | None = None,
    value: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """All cells in the given order; those without a value for it come last.

    Parameters
    ----------
    order : str
        One of `ORDERS`.
    cell_ids : (cells,) int
        Also settle ties.
    score : (cells,) float, optional
        Highest first; NaN for a cell without a score.
    q : (cells,) float, optional
        Lowest first; cells with the same q by their score.
    spread : (cells,) float, optional
        How far the ranks by several seeds are apart, widest first; then by score.
    extractor : (cells,) float or bool, optional
        Class probability that the extractor gave, or whether it accepted the cell.
    centroids : (cells, 2 or 3) float, optional
        Row and column, with the plane before them if there are several.
    doubt : (cells,) float, optional
        How doubtful the extractor's call is, most first.
    value : (cells,) array, optional
        Any property, highest first; words in their order.
    seed : int
        Of the random order.

    Returns
    -------
    (cells,) int64
        Positions, each once.
    """
    ids = np.asarray(cell_ids)
    nothing = np.full(len(ids), np.nan)
    score = nothing if score is None else np.asarray(score, np.float64)
    if order == "score":
        return np.lexsort((ids, -score))
    if order == "property" and value is not None:
        if value.dtype.kind in "biuf":
            return np.lexsort((ids, -value.astype(np.float64)))
        return np.lexsort((ids, value.astype(str)))
    if order == "doubt":
        return np.lexsort((ids, nothing if doubt is None else -np.asarray(doubt, np.float64)))
    if order == "q-value":
        return np.lexsort((ids, -score, nothing if q is None else np.asarray(q, np.float64)))
    if order == "instability":
        widest = nothing if spread is None else -np.asarray(spread, np.float64)
        return np.lexsort((ids, -score, widest))
    if order == "disagreement":
        return np.lexsort((ids, -disagreement(score, nothing if extractor is None else extractor)))
    if order == "position":
        return np.lexsort((ids,)) if centroids is None else _walk(centroids)
    if order == "random":
        # drawn by id, so that the same seed gives the same order however the cells are held
        return np.argsort(ids, kind="stable")[np.random.default_rng(seed).permutation(len(ids))]
    if order in ("id", "property"):
        return np.argsort(ids, kind="stable")
    raise InputError(f"{order!r} is not an order of cells: one of {', '.join(ORDERS)} is needed.")


def disagreement(score: np.ndarray, extractor: np.ndarray) -> np.ndarray:
    """Difference in rank by score and by extractor, among cells that have both.

    Both are turned into ranks from 0 to 1, because a score and a probability have nothing in
    common but their order; equal values share their mean rank.

    Returns
    -------
    (cells,) float
        0, the same rank, to 1, first by one and last by the other; NaN where either is missing.
    """
    score, extractor = np.asarray(score, np.float64), np.asarray(extractor, np.float64)
    both = np.isfinite(score) & np.isfinite(extractor)
    apart = np.full(len(score), np.nan)
    apart[both] = np.abs(relative_ranks(score[both]) - relative_ranks(extractor[both]))
    return apart


def _walk(centroids: np.ndarray) -> np.ndarray:
    """A path through the field along neighbouring cells: row by row, back and forth.

    Parameters
    ----------
    centroids : (cells, 2 or 3) float
        NaN where a cell has no place; these come last.

    Returns
    -------
    (cells,) int64
        Positions; planes one after the other.
    """
    places = np.asarray(centroids, np.float64)
    plane = places[:, 0] if places.shape[1] == 3 else np.zeros(len(places))
    row, column = places[:, -2], places[:, -1]
    known = ~np.isnan(places).any(axis=1)
    ways = []
    for each in np.unique(plane[known]):
        cells = np.flatnonzero(known & (plane == each))
        height, width = np.ptp(row[cells]), np.ptp(column[cells])
        # rows of this height give the shortest way through points spread at random
        rows = max(1, round(np.sqrt(len(cells) * height / (3 * width)))) if width else len(cells)
        strip = np.minimum((row[cells] - row[cells].min()) * rows / (height or 1), rows - 1)
        strip = strip.astype(np.int64)
        along = np.where(strip % 2, -column[cells], column[cells])
        ways.append(cells[np.lexsort((row[cells], along, strip))])
    return np.concatenate([*ways, np.flatnonzero(~known)]).astype(np.int64)


def centroids_of(footprints: Footprints, n_cells: int) -> np.ndarray:
    """Centre of each cell: (cells, 2 or 3) float, NaN for a cell without pixels."""
    weight = np.where(footprints.weight > 0, footprints.weight, 0).astype(np.float64)
    total = np.bincount(footprints.cell, weight, n_cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.bincount(footprints.cell, weight * p, n_cells) / total
                 for p in footprints.pixels]  # fmt: skip
    centres = np.stack(means, axis=1)
    if footprints.plane is not None:
        centres[:, 0] = np.round(centres[:, 0])
    return centres


def properties_of(recording: Recording) -> dict[str, np.ndarray]:
    """What is known of each cell by name: what its file says, and where it lies.

    Examples
    --------
    >>> from napari_xcebra.simulate import field
    >>> list(properties_of(field(cells=4, frames=50, shape=(64, 64)).recording))
    ['x', 'y']
    """
    found = {
        name: np.asarray(column)
        for name, column in recording.cells.items()
        if name not in ("roi", "name")
    }
    if recording.footprints is not None:
        centres = centroids_of(recording.footprints, recording.n_cells)
        places = {"x": centres[:, -1], "y": centres[:, -2]}
        if centres.shape[1] > 2:
            places["plane"] = centres[:, 0]
        found = {**places, **found}
    return found


@dataclass(frozen=True)
class CellFilter:
    """Decides which cells come up.

    Parameters
    ----------
    statuses : collection of Status
        Those with one of these decisions.
    above : bool or None
        Those above threshold, or those below; None for both.
    tag : str
        Those with this tag; empty for all.
    """

    statuses: Collection[Status] = STATUSES
    above: bool | None = None
    tag: str = ""

    def keep(
        self,
        status: np.ndarray,
        above: np.ndarray | None = None,
        tagged: np.ndarray | None = None,
    ) -> np.ndarray:
        """(cells,) bool, which cells come up.

        Parameters
        ----------
        status : (cells,) int
            As `Curation.status`.
        above : (cells,) bool, optional
            By the model; without it, no cell is above threshold.
        tagged : (cells,) bool, optional
            As `Curation.tagged` says of the filter's tag.
        """
        keep = np.isin(status, [STATUSES.index(each) for each in self.statuses])
        none = np.zeros(len(keep), bool)
        if self.above is not None:
            keep &= (none if above is None else np.asarray(above, bool)) == self.above
        if self.tag:
            keep &= none if tagged is None else np.asarray(tagged, bool)
        return keep


@dataclass(frozen=True, eq=False)
class Queue:
    """Cells in an order, some of them filtered out.

    The order holds all cells. Next and previous start from the place of the current cell, even
    if a decision has just filtered it out.

    Parameters
    ----------
    order : (cells,) int
        Positions of all cells, each once.
    keep : (cells,) bool
        Which of them come up, by position.
    """

    order: np.ndarray
    keep: np.ndarray

    @cached_property
    def cells(self) -> np.ndarray:
        """(n,) positions of the cells that come up, in order."""
        return self.order[self.keep[self.order]]

    @cached_property
    def _place(self) -> np.ndarray:
        place = np.empty(len(self.order), np.int64)
        place[self.order] = np.arange(len(self.order))
        return place

    @cached_property
    def _places(self) -> np.ndarray:
        """Places in the order of the cells that come up; ascending."""
        return np.flatnonzero(self.keep[self.order])

    def __len__(self) -> int:
        return len(self.cells)

    def next(self, cell: int | None = None) -> int | None:
        """Cell after this one, the first without one; None at the end."""
        if cell is None:
            return self._at(0)
        return self._at(int(np.searchsorted(self._places, self._place[cell], side="right")))

    def previous(self, cell: int | None = None) -> int | None:
        """Cell before this one, the last without one; None at the beginning."""
        if cell is None:
            return self._at(len(self._places) - 1)
        return self._at(int(np.searchsorted(self._places, self._place[cell])) - 1)

    def number(self, cell: int) -> int:
        """Number of cells that come up before this one."""
        return int(np.searchsorted(self._places, self._place[cell]))

    def with_keep(self, keep: np.ndarray) -> Queue:
        """The same order with another filter."""
        return replace(self, keep=np.asarray(keep, bool))

    def _at(self, number: int) -> int | None:
        return int(self.cells[number]) if 0 <= number < len(self.cells) else None


# ------------------------------------------------------------ doubts

UNSURE = 0.1
"""Share of the ROIs at most, those with a probability closest to where calls change."""
NEAR, FOLLOWS = 0.2, 0.02
"""Distance from there at most; share of the calls that may contradict the probability."""
UNLIKE = 0.25
"""Probability of its own call, judged from the other ROIs, below which one is doubted."""
SILENT, DIPPING, ALL_TOGETHER = 4.0, 1.0, 0.7
"""Noise that the highest values exceed, depth of dips to height, and r with the whole field."""
APART = 0.1
"""Share of the other route's score below which a route does not see a cell."""


@dataclass(frozen=True, eq=False)
class Doubts:
    """How doubtful the call on each ROI is, and why.

    Parameters
    ----------
    degree : (cells,) float
        0 for none, up to 1.
    reasons : tuple of str
        A short sentence for each ROI, the gravest first; empty without doubt.
    twin : (cells,) int
        The accepted ROI that each may be one cell with; -1 for none.
    """

    degree: np.ndarray
    reasons: tuple[str, ...]
    twin: np.ndarray

    @property
    def count(self) -> int:
        """ROIs with a doubt."""
        return int((self.degree > 0).sum())


def find_doubts(
    recording: Recording,
    evidence: CellEvidence,
    calls: np.ndarray,
    routes: Mapping[str, np.ndarray] | None = None,
) -> Doubts:
    """Which calls to look at, and why.

    Parameters
    ----------
    recording : Recording
    evidence : CellEvidence
        As `measure` gives it.
    calls : (cells,) bool
        What the extractor accepts.
    routes : mapping of str to (2, cells) float, optional
        By factor, the score from the variables and from the encoder, NaN where neither counts.
    """
    calls = np.asarray(calls, bool)
    found: list[list[tuple[float, str]]] = [[] for _ in calls]
    twins = np.full(len(calls), -1)
    ids = np.asarray(recording.cell_ids)
    probability = recording.cells.get("probability")
    if probability is not None:
        for cell, degree in _unsure(np.asarray(probability, np.float64), calls):
            found[cell].append(
                (degree, f"The extractor was unsure: probability {probability[cell]:.2f}.")
            )
    expected = expected_calls(evidence, calls)
    if expected is not None:
        own = np.where(calls, expected.probability, 1 - expected.probability)
        for cell in map(int, np.flatnonzero(own < UNLIKE)):
            words, _ = expected.reasons(cell)
            like = "rejected" if calls[cell] else "accepted"
            said = f"Its statistics are like those of {like} ROIs{': ' * bool(words)}{words}."
            found[cell].append((float(1 - own[cell]), said))
    strength = evidence.values.get("SNR", np.zeros(len(calls)))
    for cell in map(int, np.flatnonzero(calls & (evidence.twin >= 0))):
        twin = int(evidence.twin[cell])
        # of two, the weaker one is in question; of two alike, the later one
        if calls[twin]:
            twins[cell] = twin
        if calls[twin] and (strength[cell], -cell) < (strength[twin], -twin):
            r = f"r {evidence.twin_r[cell]:.2f}".replace("-", "−")
            said = f"overlap {percent(evidence.twin_overlap[cell])}, {r}"
            found[cell].append((0.9, f"May be the same cell as {ids[twin]}: {said}."))
    for there, said in _artefacts(evidence):
        for cell in map(int, np.flatnonzero(calls & there)):
            found[cell].append((0.85, said))
    for factor, (variables, encoder) in (routes or {}).items():
        low, high = np.minimum(variables, encoder), np.maximum(variables, encoder)
        for cell in map(int, np.flatnonzero(low < APART * high)):
            blind = "encoder" if encoder[cell] < variables[cell] else "variables"
            said = f"Carries {factor}, but not by the map from the {blind}."
            found[cell].append((0.6, said))
    ranked = [sorted(each, reverse=True) for each in found]
    # a second reason adds to the first
    degrees = [min(1.0, sum(d * 0.2**i for i, (d, _) in enumerate(each))) for each in ranked]
    reasons = (" ".join(said for _, said in each[:2]) for each in ranked)
    return Doubts(np.array(degrees, np.float64), tuple(reasons), twins)


def _unsure(probability: np.ndarray, calls: np.ndarray) -> Iterator[tuple[int, float]]:
    """ROIs with a probability closest to where the calls change, and how doubtful each is.

    Nothing where calls do not follow it, as after they were changed by hand; and a value that many
    share tells nothing about one of them.
    """
    known = np.flatnonzero(np.isfinite(probability))
    if not len(known):
        return
    values = np.unique(np.r_[0.5, probability[known]])
    wrong = [np.sum((probability[known] >= v) != calls[known]) for v in values]
    best = np.flatnonzero(np.array(wrong) == min(wrong))
    if min(wrong) > FOLLOWS * len(known):
        return
    border = float(values[best[np.argmin(np.abs(values[best] - 0.5))]])
    value, count = np.unique(probability[known].round(3), return_counts=True)
    common = value[count > max(3, UNSURE * len(known))]
    single = known[~np.isin(probability[known].round(3), common)]
    away = np.abs(probability[single] - border)
    for i in np.argsort(away, kind="stable")[: max(1, round(UNSURE * len(known)))]:
        if away[i] < NEAR:
            yield int(single[i]), float(0.8 - away[i] / NEAR / 2)


def _artefacts(evidence: CellEvidence) -> list[tuple[np.ndarray, str]]:
    """What is unlike a cell in a trace, in a sentence each, and which ROIs have it."""
    value = evidence.values
    whole = max(ALL_TOGETHER, 2 * float(np.nanmedian(np.nan_to_num(value["shared"]))))
    return [
        (evidence.constant, "Its trace is constant."),
        (value["SNR"] < SILENT, "No transient rises clearly above its noise."),
        (value["dips"] > DIPPING, "Its trace dips as far as it rises."),
        (value["shared"] > whole, "Its trace follows the whole field: neuropil or motion."),
    ]
