"""Recognises columns of times or frame numbers by their name, in any unit, and in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.extraction import TimesIn

if TYPE_CHECKING:
    import pandas as pd


SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "days"), 86400.0),
}
"""Seconds in a unit of time, by the names that units have in column headers."""

_TIME = {
    *("t", "time", "times", "timestamp", "timestamps", "stamp", "stamps", "ts", "datetime"),
    *("clock", "tframe", "tframes", "frametime", "frametimes", "tvec", "timevec", "timebase"),
}
_WHICH = {
    *("elapsed", "session", "recording", "aligned", "relative", "rel", "absolute", "abs"),
    *("frame", "sample", "camera", "cam", "video", "imaging", "behavior", "behaviour"),
    *("date", "utc", "local", "since", "start", "begin", "daq", "nidq", "scope", "scanner"),
}
_COMPUTERS = {"unix", "posix", "epoch", "system", "pc", "computer", "arduino", "teensy", "bonsai"}
_WHICH |= _COMPUTERS
_FRAME = {"frame", "frames", "framenumber", "frameno", "framenum", "frameidx", "frameindex"}
_SAMPLE = {"sample", "samples"}
_NUMBER = {"number", "numbers", "nr", "no", "num", "idx", "index", "id", "count", "counter"}
_IMAGING = {"imaging", "2p", "microscope", "scope", "miniscope", "scan", "calcium", "ca", "tiff"}
_RECORDERS = {"camera", "cam", "webcam", "video", "daq", "nidq"}
_CAMERA = {*_RECORDERS, "behavior", "behaviour"}
_ALONE = {"s", "sec", "secs", "seconds", "ms", "msec", "milliseconds"}
FORWARD = 0.8
"""Least share of the steps of a clock that do not go back."""
REGULAR = 0.7
"""Least share of the steps of a shuffled clock, once sorted, that are within 30 % of the usual one.

Cameras that drop a tenth of their frames have 0.9, numbers drawn at random 0.2.
"""
REPEATED = 0.1
"""Most of the times of a shuffled clock that may be there twice."""
SINCE_START = 3600.0
"""Seconds up to which times such as 0:12:30 count from a start rather than from midnight."""
_OF_DAY = (
    r"(?:(?P<h>\d{1,4}):)?(?P<m>\d{1,4}):(?P<s>\d{1,2}(?:[.,]\d+)?)"
    r"(?:\s*(?P<half>[AaPp])\.?[Mm]\.?)?"
)
COUNTERS = (15, 16, 24, 31, 32)
"""Bits of the counters of converters and microcontrollers."""
GAP = 3.0
"""A step is a gap if it is longer than this many usual ones."""
OFTEN = 0.9
"""Share of the steps that are no longer than a usual one."""
TWICE = 0.5
"""Rows at the moment of one that comes late, in the mean, from which on the clock was set back."""
Order = Literal["forward", "sortable", "again", "jumbled"]


@dataclass(frozen=True)
class ClockColumn:
    """A column that tells the time.

    Parameters
    ----------
    name : str
    seconds : (rows,) float64
        Numbers of frames or samples, if `times_in` says so.
    notes : tuple of str
    spare : tuple of str
        Further columns that tell the time.
    times_in : {"seconds", "unnamed", "frames", "samples"}
    """

    name: str
    seconds: np.ndarray
    notes: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    times_in: TimesIn = "seconds"


def words_of(name: str) -> list[str]:
    """The words in the name of a column, in lower case.

    >>> words_of("Time (s)"), words_of("startTime_ms")
    (['time', 's'], ['start', 'time', 'ms'])
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return re.findall(r"[a-z0-9µμ]+", apart.lower())


def scale_of(name: str) -> float | None:
    """Seconds per unit of a column named like a clock; None for any other name.

    >>> scale_of("timestamps"), scale_of("Time (ms)"), scale_of("reaction_time"), scale_of("x")
    (1.0, 0.001, None, None)
    """
    words = words_of(name)
    if {"start", "begin"} & {*words} and "since" not in words:  # those of trials
        return None
    named = any(word in _TIME for word in words) or (len(words) == 1 and words[0] in _ALONE)
    named = named or ("elapsed" in words and bool(set(words) & set(SECONDS)))
    if not named or any(word not in _TIME | _WHICH | set(SECONDS) for word in words):
        return None
    return unit_scale(words)


def unit_scale(words: list[str]) -> float:
    """Seconds per unit named by the last of the words that names one; 1 if none does."""
    return next((SECONDS[word] for word in reversed(words) if word in SECONDS), 1.0)


