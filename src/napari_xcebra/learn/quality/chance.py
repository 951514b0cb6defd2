"""Tests a label against chance: against the same label shifted in time, or over trials.

Three things are tested: how well the label is decoded on held-out frames, from the cells and from
the latents of the encoder, which many weak cells show, and how closely the strongest cell follows
it, which a single cell in a hundred shows. A label that has nothing to do with the cells does as
well as its shifts, however slow it is.

Of a trial variable, the values of its trials are put in another order: within the conditions of
other trial variables that go with it, such as choice within each stimulus. Where values come in
blocks of trials, their sequence is turned around as a whole instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import gammaln, ndtri
from scipy.stats import chi2_contingency, rankdata
from scipy.stats import t as student

from napari_xcebra.learn.data.labels import Course, Labels, correlation_time
from napari_xcebra.learn.objective.ridge import regressed, thinned
from napari_xcebra.learn.quality.verdict import LARGEST_P, Null

ORDERS = 200
"""Orders of the trials that are tried."""
TOGETHER = 0.01
"""p of two variables over trials, below which they go together."""
FEWEST_ORDERS = 200
"""Orders that must be possible within conditions; else the conditions are left out."""
LEVELS = 4
"""Groups of trials by a variable that has many values."""
LIKE_ITSELF = 0.2
"""Share of the trials, beyond chance, that may keep their value when a sequence is turned."""
BLOCKED = 4.0
"""Standard deviations by which neighbouring trials share a value more often than by chance."""


@dataclass(frozen=True)
class _TrialOrders:
    """Orders of trials, each of which makes another label.

    Parameters
    ----------
    course : Course
    known : (frames,) bool
    condition : (trials,) int64
        Trials of the same condition are exchanged; −1 where the variable is not known.
    different : float
        Truly different labels that this gives, as far as they are tried.
    within : tuple of str
        Factors whose conditions are kept.
    confounded : tuple of str
        Factors that go with it in so many trials that their conditions cannot be kept.
    turns : (n,) int64 or None
        Trials by which the sequence of values is turned, where they come in blocks: those that do
        not make it like itself again.
    trials_a_value : float
        In the median over its values, if it is discrete.
    """

    course: Course
    known: np.ndarray
    condition: np.ndarray
    different: float
    within: tuple[str, ...] = ()
    confounded: tuple[str, ...] = ()
    turns: np.ndarray | None = None
    trials_a_value: float = float("inf")

    @property
    def trials(self) -> int:
        """Trials at which the variable is known."""
        return int((self.condition >= 0).sum())

    def __len__(self) -> int:
        """Orders that are tried."""
        return ORDERS if self.turns is None else len(self.turns)

    def order(self, number: int) -> np.ndarray:
        """Trial whose value each trial gets: (trials,) int64."""
        source = np.arange(len(self.condition))
        if self.turns is not None:
            own = np.flatnonzero(self.condition >= 0)
            source[own] = np.roll(own, self.turns[number])
            return source
        rng = np.random.default_rng(number)
        for condition in range(int(self.condition.max()) + 1):
            own = np.flatnonzero(self.condition == condition)
            source[own] = rng.permutation(own)
        return source

    def source(self, number: int) -> np.ndarray:
        """Frame whose label each frame gets: (frames,) int64."""
        frames = np.arange(len(self.known))
        inside = self.known & (self.course.trial >= 0)
        trial = self.order(number)[self.course.trial[inside]]
        frames[inside] = self.course.onset[trial]
        return frames


def trial_orders(
    factor: str, labels: Mapping[str, Labels], courses: Mapping[str, Course | None]
) -> _TrialOrders | None:
    """Orders for a factor that has one value in each trial; None if it has not.

    Parameters
    ----------
    labels, courses : mapping of str
        Of all factors; those that have one value in each trial may go together.
    """
    course = courses.get(factor)
    if course is None:
        return None
    values = _values(labels[factor], course)
    known = values >= 0
    each = np.inf
    if labels[factor].is_discrete and known.any():
        each = float(np.median(np.unique(values[known], return_counts=True)[1]))
    others = {
        name: _values(labels[name], other)
        for name, other in courses.items()
        if other is not None and name != factor
    }
    together = tuple(n for n, other in others.items() if _go_together(values, other))
    joint = [others[name] for name in together]
    condition = np.where(known, _codes(np.column_stack([np.zeros(len(known)), *joint])), -1)
    confounded: tuple[str, ...] = ()
    if together and _possible(values, condition) < FEWEST_ORDERS:
        condition, together, confounded = np.where(known, 0, -1), (), together
    if _in_blocks(values, condition):
        turns, different = _turns(values[known])
        return _TrialOrders(
            course,
            labels[factor].known,
            condition,
            different,
            (),
            together + confounded,
            turns,
            each,
        )
    different = float(min(_possible(values, condition), ORDERS))
    return _TrialOrders(
        course,
        labels[factor].known,
        condition,
        different,
        together,
        confounded,
        trials_a_value=each,
    )


COPIED, TELLING = 0.95, 0.5
"""Share of a variable that others tell from which on nothing is left to test; one that is named."""
PARTS = 8
"""Ranges that each coordinate of the others is divided into, to tell a variable."""


def goes_with(factor: str, labels: Mapping[str, Labels]) -> tuple[str, ...]:
    """Other factors, of these, that tell nearly all of one, whatever the cells do."""
    known = np.flatnonzero(np.all([each.known for each in labels.values()], axis=0))
    known = thinned(known, 4000)
    if len(labels) == 1 or len(known) < 10 * PARTS:
        return ()
    # ranks as normal scores are the same for whatever rises with a variable
    ranks = {n: rankdata(each.coordinates()[known], axis=0) for n, each in labels.items()}
    columns = {name: ndtri((each - 0.5) / len(known)) for name, each in ranks.items()}
    wanted = columns.pop(factor)
    edges = ndtri(np.arange(1, PARTS) / PARTS)
    for name, own in columns.items():
        columns[name] = np.hstack([own, *(own > edge for edge in edges)])
    if _told(wanted, np.hstack(list(columns.values()))) < COPIED:
        return ()
    return tuple(n for n, own in columns.items() if _told(wanted, own) > TELLING) or tuple(columns)


def _told(wanted: np.ndarray, columns: np.ndarray) -> float:
    """R² of a regression, made on every other tenth of the time and tried on the rest."""
    half = np.arange(len(wanted)) * 10 // len(wanted) % 2 == 0
    told = np.empty_like(wanted)
    for rest in (half, ~half):
        told[~rest] = regressed(columns[rest], wanted[rest], 1e-3)(columns[~rest])
    return float(1 - np.square(wanted - told).sum() / max(np.square(wanted).sum(), 1e-12))


def _values(labels: Labels, course: Course) -> np.ndarray:
    """Number of the value that each trial has, −1 where it is not known: (trials,) int64."""
    known = course.onset >= 0
    at = course.onset[known]
    columns = [
        labels.code[at],
        *map(_levels, labels.linear[at].T),
        *map(_levels, labels.angles[at].T),
    ]
    values = np.full(len(known), -1, np.int64)
    values[known] = _codes(np.column_stack(columns))
    return values


def _levels(values: np.ndarray) -> np.ndarray:
    """Numbers of a few groups of values, each about as frequent."""
    if len(np.unique(values)) <= LEVELS:
        return values
    return np.searchsorted(np.quantile(values, np.arange(1, LEVELS) / LEVELS), values)


def _codes(columns: np.ndarray) -> np.ndarray:
    return np.unique(columns, axis=0, return_inverse=True)[1].ravel()


def _go_together(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two variables depend on each other, over trials."""
    both = (one >= 0) & (other >= 0)
    if not both.any():
        return False
    one, other = _codes(one[both]), _codes(other[both])
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1)
    return min(table.shape) > 1 and bool(chi2_contingency(table)[1] < TOGETHER)


