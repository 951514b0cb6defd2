"""Compares the scores of cells that were found in several sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.tables import write_tables
from napari_xcebra.errors import InputError
from napari_xcebra.recording.matching import MISSING, Matching
from napari_xcebra.text import listed

LEAST_CELLS = 4
"""Cells in common below which two sessions are not compared."""


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
        """Spearman's ρ of the scores between each pair of sessions; NaN with too few cells."""
        scores = pd.DataFrame(self.scores[factor], columns=list(self.sessions))
        return scores.corr("spearman", min_periods=LEAST_CELLS)

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
    return pd.Series(score).rank(method="min", ascending=False).to_numpy()


def _shares(score: np.ndarray) -> np.ndarray:
    """Ranks from 1 for the highest score down to 0."""
    ranks = _ranks(score)
    return np.asarray(1 - (ranks - 1) / max(np.nanmax(ranks) - 1, 1))