def counted_in(name: str) -> Literal["frames", "samples"] | None:
    """What a column of numbers counts by its name: frames of the imaging, or samples of a camera.

    >>> counted_in("FrameIdx"), counted_in("camera_frame"), counted_in("sample"), counted_in("x")
    ('frames', 'samples', 'samples', None)
    """
    words = set(words_of(name))
    if not words & (_FRAME | _SAMPLE) or words - (_FRAME | _SAMPLE | _NUMBER | _IMAGING | _CAMERA):
        return None
    return "samples" if words & (_SAMPLE | _CAMERA) else "frames"


@np.errstate(over="ignore", invalid="ignore")
def find_clock(
    columns: Mapping[str, Any],
    reading: str = "auto",
    *,
    counters: bool = True,
    strict: bool = False,
) -> tuple[ClockColumn | None, tuple[str, ...]]:
    """The first column that tells the time, if there is one; and notes on those that do not.

    Parameters
    ----------
    columns : mapping of str to (rows,) array or pandas Series
    reading : str
        As `OpenSettings.behavior_clock`.
    counters : bool
        Whether numbers of frames or samples are a clock, too.
    strict : bool
        Whether to raise where a column is named as a clock but its order tells nothing.
    """
    if reading == "rows":
        return None, ()
    clocks: list[ClockColumn] = []
    jumbled: list[ClockColumn] = []
    notes: list[str] = []
    for name, column in columns.items():
        counts = counted_in(name)
        if counts is not None and (not counters or reading in SECONDS):
            continue
        found = _clock_in(name, column, reading, counts)
        order = None if found is None else _order_of(found.seconds)
        if found is None or order is None:
            continue
        if order in ("forward", "sortable"):
            clocks.append(found)
        elif order == "jumbled":
            jumbled.append(found)
        else:
            notes.append(
                f"Column {name} does not run forward (it may restart with each trial, or have "
                "been set back): it is not used as the clock."
            )
    if not clocks:
        if jumbled and strict:
            raise InputError(
                f"Column {jumbled[0].name} is named as a clock, but its rows are in no order that "
                "tells when each was taken. Sort the table, or set `behavior_clock` to rows if "
                "each row is a frame."
            )
        notes += [f"Column {one.name} does not run forward: not the clock." for one in jumbled]
        return None, tuple(notes)
    # a time says more than a number, unless the user says that the numbers count
    wanted = reading.split("-")[0]
    preferred = [wanted, "seconds", "unnamed", "frames", "samples"]  # the first place counts
    clocks.sort(key=lambda one: (preferred.index(one.times_in), _foreign(one.name)))
    spare = tuple(other.name for other in clocks[1:])
    if spare:
        notes.append(f"Column {clocks[0].name} is the clock; {', '.join(spare)} is not used.")
    return replace(clocks[0], spare=spare), tuple(notes)


def _foreign(name: str) -> int:
    """How far a clock is from that of the imaging, by its name."""
    words = set(words_of(name))
    return 0 if words & _IMAGING else 2 if words & (_COMPUTERS | _RECORDERS) else 1


def find_own_clocks(columns: Mapping[str, Any]) -> dict[str, ClockColumn]:
    """Clocks that are named after the array they belong to, as ``speed_time`` of ``speed``.

    Parameters
    ----------
    columns : mapping of str to (rows,) or (rows, k) array
    """
    clocks = {}
    for name, column in columns.items():
        for other, times in columns.items():
            scale = scale_of(other[len(name) + 1 :]) if other.startswith(f"{name}_") else None
            if scale is None or times.ndim != 1 or len(times) not in column.shape:
                continue
            clock = seconds_of(times, scale, other)
            if clock is not None and _order_of(clock.seconds) in ("forward", "sortable"):
                clocks[name] = clock
    return clocks


def _clock_in(name: str, column: Any, reading: str, counts: TimesIn | None) -> ClockColumn | None:
    """What a column says of the time; None if it is no clock by its name."""
    scale, names_unit = scale_of(name), bool(set(words_of(name)) & set(SECONDS))
    wanted: Any = reading.split("-")[0]
    if counts is not None:
        is_number = np.ndim(column) == 1 and column.dtype.kind in "iuf"
        found = seconds_of(column, 1.0, name) if is_number else None
        if found is None:
            return None
        return replace(found, times_in=wanted if wanted in ("frames", "samples") else counts)
    if scale is None and not _is_date(column):
        return None
    found = seconds_of(column, scale or 1.0, name)
    if found is None or found.times_in == "seconds":
        return found
    if wanted in ("frames", "samples"):
        return replace(found, seconds=found.seconds / (scale or 1.0), times_in=wanted)
    if reading in SECONDS:
        factor = SECONDS[reading] / (scale or 1.0)
        return replace(found, seconds=found.seconds * factor, times_in="seconds",
                       notes=found.notes if column.dtype.kind in "iuf" else ())  # fmt: skip
    return replace(found, times_in="seconds") if names_unit else found


