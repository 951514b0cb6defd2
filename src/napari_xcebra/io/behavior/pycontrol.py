"""Reads logs of pyControl (.txt, .tsv): states and events of a task.

States whose names differ only by a number at the end (``degrees_45``, ``degrees_90``) are trials
of which that number is known; all states together are a discrete variable. Events keep their names.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np

from napari_xcebra.errors import InputError, sentence_on_failure
from napari_xcebra.files import first_bytes, read_bytes
from napari_xcebra.io.extraction import Behavior, Events, Intervals, Series
from napari_xcebra.io.settings import OpenSettings

NAME = "a log of pyControl (.txt, .tsv)"
STEP = 0.05
"""Seconds between samples of the state: it is known at every moment."""
BACK = 1.0
"""Seconds by which an entry may be written late; more is another session."""
LONGEST = 2 * 24 * 3600.0
"""Seconds that a session can last."""
MOST_STATES = 20
"""States of a variable; a task with more has them as events only."""
_TSV = b"time\ttype\tsubtype\tcontent"
_NUMBERED = re.compile(r"(.*?)[_ ]?(-?\d+(?:\.\d+)?)$")

Log = list[tuple[float, str]]
"""Seconds, and the name of what happened."""


def sniff(path: Path) -> bool:
    """Whether the first line is one that pyControl writes."""
    start = first_bytes(path, 4096) if path.is_file() else b""
    return start.startswith(_TSV) or (start.startswith(b"I ") and b"\nI Task" in start)


def load(path: Path, settings: OpenSettings) -> Behavior:
    """States and events of the log, in seconds since the task began."""
    with sentence_on_failure(path, "a log of pyControl"):
        lines = read_bytes(path).decode(errors="replace").splitlines()
        states, events = _from_tsv(lines) if lines[0].startswith("time\t") else _from_text(lines)
    if not states and not events:
        raise InputError(f"{path} is a log of pyControl without any state or event.")
    last = max(time for time, _ in (*states, *events))
    if not 0 <= last < LONGEST:
        raise InputError(f"{path} has an entry at {last:g} s: no session is as long.")
    for log in (states, events):
        for (before, _), (time, name) in pairwise(log):
            if time < before - BACK:
                raise InputError(
                    f"{path} goes back from {before:g} s to {time:g} s at {name!r}: it holds "
                    "several sessions, each of which needs a file of its own."
                )
        log.sort(key=lambda entry: entry[0])
    stops = [time for time, _ in states[1:]] + [last]
    trials = _trials(states, stops)
    series = _state_series(states, last) if 1 < len({n for _, n in states}) <= MOST_STATES else ()
    return Behavior(
        series=series,
        intervals=() if trials is None else (trials,),
        name=path.name,
        events=_events(events),
    )


def _from_text(lines: list[str]) -> tuple[Log, Log]:
    """Entries "D milliseconds number"; lines S and E name the numbers."""
    names = {}
    for kind in "SE":
        found = next((line[2:] for line in lines if line.startswith(f"{kind} ")), "{}")
        names[kind] = {int(number): str(name) for name, number in json.loads(found).items()}
    logs: dict[str, Log] = {"S": [], "E": []}
    for line in lines:
        if not line.startswith("D "):
            continue
        _, time, number, *_ = line.split()
        for kind, named in names.items():
            if int(number) in named:
                logs[kind].append((int(time) / 1000, named[int(number)]))
    return logs["S"], logs["E"]


def _from_tsv(lines: list[str]) -> tuple[Log, Log]:
    """Rows of time, type, subtype and content."""
    logs: dict[str, Log] = {"state": [], "event": []}
    for line in lines[1:]:
        time, kind, _, content, *_ = (*line.split("\t"), "", "", "")
        if kind in logs and content:
            logs[kind].append((float(time), content))
    return logs["state"], logs["event"]


def _trials(states: Log, stops: list[float]) -> Intervals | None:
    """Visits of states that differ by a number: the largest family of them."""
    families: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for (start, name), stop in zip(states, stops, strict=True):
        if (match := _NUMBERED.fullmatch(name)) and match[1]:
            families[match[1]].append((start, stop, float(match[2])))
    kinds = {stem: len({value for *_, value in rows}) for stem, rows in families.items()}
    stem = max(kinds, key=lambda each: (kinds[each], len(families[each])), default="")
    if kinds.get(stem, 0) < 2:
        return None
    start, stop, value = np.array(families[stem]).T
    return Intervals("trials", start, stop, {stem: value})


def _state_series(states: Log, last: float) -> tuple[Series, ...]:
    """The state at every moment from the first entry to the last."""
    begins = np.array([time for time, _ in states])
    labels = tuple(sorted({name for _, name in states}))
    codes = np.array([labels.index(name) for _, name in states])
    times = np.arange(begins[0], max(last, begins[0] + STEP), STEP)
    held = codes[np.searchsorted(begins, times, side="right") - 1].astype(np.float64)
    return (Series("state", held, times, kind="discrete", labels=labels),)


def _events(log: Log) -> tuple[Events, ...]:
    times: dict[str, list[float]] = defaultdict(list)
    for time, name in log:
        times[name].append(time)
    return tuple(Events(name, np.array(at)) for name, at in times.items())
