"""Places variables in a label space in which distance has a meaning, and frames within trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording import Recording, Variable

FEWEST_TRIALS = 4
"""Trials at which a factor must be known for it to be a property of trials."""
AFTER = 2.0
"""Seconds after a trial in which cells may still respond to it, if no other begins."""


def continuous_stretch(recording: Recording) -> np.ndarray:
    """Number of the stretch without a gap that each frame lies in: (frames,) int64.

    Trials that follow each other without a gap are one: the indicator does not start anew.
    """
    starts = np.asarray(recording.starts)
    if recording.trials is None:
        return recording.segment
    edges = np.r_[recording.trials.first, recording.trials.stop]
    step = np.diff(np.asarray(recording.times))
    jumps = np.flatnonzero(step > 1.5 / recording.rate) + 1
    breaks = np.setdiff1d(starts, np.setdiff1d(edges, jumps))
    number = np.zeros(recording.n_frames, np.int64)
    number[breaks[breaks > 0]] = 1
    return np.cumsum(number)


def seconds_from_event(recording: Recording, event: Variable) -> np.ndarray:
    """Seconds from the nearest event, negative before it, NaN outside its window: (frames,)."""
    counts = np.nan_to_num(event.values[:, 0])
    frames, stretch = np.arange(len(counts)), continuous_stretch(recording)
    at = np.flatnonzero(counts > 0)
    since = np.full(len(counts), np.nan)
    if len(at) == 0:
        return since
    before, after = event.window
    following = np.searchsorted(at, frames, side="right")
    for number in (np.maximum(following - 1, 0), np.minimum(following, len(at) - 1)):
        seconds = (frames - at[number]) / recording.rate
        here = (stretch[at[number]] == stretch) & (seconds >= -before) & (seconds <= after)
        nearer = here & ~(np.abs(since) <= np.abs(seconds))
        since[nearer] = seconds[nearer]
    return since


@dataclass(frozen=True)
class Course:
    """Where a factor that has one value in each trial is known.

    Parameters
    ----------
    trial : (frames,) int64
        Trial that a frame belongs to, with a while after it; −1 elsewhere.
    onset : (trials,) int64
        First frame of each trial at which the factor is known; −1 if it never is.
    """

    trial: np.ndarray
    onset: np.ndarray

    @classmethod
    def of(cls, recording: Recording, labels: Labels) -> Course | None:
        """Course of labels that do not change within a trial; None if they do."""
        if recording.trials is None:
            return None
        columns = np.column_stack([labels.linear, labels.angles, labels.code])
        # a value may hold until the next trial begins, or be another one between trials
        for trial in (trial_with_after(recording), recording.trials.number(recording.n_frames)):
            frames = np.flatnonzero(labels.known & (trial >= 0))
            numbers, first = np.unique(trial[frames], return_index=True)
            onset = np.full(len(recording.trials), -1, np.int64)
            onset[numbers] = frames[first]
            constant = (columns[frames] == columns[onset[trial[frames]]]).all()
            differ = len(np.unique(columns[onset[numbers]], axis=0)) > 1
            if len(numbers) >= FEWEST_TRIALS and differ and constant:
                return cls(trial, onset)
        return None

    def seconds(self, rate: float, before: float) -> np.ndarray:
        """Seconds from the onset in the trial, NaN elsewhere: (frames,) float64.

        Parameters
        ----------
        before : float
            Seconds before the onset, within the trial, that count.
        """
        inside = (self.trial >= 0) & (self.onset[self.trial] >= 0)
        since = (np.arange(len(self.trial)) - self.onset[self.trial]) / rate
        return np.where(inside & (since >= -before), since, np.nan)


def trial_with_after(recording: Recording) -> np.ndarray:
    """Trial of each frame, with a while after it if no other begins, −1 elsewhere: (frames,)."""
    trials = recording.trials
    if trials is None:
        return np.full(recording.n_frames, -1, np.int64)
    frames, stretch = np.arange(recording.n_frames), continuous_stretch(recording)
    number = np.searchsorted(trials.first, frames, side="right") - 1
    near = frames < trials.stop[number] + AFTER * recording.rate
    same = stretch == stretch[trials.stop[number] - 1]
    within = frames < trials.stop[number]
    found: np.ndarray = np.where((number >= 0) & (within | (near & same)), number, -1)
    return found


_MOST_VALUES = 1000


@dataclass(frozen=True)
class Labels:
    """Labels c of a factor, frame by frame.

    Parameters
    ----------
    linear : (frames, columns) float64
        Continuous columns that change; each variable is centred and has unit variance over all of
        them, so that x and y keep their proportion and centimetres do not outweigh metres.
    angles : (frames, columns) float64
        Circular columns that change, in radians.
    code : (frames,) int64
        Joint value of the discrete columns; 0 everywhere if there are none.
    known : (frames,) bool
        Where no column is missing.
    near : (frames,) bool
        Where the continuous columns mean something: near an event; everywhere otherwise.
    """

    linear: np.ndarray
    angles: np.ndarray
    code: np.ndarray
    known: np.ndarray
    near: np.ndarray = field(default_factory=lambda: np.ones(0, bool))

    def __post_init__(self) -> None:
        if len(self.near) != len(self.known):
            object.__setattr__(self, "near", np.ones(len(self.known), bool))

    @classmethod
    def of(cls, recording: Recording, names: Sequence[str], factor: str) -> Labels:
        """Labels of a factor tied to these variables."""
        if not names:
            raise InputError(f"Factor {factor!r} names no variable: at least one is needed.")
        variables = [recording.variable(name) for name in names]
        known = np.logical_and.reduce([v.known for v in variables])
        if not known.any():
            raise InputError(
                f"Factor {factor!r} has no frame at which {', '.join(names)} is known."
            )
        linear, angles, discrete = [], [], []
        near = np.zeros(len(known), bool)
        for variable in variables:
            if variable.kind == "event":
                since = _time_from_event(recording, variable, factor)
                discrete.append(~np.isnan(since))
                linear.append(np.nan_to_num(since))
                near |= discrete[-1][:, 0]
                continue
            near[:] = True
            values = variable.values
            moves = np.ptp(values[known], axis=0) > 0
            if not moves.any():
                raise InputError(
                    f"Variable {variable.name!r} of factor {factor!r} is constant "
                    f"({values[known][0, 0]:g} at every frame): a variable that changes is needed."
                )
            values = values[:, moves]  # y of a linear track is no dimension
            if variable.kind == "continuous":
                centred = values - values[known].mean(0)
                linear.append(centred / centred[known].std())
            elif variable.kind == "circular":
                angles.append(values * (2 * np.pi / variable.period))
            else:
                discrete.append(values)
        frames = len(known)
        code = _joint_code(discrete, known)
        if code.max() >= _MOST_VALUES:
            raise InputError(
                f"Factor {factor!r} has {int(code.max()) + 1} different values of its discrete "
                f"variables: at most {_MOST_VALUES} are possible; is one of them continuous?"
            )
        return cls(
            linear=np.hstack([np.empty((frames, 0)), *linear]),
            angles=np.hstack([np.empty((frames, 0)), *angles]),
            code=code,
            known=known,
            near=near,
        )

    @property
    def n_codes(self) -> int:
        """Number of different joint values of the discrete columns."""
        return int(self.code.max()) + 1

    @property
    def is_discrete(self) -> bool:
        """Whether all columns are discrete."""
        return self.linear.shape[1] + self.angles.shape[1] == 0

    @property
    def dimensions(self) -> int:
        """Latents that the factor needs: one a column, two an angle, values − 1 if discrete."""
        discrete = min(self.n_codes - 1, 8)
        return self.linear.shape[1] + 2 * self.angles.shape[1] + discrete

    def points(self, frames: np.ndarray) -> np.ndarray:
        """Positions in label space, angles as (cos, sin): (frames, coordinates)."""
        return self._embedded(self.linear[frames], self.angles[frames])

    def moved(self, frames: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """c(t) + Δ with Δ = c(end) − c(start): (frames, coordinates)."""
        linear = self.linear[frames] + self.linear[end] - self.linear[start]
        linear = np.where(self.near[frames, None], linear, self.linear[frames])
        angles = self.angles[frames] + self.angles[end] - self.angles[start]
        return self._embedded(linear, angles)

    def targets(self) -> np.ndarray:
        """Targets of a regression: (frames, coordinates), discrete values one-hot."""
        points = self.points(np.arange(len(self.known)))
        if self.n_codes == 1:
            return points
        return np.hstack([points, np.eye(self.n_codes)[self.code]])

    def coordinates(self) -> np.ndarray:
        """Positions in as many dimensions as the factor has latents: (frames, dimensions).

        Values of a discrete label are corners of a simplex, or of its shadow if they are many.
        """
        points = self.points(np.arange(len(self.known)))
        if self.n_codes == 1:
            return points
        corners = _corners(self.n_codes)[:, : min(self.n_codes - 1, 8)]
        return np.hstack([points, corners[self.code]])

    def step_variance(self, start: np.ndarray, end: np.ndarray) -> float:
        """σ² of the step c(end) − c(start), the mean over coordinates; 0 if discrete."""
        both = self.near[start] & self.near[end]
        start, end = start[both], end[both]
        if self.is_discrete or len(start) == 0:
            return 0.0
        return float(np.square(self.points(end) - self.points(start)).mean())

    def steps(self, starts: np.ndarray, offset: int) -> np.ndarray:
        """Those frames from which the label steps: known there and `offset` later, and near."""
        ends = starts + offset
        there = self.known[starts] & self.known[ends] & self.near[starts] & self.near[ends]
        return starts[there]

    @staticmethod
    def _embedded(linear: np.ndarray, angles: np.ndarray) -> np.ndarray:
        return np.hstack([linear, np.cos(angles), np.sin(angles)])


def _time_from_event(recording: Recording, event: Variable, factor: str) -> np.ndarray:
    """Time from an event, standardised within its window, NaN elsewhere: (frames, 1)."""
    since = seconds_from_event(recording, event)[:, None]
    if np.isnan(since).all() or not np.isnan(since).any():
        how = "never happens" if np.isnan(since).all() else "is near at every frame"
        raise InputError(
            f"Event {event.name!r} of factor {factor!r} {how}: an event that happens now and then "
            "is needed; its window can be made shorter."
        )
    centred = since - np.nanmean(since)
    return np.asarray(centred / max(float(np.nanstd(since)), 1e-9))


def _corners(values: int) -> np.ndarray:
    """Corners of a simplex around the origin, the same ones every time: (values, values − 1)."""
    turned = np.random.default_rng(values).normal(size=(values, values))
    turned[:, 0] = 1
    basis = np.linalg.qr(turned)[0][:, 1:]
    corners: np.ndarray = basis * np.sqrt(values)
    return corners


def _joint_code(columns: list[np.ndarray], known: np.ndarray) -> np.ndarray:
    code = np.zeros(len(known), np.int64)
    if columns:
        code[known] = np.unique(np.hstack(columns)[known], axis=0, return_inverse=True)[1].ravel()
    return code


def step_offset(labels: Labels, segment: np.ndarray, size: float, longest: int) -> int:
    """Frames a label needs to move by `size` of its standard deviation (root mean square).

    A step too short cannot be told from noise, one too long leaves nothing to learn. 1 for labels
    that are only discrete.
    """
    if labels.is_discrete:
        return 1
    points = labels.points(np.arange(len(labels.known)))
    variance = points[labels.known & labels.near].var(0).sum()
    for lag in range(1, longest + 1):
        start = labels.steps(pairs_within(labels, segment, lag), lag)
        start = start[:: max(1, len(start) // 20_000)]
        moved = np.square(points[start + lag] - points[start]).sum(1)
        if len(moved) == 0:  # no trial, or no window around an event, is as long
            return max(1, lag - 1)
        if moved.mean() >= size**2 * variance:
            return lag
    return max(1, longest)


def pairs_within(labels: Labels, segment: np.ndarray, lag: int) -> np.ndarray:
    """Frames t at which the label is known, as it is at t + lag of the same segment."""
    known = labels.known[lag:] & labels.known[:-lag] & (segment[lag:] == segment[:-lag])
    return np.flatnonzero(known)


def correlation_time(labels: Labels, segment: np.ndarray, longest: int) -> int:
    """Frames after which the autocorrelation of a label is below 0.1.

    It is taken within segments, at lags that grow by a quarter each time.
    """
    targets = labels.targets()
    centred = targets - targets[labels.known].mean(0)
    variance = np.square(centred[labels.known]).sum(1).mean()
    lag = 1
    while lag < longest:
        start = pairs_within(labels, segment, lag)
        start = start[:: max(1, len(start) // 100_000)]
        product = (centred[start] * centred[start + lag]).sum(1)
        if len(start) == 0 or product.mean() < 0.1 * variance:
            break
        lag = max(lag + 1, int(lag * 1.25))
    return min(lag, longest)