def seconds_of(column: Any, scale: float, name: str) -> ClockColumn | None:
    """Column in seconds; dates and times of day count from the first. None if it is neither."""
    import pandas as pd

    column = pd.Series(np.asarray(column) if not isinstance(column, pd.Series) else column)
    if pd.api.types.is_timedelta64_dtype(column):
        return ClockColumn(name, column.dt.total_seconds().to_numpy(np.float64))
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        numbers, notes = _unwrapped(column.to_numpy(np.float64, na_value=np.nan), name)
        return ClockColumn(name, numbers * scale, notes, times_in="unnamed")
    if not _is_date(column) and (of_day := _of_day(column, name)) is not None:
        return of_day
    if not _is_date(column) and column.astype("string").head(20).str.contains(r"\bdays?\b").all():
        lasted = pd.to_timedelta(column.astype("string"), errors="coerce")
        if lasted.notna().mean() > 0.9:
            return ClockColumn(name, lasted.dt.total_seconds().to_numpy(np.float64))
    dates = column if _is_date(column) else _dates(column)
    if dates is None or dates.isna().all():
        return None
    first = dates.min()
    seconds = (dates - first).dt.total_seconds().to_numpy(np.float64)
    return ClockColumn(name, seconds, (_from_the_first(name, f"{first:%Y-%m-%d %H:%M:%S}"),))


