"""Resamples behaviour that has times at the frames, and invents no value where nothing was sampled.

A value is taken at the middle of a frame. With two samples per frame or more, the signal is
averaged over the frame (discrete values: the one that lasts longest); else it is interpolated:
straight, the short way around the circle, or by the nearest sample.

Where no sample was taken for longer than `gap`, the value is unknown. At the ends of the recording
and of gaps, a value is held for half a sample interval, or half a frame if that is shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.time_files import sample_times
from napari_xcebra.io.clocks.timestamps import GAP, usual_step
from napari_xcebra.io.clocks.trials import PER_SECOND, count_in_frames, frames_at
from napari_xcebra.io.extraction import Series
from napari_xcebra.io.kinds import variable_of
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.recording.variables import Kind, Variable
from napari_xcebra.text import counted, percent

MOST_COUNTS = 50_000_000
"""Frames × categories up to which the samples of each category are counted in each frame."""


@dataclass(frozen=True)
class _Clock:
    """When samples were taken, and the frames to resample them at.

    Parameters
    ----------
    times : (samples,) float64
        Seconds, ascending.
    frames : (frames,) float64
        Seconds, ascending: the middle of each frame.
    interval, frame : float
        Usual seconds between samples, and between frames.
    gap : float
        Seconds between two samples from which on nothing is known between them.
    """

    times: np.ndarray
    frames: np.ndarray
    interval: float
    frame: float
    gap: float

    @property
    def is_fast(self) -> bool:
        """Whether there are two samples per frame or more, so that a frame averages over them."""
        return 2 * self.interval <= self.frame

    @property
    def gaps(self) -> np.ndarray:
        """Lengths of the steps between samples that are gaps, in seconds."""
        steps = np.diff(self.times)
        return steps[steps > self.gap]

    @cached_property
    def before(self) -> np.ndarray:
        """(frames,) int, the last sample up to each frame; the first for earlier frames."""
        return _step_at(self.times, self.frames)

    @cached_property
    def nearest(self) -> np.ndarray:
        """(frames,) int, the sample nearest to each frame; the earlier one in a tie."""
        after = np.minimum(self.before + 1, len(self.times) - 1)
        later = self.times[after] - self.frames < self.frames - self.times[self.before]
        return np.where(later, after, self.before)

    @cached_property
    def between(self) -> np.ndarray:
        """(frames,) bool, frames between two samples without a gap."""
        if len(self.times) < 2:
            return np.zeros(len(self.frames), bool)
        inside = (self.frames >= self.times[0]) & (self.frames <= self.times[-1])
        step = self.times[self.before + 1] - self.times[self.before]
        return inside & (step <= self.gap)

    @cached_property
    def known(self) -> np.ndarray:
        """(frames,) bool, frames at which something is known."""
        if len(self.times) == 0:
            return np.zeros(len(self.frames), bool)
        reach = min(self.interval, self.frame) / 2
        return self.between | (np.abs(self.times[self.nearest] - self.frames) <= reach)

    @cached_property
    def halves(self) -> np.ndarray:
        """(steps,) half the seconds of each step between samples."""
        return np.diff(self.times) / 2

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Beginning and end of each frame; narrowed from both sides where samples begin or end.

        This keeps a mean centred on the frame, and never lets it cross a gap.
        """
        before_gap = np.flatnonzero(np.diff(self.times) > self.gap)
        begin = self.times[np.r_[0, before_gap + 1]]
        end = self.times[np.r_[before_gap, len(self.times) - 1]]
        run = np.maximum(np.searchsorted(begin, self.frames, side="right") - 1, 0)
        room = np.minimum(self.frames - begin[run], end[run] - self.frames)
        half = np.clip(room, 0, self.frame / 2)
        return self.frames - half, self.frames + half

    @cached_property
    def edge_steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps between samples into which the beginning and the end of each frame fall."""
        begin, end = self.edges
        return _step_at(self.times, begin), _step_at(self.times, end)

    @cached_property
    def owner(self) -> np.ndarray:
        """(samples,) int, the frame in which a sample was taken; -1 for none."""
        middle = (self.frames[1:] + self.frames[:-1]) / 2
        nearest = np.searchsorted(middle, self.times, side="right")
        inside = np.abs(self.times - self.frames[nearest]) <= self.frame / 2
        return np.where(inside, nearest, -1)

    @cached_property
    def is_new(self) -> np.ndarray:
        """(samples,) bool, False where the sample before has the same time."""
        return np.r_[True, np.diff(self.times) > 0]

    def only(self, kept: np.ndarray) -> _Clock:
        """The clock of some of the samples, with the same definition of a gap."""
        return _Clock(self.times[kept], self.frames, self.interval, self.frame, self.gap)


def _clock_of(times: np.ndarray, frames: np.ndarray, gap: float = 0.0) -> _Clock:
    """Clock of samples, estimated from their times.

    Parameters
    ----------
    times : (samples,) float64
        Seconds, ascending; several samples may have the same.
    frames : (frames,) float64
        Seconds, strictly ascending.
    gap : float
        Longest time to bridge; 0: three usual steps or a frame, whichever is longer.
    """
    steps = np.diff(times)
    steps = steps[steps > 0] if (steps <= 0).any() else steps
    frame = float(np.median(np.diff(frames))) if len(frames) > 1 else 0.0
    interval = float(np.median(steps)) if len(steps) else frame
    # steps that are equal except for rounding must not count as longer than their median
    usual = usual_step(steps) if len(steps) else frame
    longest = (gap or max(GAP * usual, frame or interval)) * (1 + 1e-6)
    return _Clock(times, frames, interval, frame or interval, longest)


def _at_frames(
    values: np.ndarray, clock: _Clock, kind: Kind = "continuous", period: float = 2 * np.pi
) -> np.ndarray:
    """Values at the frames of a clock.

    Parameters
    ----------
    values : (samples, columns) float64
        NaN where not known.
    clock : _Clock
    kind : {"continuous", "circular", "discrete", "event"}
    period : float
        Full turn of circular values.

    Returns
    -------
    (frames, columns) float64
        NaN at frames at which a column is not known.
    """
    columns = [_column(column, clock, kind, period) for column in values.T]
    return np.stack(columns, axis=1)


def _column(column: np.ndarray, clock: _Clock, kind: Kind, period: float) -> np.ndarray:
    known = ~np.isnan(column)
    if not known.all():
        column, clock = column[known], clock.only(known)
    if len(column) == 0:
        return np.full(len(clock.frames), np.nan)
    if kind == "event":
        frames = frames_at(clock.times[column > 0], clock.frames)
        counts = count_in_frames(
            np.repeat(frames, column[column > 0].astype(int)), len(clock.frames)
        )
        return np.where(clock.known, counts, np.nan)
    if kind == "discrete":
        column, clock = _first_of_each_time(column, clock)
        return np.where(clock.known, _most_frequent(column, clock), np.nan)
    low = 0.0 if kind != "circular" or column.min() >= 0 else -period / 2
    if kind == "circular":
        # along the path that the angle took, a mean does not depend on where the circle is cut
        column = np.unwrap(column, period=period)
    column, clock = _mean_of_each_time(column, clock)
    found = _averaged(column, clock) if clock.is_fast else _interpolated(column, clock)
    if kind == "circular":
        found = (found - low) % period + low
    return np.where(clock.known & np.isfinite(found), found, np.nan)


def _interpolated(column: np.ndarray, clock: _Clock) -> np.ndarray:
    """Straight between two samples; beyond them the nearest."""
    nearest = column[clock.nearest]
    if len(column) < 2:
        return nearest
    before = clock.before
    step = clock.times[before + 1] - clock.times[before]
    share = (clock.frames - clock.times[before]) / step
    straight = column[before] + share * (column[before + 1] - column[before])
    return np.where(clock.between, straight, nearest)


def _averaged(column: np.ndarray, clock: _Clock) -> np.ndarray:
    """Mean over each frame of the line through the samples."""
    straight = _interpolated(column, clock)
    if len(column) < 2:
        return straight
    begin, end = clock.edges
    first, last = clock.edge_steps
    area = _between(clock.halves * (column[1:] + column[:-1]), first, last)
    for edge, step, sign in ((begin, first, -1), (end, last, 1)):
        part = edge - clock.times[step]
        slope = (column[step + 1] - column[step]) / (2 * clock.halves[step])
        area = area + sign * part * (column[step] + slope * part / 2)
    length = end - begin
    wide = length > 1e-6 * clock.frame
    return np.where(wide, area / np.where(wide, length, 1.0), straight)


def _between(steps: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Sums of ``steps[first:last]``, frame by frame."""
    ends = np.stack([first, last], axis=1).ravel()
    return np.where(first < last, np.add.reduceat(steps, ends)[::2], 0.0)


