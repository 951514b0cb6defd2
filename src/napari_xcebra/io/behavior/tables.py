"""Reads behaviour from a table (text, Parquet, Excel): each column is a variable of its name.

A column of times or of frame numbers puts the rows on a clock; without it there is one row per
frame. A table that says when each row starts and stops is one of trials or epochs; one that says
when each event began, or has a time and the name of an event in each row, is one of events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError
from napari_xcebra.io.clocks.timestamps import (
    SECONDS,
    find_clock,
    seconds_of,
    unit_scale,
    words_of,
)
from napari_xcebra.io.containers.tables import (
    EXACT,
    EXCEL,
    PARQUET,
    SUFFIXES,
    is_parquet,
    read_table,
    text_form,
)
from napari_xcebra.io.discovery import format_of
from napari_xcebra.io.extraction import Behavior, Events, Intervals, Series
from napari_xcebra.io.kinds import FEW
from napari_xcebra.io.settings import OpenSettings

NAME = "a table (.csv, .tsv, .parquet, .xlsx)"
GENERIC = True


def sniff(path: Path) -> bool:
    """Whether the name is that of a table, or the first lines are."""
    if not path.is_file():
        return False
    if path.suffix.lower() in (*SUFFIXES, *PARQUET, *EXCEL) or is_parquet(path):
        return True
    try:
        rows = text_form(path, 3).rows
    except Exception:  # whatever it is, it is no table
        return False
    return len(rows) == 3 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Columns of a table, or the trials that its rows are."""
    table = read_table(path, keep=(settings.trigger, "frame"))
    columns, about_edges = _with_edges(dict(table.items()))
    clocks = {name: column for name, column in columns.items() if name != settings.trigger}
    clock, about_clocks = find_clock(clocks, settings.behavior_clock)
    if clock is None or clock.times_in in ("frames", "samples"):
        intervals = intervals_of(columns, path.stem, str(path))
        if intervals is not None:
            return Behavior(intervals=(intervals,), notes=about_edges, name=path.name)
    events = _events_of(columns, path.stem, str(path), settings.behavior_clock)
    if events:
        return Behavior(events=events, name=path.name)
    if clock is None:
        find_clock(clocks, settings.behavior_clock, strict=True)
    times = None if clock is None else clock.seconds
    used = () if clock is None else (clock.name, *clock.spare)
    series, notes = [], [*(clock.notes if clock else ()), *about_clocks]
    for name, column in columns.items():
        if name in used or _numbers_rows(name, column):
            continue
        found, note = series_of(name, column, times, path.name)
        if found is not None:
            series.append(found if clock is None else replace(found, times_in=clock.times_in))
        notes += [note] if note else []
    if not series:
        why = " ".join(note for note in notes if "left out" in note)
        raise InputError(f"Behaviour file {path} has no variables. {why}".rstrip())
    return Behavior(tuple(series), notes=tuple(notes), name=path.name)


_START = {"start", "starts", "onset", "onsets", "begin", "begins", "beginning"}
_STOP = {"stop", "stops", "offset", "offsets", "end", "ends", "finish"}
_LENGTH = {"duration", "durations", "dur"}
_BESIDE = {"time", "times", "t", "timestamp", "trial", "trials", "epoch", "epochs", "interval"}
_FRAME = {"frame", "frames", "idx", "index", "imaging"}
_EVENT = {"event", "events"}
_ROWS = {"index", "idx", "row", "rows", "number", "no", "nr", "id", "sample", "samples"}
MOST_EVENTS = 50
"""Different events that a column may name."""


