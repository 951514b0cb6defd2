"""Makes other labels of a trial variable: the values of its trials in another order.

Trials are exchanged within the conditions of other trial variables that go with it: choice within
each stimulus, if animals mostly choose by it. Where values come in blocks of trials, trials are not
exchangeable: the sequence of values is turned around as a whole instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from scipy.stats import chi2_contingency

from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.trials import Course

ORDERS = 200
"""Orders of the trials that are tried."""
TOGETHER = 0.01
"""p of two variables over trials, below which they go together."""
FEWEST_ORDERS = 200
"""Orders that must be possible within conditions; else the conditions are left out."""
LEVELS = 4
"""Groups of trials by a variable that has many values."""
UNLIKE = 0.2
"""Share of the trials, beyond chance, that may keep their value when a sequence is turned."""
BLOCKED = 4.0
"""Standard deviations by which neighbouring trials share a value more often than by chance."""


@dataclass(frozen=True)
class TrialOrders:
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
) -> TrialOrders | None:
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
        return TrialOrders(
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
    return TrialOrders(
        course,
        labels[factor].known,
        condition,
        different,
        together,
        confounded,
        trials_a_value=each,
    )


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
    limit = by_chance + UNLIKE * (1 - by_chance)
    block = int(np.argmax(repeats[1:] <= limit)) + 1 if (repeats <= limit).any() else trials
    turns = np.arange(block, trials - block + 1)
    unlike = turns[np.abs(repeats[turns] - by_chance) <= limit - by_chance]
    share = len(unlike) / max(len(turns), 1)
    return unlike, share * max(trials / block - 2, 0) / 2


def _repeats(values: np.ndarray, turn: int) -> float:
    """Share of the trials that have the value they have after a turn."""
    return float((np.roll(values, turn) == values).mean())
