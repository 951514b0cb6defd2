"""Expands trial variables and events into columns that follow time: a response has a course.

A variable with one value in each trial (stimulus, choice, outcome) is a column a value, times
smooth functions of the time from when it is known in the trial. An event is smooth functions of the
time around it, added up where events follow each other closely. Both are 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from napari_xcebra.attribution.encoding.basis import Basis, Coordinate
from napari_xcebra.learn.data.labels import Course, Labels, continuous_stretch
from napari_xcebra.recording import Recording

BEFORE = 1.5
"""Seconds before a trial variable is known in which cells may already follow it."""
TIMES, COMMON_TIMES, EVENT_TIMES = 10, 16, 10
"""Splines of time for a value, for what all trials share, and around an event."""
FINE = 0.4
"""Seconds from an onset within which time counts fully; later it counts less and less."""
HOLD = 0.5
"""Seconds for which a value holds where a tracker has lost it."""
MOST = 120
"""Columns of a factor at most; those that wiggle least are kept."""


def warped(seconds: np.ndarray) -> np.ndarray:
    """Time in which responses are about equally sharp everywhere: finer near the onset."""
    return np.sign(seconds) * np.log1p(np.abs(seconds) / FINE)


@dataclass(frozen=True)
class TimeCourse:
    """Smooth functions of the time from an onset, the first of them constant; 0 elsewhere.

    Parameters
    ----------
    seconds : (frames,) float64
        From the onset; NaN where the functions are 0.
    coordinate : Coordinate
    """

    seconds: np.ndarray
    coordinate: Coordinate

    @classmethod
    def of(cls, seconds: np.ndarray, splines: int) -> TimeCourse:
        """Functions over the times that occur."""
        inside = warped(seconds[~np.isnan(seconds)])
        return cls(seconds, Coordinate.continuous(inside, splines))

    @property
    def order(self) -> np.ndarray:
        """How fast each function wiggles: (functions,) float64."""
        return np.r_[0.0, self.coordinate.order]

    def columns(self, frames: np.ndarray) -> np.ndarray:
        """At these frames, not divided by their order: (frames, functions) float64."""
        seconds = self.seconds[frames]
        inside = ~np.isnan(seconds)
        found = np.zeros((len(frames), len(self.order)))
        found[inside, 0] = 1
        found[inside, 1:] = self.coordinate(warped(seconds[inside]))
        return found

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """The same, each divided by its order."""
        return self.columns(frames) / np.maximum(self.order, 1)


@dataclass(frozen=True)
class TrialBasis:
    """Columns of a factor that has one value in each trial.

    Parameters
    ----------
    labels : Labels
    course : Course
    value : Basis
        Columns of its values.
    time : TimeCourse
        From when the value is known, and a while before.
    source : (trials,) int64
        Trial whose value each trial has: itself, or another where chance is looked at.
    """

    labels: Labels
    course: Course
    value: Basis
    time: TimeCourse
    source: np.ndarray

    @classmethod
    def of(cls, labels: Labels, course: Course, rate: float) -> TrialBasis:
        """Basis for labels that do not change within a trial."""
        time = TimeCourse.of(course.seconds(rate, BEFORE), TIMES)
        trials = np.arange(len(course.onset))
        return cls(labels, course, Basis.of(labels, few=True), time, trials)

    def permuted(self, source: np.ndarray) -> TrialBasis:
        """The same with the values of other trials: (trials,) int64."""
        return replace(self, source=source)

    @property
    def known(self) -> np.ndarray:
        """(frames,) bool, where it says something."""
        return ~np.isnan(self.time.seconds)

    @cached_property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        """Products of values and times that are kept, and the order of each."""
        order = np.hypot(self.value.order[:, None], self.time.order).ravel()
        kept = np.sort(np.argsort(order, kind="stable")[:MOST])
        return kept, order[kept]

    @property
    def order(self) -> np.ndarray:
        """How fast each column wiggles: (columns,) float64."""
        return self._products[1]

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.order)

    @property
    def leading(self) -> np.ndarray:
        """Columns that wiggle least: (n,) int64."""
        return np.argsort(self.order, kind="stable")[:2]

    @property
    def has_direction(self) -> bool:
        """Whether a cell can rise or fall with it."""
        return self.value.has_direction

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Columns at these frames, each divided by its order: (frames, columns) float64."""
        values = self.value.rows(self._at(frames)) * self.value.order
        return self._combined(values, frames)

    def _at(self, frames: np.ndarray) -> np.ndarray:
        """Frames at which each frame's trial has its value; any where it has none."""
        trial = self.source[np.maximum(self.course.trial[frames], 0)]
        return np.maximum(self.course.onset[trial], 0)

    def _combined(self, values: np.ndarray, frames: np.ndarray) -> np.ndarray:
        times = self.time.columns(frames)
        products = (values[:, :, None] * times[:, None]).reshape(len(frames), -1)
        joined: np.ndarray = products[:, self._products[0]] / self.order
        return joined


