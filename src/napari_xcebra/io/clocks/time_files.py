"""Reads when frames were acquired and when behaviour was sampled: files of times, and triggers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import rate_of
from napari_xcebra.io.extraction import Behavior, Series
from napari_xcebra.io.settings import OpenSettings
from napari_xcebra.text import counted

if TYPE_CHECKING:
    import pandas as pd


SUFFIXES = (".npy", ".csv", ".tsv", ".txt", ".dat", ".parquet")
SLACK = 0.01
"""Share of the rows that may be without a time, or times without a row; 3 in any case."""


def slack(count: int) -> int:
    """How many of that many times may be missing, spare or wrong."""
    return max(3, int(SLACK * count))


def _is_time_file(text: str) -> bool:
    """Whether a setting names a file rather than a column."""
    return Path(text).suffix.lower() in SUFFIXES and Path(text).is_file()


def read_times(path: Path) -> np.ndarray:
    """(rows,) float64, seconds: the column that is named as a clock, or the first that may be one.

    Times may run backwards here and there: see `_mended`.
    """
    from napari_xcebra.io.containers.npy import read_npy
    from napari_xcebra.io.containers.tables import read_table

    if not path.is_file():
        raise InputError(f"There is no file of times {path}.")
    times = (
        np.squeeze(read_npy(path)) if path.suffix.lower() == ".npy" else _column(read_table(path))
    )
    if times is None or times.ndim != 1 or times.dtype.kind not in "iuf" or not len(times):
        raise InputError(f"{path} does not hold times: one column of seconds is needed.")
    return times.astype(np.float64)


def _column(table: pd.DataFrame) -> np.ndarray | None:
    """The column of a table that tells the time, in seconds."""
    from napari_xcebra.io.clocks.timestamps import find_clock, runs_forward

    columns = {str(name): column for name, column in table.items()}
    clock, _ = find_clock(columns, counters=False)
    if clock is not None:
        return clock.seconds
    numbers = [c.to_numpy() for c in columns.values() if c.dtype.kind in "iuf"]
    # one that only numbers the rows is the last to be a clock
    forward = [c for c in numbers if runs_forward(c.astype(np.float64))]
    forward.sort(key=lambda column: bool((np.diff(column) == 1).all()))
    return next(iter([*forward, *numbers]), None)


def _mended(times: np.ndarray, path: Path, settings: OpenSettings) -> tuple[np.ndarray, list[str]]:
    """Times (rows,) that increase, and a note on those that did not."""
    wrong = ~_increasing(times)
    if not wrong.any():
        return times, []
    where = f"{path}: {_first_back(times)} ({int(wrong.sum()):,} of {counted(len(times), 'time')} "
    if int(wrong.sum()) > slack(len(times)):
        raise InputError(
            f"{where}do not increase). It does not hold the times of frames: one column of "
            "seconds, each later than the last, is needed."
        )
    if not settings.mend_times:
        raise InputError(
            f"{where}{'does' if wrong.sum() == 1 else 'do'} not increase). Set `mend_times` to "
            "replace such times by some between their neighbours, or correct the file."
        )
    row, right = np.arange(len(times)), np.flatnonzero(~wrong)
    filled = np.interp(row, right, times[right])
    # beyond the first and the last right one, the clock goes on as usual
    step = float(np.median(np.diff(times[right])))
    filled += step * (np.minimum(row - right[0], 0) + np.maximum(row - right[-1], 0))
    return filled, [
        f"{path.name}: {_first_back(times)}. {counted(int(wrong.sum()), 'time')} of "
        f"{len(times):,} replaced by some between the neighbours (`mend_times`)."
    ]


def _first_back(times: np.ndarray) -> str:
    steps = np.diff(times)
    if not np.isfinite(times).all():
        return f"row {int(np.flatnonzero(~np.isfinite(times))[0]) + 1:,} has no time"
    first = int(np.flatnonzero(steps <= 0)[0])
    if steps[first] == 0:
        return f"row {first + 2:,} has the time of the row before"
    return f"row {first + 2:,} is {-1000 * steps[first]:.3g} ms earlier than the row before"


def _increasing(times: np.ndarray) -> np.ndarray:
    """(rows,) bool, the most rows that increase without the others.

    The longest increasing subsequence, found from the end: of two rows in the wrong order, the
    earlier one stays.
    """
    finite = np.isfinite(times)
    if finite.all() and (np.diff(times) > 0).all():
        return finite
    ends: list[float] = []
    rows: list[int] = []
    after = [-1] * len(times)
    for row in np.flatnonzero(finite)[::-1].tolist():
        place = bisect_left(ends, -times[row])
        ends[place : place + 1] = [-float(times[row])]
        rows[place : place + 1] = [row]
        after[row] = rows[place - 1] if place else -1
    kept = np.zeros(len(times), bool)
    row = rows[-1] if rows else -1
    while row >= 0:
        kept[row] = True
        row = after[row]
    return kept


def timed(sources: Sequence[Behavior], settings: OpenSettings) -> list[Behavior]:
    """Behaviour with the times of its samples, from the file that `behavior_times` names.

    Raises
    ------
    InputError
        If no behaviour without times has about as many samples.
    """
    path = Path(settings.behavior_times)
    times = read_times(path)
    found = [_timed(source, times, path) for source in sources]
    if not any(fits for _, fits in found):
        lengths = sorted({len(s.values) for b in sources for s in b.series if s.times is None})
        rows = " and ".join(f"{n:,}" for n in lengths)
        raise InputError(
            f"{path} has {len(times):,} times (`behavior_times`), but "
            + (
                f"behaviour has {rows} rows without a time."
                if rows
                else "no behaviour lacks times."
            )
        )
    return [source for source, _ in found]


def _timed(source: Behavior, times: np.ndarray, path: Path) -> tuple[Behavior, bool]:
    """Behaviour with times for its samples, and whether any got one."""
    # series that share an array of times are brought to the frames together
    shared: dict[int, np.ndarray] = {}

    def one(series: Series) -> Series:
        rows = len(series.values)
        if series.times is not None or abs(rows - len(times)) > slack(len(times)):
            return series
        clock = shared.setdefault(rows, times[:rows])
        return replace(series, values=series.values[: len(clock)], times=clock)

    series = tuple(map(one, source.series))
    notes = [f"{path.name} has the times of {source.name}."] if shared else []
    for extra in sorted(rows - len(times) for rows in shared if rows != len(times)):
        what = "rows" if extra > 0 else "times"
        which = source.name if extra > 0 else path.name
        notes.append(
            f"{source.name} has {len(times) + extra:,} rows and {path.name} {len(times):,} times: "
            f"the last {abs(extra)} {what} of {which} are left out."
        )
    return replace(source, series=series, notes=(*source.notes, *notes)), bool(shared)


@dataclass(frozen=True)
class _Marked:
    """Times of the frames on the clock of the behaviour.

    Parameters
    ----------
    times : (frames,) float64
        Ascending; NaN before the first and after the last frame that is marked.
    notes : tuple of str
    """

    times: np.ndarray
    notes: tuple[str, ...]


def check_trigger(behaviors: Sequence[Behavior], settings: OpenSettings) -> None:
    """Raise if the trigger is neither a column of some behaviour nor a file."""
    if not settings.trigger or _file(settings) is not None:
        return
    names = [series.name for behavior in behaviors for series in behavior.series]
    if settings.trigger not in names:
        raise InputError(
            f"The behaviour has no column {settings.trigger!r} to use as `trigger`; it "
            f"has: {', '.join(names) or 'none'}."
        )


def _trigger_in(behavior: Behavior, settings: OpenSettings) -> Series | None:
    """The series that marks the frames, if this behaviour has it."""
    return next((s for s in behavior.series if s.name == settings.trigger), None)


def marked_frames(behavior: Behavior, n_frames: int, settings: OpenSettings) -> _Marked | None:
    """Times of the frames, if they are marked on the clock of this behaviour.

    Where samples have no times, their numbers are the clock (over `behavior_rate`, if given).
    """
    if not settings.trigger:
        return None
    series = _trigger_in(behavior, settings)
    if series is not None:
        return _from_series(series, n_frames, settings)
    path = _file(settings)
    return None if path is None else _from_file(path, n_frames, settings)


def trigger_rate(settings: OpenSettings) -> float | None:
    """Frames per second of a file of frame times; None if the trigger is no file."""
    path = _file(settings)
    if path is None:
        return None
    return rate_of(_mended(read_times(path), path, settings)[0])


def sample_times(series: Series, settings: OpenSettings) -> np.ndarray:
    """Times of samples on the clock of their source; their numbers if it does not say."""
    if series.times is not None:
        return np.asarray(series.times, np.float64)
    return np.arange(len(series.values)) / (settings.behavior_rate or 1.0)


def _file(settings: OpenSettings) -> Path | None:
    return Path(settings.trigger) if _is_time_file(settings.trigger) else None


def _from_file(path: Path, n_frames: int, settings: OpenSettings) -> _Marked:
    times, notes = _mended(read_times(path), path, settings)
    marked = _matched(times, n_frames, f"{path.name} has", "times")
    return _Marked(marked.times, (*notes, *marked.notes))


def _from_series(series: Series, n_frames: int, settings: OpenSettings) -> _Marked:
    values = np.asarray(series.values, np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{series.name} has several columns: one is needed as `trigger`.")
    times = sample_times(series, settings)
    kept = np.isfinite(times) & np.isfinite(values)
    order = np.argsort(times[kept], kind="stable")
    times, values = times[kept][order], values[kept][order]
    if _count_frames(values):
        return _by_numbers(series.name, times, values.astype(np.int64), n_frames)
    rising, both = _edges(times, values)
    if len(rising) == 0:
        raise InputError(
            f"Column {series.name} has no pulse: one rising edge per frame is needed, or the "
            "number of the frame in each row."
        )
    if _misfit(len(both), n_frames) < _misfit(len(rising), n_frames) / 4:
        # some microscopes switch the line over with each frame instead of sending a pulse
        return _matched(both, n_frames, f"Column {series.name} has", "edges")
    return _matched(rising, n_frames, f"Column {series.name} has", "pulses")


def _count_frames(values: np.ndarray) -> bool:
    """Whether values are frame numbers: whole, three or more, hardly ever decreasing."""
    counted = values[values >= 0]
    if len(counted) == 0 or (counted != np.round(counted)).any() or counted.max() > 1e9:
        return False
    steps = np.diff(counted)
    return len(np.unique(counted)) > 2 and (steps < 0).sum() <= 0.001 * len(steps)


def _by_numbers(name: str, times: np.ndarray, numbers: np.ndarray, n_frames: int) -> _Marked:
    counted = numbers >= 0
    times, numbers = times[counted], numbers[counted]
    if (np.diff(numbers) < 0).any():
        raise InputError(
            f"Column {name} counts frames up to {numbers.max()} and then starts again: numbers "
            "that increase up to the last frame are needed."
        )
    from_one = numbers.max() == n_frames or (numbers.min() == 1 and numbers.max() < n_frames)
    numbers = numbers - int(from_one)
    kept = (numbers >= 0) & (numbers < n_frames)
    if not kept.any() or (~kept & (numbers >= 0)).mean() > 0.5:
        raise InputError(
            f"Column {name} numbers frames {numbers.min()} to {numbers.max()}, but the recording "
            f"has {n_frames} frames."
        )
    counts = np.bincount(numbers[kept], minlength=n_frames)
    sums = np.bincount(numbers[kept], weights=times[kept], minlength=n_frames)
    seen = np.flatnonzero(counts)
    marks = sums[seen] / counts[seen]
    placed = np.interp(np.arange(n_frames), seen, marks, left=np.nan, right=np.nan)
    note = f"Frames are placed by column {name}, which numbers {len(seen):,} of {n_frames:,} frames"
    return _Marked(_ascending(placed, name), (f"{note}{', from 1 on' if from_one else ''}.",))


def _edges(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times of the rising edges, and of all edges, of pulses that may be noisy."""
    if len(values) == 0:
        return times, times
    low, high = np.percentile(values, [1, 99])
    if not high > low:
        low, high = values.min(), values.max()
    # an edge goes all the way from low to high, so that noise on the way makes no second one
    is_high = values > low + 0.6 * (high - low)
    sure = np.flatnonzero(is_high | (values < low + 0.4 * (high - low)))
    change = np.diff(is_high[sure].astype(np.int8))
    at = times[sure[1:]]
    return at[change > 0], at[change != 0]


