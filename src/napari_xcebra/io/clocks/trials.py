"""Places trials and epochs on the frames.

A frame belongs to an interval if it was taken at its start or later, and before its stop. Segments
begin at every start and stop, so that no pair and no window crosses one; frames between trials are
kept, in segments of their own. What is known about a trial becomes a variable that is the same from
its moment in the trial to the end, and unknown elsewhere: ``choice`` holds from ``choice_time`` on,
where there is such a column. Such moments are events as well. A column that numbers trials frame by
frame tells them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import SECONDS, unit_scale, words_of
from napari_xcebra.io.extraction import Events, Intervals
from napari_xcebra.io.kinds import FEW, variable_from
from napari_xcebra.recording.variables import Trials, Variable
from napari_xcebra.text import counted

PER_SECOND = {"ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units that times are mistaken for seconds in, and how many make a second."""


def place_events(
    events: Events, times: np.ndarray, offset: float, where: str
) -> tuple[Variable, tuple[str, ...]]:
    """Events counted in the frames nearest to them; and notes.

    Parameters
    ----------
    events : Events
    times : (frames,) float64
        Seconds at which the frames were taken; NaN (at either end) where that is not known.
    offset : float
        Seconds to add to the clock of the events.
    where : str
        Name of the file, for sentences.
    """
    at = np.asarray(events.times, np.float64)
    if events.in_frames:
        whole = np.where(np.isfinite(at), np.round(at), -1)
        frames = np.where((whole >= 0) & (whole < len(times)), whole, -1).astype(np.int64)
    else:
        frames = frames_at(at + offset, times)
    inside = frames >= 0
    if inside.all() and len(at):
        notes = (f"{events.name}: {counted(len(at), 'event')} in the recording.",)
        return Variable(events.name, count_in_frames(frames, len(times)), "event"), notes
    sentence = _note_on_events_outside(events, at, ~inside, times, offset, where)
    if not inside.any():
        raise InputError(f"No event {events.name} lies in the recording. {sentence}")
    notes = (
        f"{events.name}: {int(inside.sum())} of {len(at)} events lie in the recording. {sentence}",
    )
    return Variable(events.name, count_in_frames(frames, len(times)), "event"), notes