@dataclass(frozen=True)
class EventBasis:
    """Columns of a factor of events: smooth functions of the time around each.

    Parameters
    ----------
    labels : Labels
    kernels : tuple of (lags, columns) float64
        Of each event, from the earliest lag on; columns are already divided by their order.
    first : tuple of int
        The earliest lag of each, in frames.
    counts : tuple of (frames,) float64
        How often each began.
    means : (columns,) float64
    stretch : (frames,) int64
        Stretch without a gap of each frame.
    order : (columns,) float64
    """

    labels: Labels
    kernels: tuple[np.ndarray, ...]
    first: tuple[int, ...]
    counts: tuple[np.ndarray, ...]
    means: np.ndarray
    stretch: np.ndarray
    order: np.ndarray

    has_direction = False

    @classmethod
    def of(cls, labels: Labels, recording: Recording, names: Sequence[str]) -> EventBasis:
        """Basis for the events of a recording."""
        stretch, orders = continuous_stretch(recording), []
        kernels, first, counts = [], [], []
        for event in map(recording.variable, names):
            began = np.nan_to_num(event.values[:, 0])
            before, after = (int(seconds * recording.rate) for seconds in event.window)
            lags = np.arange(-before, after + 1)
            course = TimeCourse.of(lags / recording.rate, min(EVENT_TIMES, len(lags)))
            kernels.append(course.rows(np.arange(len(lags))))
            first.append(-before)
            counts.append(began)
            orders.append(np.maximum(course.order, 1))
        order = np.concatenate(orders)
        plain = cls(labels, tuple(kernels), tuple(first), tuple(counts), np.zeros(len(order)),
                    stretch, order)  # fmt: skip
        # columns have about variance 1 when divided by how often the event is near
        every = plain.rows(np.arange(len(stretch)))
        scale = max(float(every[:, 0].std()), 1e-9)
        return replace(
            plain, kernels=tuple(k / scale for k in kernels), means=every.mean(0) / scale
        )

    @property
    def known(self) -> np.ndarray:
        """(frames,) bool, where it says something."""
        return self.labels.known

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.order)

    @property
    def leading(self) -> np.ndarray:
        """Columns that wiggle least: (n,) int64."""
        return np.argsort(self.order, kind="stable")[:2]

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Columns at these frames, each divided by its order: (frames, columns) float64."""
        found = []
        for kernel, first, counts in zip(self.kernels, self.first, self.counts, strict=True):
            own = np.zeros((len(frames), kernel.shape[1]))
            for lag, weights in enumerate(kernel, first):
                at = np.clip(frames - lag, 0, len(counts) - 1)
                there = (self.stretch[at] == self.stretch[frames]) & (at == frames - lag)
                began = np.flatnonzero(there & (counts[at] > 0))
                own[began] += counts[at[began], None] * weights
            found.append(own)
        joined: np.ndarray = np.hstack(found) - self.means
        return joined


AnyBasis = Basis | TrialBasis | EventBasis


def basis_for(recording: Recording, names: Sequence[str], factor: str) -> AnyBasis:
    """Basis of a factor of these variables: of events, of values by trial, or of values."""
    labels = Labels.of(recording, names, factor)
    if all(recording.variable(name).kind == "event" for name in names):
        return EventBasis.of(labels, recording, names)
    course = Course.of(recording, labels)
    if course is not None:
        return TrialBasis.of(labels, course, recording.rate)
    return Basis.of(labels, hold=round(HOLD * recording.rate))