def _most_frequent(column: np.ndarray, clock: _Clock) -> np.ndarray:
    """The value of the nearest sample, or that of most samples of the frame if there are many."""
    import pandas as pd

    nearest = column[clock.nearest]
    if not clock.is_fast:
        return nearest
    codes, different = pd.factorize(column)
    if len(clock.frames) * len(different) > MOST_COUNTS:
        return nearest
    inside = clock.owner >= 0
    cells = clock.owner[inside] * len(different) + codes[inside]
    counts = np.bincount(cells, minlength=len(clock.frames) * len(different))
    counts = 2 * counts.reshape(len(clock.frames), len(different))
    # the nearest sample decides between values that are as frequent
    counts[np.arange(len(counts)), codes[clock.nearest]] += 1
    return np.asarray(different)[counts.argmax(axis=1)]


def _step_at(times: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Number of the step between samples that each time falls into, or the nearest step."""
    return np.clip(np.searchsorted(times, at, side="right") - 1, 0, max(len(times) - 2, 0))


def _first_of_each_time(column: np.ndarray, clock: _Clock) -> tuple[np.ndarray, _Clock]:
    new = clock.is_new
    return (column, clock) if new.all() else (column[new], clock.only(new))


def _mean_of_each_time(column: np.ndarray, clock: _Clock) -> tuple[np.ndarray, _Clock]:
    new = clock.is_new
    if new.all():
        return column, clock
    first = np.flatnonzero(new)
    counts = np.diff(np.r_[first, len(column)])
    return np.add.reduceat(column, first) / counts, clock.only(new)


_YEAR_2000 = 946_684_800.0
"""Seconds since 1970: later times are dates rather than seconds since a recording began."""


GAPS_TOLD = 3
"""Gaps of which a note says where they are."""
ALIKE = 1.2
"""Times as long up to which behaviour and imaging count as the same length."""
SAME_LENGTH, APART = 0.03, 0.1
"""Behaviour that is as long as the imaging up to the first share, and begins so much of it earlier
or later, rather has a clock of its own."""
FITS = 1.25
"""Times as long up to which another unit would explain the length of behaviour."""
FAR = 10.0
"""Times as long from which on seconds are no longer believed if another unit is nearer."""
BEYOND = 100.0
"""Times as long from which on seconds are not believed without a word of the user."""
NEAR = 4.0
"""Times as long up to which such a unit is offered: a table may hold a part, or more sessions."""


def _coverage(who: str, clock: _Clock, n_frames: int) -> list[str]:
    """Notes on the frames that samples cover, and on the gaps between them."""
    # seconds since 1970 tell nobody where in a recording something is
    begin = clock.frames[0] if len(clock.frames) and clock.frames[0] > _YEAR_2000 else 0.0
    seen = clock.frames[clock.known] - begin
    notes = [f"{who} covers {percent(len(seen) / n_frames)} of the frames ({span(seen)})."]
    steps = np.diff(clock.times)
    gaps = np.flatnonzero(steps > clock.gap)
    if len(gaps):
        longest = gaps[np.argsort(-steps[gaps], kind="stable")][:GAPS_TOLD]
        told = ", ".join(f"{steps[g]:.3g} s at {_brief(clock.times[g] - begin)} s" for g in longest)
        many = f"{len(gaps)} gaps, the longest of" if len(gaps) > 1 else "a gap of"
        notes.append(
            f"{who} has {many} {told}: a step between samples of more than {clock.gap:.3g} s is a "
            "gap, and frames there have no value (`gap`)."
        )
    return notes


def _misplaced(
    who: str, clock: _Clock, *, unnamed: bool = False, trusted: bool = False
) -> str | None:
    """Why samples cannot be on the clock of the frames; None if they can.

    Parameters
    ----------
    who : str
    clock : _Clock
    unnamed : bool
        Whether the source does not name the unit of its times.
    trusted : bool
        Whether the user says what it is.
    """
    apart = None if trusted else _in_another_unit(who, clock, unnamed)
    if apart is not None:
        return apart
    if clock.known.any():
        return None
    times, frames = clock.times, clock.frames
    sentence = (
        f"{who} runs from {span(times)}, the frames from {span(frames)}: they do not overlap."
    )
    if times[0] > _YEAR_2000 > frames[-1]:
        sentence += " It seems to count from 1970 (Unix time), the imaging from its first frame."
    return (
        f"{sentence} Set `offset` to the seconds between the two ({frames[0] - times[0]:.10g} if "
        "both began together), or name the unit in the header, such as time_ms."
    )


def _in_another_unit(who: str, clock: _Clock, unnamed: bool) -> str | None:
    """Sentence for samples that last as long as the frames in another unit than seconds."""
    if len(clock.frames) < 2:
        return None
    ratio = _lasting(clock.times, clock.interval) / _lasting(clock.frames, clock.frame)
    lengths = {unit: ratio / factor for unit, factor in PER_SECOND.items()}
    if unnamed and not 1 / ALIKE < ratio < ALIKE:
        lengths |= {"min": ratio * 60, "d": ratio * 86400}
        if _are_frames(clock.times, len(clock.frames)):
            lengths["frames"] = float(np.ptp(clock.times) + 1) / len(clock.frames)
    fits = _within(lengths, FITS)
    if unnamed and not fits and not 1 / ALIKE < ratio < ALIKE and _count_rows(clock.times):
        return (
            f"{who} numbers its rows rather than tells when they were taken. "
            f"{_as_samples(clock, ratio)}If each row is a frame of the imaging, set "
            "`behavior_clock` to frames; to s if they are seconds after all."
        )
    if unnamed and not fits and not 1 / FAR < ratio < FAR:
        fits = _within(lengths, NEAR)
    if unnamed and not fits and not 1 / BEYOND < ratio < BEYOND:
        return (
            f"{who} lasts {np.ptp(clock.times):.6g} s but the frames {np.ptp(clock.frames):.6g} s: "
            f"its times are in no unit that would fit. {_as_samples(clock, ratio)}Else set "
            "`behavior_clock` to their unit, or to s if they are seconds."
        )
    if not fits:
        return None
    names = ["frame" if unit == "frames" else f"time_{unit}" for unit in fits]
    ways = ", ".join(f"`behavior_clock` to {unit}" for unit in fits)
    return (
        f"{who} lasts {np.ptp(clock.times):.6g} s but the frames {np.ptp(clock.frames):.6g}"
        f" s: its times look like {' or '.join(fits)}. Name the unit in the header, such as "
        f"{' or '.join(names)}, or set {ways}; set `behavior_clock` to s if they are seconds."
    )


def _within(lengths: dict[str, float], most: float) -> list[str]:
    near = [unit for unit, length in lengths.items() if 1 / most < length < most]
    return sorted(near, key=lambda unit: abs(np.log(lengths[unit])))


def _are_frames(times: np.ndarray, n_frames: int) -> bool:
    """Whether times may be numbers of frames: whole, and none beyond the last frame."""
    return bool((times == np.round(times)).all() and 0 <= times[0] and times[-1] <= n_frames)


def _count_rows(times: np.ndarray) -> bool:
    """Whether times only number the rows, from 0 or 1 on."""
    return len(times) > 2 and times[0] in (0, 1) and bool((np.diff(times) == 1).all())


def _lasting(times: np.ndarray, step: float) -> float:
    """Seconds from the beginning of the first to the end of the last sample."""
    return max(float(times[-1] - times[0]) + step, 1e-12)


def _compare_lengths(who: str, clock: _Clock, offset: float) -> str | None:
    """Warning for samples that last much longer or shorter than the frames, or as long elsewhen."""
    if len(clock.frames) < 2 or len(clock.times) < 2:
        return None
    behavior, imaging = _lasting(clock.times, clock.interval), _lasting(clock.frames, clock.frame)
    ratio = behavior / imaging
    late = float(clock.times[0] - clock.frames[0])
    if not offset and abs(ratio - 1) < SAME_LENGTH and abs(late) > APART * imaging:
        return (
            f"{who} lasts as long as the imaging but runs from {span(clock.times)}, the imaging "
            f"from {span(clock.frames)}. If that is wrong, and both began together, set `offset` "
            f"to {-late:.6g}."
        )
    if 1 / ALIKE < ratio < ALIKE:
        return None
    times = f"{max(ratio, 1 / ratio):.3g} times {'longer' if ratio > 1 else 'shorter'} than"
    sentence = (
        f"{who} runs for {behavior:.6g} s ({span(clock.times)}), {times} the imaging, "
        f"{imaging:.6g} s ({span(clock.frames)}). If that is wrong, set `behavior_clock` to the "
        "unit of its times, or correct `rate`."
    )
    return f"{sentence} {_as_samples(clock, ratio)}".rstrip()


def _as_samples(clock: _Clock, ratio: float) -> str:
    """What to set if times count samples, of which `ratio` would be taken a second."""
    if (clock.times != np.round(clock.times)).any() or ratio < 1:
        return ""
    return (
        "If its times count samples, set `behavior_clock` to samples and `behavior_rate` to "
        f"{ratio:.5g}, which would fit. "
    )


def _lost_values(name: str, samples: np.ndarray, placed: np.ndarray, clock: _Clock) -> str | None:
    """Note on discrete values that mostly vanish because they are shorter than a frame."""
    inside = clock.owner >= 0
    before, after = _shares(samples[inside]), _shares(placed)
    lost = [v for v, share in before.items() if after.get(v, 0.0) < share / 2]
    if not lost:
        return None
    worst = max(lost, key=lambda value: before[value])
    return (
        f"{name} is {worst:g} in {100 * before[worst]:.2g} % of the samples but in "
        f"{100 * after.get(worst, 0.0):.2g} % of the frames, because it rarely lasts for most of a "
        f"frame: set the kind of {name} to continuous to use its mean over each frame instead."
    )


def _shares(values: np.ndarray) -> dict[float, float]:
    """Share of the known values that each different one has."""
    import pandas as pd

    codes, different = pd.factorize(values[~np.isnan(values)])
    counts = np.bincount(codes, minlength=len(different)) / max(len(codes), 1)
    return dict(zip(np.asarray(different).tolist(), counts.tolist(), strict=True))


def span(times: np.ndarray) -> str:
    """First and last time, such as "3.2 s to 403.9 s"."""
    return f"{_brief(times[0])} s to {_brief(times[-1])} s" if len(times) else "no time"


def _brief(seconds: float) -> str:
    text = f"{seconds:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class OnFrames:
    """Series on the frames, and what to say about them."""

    pairs: tuple[tuple[Series, Variable], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def place_by_time(
    series: Sequence[Series],
    frames: np.ndarray,
    offset: float,
    settings: OpenSettings,
    source: str,
    *,
    is_marked: bool,
    about: Sequence[str] = (),
) -> OnFrames:
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
        clock, rows, said = _clock_of_series(members[0], who, frames, offset, settings)
        miss = _misplaced(
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
        notes += [*said, *_coverage(who, clock, len(frames))]
        if not is_marked and (differ := _compare_lengths(who, clock, offset)) is not None:
            warnings.append(differ)
        backwards = isinstance(rows, np.ndarray) and (np.diff(rows) < 0).all()
        if backwards and members[0].times_in != "frames" and len(clock.times) > 1:
            warnings.append(
                f"The clock of {who} runs backwards: its rows were read from the last to the "
                "first. If that is wrong, and it counts down, write times that rise."
            )
        for one in members:
            variable, note = _resampled(one, clock, rows, np.isfinite(frames))
            pairs.append((one, variable))
            notes += [note] if note else []
    if misses and not pairs:
        raise InputError(" ".join([misses[0], *about]))
    notes += [f"Left out: {miss}" for miss in misses]
    return OnFrames(tuple(pairs), tuple(notes), tuple(warnings))


def _clock_of_series(
    series: Series, who: str, frames: np.ndarray, offset: float, settings: OpenSettings
) -> tuple[_Clock, np.ndarray | slice, list[str]]:
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
    if series.times_in != "frames" and (finer := _spread_ticks(ordered, marked)) is not None:
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
    return _clock_of(ordered, marked, gap), rows, notes


def _resampled(
    series: Series, clock: _Clock, rows: np.ndarray | slice, marked: np.ndarray
) -> tuple[Variable, str | None]:
    """Variable on the frames, unknown at frames that are not marked; and a note, if needed."""
    variable = variable_of(series, 1 / max(clock.interval, 1e-9))
    samples = variable.values[rows]
    placed = _at_frames(samples, clock, variable.kind, variable.period)
    note = None
    if variable.kind == "discrete" and clock.is_fast and placed.shape[1] == 1:
        note = _lost_values(series.name, samples[:, 0], placed[:, 0], clock)
    values = np.full((len(marked), placed.shape[1]), np.nan)
    values[marked] = placed
    return replace(variable, values=values), note


def _spread_ticks(times: np.ndarray, frames: np.ndarray) -> np.ndarray | None:
    """Times of rows that share a tick of a clock that is coarser than the frames.

    A clock of whole seconds gives ten rows a second the same time. They are spread evenly over
    the second; at the ends and beside gaps, where a tick has fewer rows, as wide as usual.

    Parameters
    ----------
    times : (rows,) float64
        Ascending.
    frames : (frames,) float64

    Returns
    -------
    (rows,) float64 or None
        None if fewer than half of the rows share the time of another, or ticks are fine enough.
    """
    ticks, inverse, counts = np.unique(times, return_inverse=True, return_counts=True)
    if len(ticks) < 2 or len(frames) < 2 or len(ticks) > 0.5 * len(times) + 1:
        return None
    steps = np.diff(ticks)
    tick, usual = float(np.median(steps)), float(np.median(counts))
    if tick <= float(np.median(np.diff(frames))):
        return None
    place = np.arange(len(times)) - np.r_[0, np.cumsum(counts)[:-1]][inverse]
    alone = steps > 1.5 * tick
    begins, ends = np.r_[True, alone], np.r_[alone, True]
    width = np.where((begins | ends) & (counts < usual), usual, counts)
    lead = np.where(begins & ~ends, width - counts, 0)
    return np.asarray(times + tick * (place + lead[inverse]) / width[inverse])
