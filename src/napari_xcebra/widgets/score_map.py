"""Scores of all cells for one factor, as they are painted, ranked and thresholded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from napari_xcebra.attribution.color_limits import color_limits
from napari_xcebra.attribution.comparison import ranks_of
from napari_xcebra.attribution.method_notes import (
    OVER_TIME,
    is_consensus,
    method_over_time,
    title_of_method,
)
from napari_xcebra.attribution.stability import same_side

if TYPE_CHECKING:
    from napari_xcebra.attribution import Attribution
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.recording import Recording
    from napari_xcebra.runs import Run
    from napari_xcebra.widgets.session import Session
    from napari_xcebra.widgets.shown import Shown


LAG = "lag"
"""In place of a latent: by how many seconds each cell follows the behaviour."""


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """One score a cell.

    Parameters
    ----------
    attribution : Attribution
        Where the scores come from.
    factor : str
    latent : int, str or None
        One latent of the factor, or "lag" for the lags of the cells; None for the factor as a
        whole.
    provisional : str
        Where the run is still being trained, a sentence that says so.
    """

    attribution: Attribution
    factor: str
    latent: int | str | None = None
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
        """(cells,) float32, more that the method says of the factor; None if it does not."""
        if self.latent is not None or name not in self.attribution.details:
            return None
        return self.attribution.detail(self.factor, name)

    @property
    def what(self) -> tuple[str, int | str | None]:
        """Factor and latent."""
        return self.factor, self.latent

    @cached_property
    def q(self) -> np.ndarray | None:
        """(cells,) float32 q-values; None if the factor has not been tested against chance."""
        tested = self.attribution.significance
        if tested is None or self.factor not in tested.shortest:
            return None
        return tested.q(self.factor)  # as it was computed: 0.1 must not be above 0.1

    def significant(self, limit: float) -> np.ndarray:
        """(cells,) bool, cells with a q up to a limit; none if they were not tested."""
        return np.zeros(len(self.scores), bool) if self.q is None else self.q <= limit

    def bright(self, shown: Shown) -> np.ndarray | None:
        """(cells,) bool, cells that do not fade in the image; None if none is to."""
        wanted = [self.selected(shown.threshold)] if shown.dim else []
        if shown.q_only and self.q is not None:
            wanted.append(self.significant(shown.q_limit))
        if shown.stable_only and self.over_seeds is not None:
            wanted.append(self.stable(shown.threshold))
        return np.logical_and.reduce(wanted) if wanted else None

    # ------------------------------------------------------------ over seeds

    @property
    def over_seeds(self) -> Stability | None:
        """Scores by several seeds; None if there are none, as for a single latent.

        Which latent is which changes from seed to seed.
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
        """(cells,) bool, cells on which all seeds agree; none if there is one seed only."""
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
        """Why it cannot follow the time slider, in a sentence; empty if it can."""
        if self.provisional:
            return "Scores over time are there once the run is trained."
        if self.at_chance:
            return "A factor at chance is not followed over time."
        if self.latent == LAG:
            return "Lags do not change over time: choose the factor itself to see its scores."
        return never_over_time(self.attribution.method)

    @property
    def note_over_time(self) -> str:
        """By which other method it follows the time slider, in a sentence; empty if by its own."""
        return note_over_time(self.attribution.method)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation over the cells that have a score."""
        known = self.scores[self.known]
        if not len(known):
            return 0.0, 1.0
        return float(known.mean()), float(known.std()) or 1.0

    @cached_property
    def z(self) -> np.ndarray:
        """(cells,) float64, scores standardised over the cells that have one."""
        mean, spread = self._moments
        return (self.scores - mean) / spread

    def z_of(self, score: float) -> float:
        """Z that a score comes to."""
        mean, spread = self._moments
        return (score - mean) / spread

    def score_of(self, z: float) -> float:
        """Score that a z comes to."""
        mean, spread = self._moments
        return mean + z * spread

    def selected(self, threshold: float) -> np.ndarray:
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
        """Scores at the ends of the colours, if the user does not say otherwise."""
        if self.latent == LAG:
            most = max(np.nanmax(np.abs(self.scores), initial=0.0), 0.1)
            return -float(most), float(most)
        return color_limits(self.scores, self.attribution.method)

    def within(self, low: float, high: float) -> np.ndarray:
        """Positions of the cells with a score in an interval, highest first."""
        inside = np.flatnonzero((self.scores >= low) & (self.scores <= high))
        return inside[np.argsort(-self.scores[inside], kind="stable")]


def never_over_time(method: str) -> str:
    """Why a method has no scores over time, in a sentence; empty if it has, or another for it."""
    if not is_consensus(method):
        return ""
    title, other = title_of_method(method), title_of_method(OVER_TIME)
    return f"{title} has no scores over time: choose {other} as the method to see them."


def note_over_time(method: str) -> str:
    """Which other method tells single frames apart for this one; empty if it does so itself."""
    other = method_over_time(method)
    if other == method:
        return ""
    title = title_of_method(method).capitalize()
    return f"{title} scores whole traces: over time it is the {title_of_method(other)}."


def painted_map(session: Session) -> ScoreMap | None:
    """What is to be seen: the map so far of a run in training, or what `shown_map` gives."""
    live = session.painted_live
    if live is None:
        return shown_map(session)
    attribution = attribution_for(live.attribution, session.recording)
    if attribution is None or session.shown.blind:
        return None
    return _kept(session, attribution, live.sentence)


def shown_map(session: Session) -> ScoreMap | None:
    """What is chosen of trained runs; None where it is not computed, or nobody is to see it."""
    return None if session.shown.blind else chosen_map(session)


def chosen_map(session: Session) -> ScoreMap | None:
    """What was chosen of trained runs, also while scores are hidden; None if not computed."""
    attribution = attribution_of(session.shown_run, session.shown.method, session.recording)
    return None if attribution is None else _kept(session, attribution)


def _kept(session: Session, attribution: Attribution, provisional: str = "") -> ScoreMap | None:
    """Map of the factor and latent that are chosen; None if there is no such factor."""
    shown = session.shown
    if shown.factor not in attribution.factors:
        return None
    latents = attribution.part(shown.factor).latents
    if isinstance(shown.latent, str):
        inside = shown.latent in attribution.details
    else:
        inside = (
            attribution.has_latents
            and shown.latent is not None
            and 0 <= shown.latent < latents.stop - latents.start
        )
    latent = shown.latent if inside else None
    last = _LAST.get(session)
    if last is None or last.attribution is not attribution or last.what != (shown.factor, latent):
        # kept, so that what is computed from the scores is computed once
        last = _LAST[session] = ScoreMap(attribution, shown.factor, latent, provisional)
    return last


_LAST: WeakKeyDictionary[Session, ScoreMap] = WeakKeyDictionary()


def attribution_of(run: Run | None, method: str, recording: Recording | None) -> Attribution | None:
    """Attribution of a run by a method; None if there is none for the cells of the recording."""
    return attribution_for(run.attributions.get(method) if run else None, recording)


def attribution_for(
    attribution: Attribution | None, recording: Recording | None
) -> Attribution | None:
    """The attribution, if it is for the cells of the recording.

    A run that was saved may have scores for the cells that the recording had then.
    """
    if attribution is None or recording is None:
        return None
    same = np.array_equal(attribution.cell_ids, np.asarray(recording.cell_ids))
    return attribution if same else None
