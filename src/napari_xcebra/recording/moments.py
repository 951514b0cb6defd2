"""Finds the moments that traces can be aligned to, and what splits them into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.trials import called

START, STOP = "trial start", "trial end"
"""Moments that every recording with trials has."""
WINDOW = (1.0, 3.0)
"""Seconds before and after a moment that has no window of its own."""
NEAR = 0.5
"""Seconds from an event within which something is known because of it."""
LONGEST = 10.0
"""Seconds of a trial that are shown at most, if not more is asked for."""
ALL = "all"
"""Name of the only group, if moments are not split."""
MOST_GROUPS = 20
"""Groups that can be told apart."""


@dataclass(frozen=True)
class Moments:
    """Where an event lies among the frames, and to which group each time belongs.

    Parameters
    ----------
    event : str
    frames : (moments,) int64
        Ascending.
    group : (moments,) int64
        Number of the group, −1 where what splits them is not known.
    groups : tuple of str
    by : str
        What splits them; empty if nothing does.
    """

    event: str
    frames: np.ndarray
    group: np.ndarray
    groups: tuple[str, ...] = (ALL,)
    by: str = ""

    @classmethod
    def of(cls, recording: Recording, event: str, by: str | None = None) -> Moments:
        """Moments of an event, or of the start or end of trials, split by a variable."""
        frames = _frames_of(recording, event)
        if by is None:
            return cls(event, frames, np.zeros(len(frames), np.int64))
        values, words = _values_at(recording, by, frames)
        different = np.unique(values[~np.isnan(values)])
        if len(different) > MOST_GROUPS:
            raise InputError(
                f"{by!r} has {len(different)} different values at the {len(frames)} times of "
                f"{event!r}: up to {MOST_GROUPS} groups can be told apart; choose another variable."
            )
        group = np.where(np.isnan(values), -1, np.searchsorted(different, values))
        return cls(event, frames, group, tuple(words(value) for value in different), by)


def window_of(recording: Recording, event: str) -> tuple[float, float]:
    """Seconds before and after an event that are usual for it; of a trial's start, most of it."""
    trials, variable = recording.trials, recording.behavior.get(event)
    if event in (START, STOP) and trials is not None:
        trial = float(np.median(trials.stop - trials.first)) / recording.rate
        long, short = min(max(trial, WINDOW[0]), LONGEST), WINDOW[0]
        return (short, long) if event == START else (long, short)
    return WINDOW if variable is None or variable.kind != "event" else variable.window


def moments_in(recording: Recording) -> list[str]:
    """Everything that traces can be aligned to."""
    events = [name for name, v in recording.behavior.items() if v.kind == "event"]
    return [*([START, STOP] if recording.trials is not None else []), *events]


def splits_in(recording: Recording) -> list[str]:
    """Everything that moments can be split by: columns of trials, and discrete variables."""
    columns = [] if recording.trials is None else list(recording.trials.columns)
    discrete = [name for name, v in recording.behavior.items() if v.kind == "discrete"]
    return list(dict.fromkeys([*columns, *discrete]))


def usual_view(recording: Recording, variables: Sequence[str]) -> tuple[str, str | None] | None:
    """Event to align to and what to split by, to see cells of these variables; None if nothing.

    An event is seen around itself; a condition of trials, around the event from which on it is
    known. A number that differs from trial to trial, such as a reaction time, splits nothing.
    """
    trials, names = recording.trials, [name for name in variables if name in recording.behavior]
    for name in names:
        if recording.behavior[name].kind == "event":
            return name, None
    for name in names:
        column = np.zeros(0) if trials is None else trials.columns.get(name, np.zeros(0))
        if 0 < len(np.unique(column[~np.isnan(column)])) <= MOST_GROUPS:
            return _known_from(recording, name), name
    return None


def _known_from(recording: Recording, name: str) -> str:
    """The event at which a variable of the trials becomes known, or about then."""
    trials = recording.trials
    assert trials is not None
    number, known = trials.number(recording.n_frames), recording.behavior[name].known
    inside = np.flatnonzero(known & (number >= 0))
    first = inside[np.unique(number[inside], return_index=True)[1]]
    away = {START: _distance(first, trials.first)} if len(first) else {}
    for event, variable in recording.behavior.items():
        frames = np.flatnonzero(variable.values[:, 0] > 0)
        if variable.kind == "event" and len(first) and len(frames):
            away[event] = _distance(first, frames)
    nearest = min(away, key=away.__getitem__, default=START)
    return nearest if away.get(nearest, np.inf) <= NEAR * recording.rate else START


def _distance(places: np.ndarray, frames: np.ndarray) -> float:
    """Frames from nearly all of some places to the nearest of some frames, ascending."""
    after = np.clip(np.searchsorted(frames, places), 0, len(frames) - 1)
    before = np.maximum(after - 1, 0)
    away = np.minimum(np.abs(frames[after] - places), np.abs(frames[before] - places))
    # a reward that some trials lack does not make known what all have
    return float(np.quantile(away, 0.9))


def _frames_of(recording: Recording, event: str) -> np.ndarray:
    trials = recording.trials
    if event in (START, STOP) and trials is not None:
        return trials.first if event == START else np.minimum(trials.stop, recording.n_frames - 1)
    variable = recording.behavior.get(event)
    if variable is None or variable.kind != "event":
        known = ", ".join(moments_in(recording)) or "none"
        raise InputError(f"There is no event {event!r} in this recording; there are: {known}.")
    frames = np.flatnonzero(np.nan_to_num(variable.values[:, 0]) > 0)
    if len(frames) == 0:
        raise InputError(f"Event {event!r} never happens in this recording.")
    return frames


def _values_at(recording: Recording, by: str, frames: np.ndarray) -> tuple[np.ndarray, Any]:
    """Value of what splits moments at each of them, and how to call a value."""
    trials = recording.trials
    if trials is not None and by in trials.columns:
        number = trials.number(recording.n_frames)[frames]
        values = np.where(number >= 0, trials.columns[by][number], np.nan)
        return values, lambda value: trials.label(by, value)
    variable = recording.variable(by)
    if variable.kind != "discrete":
        known = ", ".join(splits_in(recording)) or "none"
        raise InputError(
            f"{by!r} is {variable.kind}: moments are split by a discrete variable; there are: "
            f"{known}."
        )
    return variable.values[frames, 0], lambda value: called(value, variable.words)
