"""Measures what speaks for and against each ROI, and learns from decisions what to propose.

Everything is measured on the recording itself: what its file says of each ROI, the shape of its
footprint, and its trace. A limit that separates two kinds is taken from the recording where that is
possible, not from another one.

A proposal is a logistic regression on ranks of the evidence, with a ridge: small enough for thirty
decisions, and its weights say why. Every probability that is reported of a decided ROI was computed
without its own decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.ranks import auroc, relative_ranks
from napari_xcebra.curation.changes import ACCEPTED, REJECTED, UNDECIDED
from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.recording.footprints import ALIKE, CellShapes, Footprints
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import read_block
from napari_xcebra.text import counted

VALUES, STRETCHES = 20_000_000, 4
"""Values of traces that are looked at, in so many stretches over the recording."""
BLOCK = 30.0
"""Seconds whose median is the baseline of a trace there."""
AHEAD = 0.3
"""Seconds by which the rise of a transient is told from its fall."""
FAR = 3.0
"""Diameters from which two cells share no light."""
CHANCE = 99.0
"""Percentile of r of cells far apart above which two traces are more alike than any others."""
SHARED = 0.5
"""Overlap, of the smaller, from which r of two ROIs need only be more than chance."""

PLACES = ("plane", "roi", "x", "y", "depth", "red", "red_probability", "name", "chan2_prob")
"""Properties that say where a cell is or what it is called, not whether it is one."""

WORDS: dict[str, tuple[str, str]] = {
    "SNR": ("low SNR", "high SNR"),
    "trace skew": ("no transients upwards", "clear transients"),
    "rise": ("rises slower than it falls", "rises fast, falls slowly"),
    "dips": ("no dips", "dips below its baseline"),
    "persistence": ("jumps from frame to frame", "lasting transients"),
    "shared": ("a trace of its own", "a trace like the whole field"),
    "size": ("small", "large"),
    "elongation": ("round", "elongated"),
    "density": ("ragged", "compact"),
    "overlap": ("overlaps no other", "overlaps others"),
    "likeness": ("unlike its neighbours", "like a neighbour"),
    "probability": ("low probability", "high probability"),
    "npix": ("few pixels", "many pixels"),
    "radius": ("small radius", "large radius"),
    "compactness": ("round", "not compact"),
}
"""What a low and a high value is called."""


def _phrase(name: str, high: bool) -> str:
    """What a low or a high value is called.

    >>> _phrase("elongation", True), _phrase("cnn", False)
    ('elongated', 'low cnn')
    """
    return WORDS.get(name, (f"low {name}", f"high {name}"))[int(high)]


@dataclass(frozen=True, eq=False)
class CellEvidence:
    """What was measured of each ROI.

    Parameters
    ----------
    values : mapping of str to (cells,) float
        By name: what the file says, then shape, then trace. NaN where there is none.
    twin : (cells,) int
        The ROI that each may be a part or a copy of; -1 for none.
    twin_r, twin_overlap : (cells,) float
        Correlation with it, and shared pixels as a share of the smaller one.
    constant : (cells,) bool
        Whether the trace never changes.
    """

    values: Mapping[str, np.ndarray]
    twin: np.ndarray
    twin_r: np.ndarray
    twin_overlap: np.ndarray
    constant: np.ndarray

    @cached_property
    def ranks(self) -> np.ndarray:
        """(cells, values) float, each by its rank from -1 to 1; 0 where there is none.

        Ranks need no unit, and no ROI outweighs the others.
        """
        columns = [2 * relative_ranks(column) - 1 for column in self.values.values()]
        return np.nan_to_num(np.stack(columns, axis=1))

    def own(self, recording: Recording) -> dict[str, np.ndarray]:
        """What was measured here, without what the file says."""
        return {name: v for name, v in self.values.items() if name not in recording.cells}


def measure(recording: Recording, stopped: Callable[[], bool] = lambda: False) -> CellEvidence:
    """Measure all ROIs of a recording; `stopped` is asked between two parts of the work.

    Examples
    --------
    >>> from napari_xcebra.simulate import field
    >>> found = measure(field(cells=12, frames=300, shape=(96, 96), junk=2).recording)
    >>> found.ranks.shape[0], bool(found.constant.any())
    (14, False)
    """
    traces = _some_frames(recording, stopped)
    of_trace, constant = _measure_traces(traces, recording.rate)
    values = _properties(recording)
    n_cells = recording.n_cells
    twins = np.full(n_cells, -1), np.full(n_cells, np.nan), np.zeros(n_cells)
    if recording.footprints is not None:
        if stopped():
            raise Stopped
        shapes = CellShapes(recording.footprints, n_cells)
        values |= _measure_shapes(shapes)
        twins, overlap, alike = _find_twins(recording.footprints, shapes, traces)
        values |= {"overlap": overlap, "likeness": alike}
    return CellEvidence(values | of_trace, *twins, constant)


def _properties(recording: Recording) -> dict[str, np.ndarray]:
    """Numbers that the file has for each ROI, but for those that differ in none."""
    found = {}
    for name, column in recording.cells.items():
        if name in PLACES or np.asarray(column).dtype.kind not in "biuf":
            continue
        values = np.asarray(column, np.float64)
        known = values[np.isfinite(values)]
        if len(known) and np.ptp(known) > 0:
            found[name] = np.where(np.isfinite(values), values, np.nan)
    return found


def _some_frames(recording: Recording, stopped: Callable[[], bool]) -> np.ndarray:
    """(stretches, frames, cells) float32, stretches of equal length over the recording."""
    frames, cells = recording.traces.shape
    length = max(1, min(frames, VALUES // max(cells, 1)) // STRETCHES)
    parts = []
    for first in np.linspace(0, frames - length, STRETCHES).astype(int):
        if stopped():
            raise Stopped
        stretch = slice(int(first), int(first) + length)
        parts.append(np.nan_to_num(read_block(recording.traces, stretch, slice(0, cells))))
    return np.stack(parts)


def _measure_traces(traces: np.ndarray, rate: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What a trace looks like, and which never change."""
    constant = np.ptp(traces, axis=(0, 1)) == 0
    length = traces.shape[1]
    size = min(length, max(3, round(BLOCK * rate)))
    blocks = np.array_split(np.arange(length), max(1, length // size))
    level = np.concatenate(
        [traces[:, block] - np.median(traces[:, block], axis=1, keepdims=True) for block in blocks],
        axis=1,
    ).reshape(-1, traces.shape[2])
    steps = np.diff(traces, axis=1).reshape(-1, traces.shape[2])
    noise = 1.4826 * np.median(np.abs(steps - np.median(steps, axis=0)), axis=0) / np.sqrt(2)
    spread = level.std(axis=0)
    # events, of which most are 0, have no noise: their spread stands for it
    noise = np.where(noise > 1e-3 * spread, noise, np.where(spread > 0, spread, 1))
    low, high = np.percentile(level, [0.5, 99.5], axis=0)
    unit = level / np.where(spread > 0, spread, 1)
    ahead = max(1, round(AHEAD * rate))
    rises = level[ahead:] - level[:-ahead]
    own = np.sqrt(np.mean(rises**2, axis=0))
    common = np.median(unit, axis=1)
    centred = common - common.mean()
    size_of_common = np.sqrt(centred @ centred) or 1.0
    frames = len(unit)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {
            "SNR": high / noise,
            "trace skew": np.mean(unit**3, axis=0),
            "rise": np.mean((rises / own) ** 3, axis=0),
            "dips": -low / np.maximum(high, 1e-12),
            "persistence": np.mean(unit[1:] * unit[:-1], axis=0),
            "shared": (centred @ unit) / (size_of_common * np.sqrt(frames)),
        }
    return {
        name: np.where(constant | ~np.isfinite(column), np.nan, column).astype(np.float64)
        for name, column in found.items()
    }, constant


def _measure_shapes(shapes: CellShapes) -> dict[str, np.ndarray]:
    """Size in median cells, length over width, and share of an ellipse that is filled."""
    count = len(shapes.sizes)
    size = np.where(shapes.sizes, shapes.sizes / np.median(shapes.sizes), np.nan)
    elongation, density = np.full(count, np.nan), np.full(count, np.nan)
    for cell in np.flatnonzero(shapes.sizes >= 4):
        rows, columns = shapes.pixels(int(cell))
        spread = np.cov(rows, columns) + np.eye(2) / 12  # a pixel is a square
        narrow, wide = np.sqrt(np.linalg.eigvalsh(spread))
        elongation[cell] = wide / narrow
        density[cell] = len(rows) / (4 * np.pi * wide * narrow)
    return {"size": size, "elongation": elongation, "density": density}


def _find_twins(
    footprints: Footprints, shapes: CellShapes, traces: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """The ROI that each may be part of the same cell with; largest overlap and r among close ones.

    Their r is higher than that of nearly all pairs that are far apart, and high if one does not
    cover most of the other.
    """
    count = len(shapes.sizes)
    unit = traces.reshape(-1, count)
    unit = unit - unit.mean(axis=0)
    unit /= np.maximum(np.sqrt(np.sum(unit**2, axis=0)), 1e-12)
    place = np.ravel_multi_index(footprints.pixels, footprints.shape)
    field = int(np.prod(footprints.shape))
    held = scipy.sparse.csr_array((place >= 0, (footprints.cell, place)), shape=(count, field))
    shared = (held.astype(np.float32) @ held.T.astype(np.float32)).tocoo()
    first, second, distance = _close_pairs(shapes)
    key = first * count + second
    keys = shared.row.astype(np.int64) * count + shared.col
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], key), len(keys) - 1)
    pixels = np.where(keys[order][at] == key, shared.data[order][at], 0)
    overlap = pixels / np.maximum(np.minimum(shapes.sizes[first], shapes.sizes[second]), 1)
    r = _likeness(unit, first, second)
    touching = (overlap > 0) | (distance < shapes.diameter)
    chance = _chance_likeness(shapes, unit)
    same = (touching & (r >= max(ALIKE, chance))) | ((overlap >= SHARED) & (r >= chance))
    twin, twin_r, twin_overlap = np.full(count, -1), np.full(count, np.nan), np.zeros(count)
    most, alike = np.zeros(count), np.full(count, np.nan)
    for a, b in ((first, second), (second, first)):
        np.maximum.at(most, a, overlap)
        np.fmax.at(alike, a, np.where(touching, r, np.nan))
        for i in np.flatnonzero(same):
            if twin[a[i]] < 0 or overlap[i] + r[i] > twin_overlap[a[i]] + twin_r[a[i]]:
                twin[a[i]], twin_r[a[i]], twin_overlap[a[i]] = b[i], r[i], overlap[i]
    return (twin, twin_r, twin_overlap), most, alike


