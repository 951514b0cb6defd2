"""Measures which scores hold when training is repeated with other seeds.

Torch is imported only to train, so that a window can show the outcome without it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.methods import DEFAULT, consensus_of
from napari_xcebra.attribution.ranks import ranks_of
from napari_xcebra.attribution.tables import check_factor, write_tables
from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording
from napari_xcebra.standardise import standardised

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.result import Attribution
    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn.data.factors import Factors
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.settings import FitSettings

DIFFERENT = (
    "Stability compares fits that differ only in their seed: these differ in method, factors or "
    "cells."
)
RANK_SPREAD = 0.25
"""Share of all cells that the ranks of a stable cell may span."""


@dataclass(frozen=True, eq=False)
class Stability:
    """Scores of every cell by fits that differ only in their seed.

    Parameters
    ----------
    method : str
    factors : tuple of str
    cell_ids : (cells,) int64
    scores : (seeds, factors, cells) float32
        NaN where a cell was not used.
    seeds : tuple of int
    fits : tuple of Fit
        From which the scores come.
    """

    method: str
    factors: tuple[str, ...]
    cell_ids: np.ndarray
    scores: np.ndarray
    seeds: tuple[int, ...]
    fits: tuple[Fit, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, attributions: Sequence[Attribution]) -> Stability:
        """Stability of attributions of one recording by one method, from different fits."""
        first = attributions[0]
        about = (first.method, first.factors, first.cell_ids)
        for other in attributions[1:]:
            if not _same(about, (other.method, other.factors, other.cell_ids)):
                raise InputError(DIFFERENT)
        scores = [[each.score(factor) for factor in first.factors] for each in attributions]
        return cls(
            *about,
            np.array(scores),
            tuple(each.seed for each in attributions),
            tuple(each.fit for each in attributions if each.fit is not None),
        )

    def score(self, factor: str) -> np.ndarray:
        """Score by each fit: (seeds, cells)."""
        check_factor(factor, self.factors)
        return self.scores[:, self.factors.index(factor)]

    def z(self, factor: str) -> np.ndarray:
        """Score standardised over cells, by each fit: (seeds, cells)."""
        return standardised(self.score(factor), axis=1, skip_nan=True)

    def rank(self, factor: str) -> np.ndarray:
        """Share of the cells that score lower, by each fit: (seeds, cells), from 0 to 1."""
        score = self.score(factor)
        ranks = scipy.stats.rankdata(score, axis=1, nan_policy="omit") - 1
        return ranks / np.maximum(np.nanmax(ranks, axis=1, keepdims=True), 1)

    def places(self, factor: str) -> np.ndarray:
        """Best and worst rank of each cell over the fits: (2, cells) int, 1 for the highest score.

        0 where a cell was not used.
        """
        ranks = np.stack([ranks_of(score) for score in self.score(factor)])
        return np.stack([ranks.min(0), ranks.max(0)])

    def consensus(self, factor: str) -> np.ndarray:
        """Mean z over the fits: (cells,)."""
        return self.z(factor).mean(0)

    @cached_property
    def of_consensus(self) -> Stability:
        """The same fits with z in place of their scores, whose mean is the consensus."""
        z = np.stack([self.z(factor) for factor in self.factors], axis=1)
        return replace(self, method=consensus_of(self.method), scores=z.astype(np.float32))

    def with_more(self, other: Stability) -> Stability:
        """With fits by further seeds added; where both have a seed, this one's is kept."""
        if not self.is_of(other.method, other.factors, other.cell_ids):
            raise InputError(DIFFERENT)
        new = [i for i, seed in enumerate(other.seeds) if seed not in self.seeds]
        return replace(
            self,
            scores=np.concatenate([self.scores, other.scores[new]]),
            seeds=(*self.seeds, *(other.seeds[i] for i in new)),
            fits=(*self.fits, *(other.fits[i] for i in new if i < len(other.fits))),
        )

    def is_of(self, method: str, factors: tuple[str, ...], cell_ids: np.ndarray) -> bool:
        """Whether it is of this method, and of these factors and cells."""
        return _same((self.method, self.factors, self.cell_ids), (method, factors, cell_ids))

    def stable(self, factor: str, threshold: float = 0.0) -> np.ndarray:
        """Cells on which all fits agree: (cells,) bool.

        Every fit has the z of the cell on the same side of the threshold, and its ranks lie within
        a quarter of all cells. Cells without a score are not stable, nor is any with a single fit.
        """
        return same_side(self.z(factor), threshold) & self.keeps_place(factor)

    def keeps_place(self, factor: str) -> np.ndarray:
        """Cells whose ranks lie within a quarter of all cells: (cells,) bool."""
        rank = self.rank(factor)
        near = np.ptp(rank, axis=0) <= RANK_SPREAD
        return near & ~np.isnan(rank).any(0) & (len(rank) > 1)

    def agreement(self, factor: str) -> float:
        """Mean rank correlation between the fits; NaN for a single fit."""
        rank = self.rank(factor)
        if len(rank) < 2:
            return float("nan")
        used = rank[:, ~np.isnan(rank).any(0)]
        between = np.corrcoef(used)[np.triu_indices(len(rank), 1)]
        return float(between.mean())

    def table(self, factor: str, threshold: float = 0.0) -> pd.DataFrame:
        """One row a ROI: cell, score, score_sd, z, z_sd, rank, rank_low, rank_high, stable.

        Means over the fits, standard deviations, and the lowest and highest rank.
        """
        import pandas as pd

        score, z, rank = self.score(factor), self.z(factor), self.rank(factor)
        sd = 1 if len(score) > 1 else 0
        return pd.DataFrame(
            {
                "cell": self.cell_ids,
                "score": score.mean(0),
                "score_sd": score.std(0, ddof=sd),
                "z": z.mean(0),
                "z_sd": z.std(0, ddof=sd),
                "rank": rank.mean(0),
                "rank_low": rank.min(0),
                "rank_high": rank.max(0),
                "stable": self.stable(factor, threshold),
            }
        )

    def to_csv(self, path: str | os.PathLike[str], threshold: float = 0.0) -> Path:
        """Write the tables of all factors, one below the other."""
        return write_tables(path, self.factors, lambda factor: self.table(factor, threshold))

    def summary(self) -> str:
        """Agreement of the fits, a line for each factor."""
        if len(self.seeds) < 2:
            return "Only one fit was finished: at least two are needed to tell what is stable."
        lines = []
        for factor in self.factors:
            scored = int((~np.isnan(self.score(factor)).any(0)).sum())
            lines.append(
                f"{factor}: {int(self.stable(factor).sum())} of {scored} cells are stable over "
                f"{len(self.seeds)} seeds (rank correlation {self.agreement(factor):.2f})."
            )
        return "\n".join(lines)


