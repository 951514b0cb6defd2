"""Compares conditions by permuting them over animals, which are the independent samples.

Cells of one animal are not: they share its health, its window, its training and its day. A test
over cells finds a difference between any two groups of animals if there are enough cells.

With each animal in one condition, conditions are dealt out to the animals anew; with animals in
several conditions, these are exchanged within each animal. p is the share of all such arrangements
in which the conditions differ at least as much, exact where they can be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import comb, factorial, prod
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.text import listed

if TYPE_CHECKING:
    import pandas as pd


MOST = 20_000
"""Arrangements that are counted one by one; of more, this many are drawn."""
USUAL = 0.05
"""Level that is asked for by custom: a sentence says if no p below it is possible."""


@dataclass(frozen=True)
class AnimalTest:
    """Comparison of conditions with the animal as the unit.

    Parameters
    ----------
    conditions : tuple of str
    means : tuple of float
        Mean over the animals of each condition.
    animals : tuple of int
        Animals in each condition; the same ones if `within`.
    within : bool
        Whether conditions are compared within animals.
    p : float
        NaN if there is nothing to permute.
    smallest : float
        Smallest p that so many animals can give.
    arrangements : int
        Arrangements compared.
    exact : bool
        Whether these are all there are.
    left_out : tuple of str
        Animals that lack one of the conditions, where they are compared within animals.
    """

    conditions: tuple[str, ...]
    means: tuple[float, ...]
    animals: tuple[int, ...]
    within: bool
    p: float
    smallest: float
    arrangements: int
    exact: bool
    left_out: tuple[str, ...] = ()

    @property
    def too_few(self) -> bool:
        """Whether no result of so many animals can have p < 0.05."""
        return not self.smallest < USUAL

    @property
    def design(self) -> str:
        """How the animals are compared."""
        return "within animals" if self.within else "between animals"

    @property
    def sentence(self) -> str:
        """The result, and whether there were enough animals for one."""
        means = ", ".join(f"{n} {m:.3g}" for n, m in zip(self.conditions, self.means, strict=True))
        if self.within:
            who = f"{self.animals[0]} animals in every condition"
        else:
            who = f"{listed(map(str, self.animals))} animals"
        if np.isnan(self.p):
            return f"{means} ({who}): too few animals to compare."
        how = f"all {self.arrangements:,}" if self.exact else f"{self.arrangements:,} random"
        told = f"{means} ({who}; p = {self.p:.2g} by {how} arrangements)."
        if self.too_few:
            need = enough(len(self.conditions), self.within)
            each = "animals" if self.within else "animals in each condition"
            told += (
                f" Too few animals to tell: no result can have p below {self.smallest:.2g}. For "
                f"p < 0.05, {need} {each} are needed."
            )
        return told


def compare_animals(values: pd.DataFrame, seed: int = 0) -> AnimalTest:
    """Compare the conditions of one table.

    Parameters
    ----------
    values : DataFrame
        A row an animal, a column a condition: its mean over days, NaN where it has none.
    seed : int
        Of the arrangements, if there are too many to count.
    """
    values = values.dropna(how="all")
    known = values.notna()
    within = bool((known.sum(axis=1) > 1).any())
    left_out: tuple[str, ...] = ()
    if within:
        complete = known.all(axis=1)
        left_out = tuple(map(str, values.index[~complete]))
        values = values[complete]
    numbers = values.to_numpy(np.float64)
    counts = np.isfinite(numbers).sum(axis=0)
    with np.errstate(invalid="ignore"):
        means = np.nansum(numbers, axis=0) / counts
    names = tuple(map(str, values.columns))
    known_facts = (names, tuple(map(float, means)), tuple(map(int, counts)), within)
    if len(names) < 2 or counts.min() < 1 or len(values) < 2:
        return AnimalTest(*known_facts, np.nan, 1.0, 0, True, left_out)
    total, alike = _arrangements(counts, within)
    drawn = total > MOST
    random = np.random.default_rng(seed) if drawn else None
    spread, as_recorded = (_exchanged if within else _dealt_out)(numbers, random)
    # sums in another order differ in their last digits
    as_much = int(np.sum(spread >= as_recorded * (1 - 1e-9) - 1e-15))
    p = (as_much + drawn) / (len(spread) + drawn)
    smallest = max(alike / total, 1 / (MOST + 1) if drawn else 0.0)
    return AnimalTest(*known_facts, float(p), smallest, len(spread), not drawn, left_out)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p by Holm, for several comparisons of one measure.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    least, found = 0.0, [float("nan")] * len(order)
    count = int(np.isfinite(p_values).sum())
    for place, at in enumerate(order[:count]):
        least = max(least, min(1.0, (count - place) * p_values[at]))
        found[at] = least
    return found


def enough(conditions: int, within: bool) -> int:
    """Animals, in each condition if they are not the same, that can give p < 0.05."""
    counts = range(2, 10)
    for each in counts:
        total, alike = _arrangements([each] * conditions, within)
        if alike / total < USUAL:
            return each
    raise AssertionError("nine animals are always enough")


def _arrangements(counts: Sequence[int] | np.ndarray, within: bool) -> tuple[int, int]:
    """Number of all arrangements, and of those that differ only in the conditions' names."""
    counts = [int(count) for count in counts]
    if within:
        orders = factorial(len(counts))
        return orders ** counts[0], orders
    left, total = sum(counts), 1
    for count in counts:
        total *= comb(left, count)
        left -= count
    return total, prod(factorial(same) for same in Counter(counts).values())


