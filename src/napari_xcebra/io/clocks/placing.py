"""Places behaviour on the clock of the recording, whatever its times count.

Times may be seconds, frames, samples, or pulses of the microscope that stand in the rows; a file
may also mark rows with the frame or trial they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.resample import OnFrames, place_by_time
from napari_xcebra.io.clocks.time_files import check_trigger, marked_frames, slack
from napari_xcebra.io.clocks.timestamps import ascends
from napari_xcebra.io.clocks.trials import (
    PlacedIntervals,
    place_events,
    place_intervals,
    trials_numbered,
)
from napari_xcebra.io.extraction import Behavior, Series, TimesIn
from napari_xcebra.io.kinds import variable_of
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.variables import Trials, Variable


@dataclass(frozen=True)
class _Labelled:
    """Labels of frames.

    Parameters
    ----------
    names : tuple of str
        Names under which the labels may be asked for.
    labels : tuple of str
        What the values 0, 1, 2 … stand for; empty if they are plain numbers.
    values : (frames,) float64
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    values: np.ndarray

    def frames(self, wanted: str) -> np.ndarray | None:
        """(frames,) bool, where the label is ``label`` or ``name=label``; None if unknown here."""
        name, _, label = wanted.rpartition("=")
        if name and _plain(name) not in map(_plain, self.names):
            return None
        labels = [_plain(known) for known in self.labels]
        if _plain(label) in labels:
            return self.values == labels.index(_plain(label))
        if not name or self.labels:
            return None
        try:
            return self.values == float(label)
        except ValueError:
            return None


def _left_out(labelled: Sequence[_Labelled], n_frames: int, settings: OpenSettings) -> np.ndarray:
    """(frames,) bool, frames that `only` and `exclude` leave out by labels found here."""
    excluded = np.zeros(n_frames, bool)
    for frames in _found(labelled, settings.exclude):
        excluded |= frames
    chosen = _found(labelled, settings.only)
    return excluded | ~np.any(chosen, axis=0) if chosen else excluded


def _check_labels(behaviors: Sequence[Behavior], settings: OpenSettings) -> None:
    """Raise if `only` or `exclude` names what no behaviour has."""
    known = [labelled for behavior in behaviors for labelled in _unplaced(behavior)]
    for knob in ("only", "exclude"):
        for wanted in _parts(getattr(settings, knob)):
            if not any(labelled.frames(wanted) is not None for labelled in known):
                labels = [f"{k.names[0]}={label}" for k in known for label in k.labels]
                raise InputError(
                    f"{knob} names {wanted!r}, which is not a label of the behaviour; there are: "
                    f"{', '.join(labels[:20]) or 'none'}."
                )


def _unplaced(behavior: Behavior) -> list[_Labelled]:
    """Labels of a behaviour before it is placed on the frames."""
    nothing = np.zeros(0)
    known = [_Labelled((s.name,), s.labels, nothing) for s in behavior.series]
    for intervals in behavior.intervals:
        known.append(_Labelled((intervals.name,), (intervals.name,), nothing))
        for name, values in intervals.columns.items():
            values = np.asarray(values)
            words = () if values.dtype.kind in "biuf" else tuple({str(v) for v in values})
            known.append(_Labelled((name, f"{intervals.name}_{name}"), words, nothing))
    return known


def _found(labelled: Sequence[_Labelled], wanted: str) -> list[np.ndarray]:
    found = [known.frames(part) for part in _parts(wanted) for known in labelled]
    return [frames for frames in found if frames is not None]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _plain(text: str) -> str:
    return text.strip().casefold()


def _place_numbers(
    series: Sequence[Series], frames: np.ndarray, settings: OpenSettings, who: str
) -> tuple[list[Series], list[str]]:
    """Series numbered by frames or samples, with times in seconds; and notes.

    Parameters
    ----------
    series : sequence of Series
    frames : (frames,) float64
        Seconds at which the frames were taken; NaN where that is not known.
    settings : OpenSettings
    who : str
        What sentences call the source.
    """
    clocks: dict[int, tuple[np.ndarray | None, np.ndarray | slice]] = {}
    placed: list[Series] = []
    notes: list[str] = []
    for one in series:
        if one.times is None or one.times_in not in ("frames", "samples"):
            placed.append(one)
            continue
        are_frames = one.times_in == "frames" and not settings.behavior_rate
        if id(one.times) not in clocks:
            numbers = np.asarray(one.times, np.float64)
            times, rows, said = (
                _by_frames(numbers, frames, settings, who)
                if are_frames
                else _by_samples(numbers, len(frames), settings, who)
            )
            clocks[id(one.times)] = (times, rows)
            notes += said
        times, rows = clocks[id(one.times)]
        values = np.asarray(one.values)[rows]
        times_in: TimesIn = "frames" if are_frames else "seconds"
        placed.append(replace(one, values=values, times=times, times_in=times_in))
    return placed, notes


