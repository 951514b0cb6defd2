"""Makes what a trace is predicted from: the columns of every factor, as the indicator shows them.

Columns decay as the indicator does, are smoothed as the traces are, and may be shifted by some
frames, for cells that lead or follow the behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.encoding.basis import (
    COMMON_TIMES,
    AnyBasis,
    TimeCourse,
    TrialBasis,
    basis_for,
)
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.labels import FEWEST_TRIALS, continuous_stretch, trial_with_after
from napari_xcebra.learn.data.split import UsableFrames
from napari_xcebra.recording import Recording

DRIFTS = 4
"""Slow cosines over the whole recording, for bleaching and the like."""
DRIFT = "drift"
Shared = TimeCourse | np.ndarray
SAME_COURSE = 0.1
"""Seconds by which two onsets may wander against each other and still tell the same time."""


@dataclass(frozen=True)
class Predictors:
    """Columns of all behaviour factors, and of what is none of them.

    Parameters
    ----------
    bases : mapping of str to Basis
    shared : tuple of TimeCourse or (frames,) float64
        What is none of the factors beside slow drift: the course that all trials share, from
        each onset, and whether a factor is known.
    columns : mapping of str to (columns,) int64
        Which columns stand for which factor; those of "drift", which have the shared ones with
        them, come first.
    run : (frames,) int64
        Stretch without gaps that a frame belongs to; the indicator starts anew in each.
    smoothing : float
        Standard deviation of the Gaussian that the traces were smoothed with, in frames.
    decay : float
        Of the indicator, in frames; 0 for none.
    """

    bases: Mapping[str, AnyBasis]
    shared: tuple[Shared, ...]
    columns: Mapping[str, np.ndarray]
    run: np.ndarray
    smoothing: float
    decay: float = 0.0

    @classmethod
    def of(cls, recording: Recording, parts: Sequence[Part], smoothing: float) -> Predictors:
        """Predictors for the behaviour factors among these parts, with no indicator yet."""
        bases = {
            part.name: basis_for(recording, part.variables, part.name)
            for part in parts
            if part.name != TIME
        }
        shared: tuple[Shared, ...] = (*_courses(recording, bases), *_known_columns(bases))
        stop = DRIFTS + sum(len(s.order) if isinstance(s, TimeCourse) else 1 for s in shared)
        columns = {DRIFT: np.arange(stop)}
        for name, basis in bases.items():
            columns[name] = np.arange(stop, stop + basis.width)
            stop += basis.width
        usable = ~np.asarray(recording.excluded)
        run = UsableFrames.within(usable, continuous_stretch(recording), 1).run
        return cls(bases, shared, columns, run, smoothing)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(len(own) for own in self.columns.values())

    @property
    def known(self) -> np.ndarray:
        """(frames,) bool, where some factor is known."""
        known = [basis.known for basis in self.bases.values()]
        return np.logical_or.reduce(known) if known else np.ones(len(self.run), bool)

    def rows(self, frames: np.ndarray, lags: Sequence[int] = (0,)) -> list[np.ndarray]:
        """Columns at ascending frames that lie near each other: (frames, columns) float32 a lag.

        Parameters
        ----------
        lags : sequence of int
            Frames by which the behaviour comes later than the trace.
        """
        phase = np.pi * (frames + 0.5) / len(self.run)
        drift = np.cos(phase[:, None] * np.arange(1, DRIFTS + 1))
        columns = (*map(_rows, self.shared), *(basis.rows for basis in self.bases.values()))
        observed = [self.filter_columns(own, frames, lags) for own in columns]
        each = zip(*observed, strict=True) if observed else [()] * len(lags)
        return [np.hstack([drift, *at]).astype(np.float32) for at in each]

    def filter_columns(
        self,
        columns: Callable[[np.ndarray], np.ndarray],
        frames: np.ndarray,
        lags: Sequence[int] = (0,),
    ) -> list[np.ndarray]:
        """Columns as the indicator shows them, for each lag.

        Parameters
        ----------
        columns : callable
            Columns at any frames, (frames, columns).
        frames : (n,) int64
            Ascending, near each other.
        """
        reach = int(np.ceil(4 * self.smoothing))
        before = int(np.ceil(5 * self.decay)) + reach + max(0, -min(lags))
        first = max(0, int(frames[0]) - before)
        stop = min(len(self.run), int(frames[-1]) + reach + max(0, *lags) + 1)
        stretch = np.arange(first, stop)
        shown = self._filtered(columns(stretch), self.run[stretch])
        found = []
        for lag in lags:
            taken = np.clip(frames + lag, first, stop - 1)
            # beyond the end of a run, its last value holds
            taken = np.where(self.run[taken] == self.run[frames], taken, frames)
            found.append(shown[taken - first])
        return found

    def _filtered(self, columns: np.ndarray, run: np.ndarray) -> np.ndarray:
        """Columns as the indicator shows them, at equilibrium when a run starts, smoothed."""
        keep = np.exp(-1 / self.decay) if self.decay > 0 else 0.0
        shown = np.empty_like(columns)
        edges = np.r_[0, np.flatnonzero(np.diff(run)) + 1, len(run)]
        for start, stop in pairwise(edges):
            x = columns[start:stop]
            if keep:
                x = scipy.signal.lfilter([1 - keep], [1, -keep], x, axis=0, zi=keep * x[:1])[0]
            if self.smoothing > 0:
                x = scipy.ndimage.gaussian_filter1d(x, self.smoothing, axis=0, mode="nearest")
            shown[start:stop] = x
        return shown


def _rows(shared: Shared) -> Callable[[np.ndarray], np.ndarray]:
    """Columns at any frames."""
    if isinstance(shared, TimeCourse):
        return shared.rows
    column: np.ndarray = shared
    return lambda frames: column[frames, None]


def _courses(recording: Recording, bases: Mapping[str, AnyBasis]) -> list[TimeCourse]:
    """Time in the trial, from its start and from each onset that is not at a fixed time in it."""
    trials = recording.trials
    if trials is None or len(trials) < FEWEST_TRIALS:
        return []
    trial, frames = trial_with_after(recording), np.arange(recording.n_frames)
    found = [np.where(trial >= 0, (frames - trials.first[trial]) / recording.rate, np.nan)]
    for basis in bases.values():
        if isinstance(basis, TrialBasis):
            seconds = basis.time.seconds
            both = [seconds - other for other in found]
            if min(float(np.nanstd(apart)) for apart in both) > SAME_COURSE:
                found.append(seconds)
    return [TimeCourse.of(seconds, COMMON_TIMES) for seconds in found]


def _known_columns(bases: Mapping[str, AnyBasis]) -> list[np.ndarray]:
    """Whether each factor is known, where that changes: (frames,) float64 each, once."""
    found: list[np.ndarray] = []
    for basis in bases.values():
        known = basis.known.astype(np.float64)
        if not known.all() and not any(np.array_equal(known, other) for other in found):
            found.append(known)
    return found