def _exchanged(numbers: np.ndarray, random: np.random.Generator | None) -> tuple[np.ndarray, float]:
    """Spread of the conditions, exchanged within each animal, and as recorded.

    Parameters
    ----------
    numbers : (animals, conditions) float64
    random : Generator, optional
        Draws arrangements; without it, all of them are made.

    Returns
    -------
    (arrangements,) float64, and float
    """
    animals, conditions = numbers.shape
    centred = numbers - numbers.mean(1, keepdims=True)
    orders = np.array(list(permutations(range(conditions))))
    if random is None:
        choices = np.indices((len(orders),) * animals).reshape(animals, -1).T
    else:
        choices = random.integers(len(orders), size=(MOST, animals))
    sums = np.zeros((len(choices), conditions))
    for animal, own in enumerate(centred):
        sums += own[orders[choices[:, animal]]]
    return _spread(sums, animals), float(_spread(centred.sum(0), animals))


def _dealt_out(numbers: np.ndarray, random: np.random.Generator | None) -> tuple[np.ndarray, float]:
    """Spread of the conditions, dealt out to the animals anew; as `_exchanged`."""
    animals, places = np.nonzero(np.isfinite(numbers))
    values = numbers[animals, places] - np.nanmean(numbers)
    counts = np.isfinite(numbers).sum(0)
    if random is None:
        dealt = np.array(list(_ways(len(values), counts)))
    else:
        dealt = random.permuted(np.tile(places, (MOST, 1)), axis=1)

    def sums(condition: np.ndarray) -> np.ndarray:
        return np.stack([(condition == c) @ values for c in range(len(counts))], axis=-1)

    return _spread(sums(dealt), counts), float(_spread(sums(places), counts))


def _spread(sums: np.ndarray, counts: np.ndarray | int) -> np.ndarray:
    """Sum of squares between conditions, (…,), from sums over their animals, (…, conditions)."""
    return np.sum(sums**2 / counts, axis=-1)


def _ways(animals: int, counts: np.ndarray) -> Iterator[np.ndarray]:
    """Every way to deal conditions out to the animals: (animals,) int, the condition of each."""
    if len(counts) == 1:
        yield np.zeros(animals, int)
        return
    for chosen in combinations(range(animals), int(counts[-1])):
        for others in _ways(animals - len(chosen), counts[:-1]):
            condition = np.full(animals, len(counts) - 1)
            condition[np.delete(np.arange(animals), list(chosen))] = others
            yield condition
