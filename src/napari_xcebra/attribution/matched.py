"""Cells that were found on several days, and whether they carry the same on each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr

from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.tables import write_tables
from napari_xcebra.matching import MISSING, Matching
from napari_xcebra.recording import InputError

LEAST_CELLS = 4
"""Cells in common below which two days are not compared."""


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
        """Spearman's ρ of the scores between each two sessions; NaN with too few cells."""
        return self._between(factor)[0]

    def p_values(self, factor: str) -> pd.DataFrame:
        """Of these correlations, if the cells of one day had nothing to do with the other's."""
        return self._between(factor)[1]

    def _between(self, factor: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        scores, count = self.scores[factor], len(self.sessions)
        rho, p = np.eye(count), np.full((count, count), np.nan)
        for i in range(count):
            for j in range(i):
                both = ~np.isnan(scores[:, [i, j]]).any(1)
                found = (np.nan, np.nan)
                if both.sum() >= LEAST_CELLS:
                    found = spearmanr(scores[both, i], scores[both, j])
                rho[i, j] = rho[j, i] = found[0]
                p[i, j] = p[j, i] = found[1]
        names = list(self.sessions)
        return pd.DataFrame(rho, names, names), pd.DataFrame(p, names, names)

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
            sentence = (
                f"{factor}: scores of the {cells} matched cells correlate between sessions by "
                f"{np.nanmean(rho):.2f} (Spearman's ρ, {np.nanmin(rho):.2f} to "
                f"{np.nanmax(rho):.2f})."
            )
            if where := self.where_at_chance(factor):
                sentence += f" It is at chance in {', '.join(where)}, whose map means nothing."
            lines.append(sentence)
        return "\n".join(lines)

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write one row a cell, session and factor."""
        return write_tables(path, self.factors, self.table)


def matched_scores(attributions: Mapping[str, Attribution], matching: Matching) -> MatchedScores:
    """Scores of matched cells, day by day.

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

    def gathered(value: Mapping[str, np.ndarray]) -> np.ndarray:
        columns = [
            _at(attributions[name].cell_ids, value[name], several.ids[:, number])
            for number, name in enumerate(sessions)
        ]
        return np.stack(columns, axis=1)

    scores, z, ranks, shares, at_chance = {}, {}, {}, {}, {}
    for factor in first.factors:
        own = {name: a.score(factor) for name, a in attributions.items()}
        scores[factor] = gathered(own)
        z[factor] = gathered({name: a.z(factor) for name, a in attributions.items()})
        ranked = {name: _ranks(score) for name, score in own.items()}
        ranks[factor] = gathered(ranked)
        shares[factor] = gathered(
            {name: 1 - (r - 1) / max(np.nanmax(r) - 1, 1) for name, r in ranked.items()}
        )
        at_chance[factor] = np.array([a.at_chance(factor) for a in attributions.values()])
    return MatchedScores(several, scores, z, ranks, shares, at_chance, first.method)


def _at(cell_ids: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    position = {int(cell): number for number, cell in enumerate(cell_ids)}
    return np.array(
        [values[position[int(cell)]] if int(cell) in position else np.nan for cell in wanted],
        np.float64,
    )


def _ranks(score: np.ndarray) -> np.ndarray:
    """1 for the highest, NaN where there is no score."""
    ranks = np.full(len(score), np.nan)
    known = ~np.isnan(score)
    ranks[known] = rankdata(-score[known], method="min")
    return ranks
