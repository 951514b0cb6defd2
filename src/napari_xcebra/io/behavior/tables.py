"""Reads behaviour from a table (.csv, .tsv, .parquet): each column is a variable of its name.

A column of times or of frame numbers puts the rows on a clock; without it there is one row per
frame. A table that says when each row starts and stops is one of trials or epochs; one that says
when each event began, or has a time and the name of an event in each row, is one of events.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from napari_xcebra.errors import InputError
from napari_xcebra.io.behavior.columns import events_of, intervals_of, numbers_rows, series_of
from napari_xcebra.io.clocks.timestamps import find_clock
from napari_xcebra.io.containers.tables import PARQUET, SUFFIXES, is_parquet, read_table, text_form
from napari_xcebra.io.extraction import Behavior
from napari_xcebra.io.settings import OpenSettings

NAME = "a table (.csv, .tsv, .parquet)"
GENERIC = True


def sniff(path: Path) -> bool:
    """Whether the name is that of a table, or the first lines are."""
    if not path.is_file():
        return False
    if path.suffix.lower() in (*SUFFIXES, *PARQUET) or is_parquet(path):
        return True
    try:
        rows = text_form(path, 3).rows
    except Exception:  # whatever it is, it is no table
        return False
    return len(rows) == 3 and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1


def load(path: Path, settings: OpenSettings) -> Behavior:
    """Columns of a table, or the trials that its rows are."""
    table = read_table(path, keep=(settings.trigger, "frame"))
    columns = {str(name): column for name, column in table.items()}
    clocks = {name: column for name, column in columns.items() if name != settings.trigger}
    clock, about_clocks = find_clock(clocks, settings.behavior_clock)
    if clock is None or clock.times_in in ("frames", "samples"):
        intervals = intervals_of(columns, path.stem, str(path))
        if intervals is not None:
            return Behavior(intervals=(intervals,), name=path.name)
    events = events_of(columns, path.stem, str(path), settings.behavior_clock)
    if events:
        return Behavior(events=events, name=path.name)
    if clock is None:
        find_clock(clocks, settings.behavior_clock, strict=True)
    times = None if clock is None else clock.seconds
    used = () if clock is None else (clock.name, *clock.spare)
    series, notes = [], [*(clock.notes if clock else ()), *about_clocks]
    for name, column in columns.items():
        if name in used or numbers_rows(name, column):
            continue
        found, note = series_of(name, column, times, path.name)
        if found is not None:
            series.append(found if clock is None else replace(found, times_in=clock.times_in))
        notes += [note] if note else []
    if not series:
        raise InputError(f"Behaviour file {path} has no variables.")
    return Behavior(tuple(series), notes=tuple(notes), name=path.name)
