"""Expands factors into columns whose weighted sums are smooth tunings, or courses in time.

A continuous variable becomes splines, an angle harmonics, a discrete variable a column a value; two
variables that belong together, such as x and y, become products. Columns are uncorrelated, have
variance 1 and are ordered by how fast they wiggle; they are then divided by that order. So one
penalty on their weights favours smooth tuning, and still allows a sharp field.

A variable with one value in each trial (stimulus, choice, outcome) is a column a value, times
smooth functions of the time from when it is known in the trial. An event is smooth functions of the
time around it, added up where events follow each other closely. Both are 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.learn.data.labels import Course, Labels, continuous_stretch
from napari_xcebra.recording import Recording

SPLINES, SPLINES_OF_TWO, SPLINES_OF_MANY = 20, 10, 5
"""Splines of a single variable, of each of two, and of each of many."""
HARMONICS, HARMONICS_OF_TWO, HARMONICS_OF_FEW = 6, 4, 2
MANY = 6
"""Number of variables from which each gets few splines."""
STEP = 0.25
"""Half the width of the differences taken as slopes, in standard deviations.

Shorter differences are mostly noise of the fit."""
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


@dataclass(frozen=True)
class _Coordinate:
    """Columns of one variable.

    Parameters
    ----------
    expand : callable
        From values (n,) to raw columns (n, raw).
    mean : (raw,) float64
    transform : (raw, columns) float64
        To columns that are uncorrelated and have variance 1.
    order : (columns,) float64
        How fast each wiggles: 1 for a trend from end to end.
    spread : float
        Standard deviation of the values; NaN if they have no slope.
    """

    expand: Callable[[np.ndarray], np.ndarray]
    mean: np.ndarray
    transform: np.ndarray
    order: np.ndarray
    spread: float

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Columns at these values: (n, columns)."""
        columns: np.ndarray = (self.expand(values) - self.mean) @ self.transform
        return columns

    @classmethod
    def continuous(cls, values: np.ndarray, splines: int) -> _Coordinate:
        """Splines, with knots between even quantiles and even distances."""
        inner = max(splines - 2, 2)
        quantiles = np.quantile(values, np.linspace(0, 1, inner))
        even = np.linspace(quantiles[0], quantiles[-1], inner)
        knots = np.unique((quantiles + even) / 2)
        padded = np.r_[[knots[0]] * 3, knots, [knots[-1]] * 3]

        def expand(at: np.ndarray) -> np.ndarray:
            inside = np.clip(at, knots[0], knots[-1])
            return scipy.interpolate.BSpline.design_matrix(inside, padded, 3).toarray()

        raw = expand(values)
        mean, turned = _uncorrelated(raw)
        bends = np.diff(np.eye(raw.shape[1]), 2, axis=0) @ turned
        vectors = np.linalg.eigh(bends.T @ bends)[1]
        transform = turned @ vectors
        rising = (raw - mean) @ transform[:, 0] @ (values - values.mean())
        transform[:, 0] *= 1 if rising >= 0 else -1
        order = np.arange(1.0, transform.shape[1] + 1)
        return cls(expand, mean, transform, order, float(values.std()))

    @classmethod
    def angle(cls, harmonics: int) -> _Coordinate:
        """Cosines and sines."""
        turns = np.arange(1, harmonics + 1)

        def expand(at: np.ndarray) -> np.ndarray:
            phase = at[:, None] * turns
            return np.sqrt(2) * np.hstack([np.cos(phase), np.sin(phase)])

        # half a wave of a harmonic corresponds to a spline column from end to end
        order = np.r_[turns, turns] * 2.0
        return cls(expand, np.zeros(2 * harmonics), np.eye(2 * harmonics), order, 1.0)

    @classmethod
    def discrete(cls, codes: np.ndarray, count: int) -> _Coordinate:
        """A column a value, less one."""

        def expand(at: np.ndarray) -> np.ndarray:
            return np.eye(count)[at.astype(np.int64)]

        mean, transform = _uncorrelated(expand(codes))
        return cls(expand, mean, transform, np.ones(transform.shape[1]), np.nan)


