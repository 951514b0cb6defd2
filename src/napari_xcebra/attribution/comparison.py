"""Compares all methods for one fit with each other and with single-cell statistics.

Torch is imported only to compute.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.methods import METHODS, method_named, title_of_method
from napari_xcebra.attribution.ranks import pearson, rank_correlation, ranks_of, relative_ranks
from napari_xcebra.attribution.tables import check_factor, write_tables
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.text import two

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.result import Attribution
    from napari_xcebra.attribution.single_cell.statistics import CellStatistics
    from napari_xcebra.learn.result import Fit


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of the cells by several methods and statistics.

    Parameters
    ----------
    cell_ids : (cells,) int64
        Every ROI of the recording, in its order.
    scores : mapping of factor to mapping of method or statistic to (cells,) float64
        NaN where a cell has none. Signed statistics are given as their size.
    at_chance : mapping of str to bool
        True for factors that were not found in the cells: no ranking by a method means anything.
    """

    cell_ids: np.ndarray
    scores: Mapping[str, Mapping[str, np.ndarray]]
    at_chance: Mapping[str, bool]

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(self.scores)

    def methods(self, factor: str) -> tuple[str, ...]:
        """Methods of attribution among those compared."""
        from napari_xcebra.attribution.single_cell.statistics import STATISTICS

        return tuple(name for name in self.of(factor) if name not in STATISTICS)

    def of(self, factor: str) -> Mapping[str, np.ndarray]:
        """Scores of the cells for a factor: methods first, then statistics."""
        check_factor(factor, self.factors)
        return self.scores[factor]

    def ranks(self, factor: str) -> np.ndarray:
        """(cells, methods and statistics) int, 1 for the highest score; 0 where there is none."""
        return np.stack([ranks_of(scores) for scores in self.of(factor).values()], axis=1)

    def spread(self, factor: str) -> np.ndarray:
        """Disagreement of the methods about a cell: highest less lowest rank, as a share of cells.

        Returns
        -------
        (cells,) float64
            0 where all methods agree, near 1 where one has the cell first and another last; NaN
            where no method has a score.
        """
        places = np.stack([relative_ranks(self.of(factor)[name]) for name in self.methods(factor)])
        return np.asarray(np.fmax.reduce(places) - np.fmin.reduce(places))

    def correlations(self, factor: str) -> pd.DataFrame:
        """Spearman's ρ between each pair, over the cells that have both."""
        import pandas as pd

        scores = list(self.of(factor).values())
        # nearly all have the same cells, so each is ranked once: ranking ranks changes nothing
        places = [relative_ranks(one) for one in scores]
        known = [np.isfinite(one) for one in scores]
        values = np.ones((len(scores), len(scores)))
        for i, j in zip(*np.tril_indices(len(scores)), strict=True):
            same = np.array_equal(known[i], known[j])
            pair = (places[i], places[j]) if same else (scores[i], scores[j])
            values[i, j] = values[j, i] = (pearson if same else rank_correlation)(*pair)
        return pd.DataFrame(values, index=list(self.of(factor)), columns=list(self.of(factor)))

    def table(self, factor: str) -> pd.DataFrame:
        """One row a ROI: cell, score and rank by each method and statistic, rank_spread."""
        import pandas as pd

        scores, ranks = self.of(factor), self.ranks(factor)
        columns: dict[str, np.ndarray] = {"cell": self.cell_ids, "rank_spread": self.spread(factor)}
        for number, (name, values) in enumerate(scores.items()):
            columns[name] = values
            columns[f"{name} rank"] = np.where(ranks[:, number] > 0, ranks[:, number], np.nan)
        return pd.DataFrame(columns)

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one row a ROI and factor."""
        return write_tables(path, self.factors, self.table)


def compare(
    attributions: Mapping[str, Attribution], statistics: CellStatistics | None = None
) -> Comparison:
    """Put attributions of one fit, and statistics of the same cells, side by side.

    Parameters
    ----------
    attributions : mapping of str to Attribution
        By method.
    statistics : CellStatistics, optional
    """
    from napari_xcebra.attribution.single_cell.statistics import STATISTICS

    if not attributions:
        raise InputError("There is no attribution to compare: compute at least one first.")
    first = next(iter(attributions.values()))
    ids = [one.cell_ids for one in attributions.values()]
    ids += [statistics.cell_ids] if statistics else []
    if not all(np.array_equal(first.cell_ids, other) for other in ids):
        raise InputError("The attributions are not of the same cells: compute them again.")
    scores: dict[str, dict[str, np.ndarray]] = {}
    for factor in first.factors:
        by_method = {
            method: np.asarray(one.score(factor), np.float64)
            for method, one in attributions.items()
            if factor in one.factors
        }
        found = statistics.of(factor) if statistics else {}
        by_statistic = {n: s.strength(found[n]) for n, s in STATISTICS.items() if n in found}
        scores[factor] = {**by_method, **by_statistic}
    at_chance = {factor: first.at_chance(factor) for factor in first.factors}
    return Comparison(first.cell_ids, scores, at_chance)


def attribute_all(
    fit: Fit,
    recording: Recording,
    *,
    on_progress: Callable[[str, int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
    on_failure: Callable[[str, str], object] | None = None,
) -> dict[str, Attribution]:
    """Attribution by every method, the slow ones over every 10th frame.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    on_progress : callable, optional
        Called with the method, the number of frames done and in all.
    stop : callable, optional
        As of `attribute`.
    on_failure : callable, optional
        Called with a method that cannot be computed and a sentence about it; the others go on.
    """
    from napari_xcebra.attribution import AttributionStopped, attribute

    found: dict[str, Attribution] = {}
    for number, method in enumerate(METHODS):
        if stop is not None and stop():
            raise AttributionStopped(f"Stopped after {number} of {len(METHODS)} methods.")

        def advance(frames: int, total: int, method: str = method) -> None:
            if on_progress is not None:
                on_progress(method, frames, total)

        try:
            frames = method_named(method).frames
            found[method] = attribute(
                fit, recording, method, frames=frames, on_progress=advance, stop=stop
            )
        except InputError as error:
            if on_failure is None:
                raise
            on_failure(method, str(error))
    return found


def short_number(correlation: float) -> str:
    """A correlation where there is little room.

    >>> short_number(0.456), short_number(-0.04), short_number(-0.001), short_number(1.0)
    ('.46', '−.04', '.00', '1.00')
    """
    return two(correlation).replace("0.", ".")


def title_of(name: str) -> str:
    """Title of a method or statistic in a picture.

    >>> title_of("mutual_information"), title_of("shapley-zeros")
    ('mutual information', 'shapley zeros')
    """
    return title_of_method(name).replace("_", " ")
