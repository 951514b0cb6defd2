"""Reads files that hold nothing but times: of the frames of a microscope, or of a camera."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.errors import InputError
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


def is_time_file(text: str) -> bool:
    """Whether a setting names a file rather than a column."""
    return Path(text).suffix.lower() in SUFFIXES and Path(text).is_file()


def read_times(path: Path) -> np.ndarray:
    """(rows,) float64, seconds: the column that is named as a clock, or the first that may be one.

    Times may run backwards here and there: see `mended`.
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


def mended(times: np.ndarray, path: Path, settings: OpenSettings) -> tuple[np.ndarray, list[str]]:
    """Times that increase, and a note on those that did not.

    Parameters
    ----------
    times : (rows,) float64
        Seconds.
    path : Path
        Of the file, for sentences.
    settings : OpenSettings
        Says whether times that run backwards are replaced by some between their neighbours.
    """
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