def _uncorrelated(raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and the transform to uncorrelated columns with variance 1."""
    mean = raw.mean(0)
    values, vectors = np.linalg.eigh((raw - mean).T @ (raw - mean) / len(raw))
    kept = values > 1e-6 * max(values.max(), 1e-12)
    return mean, vectors[:, kept] / np.sqrt(values[kept])


@dataclass(frozen=True)
class Expansion:
    """Columns of all coordinates of a factor, each divided by its order.

    Two coordinates, such as x and y, have their products as well.

    Parameters
    ----------
    coordinates : tuple of _Coordinate
    """

    coordinates: tuple[_Coordinate, ...]

    @classmethod
    def of(
        cls,
        linear: np.ndarray,
        angles: np.ndarray | None = None,
        codes: np.ndarray | None = None,
        *,
        few: bool = False,
    ) -> Expansion:
        """Expand by the number of coordinates.

        Parameters
        ----------
        linear, angles : (n, columns) float64
        codes : (n,) int64, optional
            Values from 0 on.
        few : bool
            Whether each coordinate becomes few columns.
        """
        turning = np.zeros((len(linear), 0)) if angles is None else angles
        number = linear.shape[1] + turning.shape[1]
        splines = (SPLINES, SPLINES_OF_TWO)[number > 1] if number < MANY else SPLINES_OF_MANY
        harmonics = HARMONICS if number == 1 else HARMONICS_OF_TWO
        if few:
            splines, harmonics = SPLINES_OF_MANY, HARMONICS_OF_FEW
        coordinates = [_Coordinate.continuous(v, splines) for v in linear.T]
        coordinates += [_Coordinate.angle(harmonics) for _ in turning.T]
        if codes is not None:
            coordinates.append(_Coordinate.discrete(codes, int(codes.max()) + 1))
        return cls(tuple(coordinates))

    @cached_property
    def order(self) -> np.ndarray:
        """How fast each column wiggles: (columns,) float64."""
        orders = [each.order for each in self.coordinates]
        if len(orders) == 2:
            orders.append(self._product_order[self._kept_products])
        return np.concatenate(orders)

    @cached_property
    def _product_order(self) -> np.ndarray:
        first, second = (each.order for each in self.coordinates)
        return np.hypot(first[:, None], second).ravel()

    @cached_property
    def _kept_products(self) -> np.ndarray:
        finest = max(each.order.max() for each in self.coordinates)
        return np.flatnonzero(self._product_order <= finest)

    @property
    def leading(self) -> np.ndarray:
        """Columns that wiggle least, two a coordinate: (n,) int64."""
        found, start = [], 0
        for each in self.coordinates:
            found += list(start + np.argsort(each.order, kind="stable")[:2])
            start += len(each.order)
        return np.array(found)

    def __call__(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Columns at these values, (n,) a coordinate: (n, columns) float64."""
        return self._combined([c(v) for c, v in zip(self.coordinates, values, strict=True)])

    def slopes(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Change of the columns per standard deviation of each continuous coordinate.

        Returns
        -------
        (coordinates, n, columns) float64
        """
        columns = [c(v) for c, v in zip(self.coordinates, values, strict=True)]
        slopes = []
        for number, (coordinate, at) in enumerate(zip(self.coordinates, values, strict=True)):
            changed, ends = list(columns), []
            for step in (STEP, -STEP):
                changed[number] = coordinate(at + step * coordinate.spread)
                ends.append(self._combined(changed))
            slopes.append((ends[0] - ends[1]) / (2 * STEP))
        return np.stack(slopes)

    def _combined(self, columns: list[np.ndarray]) -> np.ndarray:
        if len(columns) == 2:
            first, second = columns
            products = (first[:, :, None] * second[:, None]).reshape(len(first), -1)
            columns = [first, second, products[:, self._kept_products]]
        joined: np.ndarray = np.hstack(columns) / self.order
        return joined


@dataclass(frozen=True)
class _Basis:
    """Columns of one factor that is tied to variables.

    Parameters
    ----------
    labels : Labels
    expansion : Expansion
        Of each continuous column, each angle, and all discrete columns together.
    latest : (frames,) int64
        Last frame up to this one at which the label was known, or the first such frame.
    known : (frames,) bool
        Where it says something: where the label is known, or was a moment ago.
    """

    labels: Labels
    expansion: Expansion
    latest: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, labels: Labels, *, few: bool = False, hold: int = 0) -> _Basis:
        """Basis by the number of columns that the labels have.

        Parameters
        ----------
        few : bool
            Whether each of them becomes few columns.
        hold : int
            Frames for which a value holds where the label is lost: trackers lose animals.
        """
        known = np.flatnonzero(labels.known)
        codes = labels.code[known] if labels.n_codes > 1 else None
        expansion = Expansion.of(labels.linear[known], labels.angles[known], codes, few=few)
        frames = np.arange(len(labels.known))
        latest = known[np.maximum(np.searchsorted(known, frames, side="right") - 1, 0)]
        held = (frames >= latest) & (frames <= latest + hold)
        return cls(labels, expansion, latest, held)

    @property
    def order(self) -> np.ndarray:
        """How fast each column wiggles: (columns,) float64."""
        return self.expansion.order

    @property
    def leading(self) -> np.ndarray:
        """Columns that wiggle least, two a coordinate: (n,) int64."""
        return self.expansion.leading

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.order)

    @property
    def has_direction(self) -> bool:
        """Whether a cell can rise or fall with it: one continuous variable, or two values."""
        if len(self.expansion.coordinates) != 1 or self.labels.angles.shape[1]:
            return False
        return self.labels.linear.shape[1] == 1 or self.labels.n_codes == 2

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Columns at these frames, each divided by its order: (frames, columns) float64.

        0, which is their mean, where the label is not known.
        """
        at, labels = self.latest[frames], self.labels
        values = [*labels.linear[at].T, *labels.angles[at].T]
        if labels.n_codes > 1:
            values.append(labels.code[at])
        rows = self.expansion(values)
        rows[~self.known[frames]] = 0
        return rows


def _warp(seconds: np.ndarray) -> np.ndarray:
    """Time in which responses are about equally sharp everywhere: finer near the onset."""
    return np.sign(seconds) * np.log1p(np.abs(seconds) / FINE)


@dataclass(frozen=True)
class TimeCourse:
    """Smooth functions of the time from an onset, the first of them constant; 0 elsewhere.

    Parameters
    ----------
    seconds : (frames,) float64
        From the onset; NaN where the functions are 0.
    coordinate : _Coordinate
    """

    seconds: np.ndarray
    coordinate: _Coordinate

    @classmethod
    def of(cls, seconds: np.ndarray, splines: int) -> TimeCourse:
        """Functions over the times that occur."""
        inside = _warp(seconds[~np.isnan(seconds)])
        return cls(seconds, _Coordinate.continuous(inside, splines))

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
        found[inside, 1:] = self.coordinate(_warp(seconds[inside]))
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
    value : _Basis
        Columns of its values.
    time : TimeCourse
        From when the value is known, and a while before.
    source : (trials,) int64
        Trial whose value each trial has: itself, or another where chance is looked at.
    """

    labels: Labels
    course: Course
    value: _Basis
    time: TimeCourse
    source: np.ndarray

    @classmethod
    def of(cls, labels: Labels, course: Course, rate: float) -> TrialBasis:
        """Basis for labels that do not change within a trial."""
        time = TimeCourse.of(course.seconds(rate, BEFORE), TIMES)
        trials = np.arange(len(course.onset))
        return cls(labels, course, _Basis.of(labels, few=True), time, trials)

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
class _EventBasis:
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
    def of(cls, labels: Labels, recording: Recording, names: Sequence[str]) -> _EventBasis:
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


AnyBasis = _Basis | TrialBasis | _EventBasis


def basis_for(recording: Recording, names: Sequence[str], factor: str) -> AnyBasis:
    """Basis of a factor of these variables: of events, of values by trial, or of values."""
    labels = Labels.of(recording, names, factor)
    if all(recording.variable(name).kind == "event" for name in names):
        return _EventBasis.of(labels, recording, names)
    course = Course.of(recording, labels)
    if course is not None:
        return TrialBasis.of(labels, course, recording.rate)
    return _Basis.of(labels, hold=round(HOLD * recording.rate))
