"""Places frames within trials and around events: what is known of a trial, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.recording import Recording, Variable

if TYPE_CHECKING:
    from napari_xcebra.learn.data.labels import Labels

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