def _close_pairs(shapes: CellShapes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of ROIs of one plane whose centres are less than 1.5 diameters apart."""
    known = np.flatnonzero(shapes.sizes > 0)
    places = shapes.centers[known] * [1e6, 1, 1]  # planes are far apart
    tree = scipy.spatial.cKDTree(places)
    pairs = tree.query_pairs(1.5 * shapes.diameter, output_type="ndarray")
    first, second = known[pairs[:, 0]], known[pairs[:, 1]]
    return first, second, np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)


def _likeness(unit: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """R of pairs of traces of unit length, some at a time."""
    parts = [
        np.einsum("tp,tp->p", unit[:, first[i : i + 500]], unit[:, second[i : i + 500]])
        for i in range(0, len(first), 500)
    ]
    return np.concatenate([*parts, np.zeros(0)])


def _chance_likeness(shapes: CellShapes, unit: np.ndarray) -> float:
    """R that hardly any two ROIs reach that are too far apart to share light."""
    known = np.flatnonzero(shapes.sizes > 0)
    if len(known) < 10:
        return ALIKE
    first, second = np.random.default_rng(0).choice(known, (2, 1000))
    apart = np.linalg.norm(shapes.centers[first] - shapes.centers[second], axis=1)
    away = apart > FAR * shapes.diameter
    r = _likeness(unit, first[away], second[away])
    return float(np.percentile(r, CHANCE)) if len(r) >= 100 else ALIKE


# ------------------------------------------------------------ proposals

LEAST, LEAST_OF_EACH = 12, 4
"""Decisions to learn from, and accepted and rejected ones among them."""
FOLDS = 5
RIDGES = (0.3, 1.0, 3.0, 10.0)
"""Strengths of the ridge that are tried; the first alone where there are many decisions.

These and `STEADY` were chosen on seeds 0 to 11 of benchmarks/proposing.py.
"""
MANY = 1000
STEADY = 2.0
"""Weight of keeping probabilities as they are, against correcting how sure they are."""
STANDS_OUT = 0.3
"""Rank, from -1 to 1, from which a value is called low or high."""
AGAINST = 0.8
"""Share of the decisions that may contradict the extractor's call."""
GOOD = 0.75
"""Area under the curve from which statistics are said to tell the extractor's calls at all."""
BINS = 5


@dataclass(frozen=True, eq=False)
class Proposal:
    """What would be decided on every ROI.

    Parameters
    ----------
    evidence : CellEvidence
    decided : (n,) int64
        Positions of the ROIs that it was learned from.
    accepted : (n,) bool
        The decisions on these.
    probability : (cells,) float
        Of being accepted; of decided ROIs without their own decision.
    weights : (values,) float
        By which the rank of each kind of evidence counts.
    ridge : float
    """

    evidence: CellEvidence
    decided: np.ndarray
    accepted: np.ndarray
    probability: np.ndarray
    weights: np.ndarray
    ridge: float

    @property
    def held_out(self) -> np.ndarray:
        """(n,) probability of each decided ROI, learned from the others."""
        return self.probability[self.decided]

    @cached_property
    def area(self) -> float:
        """Area under the curve of held-out probabilities; 0.5 by chance."""
        return auroc(self.held_out, self.accepted)

    def reliability(self, bins: int = BINS) -> np.ndarray:
        """(bins, 3): mean probability, share that was accepted, and number of ROIs in each bin.

        Bins hold equal numbers of decided ROIs.
        """
        order = np.argsort(self.held_out, kind="stable")
        parts = np.array_split(order, max(1, min(bins, len(order) // 3)))
        return np.array([(self.held_out[p].mean(), self.accepted[p].mean(), len(p)) for p in parts])

    def sides(self, threshold: float, status: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(cells,) bool each: other ROIs that would become accepted, and rejected.

        Parameters
        ----------
        threshold : float
            How probable the proposed decision must be, 0.5 to 1.
        status : (cells,) int
            As `Curation.status`; a decision that is there already is none of these.
        """
        free = np.ones(len(status), bool)
        free[self.decided] = False
        above = self.probability >= threshold
        below = (1 - self.probability >= threshold) & ~above
        return free & above & (status != ACCEPTED), free & below & (status != REJECTED)

    def expected_right(self, threshold: float, status: np.ndarray) -> float:
        """Share of those decisions that are expected to be right; NaN without any."""
        above, below = self.sides(threshold, status)
        sure = np.where(above, self.probability, 1 - self.probability)[above | below]
        return float(sure.mean()) if len(sure) else float("nan")

    def sentence(self, cell: int) -> str:
        """What is proposed for an ROI, and why."""
        chance = float(self.probability[cell])
        verb, share = ("accept", chance) if chance >= 0.5 else ("reject", 1 - chance)
        words, alike = self.reasons(cell)
        like = f", like {alike} you {verb}ed" if alike else ""
        return f"Proposal: {verb}, {100 * share:.0f} %{like}{': ' * bool(words)}{words}."

    def reasons(self, cell: int) -> tuple[str, int]:
        """Up to two phrases, and how many decided ROIs they hold of that were decided so."""
        ranks = self.evidence.ranks
        accept = self.probability[cell] >= 0.5
        names = list(self.evidence.values)
        main = _main_reasons(self.weights, ranks[cell], accept=bool(accept))
        same = self.accepted == accept
        side = np.sign(ranks[cell][main]) * ranks[self.decided][:, main] >= STANDS_OUT
        alike = int((same & side.all(axis=1) & (self.decided != cell)).sum()) if main else 0
        return ", ".join(_phrase(names[i], ranks[cell][i] > 0) for i in main), alike

    def provenance(self) -> dict[str, Any]:
        """What a journal keeps of it: plain values."""
        weights = zip(self.evidence.values, self.weights, strict=True)
        return {
            "method": "logistic regression on ranks",
            "decisions": len(self.decided),
            "accepted": int(self.accepted.sum()),
            "ridge": float(self.ridge),
            "area": round(float(self.area), 4),
            "weights": {name: round(float(weight), 4) for name, weight in weights},
        }


def propose(
    evidence: CellEvidence,
    status: np.ndarray,
    by_hand: np.ndarray,
    calls: np.ndarray | None = None,
    *,
    seed: int = 0,
) -> Proposal:
    """Learn from the decisions made by hand.

    Parameters
    ----------
    evidence : CellEvidence
    status : (cells,) int
        As `Curation.status`.
    by_hand : (cells,) bool
        As `Curation.by_hand`; other decisions teach nothing.
    calls : (cells,) bool, optional
        What the extractor accepts.
    seed : int
        Of the parts that are held out.

    Raises
    ------
    InputError
        There are too few decisions, or they say only where the extractor is wrong.
    """
    decided = np.flatnonzero(by_hand & (status != UNDECIDED))
    accepted = status[decided] == ACCEPTED
    of_each = int(accepted.sum()), int((~accepted).sum())
    if len(decided) < LEAST or min(of_each) < LEAST_OF_EACH:
        raise InputError(
            f"A proposal needs {LEAST} decisions by hand, with at least {LEAST_OF_EACH} cells "
            f"accepted and {LEAST_OF_EACH} rejected; so far {of_each[0]} are accepted and "
            f"{of_each[1]} rejected."
        )
    if calls is not None and np.mean(accepted != calls[decided]) > AGAINST:
        raise InputError(
            f"Nearly all of your {counted(len(decided), 'decision')} contradict the extractor: a "
            "proposal would learn from its mistakes alone. Accept and reject some cells that it "
            "has right as well."
        )
    return learn(evidence, decided, accepted, seed=seed)


def learn(
    evidence: CellEvidence, decided: np.ndarray, accepted: np.ndarray, *, seed: int = 0
) -> Proposal:
    """Learn from decisions on some ROIs, however many.

    Parameters
    ----------
    evidence : CellEvidence
    decided : (n,) int
        Positions.
    accepted : (n,) bool
        Both must occur.
    seed : int
    """
    ranks = evidence.ranks
    x, y = ranks[decided], np.asarray(accepted, np.float64)
    folds = _folds(y, seed)
    ridges = RIDGES if len(y) <= MANY else RIDGES[:1]
    logits = [_held_out_logits(x, y, folds, ridge) for ridge in ridges]
    best = int(np.argmin([_loss(each, y) for each in logits]))
    weights = _regress(x, y, ridges[best])
    # how sure the logits are, corrected by those of the other folds
    of_decided = np.empty(len(y))
    for fold in np.unique(folds):
        rest = folds != fold
        of_decided[~rest] = _corrected(logits[best][rest], y[rest], logits[best][~rest])
    probability = _corrected(logits[best], y, _logits(weights, ranks))
    probability[decided] = of_decided
    return Proposal(
        evidence, np.asarray(decided), y.astype(bool), probability, weights[1:], ridges[best]
    )


def expected_calls(evidence: CellEvidence, calls: np.ndarray) -> Proposal | None:
    """What the ROIs' statistics say of the extractor's calls, each without its own.

    None where the calls are too few of a kind, or statistics hardly tell them apart.
    """
    calls = np.asarray(calls, bool)
    known = np.flatnonzero(~evidence.constant)
    if min(calls[known].sum(), (~calls[known]).sum()) < 2 * LEAST_OF_EACH:
        return None
    found = learn(evidence, known, calls[known])
    return found if found.area >= GOOD else None


def _main_reasons(weights: np.ndarray, ranks: np.ndarray, *, accept: bool) -> list[int]:
    """Up to two kinds of evidence that speak most for a decision, and stand out themselves."""
    speaks = weights * ranks * (1 if accept else -1)
    order = np.argsort(-speaks, kind="stable")[:2]
    return [int(i) for i in order if speaks[i] > 0 and abs(ranks[i]) >= STANDS_OUT]


def _folds(y: np.ndarray, seed: int) -> np.ndarray:
    """(n,) int, part of each decision; both kinds are spread over all parts."""
    shuffled = np.random.default_rng(seed).permutation(len(y))
    order = shuffled[np.argsort(y[shuffled], kind="stable")]
    folds = np.empty(len(y), np.int64)
    folds[order] = np.arange(len(y)) % FOLDS
    return folds


def _held_out_logits(x: np.ndarray, y: np.ndarray, folds: np.ndarray, ridge: float) -> np.ndarray:
    logits = np.empty(len(y))
    for fold in np.unique(folds):
        held = folds == fold
        logits[held] = _logits(_regress(x[~held], y[~held], ridge), x[held])
    return logits


def _regress(x: np.ndarray, y: np.ndarray, ridge: float, prior: Sequence[float] = ()) -> np.ndarray:
    """(1 + values,) offset and weights of a logistic regression, by Newton's method.

    `prior` is where the ridge pulls to, of all of them; without it to 0, and not the offset.
    """
    design = np.column_stack([np.ones(len(x)), x])
    pull = np.full(design.shape[1], ridge)
    if not len(prior):
        pull[0] = 1e-2  # nearly free, but finite where kinds are separate
    towards = np.array(prior) if len(prior) else np.zeros(design.shape[1])
    w = towards.copy()
    for _ in range(30):
        p = _sigmoid(design @ w)
        gradient = design.T @ (p - y) + pull * (w - towards)
        curvature = (design * (p * (1 - p))[:, None]).T @ design + np.diag(pull)
        step = np.linalg.solve(curvature, gradient)
        w -= step * min(1.0, 4 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return w


def _corrected(logits: np.ndarray, y: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Probabilities of wanted logits, as sure as held-out ones turned out to be (Platt)."""
    offset, slope = _regress(logits[:, None], y, STEADY, (0.0, 1.0))
    return _sigmoid(offset + max(slope, 0.0) * wanted)


def _logits(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    found: np.ndarray = w[0] + x @ w[1:]
    return found


def _loss(logits: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0, logits) - y * logits))


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    found: np.ndarray = 0.5 * (1 + np.tanh(logits / 2))
    return found