def _by_frames(
    numbers: np.ndarray, frames: np.ndarray, settings: OpenSettings, who: str
) -> tuple[np.ndarray | None, np.ndarray | slice, list[str]]:
    """Times of the frames that rows name, the rows to take, and notes."""
    n_frames = len(frames)
    counted = numbers[np.isfinite(numbers) & (numbers >= 0)]
    if len(counted) == 0:
        raise InputError(
            f"{who} numbers no frame: set `behavior_clock` to rows if each row is one."
        )
    low, high = counted.min(), counted.max()
    first, is_guess = _first_number(low, high, n_frames, settings)
    numbers = numbers - first
    inside = np.isfinite(numbers) & (numbers >= 0) & (numbers <= n_frames - 1)
    beyond = int((numbers > n_frames - 1).sum())
    if settings.behavior_clock in ("auto", "frames") and beyond > slack(n_frames):
        raise InputError(
            f"{who} numbers frames {low:g} to {high:g}, but the recording has {n_frames} frames. "
            "If they are those of a camera, set `behavior_rate` to its frames per second. To leave "
            f"out what is beyond the last frame, set `behavior_clock` to frames-from-{first}."
        )
    if len(numbers) == n_frames and np.array_equal(numbers, np.arange(n_frames)):
        return None, slice(None), []
    seen = len(np.unique(np.round(numbers[inside])))
    note = f"{who} numbers {seen:,} of {n_frames:,} frames, from {first} on"
    if is_guess:
        note += (
            f", which is a guess: set `behavior_clock` to frames-from-{1 - first} if it is wrong"
        )
    notes = [f"{note}. Frames without a row have no value (`gap` bridges them)."]
    if not inside.all():
        notes.append(f"{who} has {int((~inside).sum())} rows outside the frames: left out.")
    if not inside.any():
        raise InputError(
            f"{who} numbers frames {low:g} to {high:g}, but the recording has {n_frames} frames."
        )
    rows = np.flatnonzero(inside)
    return np.interp(numbers[rows], np.arange(n_frames), frames), rows, notes


def _first_number(
    low: float, high: float, n_frames: int, settings: OpenSettings
) -> tuple[int, bool]:
    """Number of the first frame, 0 or 1, and whether it is a guess."""
    if settings.behavior_clock in ("frames-from-0", "frames-from-1"):
        return int(settings.behavior_clock[-1]), False
    if low == 0:
        return 0, False
    if high == n_frames:
        return 1, False
    # nothing but the range tells: a table that ends early rather begins with the first frame
    return (1, True) if low == 1 and high < n_frames - 1 else (0, True)


def _by_samples(
    numbers: np.ndarray, n_frames: int, settings: OpenSettings, who: str
) -> tuple[np.ndarray | None, np.ndarray | slice, list[str]]:
    """Times of numbered samples, or their order if there is one for each frame; and notes."""
    known = numbers[np.isfinite(numbers)]
    if settings.behavior_rate:
        first = 1.0 if len(known) and known.min() == 1 else 0.0
        return (numbers - first) / settings.behavior_rate, slice(None), []
    order = np.argsort(numbers, kind="stable")
    steps = np.diff(numbers[order])
    regular = len(steps) and np.all(np.abs(steps / np.median(steps) - 1) < 0.01)
    if len(numbers) == n_frames and len(known) == n_frames and regular and np.median(steps) > 0:
        note = (
            f"{who} numbers its samples, one for each frame in their order: if that is wrong, set "
            "`behavior_rate` to the samples per second."
        )
        return None, order, [note]
    raise InputError(
        f"{who} numbers its samples, {len(numbers):,} for {n_frames:,} frames: set `behavior_rate` "
        "to the samples per second, or `behavior_clock` to rows if each row is a frame."
    )


