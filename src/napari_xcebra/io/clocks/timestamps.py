"""Recognises columns of times by their name, in any unit, and checks that they run forward."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
"""Seconds in a unit of time, by the names that units have in column headers."""

_TIME = {"t", "time", "times", "timestamp", "timestamps", "stamp", "stamps", "ts", "datetime"}
_WHICH = {
    *("elapsed", "session", "recording", "aligned", "relative", "rel", "absolute", "abs"),
    *("frame", "sample", "camera", "cam", "video", "imaging", "behavior", "behaviour"),
    *("unix", "posix", "epoch", "system", "date", "utc", "local"),
}
_ALONE = {"s", "sec", "secs", "seconds", "ms", "msec", "milliseconds"}
FORWARD = 0.8
"""Least share of the steps of a clock that do not go back."""


@dataclass(frozen=True)
class Found:
    """A column that tells the time.

    Parameters
    ----------
    name : str
    seconds : (rows,) float64
    notes : tuple of str
    spare : tuple of str
        Further columns that tell the time.
    """

    name: str
    seconds: np.ndarray
    notes: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()


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
    named = any(word in _TIME for word in words) or (len(words) == 1 and words[0] in _ALONE)
    if not named or any(word not in _TIME | _WHICH | set(SECONDS) for word in words):
        return None
    return unit_scale(words)


def unit_scale(words: list[str]) -> float:
    """Seconds per unit named by the last of the words that names one; 1 if none does."""
    return next((SECONDS[word] for word in reversed(words) if word in SECONDS), 1.0)


@np.errstate(over="ignore", invalid="ignore")
def find_clock(columns: Mapping[str, Any]) -> tuple[Found | None, tuple[str, ...]]:
    """The first column that tells the time, if there is one; and notes on those that do not.

    Parameters
    ----------
    columns : mapping of str to (rows,) array or pandas Series
    """
    clocks, notes = [], []
    for name, column in columns.items():
        scale = scale_of(name)
        if scale is None and not _is_date(column):
            continue
        told = seconds_of(column, scale or 1.0, name)
        if told is None:
            continue
        if runs_forward(told.seconds):
            clocks.append(told)
        else:
            notes.append(
                f"Column {name} does not run forward (it may restart with each trial): it is "
                "not used as the clock."
            )
    if not clocks:
        return None, tuple(notes)
    spare = tuple(other.name for other in clocks[1:])
    if spare:
        notes.append(f"Column {clocks[0].name} is the clock; {', '.join(spare)} is not used.")
    return replace(clocks[0], spare=spare), tuple(notes)


def seconds_of(column: Any, scale: float, name: str) -> Found | None:
    """Column in seconds; dates and times of day count from the first. None if it is neither."""
    import pandas as pd

    column = pd.Series(np.asarray(column) if not isinstance(column, pd.Series) else column)
    if pd.api.types.is_timedelta64_dtype(column):
        return Found(name, column.dt.total_seconds().to_numpy(np.float64))
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return Found(name, column.to_numpy(np.float64, na_value=np.nan) * scale)
    dates = column if _is_date(column) else _dates(column)
    if dates is None or dates.isna().all():
        return None
    first = dates.dropna().iloc[0]
    seconds = (dates - first).dt.total_seconds().to_numpy(np.float64)
    begin = f"{first:%Y-%m-%d %H:%M:%S}" if isinstance(first, pd.Timestamp) else str(first)
    note = f"Times in column {name} are counted from the first, {begin}."
    return Found(name, seconds, (note,))


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
    return len(back) <= (1 - FORWARD) * len(steps) and -back.min() <= far


def _is_date(column: Any) -> bool:
    # numpy and pandas, with a time zone and without, call it so
    return str(getattr(column, "dtype", "")).startswith("datetime64")


def _dates(column: pd.Series) -> pd.Series | None:
    """Dates or times of day in texts; None unless nearly all are valid."""
    import pandas as pd

    texts = column.astype("string").str.strip()
    of_day = texts.str.fullmatch(r"\d{1,4}:\d{2}(:\d{2}(\.\d+)?)?").fillna(False)
    try:
        if of_day.mean() > 0.9:
            texts = texts.where(texts.str.count(":") > 1, texts + ":00")
            return pd.to_timedelta(texts, errors="coerce")
        dates = pd.to_datetime(texts, errors="coerce", format="mixed", utc=True)
    except (ValueError, OverflowError, TypeError):
        return None
    return dates if dates.notna().sum() > 0.9 * texts.notna().sum() else None
