"""Chance as a tested statement: what labels shifted in time reach with the same encoder.

Two things are compared with it: how well the label is decoded on held-out frames, which many weak
cells show, and how closely the strongest cell follows it, which a single cell in a hundred shows.
Labels that have nothing to do with the cells are as likely to reach more than any shift of them as
to reach less, however slow they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import t as student

from napari_xcebra.learn.block_loss import Blocks
from napari_xcebra.learn.labels import Labels, correlation_time
from napari_xcebra.learn.ridge import thinned

SHIFTS = 400
"""Shifts of the labels that are considered."""

DRAWN = 49
"""Shifts of which the goodness is measured, to show beside that of the labels."""

LEAST_SAMPLES = 10
"""Independent samples below which nothing can be said: any two slow things look alike."""

UNLIKE = 0.2
"""Correlation of a label with itself up to which a shift of it is another label.

A corridor that is run at constant speed, or gratings in a fixed order, come back after a period:
shifted by it they are what they were.
"""

REGULAR = 0.5
"""Correlation of a label with a shift of itself, from which on it comes back."""

STRETCH, FEWEST_STRETCHES, ORDERS = 4, 8, 200
"""Memories of a stretch at least, stretches at least, and orders of them that are tried."""

SAMPLED = 512
"""Held-out frames on which the goodness of shifted labels is measured."""

TESTED_FRAMES = 2000
"""Frames over which cells are compared with shifted labels."""

KNOTS = 6
"""Bumps along a continuous variable, by which the tuning of a cell is described."""

NAN = float("nan")


@dataclass(frozen=True)
class Chance:
    """What shifted labels reach.

    Parameters
    ----------
    p : float
        Of the labels being told by the cells as well as they are, by chance: twice the smaller of
        the two tests; NaN if it was not tested.
    samples : float
        Independent samples of the label: frames / frames after which it has forgotten itself.
    shifts : float
        Truly different shifts: those unlike the label itself, counted by its memory.
    """

    p: float = NAN
    samples: float = NAN
    shifts: float = NAN


@dataclass(frozen=True)
class Shifts:
    """Ways to make another label of a label: shifts in time, or stretches in another order.

    Parameters
    ----------
    frames : (n,) int64
        Shifts by more than the label remembers, and not by what makes it like itself again.
    samples, different : float
        As `Chance.samples` and `Chance.shifts`.
    total : int
        Frames of the recording.
    stretch : int
        Frames of a stretch at least, where stretches are put in another order instead: a label
        that comes back again and again is, shifted, a function of itself. 0 for shifts.
    """

    frames: np.ndarray
    samples: float
    different: float
    total: int
    stretch: int = 0

    @classmethod
    def of(cls, labels: Labels, segment: np.ndarray) -> Shifts:
        """Those of a label.

        Parameters
        ----------
        segment : (frames,) int64
            Trial of each frame.
        """
        frames = len(labels.known)
        memory = correlation_time(labels, segment, frames // 2)
        samples = float(labels.known.sum() / memory)
        tried = np.unique(np.linspace(memory, frames - memory, SHIFTS).round().astype(np.int64))
        alike = np.abs(_self_correlation(labels)[tried])
        unlike = tried[alike <= UNLIKE]
        # values of a slow label that lie a memory apart are half as many samples of a correlation
        different = len(unlike) / len(tried) * max(samples - 2, 0) / 2
        if alike.max(initial=0) > REGULAR and frames >= FEWEST_STRETCHES * STRETCH * memory:
            return cls(unlike, samples, samples / STRETCH, frames, STRETCH * memory)
        return cls(unlike, samples, different, frames)

    @property
    def enough(self) -> bool:
        """Whether anything can be said."""
        return self.samples >= LEAST_SAMPLES and self.different >= LEAST_SAMPLES / 4

    def __len__(self) -> int:
        """Other labels that are tried."""
        return ORDERS if self.stretch else len(self.frames)

    def source(self, number: int) -> np.ndarray:
        """Frame whose label each frame gets in one of them: (frames,) int64."""
        if not self.stretch:
            return (np.arange(self.total) - self.frames[number]) % self.total
        rng = np.random.default_rng(number)
        lengths = rng.integers(self.stretch, 2 * self.stretch, self.total // self.stretch + 1)
        edges = np.cumsum(lengths)
        stretches = np.split(np.arange(self.total), edges[edges < self.total])
        return np.concatenate([stretches[i] for i in rng.permutation(len(stretches))])


def _self_correlation(labels: Labels) -> np.ndarray:
    """Correlation of a label with itself shifted around the recording: (frames,)."""
    targets = labels.targets()
    centred = np.where(labels.known[:, None], targets - targets[labels.known].mean(0), 0)
    power = np.square(np.abs(np.fft.rfft(centred, axis=0))).sum(1)
    correlation: np.ndarray = np.fft.irfft(power, n=len(centred))
    return correlation / correlation[0]


def p_of_decoding(
    labels: Labels, shifts: Shifts, frames: np.ndarray, predicted: np.ndarray
) -> float:
    """Of predictions that follow the labels as they do.

    Parameters
    ----------
    frames : (n,) int64
        Held-out frames.
    predicted : (n, coordinates)
    """
    targets = labels.targets()
    centred = predicted - predicted.mean(0)

    def follows(at: np.ndarray) -> float:
        known = labels.known[at]
        if known.sum() < 3:
            return NAN
        wanted, told = targets[at][known], centred[known]
        wanted = wanted - wanted.mean(0)
        size = np.sqrt(np.square(wanted).sum() * np.square(told).sum())
        return float((wanted * told).sum() / size) if size > 0 else 0.0

    null = np.array([follows(shifts.source(n)[frames]) for n in range(len(shifts))])
    found = np.arctanh(np.array([follows(frames)]) * 0.9999)
    return float(tail(found, np.arctanh(null * 0.9999)[:, None], shifts.different)[0])


def p_of_strongest_cell(
    labels: Labels, shifts: Shifts, frames: np.ndarray, traces: np.ndarray
) -> float:
    """Of a cell that follows the labels as closely as the strongest one does.

    Cells are shifted together, so what they share is in the null as well.

    Parameters
    ----------
    frames : (n,) int64
        Ascending, evenly spaced.
    traces : (n, cells)
    """
    columns = _tuning_columns(labels)
    centred = traces - traces.mean(0)
    centred = centred / np.maximum(np.sqrt(np.square(centred).sum(0)), 1e-12)

    def follow(at: np.ndarray) -> np.ndarray:
        return np.sqrt(np.square(columns[at].T @ centred).sum(0))

    null = np.array([follow(shifts.source(n)[frames]) for n in range(len(shifts))])
    spread = np.maximum(null.std(0), 1e-12)
    strongest = ((null - null.mean(0)) / spread).max(1)
    found = float(((follow(frames) - null.mean(0)) / spread).max())
    # the largest of many has a tail that falls slowly: that of a Gumbel distribution
    apart = (found - strongest.mean()) / max(strongest.std(ddof=1), 1e-12)
    apart /= np.sqrt(1 + 1 / shifts.different)
    tail = -np.expm1(-np.exp(-(np.pi / np.sqrt(6) * apart + np.euler_gamma)))
    reached = (strongest >= found).sum() / (1 + len(strongest))
    return float(max(tail, reached))


def _tuning_columns(labels: Labels) -> np.ndarray:
    """What a cell may be tuned to, whitened, 0 where it is not known: (frames, columns)."""
    columns: list[np.ndarray] = [
        np.eye(labels.n_codes)[labels.code] if labels.n_codes > 1 else labels.linear[:, :0]
    ]
    for values in labels.linear.T:
        knots = np.quantile(values[labels.known], (np.arange(KNOTS) + 0.5) / KNOTS)
        width = max(np.diff(knots).mean(), 1e-6)
        columns.append(np.exp(-0.5 * np.square((values[:, None] - knots) / width)))
    for angles in labels.angles.T:
        turns = angles[:, None] * np.array([1, 2])
        columns += [np.cos(turns), np.sin(turns)]
    joined = np.hstack(columns)
    joined = np.where(labels.known[:, None], joined - joined[labels.known].mean(0), 0)
    values, vectors = np.linalg.eigh(joined.T @ joined / len(joined))
    kept = values > 1e-3 * values.max()
    whitened: np.ndarray = joined @ (vectors[:, kept] / np.sqrt(values[kept]))
    return whitened


def tail(found: np.ndarray, null: np.ndarray, different: float) -> np.ndarray:
    """Of values that large, among those of shifted labels.

    Overlapping shifts of a slow label are few samples. Where none of them reaches the value, the
    tail of a Student distribution with as many degrees of freedom as there are different shifts
    says how far it is off.

    Parameters
    ----------
    found : (n,) float
    null : (shifts, n) float
        NaN where a shift cannot be compared.
    different : float
        Truly different shifts.

    Returns
    -------
    (n,) float64
        1 where there is nothing to compare with.
    """
    count = np.isfinite(null).sum(0)
    enough = (count >= 2) & np.isfinite(found)
    filled = np.where(enough, null, 0.0)
    apart = (found - np.nanmean(filled, 0)) / np.maximum(np.nanstd(filled, 0, ddof=1), 1e-12)
    beyond = student.sf(apart / np.sqrt(1 + 1 / different), max(different - 1, 1))
    reached = (filled >= found).sum(0) / (1 + np.maximum(count, 1))
    return np.where(enough, np.maximum(beyond, reached), 1.0)


def tested(
    labels: Labels,
    shifts: Shifts,
    decoded: tuple[np.ndarray, np.ndarray],
    cells: tuple[np.ndarray, np.ndarray],
) -> Chance:
    """Test labels against shifts of themselves.

    Parameters
    ----------
    shifts : Shifts
        Of these labels.
    decoded : (n,) int64, (n, coordinates)
        Held-out frames, and what is predicted there.
    cells : (m,) int64, (m, cells)
        Frames, and traces there.
    """
    if not shifts.enough:
        return Chance(samples=shifts.samples, shifts=shifts.different)
    both = p_of_decoding(labels, shifts, *decoded), p_of_strongest_cell(labels, shifts, *cells)
    p = min(1.0, 2 * min(both))
    return Chance(p, samples=shifts.samples, shifts=shifts.different)


def rearranged(labels: Labels, source: np.ndarray) -> Labels:
    """Labels in which each frame has that of another."""
    return replace(labels, **{name: values[source] for name, values in vars(labels).items()})


class Sample:
    """Held-out frames among which goodness is measured anew for any labels, at little cost.

    Only which pairs are positive depends on the labels; the similarities do not.

    Parameters
    ----------
    frames : (n,) int64
    similarity : (n, n) float
        ψ between them.
    among : Blocks
        Held-out frames; partners come from other blocks.
    offset : int
        Frames over which the labels step.
    """

    def __init__(
        self, frames: np.ndarray, similarity: np.ndarray, among: Blocks, offset: int
    ) -> None:
        block = among.number[frames]
        self.frames, self.offset = frames, offset
        self.same_block = block[:, None] == block
        negatives = np.where(self.same_block, -np.inf, similarity)
        elsewhere = (~self.same_block).sum(1)
        # log N − InfoNCE of every pair that might be positive
        self.nats = similarity - (logsumexp(negatives, axis=1) - np.log(elsewhere))[:, None]
        self.starts = among.frames.pairs(offset)

    @staticmethod
    def of(among: Blocks) -> np.ndarray:
        """Frames to take: evenly spaced, 512 or a few more at most."""
        anchors = among.frames.anchors
        return anchors[:: max(1, len(anchors) // SAMPLED)]

    def null(self, labels: Labels, shifts: Shifts) -> tuple[float, float]:
        """5 and 95 % of what shifted labels reach, in nats; NaN without any."""
        some = thinned(np.arange(len(shifts)), DRAWN)
        null = np.array([self.goodness(rearranged(labels, shifts.source(n))) for n in some])
        null = null[np.isfinite(null)]
        if len(null) == 0:
            return NAN, NAN
        low, high = np.quantile(null, [0.05, 0.95])
        return float(low), float(high)

    def goodness(self, labels: Labels) -> float:
        """Log N − InfoNCE with positives by these labels; NaN if there are none."""
        rng = np.random.default_rng(0)
        known = labels.known[self.starts] & labels.known[self.starts + self.offset]
        if not known.any():
            return NAN
        start = rng.choice(self.starts[known], size=len(self.frames))
        target = labels.moved(self.frames, start, start + self.offset)
        distance = self._distance(target, labels, rng)
        positive = distance.argmin(1)
        rows = np.flatnonzero(np.isfinite(distance.min(1)))
        return float(self.nats[rows, positive[rows]].mean()) if len(rows) else NAN

    def _distance(self, target: np.ndarray, labels: Labels, rng: np.random.Generator) -> np.ndarray:
        """Of the labels of all frames from the targets, infinite where there can be no pair."""
        if labels.is_discrete:
            distance = rng.random(self.nats.shape)
        else:
            points = labels.points(self.frames)
            # a trace of noise makes ties fall at random
            points += rng.normal(scale=1e-4, size=points.shape)
            distance = cdist(target, points, "sqeuclidean")
        distance[self.same_block] = np.inf
        if labels.n_codes > 1:
            code = labels.code[self.frames]
            distance[code[:, None] != code] = np.inf
        missing = ~labels.known[self.frames]
        distance[missing] = distance[:, missing] = np.inf
        return distance