def _misfit(count: int, n_frames: int) -> int:
    """Difference between a number of pulses and the nearest equal number per frame."""
    return abs(count - max(1, round(count / n_frames)) * n_frames)


def _matched(marks: np.ndarray, n_frames: int, who: str, what: str) -> _Marked:
    """Marks assigned to the frames in order, one each."""
    found = f"{who} {len(marks):,} {what} for {n_frames:,} frames"
    each = max(1, round(len(marks) / n_frames))
    if _misfit(len(marks), n_frames) > slack(n_frames):
        raise InputError(
            f"{found}: one per frame is needed, or the same number for every frame (planes)."
        )
    notes = []
    if each > 1:
        marks = marks[::each]
        notes.append(f"{found}: the first of every {each} is used as the time of the frame.")
    spare = len(marks) - n_frames
    marks = marks[:n_frames]
    if spare < 0:
        marks, filled = _filled(marks, n_frames)
        what_then = (
            "missing ones are filled in where the time between pulses is a multiple"
            if filled
            else f"behaviour is unknown at the last {-spare}"
        )
        notes.append(f"{found}: {what_then}.")
    elif each == 1:
        notes.append(found + (f": the last {spare} are not used." if spare else ", one each."))
    placed = np.full(n_frames, np.nan)
    placed[: len(marks)] = marks
    return _Marked(_ascending(placed, who), tuple(notes))


def _filled(marks: np.ndarray, n_frames: int) -> tuple[np.ndarray, bool]:
    """Marks with missing ones filled in, if the time between marks shows where."""
    steps = np.diff(marks)
    if len(steps) == 0:
        return marks, False
    numbers = np.r_[0, np.cumsum(np.maximum(1, np.round(steps / np.median(steps))))]
    if numbers[-1] != n_frames - 1:
        return marks, False
    return np.interp(np.arange(n_frames), numbers, marks), True


def _ascending(times: np.ndarray, who: str) -> np.ndarray:
    if (np.diff(times[np.isfinite(times)]) <= 0).any():
        raise InputError(f"{who}: two frames are marked at the same time.")
    return times
