"""Paints, ranks and thresholds the scores of all cells for one factor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from napari_xcebra.attribution.methods import OVER_TIME, is_consensus, method_named, title_of_method
from napari_xcebra.attribution.ranks import ranks_of
from napari_xcebra.attribution.stability import same_side
from napari_xcebra.standardise import mean_and_spread

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run


TOP = 99.0
"""Percentile of the scores at the upper end of the colours, lest one cell darken all."""

Latent = int | Literal["lag"] | None
"""What is shown of a factor: one latent, the lags of the cells, or the factor as a whole."""
LAG: Literal["lag"] = "lag"
"""In place of a latent: the seconds by which each cell follows the behaviour."""


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """One score a cell.

    Parameters
    ----------
    attribution : Attribution
        Where the scores come from.
    factor : str
    latent : Latent
    provisional : str
        A sentence that says so while the run is still training; else empty.
    """

    attribution: Attribution
    factor: str
    latent: Latent = None
    provisional: str = ""

    @cached_property
    def scores(self) -> np.ndarray:
        """(cells,) float64, NaN where a cell was not used."""
        if self.latent is None:
            scores = self.attribution.score(self.factor)
        elif isinstance(self.latent, str):
            scores = self.attribution.detail(self.factor, self.latent)
        else:
            scores = self.attribution.latent(self.factor, self.latent)
        return np.asarray(scores, np.float64)

    def detail(self, name: str) -> np.ndarray | None:
        """(cells,) float32, one of the attribution's `details`; None if it has no such detail."""
        if self.latent is not None or name not in self.attribution.details:
            return None
        return self.attribution.detail(self.factor, name)

    @property
    def unit(self) -> str:
        """What the scores count, in a few words."""
        return "seconds" if self.latent == LAG else method_named(self.attribution.method).unit

    @property
    def title(self) -> str:
        """Factor, and the latent or lag that is shown of it."""
        if self.latent is None:
            return self.factor
        part = self.latent if isinstance(self.latent, str) else f"latent {self.latent + 1}"
        return f"{self.factor}, {part}"

    @property
    def what(self) -> tuple[str, Latent]:
        """Factor and latent."""
        return self.factor, self.latent

    @cached_property
    def q(self) -> np.ndarray | None:
        """(cells,) float32 q-values; None if the factor was not tested."""
        tested = self.attribution.significance
        if tested is None or self.factor not in tested.shortest:
            return None
        return tested.q(self.factor)  # as it was computed: 0.1 must not be above 0.1

    def significant(self, limit: float) -> np.ndarray:
        """(cells,) bool, cells with a q up to a limit; none if they were not tested."""
        return np.zeros(len(self.scores), bool) if self.q is None else self.q <= limit

    # ------------------------------------------------------------ over seeds

    @property
    def over_seeds(self) -> Stability | None:
        """Scores by several seeds; None if there are none.

        A single latent has none: which latent is which changes from seed to seed.
        """
        by_seed = self.attribution.stability
        several = by_seed is not None and len(by_seed.seeds) > 1 and self.latent is None
        return by_seed if several else None

    @cached_property
    def score_sd(self) -> np.ndarray | None:
        """(cells,) float64, standard deviation of the score over seeds."""
        by_seed = self.over_seeds
        return None if by_seed is None else by_seed.score(self.factor).std(0, ddof=1)

    @cached_property
    def places(self) -> np.ndarray | None:
        """(2, cells) int, best and worst rank over seeds; 0 where a cell was not used."""
        return None if self.over_seeds is None else self.over_seeds.places(self.factor)

    @cached_property
    def _z_by_seed(self) -> np.ndarray:
        return np.zeros((0, 0)) if self.over_seeds is None else self.over_seeds.z(self.factor)

    @cached_property
    def _keeps_place(self) -> np.ndarray:
        none: np.ndarray = np.zeros(len(self.scores), bool)
        return none if self.over_seeds is None else self.over_seeds.keeps_place(self.factor)

    def stable(self, threshold: float) -> np.ndarray:
        """(cells,) bool, cells on which all seeds agree; none with a single seed."""
        if self.over_seeds is None:
            return self._keeps_place
        return same_side(self._z_by_seed, threshold) & self._keeps_place

    @cached_property
    def known(self) -> np.ndarray:
        """(cells,) bool, where there is a score."""
        return np.isfinite(self.scores)

    @property
    def at_chance(self) -> bool:
        """Whether the map means nothing."""
        return self.attribution.at_chance(self.factor)

    @property
    def why_not_over_time(self) -> str:
        """A sentence on why it cannot follow the time slider; empty if it can."""
        if self.provisional:
            return "Scores over time are available once the run is trained."
        if self.at_chance:
            return "A factor at chance is not followed over time."
        if self.latent == LAG:
            return "Lags do not change over time: choose the factor itself to see its scores."
        return never_over_time(self.attribution.method)

    @property
    def note_over_time(self) -> str:
        """A sentence on which other method follows the time slider; empty if its own does."""
        return note_over_time(self.attribution.method)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation over the cells that have a score."""
        known = self.scores[self.known]
        if not len(known):
            return 0.0, 1.0
        mean, spread = mean_and_spread(known)
        return float(mean[0]), float(spread[0])

    @cached_property
    def z(self) -> np.ndarray:
        """(cells,) float64, scores standardised over the cells that have one."""
        mean, spread = self._moments
        return (self.scores - mean) / spread

    def z_of(self, score: float) -> float:
        """Z of a score."""
        mean, spread = self._moments
        return (score - mean) / spread

    def score_of(self, z: float) -> float:
        """Score of a z."""
        mean, spread = self._moments
        return mean + z * spread

    def above(self, threshold: float) -> np.ndarray:
        """(cells,) bool, cells with z above the threshold."""
        return self.z > threshold

    @cached_property
    def ranks(self) -> np.ndarray:
        """(cells,) int, 1 for the highest score; 0 where a cell was not used."""
        return ranks_of(self.scores)

    @cached_property
    def span(self) -> tuple[float, float]:
        """Lowest and highest score; 0 and 1 if no cell has one."""
        known = self.scores[self.known]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Scores at the ends of the colours, unless the user sets them."""
        if self.latent == LAG:
            most = max(np.nanmax(np.abs(self.scores), initial=0.0), 0.1)
            return -float(most), float(most)
        return color_limits(self.scores, self.attribution.method)

    def within(self, low: float, high: float) -> np.ndarray:
        """Positions of the cells with a score in an interval, highest first."""
        inside = np.flatnonzero((self.scores >= low) & (self.scores <= high))
        return inside[np.argsort(-self.scores[inside], kind="stable")]