def _possible(values: np.ndarray, condition: np.ndarray) -> float:
    """Number of different labels that exchanging trials within conditions can give."""
    logs = 0.0
    for number in range(int(condition.max()) + 1):
        counts = np.bincount(values[condition == number])
        logs += gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
    return float(np.exp(min(logs, 700.0)))


def _in_blocks(values: np.ndarray, condition: np.ndarray) -> bool:
    """Whether neighbouring trials share a value more often than in any order within conditions."""
    own, kept = values[condition >= 0], condition[condition >= 0]
    rng = np.random.default_rng(0)
    by_chance = []
    for _ in range(100):
        order = np.arange(len(own))
        for number in np.unique(kept):
            mine = np.flatnonzero(kept == number)
            order[mine] = rng.permutation(mine)
        by_chance.append(_repeats(own[order], 1))
    apart = _repeats(own, 1) - float(np.mean(by_chance))
    return bool(apart > BLOCKED * max(float(np.std(by_chance)), 1e-3))


def _turns(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Turns that make another sequence of these values, and how many truly differ."""
    trials = len(values)
    by_chance = float(np.square(np.bincount(values) / trials).sum())
    repeats = np.array([_repeats(values, turn) for turn in range(trials)])
    limit = by_chance + LIKE_ITSELF * (1 - by_chance)
    block = int(np.argmax(repeats[1:] <= limit)) + 1 if (repeats <= limit).any() else trials
    turns = np.arange(block, trials - block + 1)
    unlike = turns[np.abs(repeats[turns] - by_chance) <= limit - by_chance]
    share = len(unlike) / max(len(turns), 1)
    return unlike, share * max(trials / block - 2, 0) / 2


def _repeats(values: np.ndarray, turn: int) -> float:
    """Share of the trials that have the value they have after a turn."""
    return float((np.roll(values, turn) == values).mean())


SHIFTS = 400
"""Shifts of the labels that are considered."""

LEAST_SAMPLES = 10
"""Independent samples below which nothing is tested: any two slow variables look alike."""

UNLIKE = 0.2
"""Correlation of a label with itself up to which a shift of it is another label.

A corridor that is run at constant speed, or gratings in a fixed order, come back after a period:
shifted by it they are what they were.
"""

REGULAR = 0.5
"""Correlation of a label with a shift of itself, above which it counts as recurring."""

STRETCH, FEWEST_STRETCHES = 4, 8
"""Memories of a stretch at least, and stretches at least."""

BEYOND_EVENT = 1.5
"""Windows around an event by which it is shifted at least."""

TESTED_FRAMES = 2000
"""Frames over which cells are compared with shifted labels."""

BLOCK_BYTES = 32 * 2**20
"""Shifted labels, and their products with cells, at a time."""

KNOTS = 6
"""Bumps along a continuous variable, by which the tuning of a cell is described."""

CERTAIN = 20
"""Truly different labels from which on a label that none of them reaches, and that misses the
limit, is at chance: with fewer, no evidence could reach the limit for sure."""

TRIALS_A_VALUE = 4
"""Trials of each value, in the median, below which values cannot be told apart."""

NAN = float("nan")


@dataclass(frozen=True)
class _Chance:
    """Result of the test against shifted labels.

    Parameters
    ----------
    p : float
        Of the cells telling the label that well by chance: the smallest of the tests, times their
        number; NaN if it was not tested.
    samples : float
        Independent samples of the label: frames / its correlation time.
    shifts : float
        Truly different labels: shifts unlike the label itself, counted by its memory, or orders
        of trials.
    untested : str
        Why it was not tested, or could not have been found, in a sentence.
    p_of_latents : float
        Of the last decoder alone, which reads the latents.
    """

    p: float = NAN
    samples: float = NAN
    shifts: float = NAN
    untested: str = ""
    p_of_latents: float = NAN


@dataclass(frozen=True)
class Shifts:
    """Ways to make a different label from a label: shifts, stretches or trials in another order.

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
    orders : _TrialOrders, optional
        Orders of trials instead, for a label that has one value in each trial.
    """

    frames: np.ndarray
    samples: float
    different: float
    total: int
    stretch: int = 0
    orders: _TrialOrders | None = None

    @classmethod
    def of(cls, labels: Labels, segment: np.ndarray, orders: _TrialOrders | None = None) -> Shifts:
        """Shifts of a label.

        Parameters
        ----------
        segment : (frames,) int64
            Trial of each frame.
        orders : _TrialOrders, optional
            If the label has one value in each trial.
        """
        frames = len(labels.known)
        if orders is not None:
            none = np.zeros(0, np.int64)
            return cls(none, orders.trials, orders.different, frames, orders=orders)
        memory = correlation_time(labels, segment, frames // 2)
        if not labels.near.all():
            memory = min(max(memory, round(BEYOND_EVENT * _usual_run(labels.near))), frames // 2)
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
        """Whether there are enough samples to test."""
        return self.samples >= LEAST_SAMPLES and self.different >= LEAST_SAMPLES / 4

    def __len__(self) -> int:
        """Other labels that are tried."""
        if self.orders is not None:
            return len(self.orders)
        return ORDERS if self.stretch else len(self.frames)

    def source(self, number: int, at: np.ndarray | None = None) -> np.ndarray:
        """Frame whose label each frame, or each of some, gets in one of them: (frames,) int64."""
        if self.orders is None and not self.stretch:
            frames = np.arange(self.total) if at is None else at
            return (frames - self.frames[number]) % self.total
        whole = self._in_other_order(number)
        return whole if at is None else whole[at]

    def _in_other_order(self, number: int) -> np.ndarray:
        """Frame whose label each frame gets, by trials or stretches in another order."""
        if self.orders is not None:
            return self.orders.source(number)
        rng = np.random.default_rng(number)
        lengths = rng.integers(self.stretch, 2 * self.stretch, self.total // self.stretch + 1)
        edges = np.cumsum(lengths)
        stretches = np.split(np.arange(self.total), edges[edges < self.total])
        return np.concatenate([stretches[i] for i in rng.permutation(len(stretches))])


def null_of(shifts: Shifts) -> Null:
    """What the other labels are made by."""
    if shifts.orders is not None:
        return "permuted" if shifts.orders.turns is None else "turned"
    return "reordered" if shifts.stretch else "shifted"


def _usual_run(near: np.ndarray) -> float:
    """Frames for which an event is usually near."""
    steps = np.diff(np.r_[0, near.astype(np.int8), 0])
    return float(np.median(np.flatnonzero(steps < 0) - np.flatnonzero(steps > 0)))


def _self_correlation(labels: Labels) -> np.ndarray:
    """Correlation of a label with itself shifted around the recording: (frames,)."""
    targets = labels.targets()
    centred = np.where(labels.known[:, None], targets - targets[labels.known].mean(0), 0)
    power = np.square(np.abs(np.fft.rfft(centred, axis=0))).sum(1)
    correlation: np.ndarray = np.fft.irfft(power, n=len(centred))
    return correlation / correlation[0]


@dataclass(frozen=True)
class _Tail:
    """Probability of a value among those of other labels, and whether none of them reaches it."""

    p: float
    highest: bool


def p_of_decoding(
    labels: Labels, shifts: Shifts, frames: np.ndarray, predicted: np.ndarray
) -> _Tail:
    """Probability that predictions follow the labels this closely by chance.

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

    null = np.array([follows(shifts.source(n, frames)) for n in range(len(shifts))])
    found, null = np.arctanh(follows(frames) * 0.9999), np.arctanh(null * 0.9999)
    p = float(tail(np.array([found]), null[:, None], shifts.different)[0])
    return _Tail(p, bool(found > np.nanmax(null, initial=-np.inf)))


def _p_of_strongest_cell(
    labels: Labels, shifts: Shifts, frames: np.ndarray, traces: np.ndarray
) -> _Tail:
    """Probability that a cell follows the labels as closely as the strongest one by chance.

    Cells are shifted together, so what they share is in the null as well.

    Parameters
    ----------
    frames : (n,) int64
        Ascending, evenly spaced.
    traces : (n, cells)
    """
    columns = _tuning_columns(labels).astype(np.float32)
    centred = torch.from_numpy(traces - traces.mean(0)).float()
    centred /= centred.norm(dim=0).clamp_(min=1e-12)

    def follow(sources: Sequence[np.ndarray]) -> np.ndarray:
        """Of each source of the labels, how closely each cell follows it: (sources, cells)."""
        rows = np.stack([columns[source].T for source in sources])
        stacked = torch.from_numpy(rows).flatten(0, 1)
        step = max(1, BLOCK_BYTES // (4 * len(stacked)))
        blocks = [stacked @ some for some in centred.split(step, dim=1)]
        squares = [block.square_().unflatten(0, rows.shape[:2]).sum(1) for block in blocks]
        return torch.cat(squares, 1).sqrt_().numpy()

    step = max(1, BLOCK_BYTES // (4 * len(frames) * max(columns.shape[1], 1)))
    null = np.concatenate(
        [
            follow([shifts.source(n, frames) for n in range(at, min(at + step, len(shifts)))])
            for at in range(0, len(shifts), step)
        ]
    )
    spread = np.maximum(null.std(0), 1e-12)
    strongest = ((null - null.mean(0)) / spread).max(1)
    found = float(((follow([frames])[0] - null.mean(0)) / spread).max())
    # the largest of many has a tail that falls slowly: that of a Gumbel distribution
    apart = (found - strongest.mean()) / max(strongest.std(ddof=1), 1e-12)
    apart /= np.sqrt(1 + 1 / shifts.different)
    tail = -np.expm1(-np.exp(-(np.pi / np.sqrt(6) * apart + np.euler_gamma)))
    reached = (strongest >= found).sum() / (1 + len(strongest))
    return _Tail(float(max(tail, reached)), bool(reached == 0))


def _tuning_columns(labels: Labels) -> np.ndarray:
    """Regressors a cell may be tuned to, whitened, 0 where not known: (frames, columns)."""
    columns: list[np.ndarray] = [
        np.eye(labels.n_codes)[labels.code] if labels.n_codes > 1 else labels.linear[:, :0]
    ]
    for values in labels.linear.T:
        knots = np.quantile(values[labels.known & labels.near], (np.arange(KNOTS) + 0.5) / KNOTS)
        width = max(np.diff(knots).mean(), 1e-6)
        bumps = np.exp(-0.5 * np.square((values[:, None] - knots) / width))
        columns.append(np.where(labels.near[:, None], bumps, 0))
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
    """Probability of values that large, among those of shifted labels.

    Overlapping shifts of a slow label are few samples. Where none of them reaches the value, p is
    the tail of a Student distribution with as many degrees of freedom as there are different
    shifts.

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
    decoded: Sequence[tuple[np.ndarray, np.ndarray]],
    cells: tuple[np.ndarray, np.ndarray],
) -> _Chance:
    """Test labels against shifts of themselves.

    Parameters
    ----------
    shifts : Shifts
        Of these labels.
    decoded : sequence of (n,) int64, (n, coordinates)
        Held-out frames, and what is predicted there, by each decoder.
    cells : (m,) int64, (m, cells)
        Frames, and traces there.
    """
    counts = {"samples": shifts.samples, "shifts": shifts.different}
    if not shifts.enough:
        return _Chance(untested=_too_few(shifts), **counts)
    tails = [p_of_decoding(labels, shifts, *each) for each in decoded]
    p_of_latents = tails[-1].p
    tails.append(_p_of_strongest_cell(labels, shifts, *cells))
    p = min(1.0, len(tails) * min(each.p for each in tails))
    untested = ""
    if p > LARGEST_P:
        untested = _too_few_values(shifts)
        if not untested and shifts.different < CERTAIN and any(each.highest for each in tails):
            untested = (
                f"The cells tell it better than all other labels do, but only "
                f"{shifts.different:.0f} of these truly differ: too few to show p ≤ {LARGEST_P:g}. "
                "A longer recording, or more trials, would show it."
            )
    return _Chance(p, untested=untested, p_of_latents=p_of_latents, **counts)


def _too_few(shifts: Shifts) -> str:
    """Why a label cannot be compared with others."""
    if shifts.orders is not None:
        return f"It is known in {shifts.samples:.0f} trials: too few to test this against chance."
    return (
        f"It changes so slowly, or so regularly, that the recording holds about "
        f"{max(shifts.samples, 1):.0f} independent samples of it: too few to test this against "
        "chance."
    )


def _too_few_values(shifts: Shifts) -> str:
    """Why a label of many values cannot be decoded over trials; empty if it can."""
    if shifts.orders is None:
        return ""
    each = shifts.orders.trials_a_value
    if each >= TRIALS_A_VALUE:
        return ""
    return (
        f"Each of its values comes in about {each:.0f} trials: too few to tell one from the "
        "others. If its values are numbers, open it as continuous (`--kind NAME=continuous`)."
    )


def rearranged(labels: Labels, source: np.ndarray) -> Labels:
    """Labels in which each frame has that of another."""
    return replace(labels, **{name: values[source] for name, values in vars(labels).items()})
