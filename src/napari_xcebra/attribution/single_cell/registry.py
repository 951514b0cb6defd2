"""The statistics there are, by name, and what a reader should know of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from napari_xcebra.attribution.single_cell.grid import grid_score
from napari_xcebra.attribution.single_cell.information import (
    information_rate,
    mutual_information,
    spatial_information,
)
from napari_xcebra.attribution.single_cell.linear import (
    correlation,
    decoder_weight,
    rank_correlation,
)
from napari_xcebra.recording import InputError
from napari_xcebra.tuning import Column

Compute = Callable[[np.ndarray, Sequence[Column], np.ndarray], np.ndarray]


def _to_anything(columns: Sequence[Column]) -> bool:
    return len(columns) > 0


def _to_position(columns: Sequence[Column]) -> bool:
    """Two lengths in the same unit."""
    return [c.kind for c in columns] == ["continuous"] * 2 and len({c.unit for c in columns}) == 1


@dataclass(frozen=True)
class Statistic:
    """One number a cell, computed from its activity and a variable.

    Parameters
    ----------
    name : str
        Of a column in a file.
    title : str
        Of a column in a narrow table.
    unit : str
        Empty for pure numbers.
    help : str
        One sentence.
    compute : callable
        (activity (frames, cells), columns, used (frames,) bool) → (cells,) float64.
    applies : callable
        Whether it can be computed for these columns.
    together : bool
        Whether it looks at all cells at once.
    most_cells : int, optional
        Beyond which it would take too long.
    signed : bool
        Whether what is far below 0 is as strong as what is far above.
    """

    name: str
    title: str
    unit: str
    help: str
    compute: Compute
    applies: Callable[[Sequence[Column]], bool] = _to_anything
    together: bool = False
    most_cells: int | None = None
    signed: bool = False

    def strength(self, values: np.ndarray) -> np.ndarray:
        """What cells are ranked by: (cells,) float64."""
        return np.abs(values) if self.signed else values


STATISTICS: dict[str, Statistic] = {
    statistic.name: statistic
    for statistic in (
        Statistic(
            "spatial_information",
            "SI",
            "bits/event",
            "Skaggs information from the smoothed tuning map; on calcium traces, activity above "
            "the lowest quarter of the trace counts as events.",
            spatial_information,
        ),
        Statistic(
            "information_rate",
            "SI rate",
            "bits/s",
            "The same times the mean activity; bits per second where traces are events per second.",
            information_rate,
        ),
        Statistic(
            "mutual_information",
            "MI",
            "bits",
            "Mutual information of 8 levels of activity with the binned variable, less what it is "
            "on average with the variable shifted in time.",
            mutual_information,
        ),
        Statistic(
            "correlation",
            "r",
            "",
            "Pearson's correlation; circular-linear for angles, the correlation ratio η for "
            "discrete variables, multiple R for several columns.",
            correlation,
            signed=True,
        ),
        Statistic(
            "rank_correlation",
            "ρ",
            "",
            "The same of ranks (Spearman), which finds what rises or falls in any shape.",
            rank_correlation,
            signed=True,
        ),
        Statistic(
            "grid_score",
            "grid",
            "",
            "How hexagonal the map is (Sargolini et al. 2006), −2 to 2.",
            grid_score,
            applies=_to_position,
        ),
        Statistic(
            "decoder_weight",
            "weight",
            "",
            "Size of the weight in a linear (ridge) decoder of the variable from all cells.",
            decoder_weight,
            together=True,
            most_cells=2000,
        ),
    )
}


def statistic_named(name: str) -> Statistic:
    """Statistic of that name, or a sentence listing those there are."""
    try:
        return STATISTICS[name]
    except KeyError:
        raise InputError(
            f"There is no statistic {name!r}; there are: {', '.join(STATISTICS)}."
        ) from None