def _unwrapped(numbers: np.ndarray, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers of a counter that ran over, as if it had more bits; and a note, if it did.

    It is one if every step back goes from one end of its range to the other.

    >>> _unwrapped(np.array([65_000.0, 65_500, 464, 964]), "ms")[0]
    array([65000., 65500., 66000., 66500.])
    """
    known = np.isfinite(numbers)
    counts = numbers[known]
    steps = np.diff(counts)
    back, ahead = steps < 0, steps[steps > 0]
    if not back.any() or not len(ahead) or (counts != np.round(counts)).any():
        return numbers, ()
    usual = GAP * float(np.quantile(ahead, OFTEN))
    for bits in COUNTERS:
        over = steps[back] + 2.0**bits
        if 10 * usual < 2.0**bits > np.ptp(counts) and (over >= 0).all() and (over <= usual).all():
            numbers = numbers.copy()
            numbers[known] += 2.0**bits * np.r_[0, np.cumsum(back)]
            note = f"Column {name} is a counter of {bits} bits that ran over: it is counted on."
            return numbers, (note,)
    return numbers, ()


def _from_the_first(name: str, first: str) -> str:
    return (
        f"Times in column {name} are counted from the first, {first}, which is taken for the "
        "moment of the first frame: if that is wrong, set `offset` to the seconds between the two."
    )


def _of_day(column: pd.Series, name: str) -> ClockColumn | None:
    """Texts such as 3:07.5 (m:ss), 0:03:07 or 2:59:30 PM, in seconds; None if they are not."""
    texts = column.astype("string").str.strip()
    known = texts.dropna()
    if not known.head(100).str.fullmatch(_OF_DAY).mean() > 0.9:
        return None
    if not known.str.fullmatch(_OF_DAY).mean() > 0.9:
        return None
    parts = texts.str.extract(f"^{_OF_DAY}$")
    has_hours, has_halves = parts["h"].notna().any(), parts["half"].notna().any()
    hours, minutes = (parts[key].astype("Float64").to_numpy(float, na_value=np.nan) for key in "hm")
    seconds = parts["s"].str.replace(",", ".").astype("Float64").to_numpy(float, na_value=np.nan)
    if has_halves and not has_hours:  # 2:59 PM
        hours, minutes, seconds = minutes, seconds, np.zeros(len(seconds))
    if has_halves:
        after_noon = (parts["half"].str.upper() == "P").fillna(False).to_numpy(bool)
        hours = hours % 12 + 12 * after_noon
    times = np.nan_to_num(hours) * 3600 + minutes * 60 + seconds
    if not has_hours and not has_halves:
        note = f"Times in column {name} are read as minutes and seconds (m:ss)."
        return ClockColumn(name, times, (note,), times_in="unnamed")
    times, first = _across_midnight(times), np.nanmin(times)
    if first < SINCE_START and not has_halves and np.nanmax(times) < 86400:
        return ClockColumn(name, times)
    first = np.nanmin(times)
    whole = int(first) % 86400
    clock = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return ClockColumn(name, times - first, (_from_the_first(name, clock),))


def _across_midnight(times: np.ndarray) -> np.ndarray:
    """Times of day whose day ends in the table: those after midnight are on the next day."""
    ordered = np.unique(times[np.isfinite(times)])
    steps = np.diff(ordered)
    if len(steps) == 0 or steps.max() < 43200 or ordered[-1] >= 86400:
        return times
    return np.where(times <= ordered[np.argmax(steps)], times + 86400, times)


def _order_of(times: np.ndarray) -> Order:
    """How rows are ordered: forward, so that sorting them is right, from the start again, or not.

    Parameters
    ----------
    times : (rows,) float64
    """
    times = times[np.isfinite(times)]
    if runs_forward(times):
        return "forward"
    if len(times) < 2 or not np.ptp(times) > 0 or _starts_again(times):
        return "again"
    if _starts_again(times[::-1]):
        return "jumbled"
    if (np.diff(times) <= 0).all():
        return "sortable"
    steps = np.diff(np.sort(times))
    later = steps[steps > 0]
    regular = np.mean(np.abs(later / np.median(later) - 1) < 0.3)
    is_clock = (steps == 0).mean() <= REPEATED and regular >= REGULAR
    return "sortable" if is_clock else "jumbled"


def _starts_again(times: np.ndarray) -> bool:
    """Whether times run forward but for a few places, after which they are seen a second time.

    Rows that were only written late are at moments at which there are no others.
    """
    steps = np.diff(times)
    back, ahead = steps < 0, steps[steps > 0]
    if not back.any() or back.mean() > 1 - FORWARD or not len(ahead):
        return False
    usual = float(np.median(ahead))
    late = times[1:][times[1:] < np.maximum.accumulate(times)[:-1] - GAP * usual]
    ordered = np.sort(times)
    near = np.searchsorted(ordered, late + usual / 2, "right")
    near -= np.searchsorted(ordered, late - usual / 2, "left")
    return bool(len(late) and (near - 1).mean() > TWICE)


def ascends(times: np.ndarray) -> bool:
    """Whether an array can be the times of frames: one axis, finite, each later than the last."""
    return times.ndim == 1 and bool(np.isfinite(times).all() and (np.diff(times) > 0).all())


@np.errstate(over="ignore", invalid="ignore")
def runs_forward(seconds: np.ndarray) -> bool:
    """Whether times increase, apart from a few samples written in the wrong order."""
    seconds = seconds[np.isfinite(seconds)]
    steps = np.diff(seconds)
    if len(seconds) == 0 or (len(steps) and not np.ptp(seconds) > 0):
        return False
    back = steps[steps < 0]
    if len(back) == 0:
        return True
    # a clock that starts again goes back by far more than a late sample does
    far = max(0.05 * np.ptp(seconds), 3 * float(np.median(np.abs(steps))))
    few = len(back) <= (1 - FORWARD) * len(steps) and -back.min() <= far
    return few and not _starts_again(seconds)


def _is_date(column: Any) -> bool:
    # numpy and pandas, with a time zone and without, call it so
    return str(getattr(column, "dtype", "")).startswith("datetime64")


def _dates(column: pd.Series) -> pd.Series | None:
    """Dates in texts; None unless nearly all are valid."""
    import pandas as pd

    texts = column.astype("string").str.strip()
    # 02/03/2026 may be in February or in March: the day changes less often than the month would
    slashed = texts.head(100).str.match(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}").fillna(False).any()
    found: list[pd.Series] = []
    for day_first in (False, True) if slashed else (False,):
        try:
            dates = pd.to_datetime(
                texts, errors="coerce", format="mixed", utc=True, dayfirst=day_first
            )
        except (ValueError, OverflowError, TypeError):
            continue
        if dates.notna().sum() > 0.9 * texts.notna().sum():
            found.append(dates)
    return min(found, key=lambda dates: dates.max() - dates.min(), default=None)


UNEVEN, BRIEF = 10.0, 0.25
"""Steps that come often are still no usual ones if they are longer than this many medians and than
this many seconds: samples taken in bursts have pauses between."""
EVEN = 1.5
"""The usual steps of an even clock are no longer than this many of its short ones."""


def usual_step(steps: np.ndarray) -> float:
    """Longest step, in seconds, that is no pause.

    Parameters
    ----------
    steps : (steps,) float64
        Seconds between samples, all above 0; one at least.

    Examples
    --------
    >>> usual_step(np.array([0.015, 0.085] * 50 + [4.0]))
    0.085
    """
    median, often = np.quantile(steps, [0.5, OFTEN])
    return float(max(median, min(often, max(UNEVEN * median, BRIEF))))


def rate_of(times: np.ndarray) -> float | None:
    """Samples per second of an ascending clock; None for a single sample.

    Steps may be rounded, so they are averaged: all of them if they are even, and those that are no
    gaps if they alternate. Where a few are longer because frames were dropped, the median counts.
    """
    steps = np.diff(times)
    if not len(steps):
        return None
    short, typical = np.quantile(steps, [1 - OFTEN, 0.5])
    usual = usual_step(steps)
    if np.abs(steps - typical).max() < 0.5 * typical:
        typical = (times[-1] - times[0]) / len(steps)
    elif usual > EVEN * short:
        typical = steps[steps <= GAP * usual].mean()
    return float(f"{1 / typical:.6g}")
