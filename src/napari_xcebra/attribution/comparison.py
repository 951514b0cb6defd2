"""Compares the scores of cells: by several methods and statistics, and in several sessions.

Torch is imported only to compute.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.methods import METHODS, method_named, title_of_method
from napari_xcebra.attribution.ranks import pearson, rank_correlation, ranks_of, relative_ranks
from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.tables import check_factor, write_tables
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.recording.matching import MISSING, Matching
from napari_xcebra.text import listed, two

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.single_cell.statistics import CellStatistics
    from napari_xcebra.learn.result import Fit

LEAST_CELLS = 4
"""Cells in common below which two sessions are not compared."""
_DRAWS = 200
"""Times that cells are drawn anew for an interval."""


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


@dataclass(frozen=True)
class MatchedScores:
    """Scores of the same cells in several sessions.

    Parameters
    ----------
    matching : Matching
        By ids of the recordings; cells found in two sessions or more.
    scores, z : mapping of str to (cells, sessions)
        Of each factor; NaN where a cell was not found or has no score.
    ranks : mapping of str to (cells, sessions)
        Among all cells of the session that have a score, 1 for the highest.
    shares : mapping of str to (cells, sessions)
        The same as a share of these cells: 1 for the highest, 0 for the lowest.
    at_chance : mapping of str to (sessions,) bool
        Where the map of a factor means nothing.
    method : str
    """

    matching: Matching
    scores: Mapping[str, np.ndarray]
    z: Mapping[str, np.ndarray]
    ranks: Mapping[str, np.ndarray]
    shares: Mapping[str, np.ndarray]
    at_chance: Mapping[str, np.ndarray]
    method: str

    @property
    def sessions(self) -> tuple[str, ...]:
        """Names of the sessions."""
        return self.matching.sessions

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(self.scores)

    def where_at_chance(self, factor: str) -> list[str]:
        """Sessions in which the map of a factor means nothing."""
        return [s for s, c in zip(self.sessions, self.at_chance[factor], strict=True) if c]

    def table(self, factor: str) -> pd.DataFrame:
        """One row a cell and session in which it was found.

        Columns: match (number of the cell), session, cell (its id there), score, z, rank,
        at_chance.
        """
        import pandas as pd

        row, column = np.nonzero(self.matching.ids != MISSING)
        return pd.DataFrame(
            {
                "match": row,
                "session": np.array(self.sessions, object)[column],
                "cell": self.matching.ids[row, column],
                "score": self.scores[factor][row, column],
                "z": self.z[factor][row, column],
                "rank": self.ranks[factor][row, column],
                "at_chance": self.at_chance[factor][column],
            }
        )

    def correlations(self, factor: str) -> pd.DataFrame:
        """Spearman's ρ of the scores between each pair of sessions; NaN with too few cells."""
        import pandas as pd

        scores = pd.DataFrame(self.scores[factor], columns=list(self.sessions))
        return scores.corr("spearman", min_periods=LEAST_CELLS)

    def stability(self, factor: str) -> tuple[float, float, float]:
        """Mean of `correlations` over pairs of sessions, and its interval from 5 to 95 %.

        Cells are drawn anew with replacement, 200 times; NaN with too few of them.
        """
        import pandas as pd

        rng = np.random.default_rng(0)
        off = np.triu(np.ones((len(self.sessions),) * 2, bool), 1)
        scores = self.scores[factor]

        def mean_of(rows: np.ndarray) -> float:
            table = pd.DataFrame(rows).corr("spearman", min_periods=LEAST_CELLS)
            known = table.to_numpy()[off]
            return float(np.nanmean(known)) if np.isfinite(known).any() else float("nan")

        drawn = [mean_of(scores[rng.integers(0, len(scores), len(scores))]) for _ in range(_DRAWS)]
        if np.isnan(drawn).all():
            return mean_of(scores), float("nan"), float("nan")
        low, high = np.nanpercentile(drawn, (5, 95))
        return mean_of(scores), float(low), float(high)

    def summary(self) -> str:
        """A sentence for each factor."""
        lines = []
        cells = len(self.matching.ids)
        off = ~np.eye(len(self.sessions), dtype=bool)
        for factor in self.factors:
            rho = self.correlations(factor).to_numpy()[off]
            if np.isnan(rho).all():
                lines.append(f"{factor}: too few cells are matched to compare sessions.")
                continue
            mean, low, high = self.stability(factor)
            sentence = (
                f"{factor}: scores of the {cells} matched cells correlate between sessions by "
                f"{mean:.2f} (Spearman's ρ; 90 % interval over cells {low:.2f} to {high:.2f})."
            )
            if where := self.where_at_chance(factor):
                sentence += f" It is at chance in {listed(where)}, where the map means nothing."
            lines.append(sentence)
        return "\n".join(lines)

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one row a cell, session and factor."""
        return write_tables(path, self.factors, self.table)


def matched_scores(attributions: Mapping[str, Attribution], matching: Matching) -> MatchedScores:
    """Scores of matched cells, session by session.

    Parameters
    ----------
    attributions : mapping of str to Attribution
        By session, of the same factors and method.
    matching : Matching
        Of these sessions, by the ids of the recordings (`Matching.of`).
    """
    sessions = tuple(attributions)
    if matching.sessions != sessions or matching.positions:
        raise InputError(
            f"The cells are matched for {', '.join(matching.sessions)} and the scores are of "
            f"{', '.join(sessions)}: use `Matching.of` with the recordings of these sessions."
        )
    first = attributions[sessions[0]]
    for name, each in attributions.items():
        if (each.factors, each.method) != (first.factors, first.method):
            raise InputError(f"Session {name!r} was scored by other factors or another method.")
    several = matching.repeated()
    if len(several.ids) == 0:
        raise InputError(
            "No cell is matched in two of these sessions: there is nothing to compare."
        )

    every = list(attributions.values())

    def gathered(of_sessions: Iterable[np.ndarray]) -> np.ndarray:
        import pandas as pd

        columns = [
            pd.Series(values, each.cell_ids).reindex(ids)
            for values, each, ids in zip(of_sessions, every, several.ids.T, strict=True)
        ]
        return np.stack(columns, axis=1).astype(np.float64)

    scores, z, ranks, shares, at_chance = {}, {}, {}, {}, {}
    for factor in first.factors:
        scores[factor] = gathered(each.score(factor) for each in every)
        z[factor] = gathered(each.z(factor) for each in every)
        ranks[factor] = gathered(_ranks(each.score(factor)) for each in every)
        shares[factor] = gathered(_shares(each.score(factor)) for each in every)
        at_chance[factor] = np.array([each.at_chance(factor) for each in every])
    return MatchedScores(several, scores, z, ranks, shares, at_chance, first.method)


def _ranks(score: np.ndarray) -> np.ndarray:
    """1 for the highest, NaN where there is no score."""
    import pandas as pd

    return pd.Series(score).rank(method="min", ascending=False).to_numpy()


def _shares(score: np.ndarray) -> np.ndarray:
    """Ranks from 1 for the highest score down to 0."""
    ranks = _ranks(score)
    return np.asarray(1 - (ranks - 1) / max(np.nanmax(ranks) - 1, 1))