def frames_at(at: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The frame nearest to each moment, −1 outside the recording: (moments,) int64."""
    seen = np.flatnonzero(np.isfinite(times))
    if len(seen) == 0:
        return np.full(len(at), -1, np.int64)
    known = times[seen]
    half = float(np.median(np.diff(known))) / 2 if len(known) > 1 else np.inf
    middle = (known[1:] + known[:-1]) / 2
    inside = np.isfinite(at) & (at >= known[0] - half) & (at <= known[-1] + half)
    nearest = np.searchsorted(middle, np.where(inside, at, known[0]), side="right")
    return np.where(inside, seen[nearest], -1)


def count_in_frames(frames: np.ndarray, n_frames: int) -> np.ndarray:
    """How many of the moments lie in each frame: (frames,) float64."""
    return np.bincount(frames[frames >= 0], minlength=n_frames).astype(np.float64)


def _misread_unit(at: np.ndarray, times: np.ndarray, column: str) -> str:
    """What the unit of moments seems to be, if not seconds; empty if nothing tells."""
    at, known = at[np.isfinite(at)], times[np.isfinite(times)]
    if len(at) < 2 or len(known) < 2:
        return ""
    whole = bool((at == np.round(at)).all())
    if whole and len(known) * 0.5 < at.max() <= len(known) and at.max() > 2 * known[-1]:
        return f"the numbers look like frames. Name the column {column}_frame."
    for unit, factor in PER_SECOND.items():
        if 0.2 < (at.max() - at.min()) / (known[-1] - known[0]) / factor < 1.25:
            return (
                f"the times look like {unit}. Name the unit in the header, such as {column}_{unit}."
            )
    return ""


def _note_on_events_outside(
    events: Events,
    at: np.ndarray,
    misses: np.ndarray,
    times: np.ndarray,
    offset: float,
    where: str,
) -> str:
    """Sentence on the first event that lies outside the recording."""
    if len(at) == 0:
        return f"{where} has no rows of it."
    first = int(np.flatnonzero(misses)[0])
    row = first + 1 if events.rows is None else int(events.rows[first])
    if events.in_frames:
        return f"Row {row} of {where} names frame {at[first]:g}, of {len(times)} frames."
    sentence = (
        f"Row {row} of {where} has {at[first] + offset:g} s; the frames were taken from "
        f"{np.nanmin(times):g} s to {np.nanmax(times):g} s"
    )
    said = _misread_unit(at + offset, times, "time") if misses.mean() > 0.5 else ""
    return f"{sentence}: {said}" if said else f"{sentence}."


TRIALS = "trials"
"""Name of the intervals that are trials."""
_MOMENT = {"time", "times", "onset", "onsets", "timestamp", "timestamps", "at", "t", "of", "when"}
WITHIN, SLACK = 0.9, 1.0
"""Share of the moments that must lie within their trial, or this many seconds beside it."""


@dataclass(frozen=True)
class _TrialColumn:
    """What is known about intervals, on the frames.

    Parameters
    ----------
    variable : Variable
    short : str
        Name of the column in its source.
    values : (intervals,) float64
        Of every interval; NaN where not known.
    """

    variable: Variable
    short: str
    values: np.ndarray


@dataclass(frozen=True)
class PlacedIntervals:
    """Intervals on the frames.

    Parameters
    ----------
    name : str
    columns : sequence of _TrialColumn
    events : sequence of Variable
        Moments within the intervals.
    starts : (segments,) int64
        Frames at which an interval begins or ends.
    inside : (frames,) bool
        Frames in any of the intervals.
    trials : Trials or None
        If the intervals are trials.
    notes : tuple of str
    """

    name: str
    columns: Sequence[_TrialColumn]
    events: Sequence[Variable]
    starts: np.ndarray
    inside: np.ndarray
    trials: Trials | None
    notes: tuple[str, ...]


def place_intervals(
    intervals: Intervals, times: np.ndarray, offset: float, taken: Collection[str] = ()
) -> PlacedIntervals:
    """Intervals on the frames.

    Parameters
    ----------
    intervals : Intervals
    times : (frames,) float64
        Seconds at which the frames were taken; NaN (at either end) where that is not known.
    offset : float
        Seconds to add to the clock of the intervals.
    taken : collection of str
        Names of other variables: a column of such a name is named after the intervals as well.
    """
    first, last = _frames_of(intervals, times, offset)
    if not (first < last).any():
        raise InputError(_nowhere(intervals, times, offset))
    _check_unit(intervals, first < last, times, offset)
    notes = _outside(intervals, first < last, times, offset)
    kept, last, overlaps = _without_overlaps(intervals, first, last)
    notes += overlaps
    number = np.full(len(times), -1)
    for i in kept:
        number[first[i] : last[i]] = i
    moments = {} if intervals.in_frames else _moments(intervals)
    since = {name: frames_at(at + offset, times) for name, at in moments.items()}
    events = [_event(name, since[name][kept], intervals.columns, len(times)) for name in moments]
    columns = []
    for name, values in intervals.columns.items():
        if name in moments:
            continue
        begins = next((f for n, f in since.items() if _base(n) == name.lower()), None)
        held = number if begins is None else _held_from(begins, number)
        called = name if _tells(name, intervals.name, taken) else f"{intervals.name}_{name}"
        column, note = _column(called, name, np.asarray(values), held)
        columns += [column] if column is not None else []
        notes += [note] if note else []
    trials = None
    if intervals.name == TRIALS:
        trials = Trials(
            first[kept],
            last[kept],
            {c.variable.name: c.values[kept] for c in columns},
            {c.variable.name: c.variable.words for c in columns if c.variable.words},
        )
    starts = np.unique(np.r_[first[kept], last[kept]])
    starts = starts[starts < len(times)]
    return PlacedIntervals(
        intervals.name, columns, events, starts, number >= 0, trials, tuple(notes)
    )


def _tells(name: str, of: str, taken: Collection[str]) -> bool:
    """Whether the name of a column is enough to know what it is about."""
    return name not in taken and (of == TRIALS or name.lower().startswith(of.rstrip("s").lower()))


def _frames_of(
    intervals: Intervals, times: np.ndarray, offset: float
) -> tuple[np.ndarray, np.ndarray]:
    """First frame of each interval, and the one after its last."""
    start, stop = (np.asarray(edge, np.float64) for edge in (intervals.start, intervals.stop))
    known = np.isfinite(start) & np.isfinite(stop)
    if intervals.in_frames:
        edges = [np.where(known, np.clip(np.ceil(e), 0, len(times)), 0) for e in (start, stop)]
        return edges[0].astype(np.int64), edges[1].astype(np.int64)
    seen = np.flatnonzero(np.isfinite(times))
    lead = int(seen[0]) if len(seen) else 0
    first, last = (np.searchsorted(times[seen], e + offset) + lead for e in (start, stop))
    return np.where(known, first, 0), np.where(known, last, 0)


def _nowhere(intervals: Intervals, times: np.ndarray, offset: float) -> str:
    if not np.isfinite(intervals.start + intervals.stop).any():
        return f"{intervals.name} have no start and stop."
    start, stop = np.nanmin(intervals.start), np.nanmax(intervals.stop)
    if intervals.in_frames:
        return (
            f"{intervals.name} reach from frame {start:g} to {stop:g}, but the recording has "
            f"{len(times)} frames: none contains a frame."
        )
    return (
        f"{intervals.name} reach from {start + offset:g} s to {stop + offset:g} s and the frames "
        f"from {np.nanmin(times):g} s to {np.nanmax(times):g} s: none of them contains a frame. "
        + (_unit(intervals, times, offset) or "Set `offset` to bring the two clocks together.")
    )


def _check_unit(intervals: Intervals, held: np.ndarray, times: np.ndarray, offset: float) -> None:
    if intervals.in_frames or held.mean() > 0.5:
        return
    said = _unit(intervals, times, offset)
    if said:
        row = int(np.flatnonzero(~held)[0])
        raise InputError(
            f"Row {row + 1} of {intervals.name} lies at {intervals.start[row]:g}, outside the "
            f"recording ({np.nanmax(times):g} s, {len(times)} frames). {said}"
        )


def _unit(intervals: Intervals, times: np.ndarray, offset: float) -> str:
    """Sentence on the unit that the times seem to have, if not seconds."""
    said = _misread_unit(np.r_[intervals.start, intervals.stop] + offset, times, "start")
    return f"Perhaps {said}" if said else ""


def _outside(intervals: Intervals, held: np.ndarray, times: np.ndarray, offset: float) -> list[str]:
    notes = [f"{intervals.name}: {int(held.sum())} of {len(held)} lie in the recording."]
    known = np.isfinite(intervals.start) & np.isfinite(intervals.stop)
    misses = np.flatnonzero(known & ~held)
    if len(misses):
        row, unit = int(misses[0]), "frame " if intervals.in_frames else ""
        at = intervals.start[row] + (0 if intervals.in_frames else offset)
        ends = len(times) if intervals.in_frames else f"{np.nanmax(times):g} s"
        notes.append(
            f"Row {row + 1} of {intervals.name} ({unit}{at:g}) holds no frame of the recording, "
            f"which ends at {ends}; so do {len(misses) - 1} others."
        )
    return notes


def _without_overlaps(
    intervals: Intervals, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Intervals that are left, in order of time, their ends before the next one starts; a note."""
    order = np.argsort(first, kind="stable")
    order = order[first[order] < last[order]]
    if len(order) < 2:
        return order, last, []
    overlap = np.flatnonzero(last[order[:-1]] > first[order[1:]])
    cut = last.copy()
    cut[order[:-1]] = np.minimum(last[order[:-1]], first[order[1:]])
    kept = order[first[order] < cut[order]]
    if len(overlap) == 0:
        return kept, cut, []
    before, row = (int(order[overlap[0] + i]) for i in (0, 1))
    note = (
        f"Row {row + 1} of {intervals.name} starts at {intervals.start[row]:g}, before row "
        f"{before + 1} stops ({intervals.stop[before]:g}): where two share a frame, the later one "
        f"counts ({counted(len(overlap), 'overlap')})."
    )
    return kept, cut, [note]


def _moments(intervals: Intervals) -> dict[str, np.ndarray]:
    """Columns that tell when something happened in each interval, in seconds."""
    found = {}
    for name, column in intervals.columns.items():
        values, words = np.asarray(column), words_of(name)
        if values.dtype.kind not in "iuf" or not _MOMENT & set(words) or not _base(name):
            continue
        at = values.astype(np.float64) * unit_scale(words)
        known = np.isfinite(at)
        early = at[known] >= intervals.start[known] - SLACK
        late = at[known] <= intervals.stop[known] + SLACK
        if known.sum() >= 2 and (early & late).mean() >= WITHIN:
            found[name] = at
    return found


def _base(name: str) -> str:
    """What happens at a moment: "choice" of ``choice_time`` and ``Choice onset (s)``."""
    return "_".join(w for w in words_of(name) if w not in _MOMENT and w not in SECONDS)


def _event(
    name: str, frames: np.ndarray, columns: Mapping[str, np.ndarray], n_frames: int
) -> Variable:
    taken = {other.lower() for other in columns if other != name}
    called = name if _base(name) in taken else _base(name)
    return Variable(called, count_in_frames(frames, n_frames), "event")


def _held_from(begins: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Number of the interval of each frame, −1 before its moment."""
    frames = np.arange(len(number))
    since = np.where(number >= 0, begins[number], -1)
    return np.where((since >= 0) & (frames >= since), number, -1)


def _column(
    name: str, short: str, values: np.ndarray, number: np.ndarray
) -> tuple[_TrialColumn | None, str | None]:
    """What is known about each interval, at the frames; or a note why not."""
    import pandas as pd

    if values.dtype.kind in "biuf":
        values = values.astype(np.float64)
        values = np.where(np.isinf(values), np.nan, values)
        placed = np.where(number >= 0, values[number], np.nan)
        return _TrialColumn(
            replace(variable_from(name, values), values=placed), short, values
        ), None
    codes, words = pd.factorize(pd.Series(values).astype("string"), sort=True)
    if len(words) > FEW:
        return None, f"Column {short} holds text and was left out."
    labels = tuple(str(word) for word in words)
    coded = np.where(codes >= 0, codes, np.nan)
    placed = np.where(number >= 0, coded[number], np.nan)
    note = f"{name} holds words: {', '.join(labels)}." if labels else None
    return _TrialColumn(Variable(name, placed, "discrete", words=labels), short, coded), note


def trials_numbered(
    variables: Sequence[Variable], where: str
) -> tuple[Trials | None, tuple[str, ...]]:
    """Trials that a column of their numbers tells, frame by frame; and notes.

    A number that stands between trials, such as 0 or −1, is none. Variables that are the same all
    over each trial are what is known of it.
    """
    numbers = next((v for v in variables if _numbers_trials(v)), None)
    if numbers is None:
        return None, ()
    number = _without_gaps(numbers.values[:, 0])
    known = ~np.isnan(number)
    begins = np.flatnonzero(known & np.r_[True, ~known[:-1] | (number[1:] != number[:-1])])
    ends = np.flatnonzero(known & np.r_[~known[1:] | (number[1:] != number[:-1]), True]) + 1
    if len(begins) < 2:
        return None, ()
    notes = [f"{where}: column {numbers.name} tells {counted(len(begins), 'trial')}."]
    back = np.flatnonzero(np.diff(number[begins]) <= 0)
    if len(back):
        i = int(back[0])
        notes.append(
            f"Column {numbers.name} goes back from {number[begins[i]]:g} to "
            f"{number[begins[i + 1]]:g} at frame {begins[i + 1]}: trials are counted on from there."
        )
    columns, words = {}, {}
    for variable in variables:
        if variable is numbers or variable.values.shape[1] != 1 or variable.kind == "event":
            continue
        values = _same_all_over(variable.values[:, 0], begins, ends)
        if values is not None:
            columns[variable.name] = values
            words[variable.name] = variable.words
    words = {name: labels for name, labels in words.items() if labels}
    return Trials(begins, ends, columns, words), tuple(notes)


def _without_gaps(number: np.ndarray) -> np.ndarray:
    """Numbers of trials, NaN also where one that is 0 or less only marks the time between trials.

    >>> _without_gaps(np.array([0, 1, 1, 0, 2, 0, 3.0]))
    array([nan,  1.,  1., nan,  2., nan,  3.])
    >>> _without_gaps(np.array([0, 0, 1, 2, 0, 1, 2.0]))  # a second block, numbered anew
    array([0., 0., 1., 2., 0., 1., 2.])
    """
    known = number[~np.isnan(number)]
    stretches = known[np.r_[True, known[1:] != known[:-1]]] if len(known) else known
    values, counts = np.unique(stretches, return_counts=True)
    # a trial comes once, what is between trials again and again
    often = [counts[i] > np.delete(counts, i).max(initial=1) for i in range(len(values))]
    between = values[(values < 0) | ((values == 0) & np.array(often, bool))]
    return np.where(np.isin(number, between), np.nan, number)


def _numbers_trials(variable: Variable) -> bool:
    words = words_of(variable.name)
    known = {"trial", "trials", "number", "num", "nr", "no", "id", "index", "idx", "count"}
    values = variable.values[variable.known]
    return (
        bool({"trial", "trials"} & set(words))
        and set(words) <= known
        and values.shape[1] == 1
        and bool((values == np.round(values)).all())
    )


def _same_all_over(values: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
    """Value of every trial, if none has two and not all have the same: (trials,)."""
    found = np.full(len(begins), np.nan)
    for i, (first, stop) in enumerate(zip(begins, ends, strict=True)):
        own = values[first:stop]
        own = own[~np.isnan(own)]
        if len(own) and (own != own[0]).any():
            return None
        found[i] = own[0] if len(own) else np.nan
    different = np.unique(found[~np.isnan(found)])
    return found if 2 <= len(different) else None