def color_limits(scores: np.ndarray, method: str) -> tuple[float, float]:
    """Lowest and highest score of the colours.

    Parameters
    ----------
    scores : (cells,) float
        NaN where a cell was not used.
    method : str
        Of the attribution. Shares of variance begin at 0, others at the lowest score.

    >>> color_limits(np.array([-0.1, 0.0, 0.5]), "conditional-encoding")[0]
    0.0
    """
    known = scores[np.isfinite(scores)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(np.percentile(known, TOP))
    if method_named(method).share:
        low = max(low, 0.0)
    return (low, high) if high > low else (low, low + 1.0)


def never_over_time(method: str) -> str:
    """A sentence on why a method has no scores over time; empty if it or another has them."""
    if not is_consensus(method):
        return ""
    title, other = title_of_method(method), title_of_method(OVER_TIME)
    return f"{title} has no scores over time: choose {other} as the method to see them."


def note_over_time(method: str) -> str:
    """A sentence on which other method scores single frames; empty if this one does."""
    other = method_named(method).over_time
    if other == method:
        return ""
    title = title_of_method(method).capitalize()
    return f"{title} scores whole traces; over time, the {title_of_method(other)} is shown."


def attribution_of(run: Run | None, method: str, recording: Recording | None) -> Attribution | None:
    """Attribution of a run by a method; None without one for the cells of the recording."""
    return attribution_for(run.attributions.get(method) if run else None, recording)


def attribution_for(
    attribution: Attribution | None, recording: Recording | None
) -> Attribution | None:
    """The attribution, if it is for the cells of the recording.

    A saved run may have scores for the cells that the recording had at that time.
    """
    if attribution is None or recording is None:
        return None
    same = np.array_equal(attribution.cell_ids, np.asarray(recording.cell_ids))
    return attribution if same else None