def same_side(z: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """Cells whose z, by every fit, is on the same side of the threshold: (cells,) bool.

    Parameters
    ----------
    z : (seeds, cells) float
    threshold : float
    """
    above = z > threshold
    return np.asarray(above.all(0) | ~above.any(0))


_About = tuple[str, tuple[str, ...], np.ndarray]


def _same(one: _About, other: _About) -> bool:
    return one[:2] == other[:2] and np.array_equal(one[2], other[2])


def across_seeds(
    recording: Recording,
    factors: Factors | None,
    settings: FitSettings,
    seeds: Sequence[int],
    method: str = DEFAULT,
    *,
    done: Sequence[Attribution] = (),
    frames: FrameChoice = None,
    aggregate: Literal["mean", "median", "max"] = "mean",
    on_progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> Stability | None:
    """Train and attribute once with each seed.

    Parameters
    ----------
    recording, factors, settings
        As `learn.fit` takes them; the seed of the settings is replaced.
    seeds : sequence of int
    method, frames, aggregate
        As `attribute` takes them.
    done : sequence of Attribution
        By fits with other seeds, to include.
    on_progress : callable, optional
        Called with the training steps done and in all, over all seeds.
    stop : callable, optional
        When it returns True, only the seeds that are finished count.
    executor : Executor, optional
        Where to train, several seeds at a time; if not given, here, one after the other.

    Returns
    -------
    Stability or None
        None if it was stopped before the first fit was finished.
    """
    from napari_xcebra.attribution import attribute
    from napari_xcebra.errors import Stopped
    from napari_xcebra.learn.fitting import Repeat, fit_each

    found = list(done)
    repeats = [Repeat(factors, replace(settings, seed=seed)) for seed in seeds]
    repeated = fit_each(recording, repeats, on_progress=on_progress, stop=stop, executor=executor)
    with contextlib.suppress(Stopped), contextlib.closing(repeated):
        for trained in repeated:
            found.append(
                attribute(trained, recording, method, frames=frames, aggregate=aggregate, stop=stop)
            )
    return Stability.of(found) if found else None