def _with_edges(columns: Mapping[Any, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Columns in which dates and times of day of edges are seconds on one clock; and a note."""
    columns = {str(name): column for name, column in columns.items()}
    known = _START | _STOP | _BESIDE
    edges = [n for n, c in columns.items() if set(words_of(n)) & (_START | _STOP)
             and set(words_of(n)) <= known and not _is_plain_number(c)]  # fmt: skip
    every = pd.concat([columns[name] for name in edges], ignore_index=True) if edges else None
    clock = None if every is None else seconds_of(every, 1.0, edges[0])
    if clock is None:
        return columns, ()
    parts = np.split(clock.seconds, len(edges))
    return {**columns, **dict(zip(edges, parts, strict=True))}, clock.notes


def series_of(
    name: str, column: Any, times: np.ndarray | None, where: str, words: tuple[str, ...] = ()
) -> tuple[Series | None, str | None]:
    """Series of a column, with words numbered by category; and a note, if needed.

    Parameters
    ----------
    name : str
    column : (rows,) or (rows, k) array, or pandas Series
    times : (rows,) float64 or None
    where : str
        Name of the file, for the note.
    words : tuple of str
        What the columns of a matrix are called, if that is known.
    """
    if (marked := _indicated(column)) is not None:
        words = words or tuple(map(str, range(1, column.shape[1] + 1)))
        note = (
            f"The {len(words)} columns of {name} of {where} mark one of {', '.join(words)} in each "
            "row: read as one discrete variable."
        )
        return Series(name, marked, times, kind="discrete", labels=words), note
    if _exceeds_floats(column):
        codes, ids = pd.factorize(pd.Series(column), sort=True)
        few = len(ids) <= FEW
        note = f"Column {name} of {where} has ids above 2^53: they are counted from 0 in order."
        numbers = np.where(codes < 0, np.nan, codes)
        as_words = tuple(map(str, ids)) if few else ()
        return Series(name, numbers, times, kind="discrete" if few else None, labels=as_words), note
    if pd.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c":
        return Series(name, _numbers(column), times), None
    labels, values = _labels(column)
    if labels is None or values is None:
        return None, (
            f"Column {name} of {where} is neither numbers nor a few words{_first_word(column)}: "
            "left out."
        )
    if not labels:
        return None, f"Column {name} of {where} is empty: left out."
    note = f"Column {name} of {where} holds words: {', '.join(labels)}."
    return Series(name, values, times, kind="discrete", labels=labels), note


def _first_word(column: Any) -> str:
    """Where a column of numbers has the first entry that is none; empty if most are none."""
    if np.ndim(column) != 1 or column.dtype.kind in "cmMV":
        return ""
    texts = pd.Series(column).astype("string")
    wrong = texts.notna() & pd.to_numeric(texts, errors="coerce").isna()
    if not wrong.any() or wrong.mean() > 0.5:
        return ""
    row = int(np.flatnonzero(wrong)[0])
    return f" ({texts.iloc[row]!r} in row {row + 1})"


def _indicated(column: Any) -> np.ndarray | None:
    """(rows,) number of the column that is 1 in each row, NaN where none is; None if several are.

    A matrix of indicators has a column for each context, or for each bin of a track.
    """
    if np.ndim(column) != 2 or min(column.shape) < 2 or column.dtype.kind not in "biuf":
        return None
    marks = np.asarray(column) != 0
    few = 1 < len(column) and column.shape[1] <= FEW
    if not few or not np.array_equal(marks, column) or (marks.sum(axis=1) > 1).any():
        return None
    # rewards and licks are 0 in most frames, and no categories
    if marks.any(axis=1).mean() < 0.5 or not marks.any(axis=0).all():
        return None
    return np.where(marks.any(axis=1), marks.argmax(axis=1).astype(np.float64), np.nan)


def _labels(column: Any) -> tuple[tuple[str, ...] | None, np.ndarray | None]:
    """The different words of a column, and which of them each row has; None if it has many."""
    if np.ndim(column) != 1 or column.dtype.kind in "cmMV":
        return None, None
    try:
        codes, words = pd.factorize(pd.Series(column), sort=True)
    except TypeError:  # lists and other things that are no label
        return None, None
    if len(words) > FEW:
        return None, None
    return tuple(str(word) for word in words), np.where(codes < 0, np.nan, codes)


def _exceeds_floats(column: Any) -> bool:
    """Whether a column has whole numbers that would be the same as others in float64."""
    if np.ndim(column) != 1 or column.dtype.kind not in "iu":
        return False
    values = pd.Series(column).dropna()
    return bool((values > EXACT).any() or (values < -EXACT).any())


def _numbers(column: Any) -> np.ndarray:
    """Numbers of a column; what is missing is NaN."""
    if isinstance(column, pd.Series):
        if column.isna().any() or pd.api.types.is_extension_array_dtype(column.dtype):
            return column.to_numpy(np.float64, na_value=np.nan)
        return column.to_numpy()
    return np.asarray(column)


@np.errstate(over="ignore", invalid="ignore")
def intervals_of(columns: Mapping[str, Any], stem: str, where: str) -> Intervals | None:
    """Trials or epochs, if two columns say when each starts and stops (or how long it is).

    Parameters
    ----------
    columns : mapping of str to (rows,) array or pandas Series
    stem : str
        Name of the file, which names intervals that are no trials.
    where : str
        The file, for sentences.
    """
    start = _named(columns, _START)
    stop = _named(columns, _STOP)
    length = _named(columns, _LENGTH) if stop is None else None
    if start is None or (stop is None and length is None):
        return None
    first, in_frames = _edge(start, columns[start])
    other = stop or length or start
    if len(columns[other]) != len(first):
        raise InputError(
            f"{where} has {len(first)} rows of {start} but {len(columns[other])} of {other}: as "
            "many of each are needed."
        )
    if stop is not None:
        last, stop_in_frames = _edge(stop, columns[stop])
        in_frames = in_frames or stop_in_frames
    else:
        assert length is not None
        last = first + _edge(length, columns[length])[0]
    if len(first) > 2 and set(np.unique(np.r_[first, last])) <= {0.0, 1.0}:
        return None  # marks of events, row by row
    wrong = np.flatnonzero(last < first)
    if len(wrong):
        i = wrong[0]
        raise InputError(
            f"Row {i + 1} of {where} stops ({last[i]:g}) before it starts ({first[i]:g})."
        )
    others = [c for c in columns if c not in (start, stop, length)]
    about_trials = any("trial" in text.lower() for text in (stem, start, *others))
    kept = {c: _words_or_numbers(columns[c]) for c in others if _is_alike(columns[c], first)}
    return Intervals("trials" if about_trials else stem, first, last, kept, in_frames)


def _events_of(
    columns: Mapping[str, Any],
    stem: str,
    where: str,
    reading: str = "auto",
    *,
    told: bool = False,
) -> tuple[Events, ...]:
    """Events, if a column says when each row happened and the rows are no samples.

    Where the user says so (`told`), any column of times, or the first of numbers, and any of words
    will do. `stem` names events that no column names; `where` is the file, for sentences.
    """
    onset = _named(columns, _START) or (
        _named(columns, _EVENT | {"time", "times"}) if told else None
    )
    names = [n for n, c in columns.items() if _names_events(n, c, told)]
    clock = find_clock(columns, reading)[0] if names or told else None
    if onset is not None:
        at, in_frames = _edge(onset, columns[onset])
    elif clock is not None and clock.times_in != "samples":
        at, in_frames = clock.seconds, clock.times_in == "frames"
    elif told:
        numbers = [n for n, c in columns.items() if _is_plain_number(c)]
        if not numbers:
            raise InputError(f"{where} has no column of numbers: the times of events are needed.")
        at, in_frames = _edge(numbers[0], columns[numbers[0]])
    else:
        return ()
    rows = np.arange(1, len(at) + 1)
    if not names:
        return (Events(stem, at, rows, in_frames),)
    codes, words = pd.factorize(pd.Series(columns[names[0]]).astype("string"), sort=True)
    return tuple(
        Events(str(word), at[codes == i], rows[codes == i], in_frames)
        for i, word in enumerate(words)
    )


def _numbers_rows(name: str, column: Any) -> bool:
    """Whether a column does nothing but number the rows."""
    if not set(words_of(name)) <= _ROWS or not _is_plain_number(column) or len(column) < 2:
        return False
    numbers = np.asarray(_numbers(column), np.float64)
    return bool(numbers[0] in (0, 1) and (np.diff(numbers) == 1).all())


def _names_events(name: str, column: Any, told: bool) -> bool:
    """Whether a column holds words that name what happened."""
    if np.ndim(column) != 1 or column.dtype.kind in "biufcmMV":
        return False
    if not told and not _EVENT & set(words_of(name)):
        return False
    return pd.Series(column).astype("string").nunique() <= MOST_EVENTS


def _trials_of(columns: Mapping[str, Any], where: str) -> Intervals:
    """Trials of a table that the user says is one; without a stop, a trial lasts to the next."""
    columns = dict(columns)
    found = intervals_of(columns, "trials", where)
    if found is None:
        start = _named(columns, _START) or _named(columns, {"time", "times", "t"})
        if start is None:
            known = ", ".join(map(str, columns)) or "none"
            raise InputError(
                f"{where} does not tell when trials start: a column start (and stop, or duration) "
                f"in seconds is needed, or start_frame; its columns are: {known}."
            )
        first, in_frames = _edge(start, columns.pop(start))
        later = np.r_[
            first[1:], first[-1] + np.median(np.diff(first)) if len(first) > 1 else np.inf
        ]
        kept = {n: _words_or_numbers(c) for n, c in columns.items() if _is_alike(c, first)}
        found = Intervals("trials", first, later, kept, in_frames)
    return replace(found, name="trials")


def _named(columns: Mapping[str, Any], meaning: set[str]) -> str | None:
    """The column of numbers with such a name, and no other word that changes its meaning."""
    for name, column in columns.items():
        words = words_of(name)
        known = meaning | _BESIDE | _FRAME | set(SECONDS)
        if set(words) & meaning and set(words) <= known and _is_plain_number(column):
            return name
    return None


def _is_plain_number(column: Any) -> bool:
    return (
        np.ndim(column) == 1
        and pd.api.types.is_numeric_dtype(column.dtype)
        and not pd.api.types.is_bool_dtype(column.dtype)
        and column.dtype.kind != "c"
    )


def _is_alike(column: Any, first: np.ndarray) -> bool:
    return np.ndim(column) == 1 and len(column) == len(first)


def _edge(name: str, column: Any) -> tuple[np.ndarray, bool]:
    """Edge of intervals in seconds, or in frames if its name says so."""
    values = np.asarray(_numbers(column), np.float64)
    words = words_of(name)
    if {"frame", "frames", "idx", "index"} & set(words):
        return values, True
    return values * unit_scale(words), False


def _words_or_numbers(column: Any) -> np.ndarray:
    if _exceeds_floats(column):
        codes, ids = pd.factorize(pd.Series(column), sort=True)
        few = len(ids) <= FEW
        return np.array([*map(str, ids), None], object)[codes] if few else codes.astype(float)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _numbers(column)
    return np.asarray(column, object)


def load_trials(path: Path) -> Behavior:
    """Trials: a row of a table each, or what another format calls trials."""
    columns = _columns(path)
    if columns is None:
        return _only(path, "trials", "intervals")
    return Behavior(intervals=(_trials_of(columns, str(path)),), name=path.name)


def load_events(path: Path) -> Behavior:
    """Events: a row of a table each, or what another format calls events."""
    columns = _columns(path)
    if columns is None:
        return _only(path, "events", "events")
    return Behavior(events=_events_of(columns, path.stem, str(path), told=True), name=path.name)


def _columns(path: Path) -> dict[str, object] | None:
    """Columns of a table; None for any other format."""
    from napari_xcebra.io.containers.tables import read_table

    form = format_of(path, "behaviour file")
    if not form.__name__.endswith(".tables"):
        return None
    return {str(name): column for name, column in read_table(path, keep=("frame",)).items()}


def _only(path: Path, what: str, part: str) -> Behavior:
    """The trials or the events of a file that holds more."""
    found: Behavior = format_of(path, "behaviour file").load(path, OpenSettings())
    if not getattr(found, part):
        raise InputError(f"{path} holds no {what}.")
    kept = {part: getattr(found, part)}
    return Behavior(notes=found.notes, name=found.name, **kept)
