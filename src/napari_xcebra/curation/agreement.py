"""Measures how well a curator and the model, or two curators, agree on the same cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.curation.changes import ACCEPTED, UNDECIDED
from napari_xcebra.curation.decisions import Curation
from napari_xcebra.errors import InputError
from napari_xcebra.text import percent

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 2000
_CLASSES = ("accepted", "rejected")


@dataclass(frozen=True, eq=False)
class Agreement:
    """Cohen's κ and the table it is computed from.

    Parameters
    ----------
    table : DataFrame
        Counts; rows by the first, columns by the second: accepted, rejected.
    names : (str, str)
        Of the two.
    kappa : float
        0 by chance, 1 for full agreement; NaN where it says nothing.
    low, high : float
        95 % interval of κ, by resampling cells.
    why : str
        Why there is no κ; empty where there is one.
    """

    table: pd.DataFrame
    names: tuple[str, str]
    kappa: float
    low: float
    high: float
    why: str = ""

    @property
    def n_cells(self) -> int:
        """Cells on which both decided."""
        return int(self.table.to_numpy().sum())

    @property
    def agreed(self) -> float:
        """Share of these on which they agree; NaN without any."""
        return float(np.trace(self.table.to_numpy()) / self.n_cells) if self.n_cells else np.nan

    @property
    def sentence(self) -> str:
        """The result in words."""
        first, second = self.names
        if not self.n_cells:
            return self.why
        said = f"{first} and {second} agree on {percent(self.agreed)} of {self.n_cells} cells"
        if self.why:
            return f"{said}. {self.why}"
        return f"{said}: κ = {self.kappa:.2f} (95 % interval {self.low:.2f} to {self.high:.2f})."


def agreement(
    first: np.ndarray,
    second: np.ndarray,
    names: tuple[str, str] = ("the curator", "the model"),
    *,
    seed: int = 0,
) -> Agreement:
    """Compare two sets of decisions on the same cells.

    Parameters
    ----------
    first, second : (cells,) bool or float
        True or 1 for accepted, False or 0 for rejected; NaN for a cell that does not count.
    names : (str, str)
        Who decided.
    seed : int
        Of the resampling that gives the interval.

    Examples
    --------
    >>> result = agreement([1, 1, 0, 0, np.nan], [1, 0, 0, 0, 1], ("Ann", "Ben"))
    >>> result.n_cells, round(result.kappa, 3)
    (4, 0.5)
    """
    import pandas as pd

    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(
            f"Decisions of shape {a.shape} and {b.shape} cannot be compared: one per cell is "
            "needed."
        )
    both = ~np.isnan(a) & ~np.isnan(b)
    rejected = a[both] == 0, b[both] == 0
    counts = np.zeros((2, 2), np.int64)
    np.add.at(counts, tuple(each.astype(int) for each in rejected), 1)
    table = pd.DataFrame(
        counts,
        index=pd.Index(_CLASSES, name=names[0]),
        columns=pd.Index(_CLASSES, name=names[1]),
    )
    why = _why_none(counts, names)
    if why:
        return Agreement(table, names, np.nan, np.nan, np.nan, why)
    low, high = _interval(counts, seed)
    return Agreement(table, names, float(_kappa(counts.ravel() / counts.sum())), low, high)


def with_model(curation: Curation, above: np.ndarray, factor: str = "") -> Agreement:
    """Compare decisions by hand with which cells score above threshold.

    Parameters
    ----------
    curation : Curation
        Decisions by threshold are the model's own, and do not count.
    above : (cells,) bool or float
        NaN for cells without a score, which do not count.
    factor : str
        Whose scores.
    """
    model = f"the model ({factor})" if factor else "the model"
    return agreement(by_hand(curation), above, (curation.curator or "the curator", model))


def between(first: Curation, second: Curation, names: tuple[str, str] | None = None) -> Agreement:
    """Compare the decisions by hand of two curations, cell by cell id."""
    _, in_first, in_second = np.intersect1d(
        first.cell_ids, second.cell_ids, assume_unique=True, return_indices=True
    )
    if names is None:
        a, b = first.curator or "the first", second.curator or "the second"
        names = (a, b) if a != b else (f"{a} (first)", f"{b} (second)")
    return agreement(by_hand(first)[in_first], by_hand(second)[in_second], names)


def by_hand(curation: Curation) -> np.ndarray:
    """(cells,) float: 1 accepted, 0 rejected, NaN where nobody decided by hand."""
    status = curation.status
    decided = curation.by_hand & (status != UNDECIDED)
    return np.where(decided, (status == ACCEPTED).astype(np.float64), np.nan)


def _why_none(counts: np.ndarray, names: tuple[str, str]) -> str:
    if not counts.sum():
        return f"There are no cells on which both {names[0]} and {names[1]} decided."
    for name, totals in zip(names, (counts.sum(axis=1), counts.sum(axis=0)), strict=True):
        if not totals.all():
            did = _CLASSES[int(np.argmax(totals))]
            return f"κ is not defined here, because {name} {did} all of these {counts.sum()} cells."
    return ""


def _interval(counts: np.ndarray, seed: int) -> tuple[float, float]:
    """95 % of κ over resampled cells; for a 2 × 2 table, draws of the table itself."""
    n = counts.sum()
    drawn = np.random.default_rng(seed).multinomial(n, counts.ravel() / n, RESAMPLES) / n
    low, high = np.nanpercentile(_kappa(drawn), [2.5, 97.5])
    return float(low), float(high)


def _kappa(shares: np.ndarray) -> np.ndarray:
    """Cohen's κ of (..., 4) shares of 2 × 2 tables, row by row; NaN where nobody varies."""
    both, first, second, neither = np.moveaxis(shares, -1, 0)
    rows, columns = both + first, both + second
    expected = rows * columns + (1 - rows) * (1 - columns)
    varied = expected < 1 - 1e-12
    beyond = both + neither - expected
    return np.divide(beyond, 1 - expected, out=np.full_like(expected, np.nan), where=varied)