@dataclass(frozen=True)
class Placed:
    """Behaviour on the frames.

    Parameters
    ----------
    variables : sequence of Variable
    starts : (segments,) int64
        Frames at which a trial begins or ends; empty if there are none.
    excluded : (frames,) bool
        Frames to leave out.
    notes : tuple of str
    trials : Trials or None
    warnings : tuple of str
        What should be looked at: clocks of different length.
    """

    variables: Sequence[Variable]
    starts: np.ndarray
    excluded: np.ndarray
    notes: tuple[str, ...]
    trials: Trials | None = None
    warnings: tuple[str, ...] = ()


def check_names(behaviors: Sequence[Behavior], settings: OpenSettings) -> None:
    """Raise if the settings name a trigger or a label that no behaviour has."""
    check_trigger(behaviors, settings)
    _check_labels(behaviors, settings)


# a damaged file may hold numbers so large that no sum of them is finite: they end as not known
@np.errstate(over="ignore", invalid="ignore")
def on_frames(behavior: Behavior, times: np.ndarray, settings: OpenSettings) -> Placed:
    """Place every series and interval on the frames.

    If the behaviour has the trigger that `settings` names, this marks the frames on the clock of
    the behaviour, and neither `times` nor `settings.offset` matters.

    Parameters
    ----------
    behavior : Behavior
    times : (frames,) float64
        Seconds at which the frames were taken.
    settings : OpenSettings

    Raises
    ------
    InputError
        If nothing of the behaviour falls on a frame.
    """
    times = np.asarray(times, np.float64)
    if not behavior.series and not behavior.intervals and not behavior.events:
        return Placed((), np.zeros(0, np.int64), np.zeros(len(times), bool), behavior.notes)
    marked = marked_frames(behavior, len(times), settings)
    offset, notes = settings.offset, _unused_trigger(behavior, settings)
    if marked is not None:
        times, offset, notes = marked.times, 0.0, marked.notes
    series = [_finite(s) for s in behavior.series if s.name != settings.trigger]
    series, about_numbers = _place_numbers(series, times, settings, behavior.name or "Behaviour")
    timed = [s for s in series if _has_times(s, settings, marked is not None)]
    plain = [s for s in series if not _has_times(s, settings, marked is not None)]
    one_a_frame = _one_a_frame(plain, times, behavior.notes)
    unused = [note for note in behavior.notes if "is not used" in note]
    by_time = place_by_time(
        timed, times, offset, settings, behavior.name, is_marked=marked is not None, about=unused
    )
    pairs = [*one_a_frame.pairs, *by_time.pairs]
    events, about_events = _events(behavior, times, offset, needed=not pairs)
    series_variables = [variable for _, variable in pairs]
    taken = [variable.name for variable in (*series_variables, *events)]
    intervals, misses = _intervals(behavior, times, offset, taken, needed=not taken)
    trials, about_trials = trials_numbered(series_variables, behavior.name or "Behaviour")
    trials = next((each.trials for each in intervals if each.trials is not None), trials)
    notes = (*behavior.notes, *notes, *about_numbers, *one_a_frame.notes, *by_time.notes)
    notes = (*notes, *about_trials)
    notes = (*notes, *about_events, *(n for each in intervals for n in each.notes), *misses)
    of_intervals = [c.variable for each in intervals for c in each.columns]
    events += [event for each in intervals for event in each.events]
    return Placed(
        variables=_distinct([*series_variables, *of_intervals, *events]),
        starts=np.unique(np.concatenate([np.zeros(0, np.int64), *(i.starts for i in intervals)])),
        excluded=_left_out(_labelled(pairs, intervals), len(times), settings),
        notes=notes,
        trials=trials,
        warnings=by_time.warnings,
    )


def _distinct(variables: Sequence[Variable]) -> list[Variable]:
    """Variables under names of their own: an event that shares one gets a second word."""
    named: dict[str, Variable] = {}
    for variable in variables:
        name = variable.name
        while name in named:
            name += "_event" if variable.kind == "event" else "_2"
        named[name] = replace(variable, name=name)
    return list(named.values())


def _events(
    behavior: Behavior, times: np.ndarray, offset: float, *, needed: bool
) -> tuple[list[Variable], list[str]]:
    """Events on the frames; and notes, also on those left out, unless there is nothing else."""
    placed: list[Variable] = []
    notes: list[str] = []
    misses: list[InputError] = []
    for each in behavior.events:
        try:
            variable, said = place_events(each, times, offset, behavior.name or "Behaviour")
        except InputError as error:
            misses.append(error)
            continue
        placed.append(variable)
        notes += said
    if misses and needed and not placed and not behavior.intervals:
        raise misses[0]
    return placed, [*notes, *(f"Left out: {miss}" for miss in misses)]


