"""Brings behaviour to the imaging clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.events import place_events
from napari_xcebra.io.clocks.labelled import Labelled, check_labels, left_out
from napari_xcebra.io.clocks.numbers import place_numbers, spread_ticks
from napari_xcebra.io.clocks.overlap import compare_lengths, coverage, lost_values, misplaced
from napari_xcebra.io.clocks.resample import Clock, at_frames, clock_of
from napari_xcebra.io.clocks.trials import PlacedIntervals, place_intervals, trials_numbered
from napari_xcebra.io.clocks.triggers import check_trigger, marked_frames, sample_times
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.kinds import variable_of
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording import Trials, Variable
from napari_xcebra.text import counted


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


@dataclass(frozen=True)
class _Found:
    """Series on the frames, and what to say about them."""

    pairs: tuple[tuple[Series, Variable], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def check_names(behaviors: Sequence[Behavior], settings: OpenSettings) -> None:
    """Raise if the settings name a trigger or a label that no behaviour has."""
    check_trigger(behaviors, settings)
    check_labels(behaviors, settings)


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
    series, about_numbers = place_numbers(series, times, settings, behavior.name or "Behaviour")
    timed = [s for s in series if _has_times(s, settings, marked is not None)]
    plain = [s for s in series if not _has_times(s, settings, marked is not None)]
    one_a_frame = _one_a_frame(plain, times)
    by_time = _by_time(timed, times, offset, settings, behavior.name, is_marked=marked is not None)
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
        excluded=left_out(_labelled(pairs, intervals), len(times), settings),
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


def _one_a_frame(series: Sequence[Series], times: np.ndarray) -> _Found:
    """Series that have a sample for every frame; others are left out if some do."""
    n_frames, rate = len(times), _rate(times)
    fits = [s for s in series if len(s.values) == n_frames or _is_short(s, n_frames)]
    if series and not fits:
        raise InputError(_wrong_length(series[0], n_frames))
    others = [s for s in series if not any(s is fit for fit in fits)]
    notes = [
        f"{s.name} has {len(s.values)} rows, not one per frame: it is left out." for s in others
    ]
    return _Found(tuple((s, _filled_up(s, n_frames, rate)) for s in fits), tuple(notes))


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


def _by_time(
    series: Sequence[Series],
    frames: np.ndarray,
    offset: float,
    settings: OpenSettings,
    source: str,
    *,
    is_marked: bool,
) -> _Found:
    """Series that have a clock of their own, brought to the frames clock by clock."""
    clocks: dict[object, list[Series]] = {}
    for one in series:
        key = len(one.values) if one.times is None else (id(one.times), len(one.values))
        clocks.setdefault(key, []).append(one)
    pairs: list[tuple[Series, Variable]] = []
    notes: list[str] = []
    misses: list[str] = []
    warnings: list[str] = []
    for members in clocks.values():
        who = source or "Behaviour"
        if len(clocks) > 1:
            who = ", ".join(s.name for s in members[:3]) + (" …" if len(members) > 3 else "")
        clock, rows, about = _clock(members[0], who, frames, offset, settings)
        miss = misplaced(
            who,
            clock,
            unnamed=members[0].times_in == "unnamed",
            trusted=is_marked
            or members[0].times_in == "frames"
            or settings.behavior_clock != "auto",
        )
        if miss is not None:
            misses.append(miss)
            continue
        notes += [*about, *coverage(who, clock, len(frames))]
        if not is_marked and (differ := compare_lengths(who, clock)) is not None:
            warnings.append(differ)
        for one in members:
            variable, note = _resampled(one, clock, rows, np.isfinite(frames))
            pairs.append((one, variable))
            notes += [note] if note else []
    if misses and not pairs:
        raise InputError(misses[0])
    notes += [f"Left out: {miss}" for miss in misses]
    return _Found(tuple(pairs), tuple(notes), tuple(warnings))


def _clock(
    series: Series, who: str, frames: np.ndarray, offset: float, settings: OpenSettings
) -> tuple[Clock, np.ndarray | slice, list[str]]:
    """Clock of a series against the frames, the rows to take in its order, and notes."""
    times = sample_times(series, settings) + offset
    if times.shape != (len(series.values),):
        raise InputError(
            f"{who} has {len(series.values)} samples of {series.name} but times of shape "
            f"{times.shape}: one time per sample is needed."
        )
    rows: np.ndarray | slice = slice(None)
    notes = []
    known = np.isfinite(times)
    if not known.any():
        raise InputError(f"{who} has no sample with a time.")
    if not known.all():
        rows = np.flatnonzero(known)
        notes.append(f"{who} has {int((~known).sum())} samples without a time: they are left out.")
    steps = np.diff(times[rows])
    if (steps < 0).any():
        rows = np.arange(len(times))[rows]
        if not (steps > 0).any():  # a table that ends with its first row
            rows = rows[::-1]
        rows = rows[np.argsort(times[rows], kind="stable")]
        first = int(np.flatnonzero(steps < 0)[0])
        notes.append(
            f"{who} has {counted(int((steps < 0).sum()), 'time')} out of order, the first "
            f"{-1000 * steps[first]:.3g} ms back in row {first + 2:,}: sorted."
        )
        steps = np.diff(times[rows])
    marked, ordered = frames[np.isfinite(frames)], times[rows]
    if series.times_in != "frames" and (finer := spread_ticks(ordered, marked)) is not None:
        tick = float(np.median(np.diff(np.unique(ordered))))
        notes.append(
            f"{who} gives times in steps of {tick:.3g} s, for several rows each: these are spread "
            "evenly over the step, which is a guess."
        )
        ordered = finer
    elif (steps == 0).any():
        notes.append(f"{who} has {int((steps == 0).sum())} repeated times: merged.")
    gap = settings.gap
    if series.times_in == "frames" and not gap and len(marked) > 1:
        gap = 1.5 * float(np.median(np.diff(marked)))  # a frame without a number is not known
    return clock_of(ordered, marked, gap), rows, notes


def _resampled(
    series: Series, clock: Clock, rows: np.ndarray | slice, marked: np.ndarray
) -> tuple[Variable, str | None]:
    """Variable on the frames, unknown at frames that are not marked; and a note, if needed."""
    variable = variable_of(series, 1 / max(clock.interval, 1e-9))
    samples = variable.values[rows]
    placed = at_frames(samples, clock, variable.kind, variable.period)
    note = None
    if variable.kind == "discrete" and clock.is_fast and placed.shape[1] == 1:
        note = lost_values(series.name, samples[:, 0], placed[:, 0], clock)
    values = np.full((len(marked), placed.shape[1]), np.nan)
    values[marked] = placed
    return replace(variable, values=values), note


def _labelled(
    pairs: Sequence[tuple[Series, Variable]], intervals: Sequence[PlacedIntervals]
) -> list[Labelled]:
    """All labels by which frames can be chosen."""
    labelled = [
        Labelled((series.name,), series.labels, variable.values[:, 0])
        for series, variable in pairs
        if variable.values.shape[1] == 1
    ]
    for each in intervals:
        inside = np.where(each.inside, 0.0, np.nan)
        labelled.append(Labelled((each.name,), (each.name,), inside))
        for column in each.columns:
            names = (column.variable.name, column.short)
            words = column.variable.words
            labelled.append(Labelled(names, words, column.variable.values[:, 0]))
    return labelled