def _has_times(series: Series, settings: OpenSettings, is_marked: bool) -> bool:
    """Whether samples have times; without, they can only be one per frame."""
    return series.times is not None or settings.behavior_rate > 0 or is_marked


def _intervals(
    behavior: Behavior, times: np.ndarray, offset: float, taken: list[str], *, needed: bool
) -> tuple[list[PlacedIntervals], list[str]]:
    """Intervals on the frames; and notes on those left out, unless there is nothing else."""
    placed, misses = [], []
    for each in behavior.intervals:
        try:
            placed.append(place_intervals(each, times, offset, taken))
            taken = [*taken, *(column.variable.name for column in placed[-1].columns)]
        except InputError as error:
            misses.append(error)
    if misses and needed and not placed:
        raise misses[0]
    return placed, [f"Left out: {miss}" for miss in misses]


def _finite(series: Series) -> Series:
    """Series with NaN in place of infinite values."""
    values = np.asarray(series.values)
    if values.dtype.kind == "f" and np.isinf(values).any():
        values = np.where(np.isinf(values), np.nan, values)
    return replace(series, values=values if values.ndim else values.reshape(1))


def _unused_trigger(behavior: Behavior, settings: OpenSettings) -> tuple[str, ...]:
    if not settings.trigger or not behavior.name:
        return ()
    return (f"{behavior.name} has no column {settings.trigger}: its own times are used.",)


def _one_a_frame(
    series: Sequence[Series], times: np.ndarray, notes_before: Sequence[str] = ()
) -> OnFrames:
    """Series that have a sample for every frame; others are left out if some do."""
    n_frames, rate = len(times), _rate(times)
    fits = [s for s in series if len(s.values) == n_frames or _is_short(s, n_frames)]
    if series and not fits:
        about_clocks = [note for note in notes_before if "the clock" in note or "left out" in note]
        rising = [s.name for s in series if ascends(np.squeeze(np.asarray(s.values, np.float64)))]
        if rising:
            about_clocks.append(f"If {rising[0]}, which rises, is its clock, call it time.")
        raise InputError(" ".join([_wrong_length(series[0], n_frames), *about_clocks]))
    others = [s for s in series if not any(s is fit for fit in fits)]
    notes = [
        f"{s.name} has {len(s.values)} rows, not one per frame: it is left out." for s in others
    ]
    return OnFrames(tuple((s, _filled_up(s, n_frames, rate)) for s in fits), tuple(notes))


def _rate(times: np.ndarray) -> float:
    """Frames per second; 1 for a single frame."""
    steps = np.diff(times[np.isfinite(times)])
    return 1 / float(np.median(steps)) if len(steps) else 1.0


def _is_short(series: Series, n_frames: int) -> bool:
    return series.sparse and 0 < len(series.values) <= n_frames


def _filled_up(series: Series, n_frames: int, rate: float) -> Variable:
    variable = variable_of(series, rate)
    missing = n_frames - len(variable.values)
    if not missing:
        return variable
    values = np.pad(variable.values, ((0, missing), (0, 0)), constant_values=np.nan)
    return replace(variable, values=values)


def _wrong_length(series: Series, n_frames: int) -> str:
    rows = len(series.values)
    sentence = (
        f"{series.name} has {rows} rows but the traces have {n_frames} frames: one row per frame "
        "is needed, or a column of times, or the samples per second as `behavior_rate`."
    )
    if rows > 2 * n_frames:
        sentence += " If the traces are transposed, set `layout`."
    return sentence


def _labelled(
    pairs: Sequence[tuple[Series, Variable]], intervals: Sequence[PlacedIntervals]
) -> list[_Labelled]:
    """All labels by which frames can be chosen."""
    labelled = [
        _Labelled((series.name,), series.labels, variable.values[:, 0])
        for series, variable in pairs
        if variable.values.shape[1] == 1
    ]
    for each in intervals:
        inside = np.where(each.inside, 0.0, np.nan)
        labelled.append(_Labelled((each.name,), (each.name,), inside))
        for column in each.columns:
            names = (column.variable.name, column.short)
            words = column.variable.words
            labelled.append(_Labelled(names, words, column.variable.values[:, 0]))
    return labelled
