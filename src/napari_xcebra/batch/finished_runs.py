"""Finds finished runs, and says which animal, day and condition each is of.

They are folders that `run`, `sessions`, a sweep or *Save…* wrote. A small table says whose they
are, or their path:

    run,animal,day,condition            animal,condition
    m1/day1,m1,1,saline                 m1,saline
    m1/day2,m1,2,drug                   m2,drug

The table on the right needs a pattern that finds the animal in the path: "{animal}/day{day}".
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.attribution.methods import title_of_method
from napari_xcebra.batch import SweepFolder
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.report.material import run_in
from napari_xcebra.spreadsheets import read_csv

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution import Attribution
    from napari_xcebra.learn import Goodness


LABELS = ("animal", "day", "condition")
FEW = 3
"""Names that a sentence lists."""
ALL = "all"
"""The only condition, where none is given."""


@dataclass(frozen=True)
class RunLabels:
    """What runs are of.

    Parameters
    ----------
    of_runs : list of (dict of str to str, or None)
        Animal, day, condition, and further columns of the table; None for runs to leave out.
    conditions : list of str
        As the table lists them, or by name.
    notes : list of str
        What could not be matched, in a sentence each.
    """

    of_runs: list[dict[str, str] | None]
    conditions: list[str]
    notes: list[str]


def labels_of(
    runs: Sequence[FinishedRun], table: Path | pd.DataFrame | None, pattern: str | None
) -> RunLabels:
    """Animal, day and condition of every run.

    Parameters
    ----------
    runs : sequence of FinishedRun
    table : path or DataFrame, optional
        With a column `run` (a name or path), or keyed by animal, and day if it has it. Further
        columns are kept.
    pattern : str, optional
        Such as "{animal}/{condition}/day{day}"; * stands for anything.
    """
    found: list[dict[str, str] | None]
    found = [_matched(pattern, run) if pattern else {} for run in runs]
    rows: list[dict[str, str]] = []
    notes: list[str] = []
    if table is not None:
        rows, folder = _read(table)
        found, notes = _joined(runs, found, rows, folder)
    elif not pattern:
        found = [{"animal": run.name} for run in runs]
    for each in filter(None, found):
        if not each.get("animal"):
            raise InputError("Which animal a run is of is not known: give a column or {animal}.")
    usual = {"animal": "", "day": "", "condition": ALL}
    found = [None if each is None else {**usual, **each} for each in found]
    named = [row["condition"] for row in rows if row.get("condition")]
    others = {each["condition"] for each in found if each} - set(named)
    return RunLabels(found, [*dict.fromkeys(named), *sorted(others, key=natural)], notes)


def natural(text: str) -> list[tuple[int, float, str]]:
    """Key by which day 10 comes after day 2.

    >>> sorted(["day 10", "day 2"], key=natural)
    ['day 2', 'day 10']
    """
    parts = re.split(r"(\d+)", str(text))
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in parts if part]


def _matched(pattern: str, run: FinishedRun) -> dict[str, str]:
    """What a pattern finds in the name of a run, or in its full path."""
    expression = _expression(pattern)
    for text in (run.name, run.path.absolute().as_posix(), run.attribution.source):
        if found := expression.search(text.replace("\\", "/")):
            return found.groupdict()
    raise InputError(f"The pattern {pattern!r} does not match {run.name}.")


def _expression(pattern: str) -> re.Pattern[str]:
    """Regular expression of a pattern: whole names of folders, as far to the right as it fits.

    >>> _expression("{animal}/day{day}").search("/data/m1/day2/run").groupdict()
    {'animal': 'm1', 'day': '2'}
    """
    made, named = "", []
    for part in re.split(r"(\{\w*\}|\*)", pattern):
        if part.startswith("{"):
            name = part[1:-1]
            if name not in LABELS or name in named:
                known = ", ".join(f"{{{label}}}" for label in LABELS)
                raise InputError(f"The pattern {pattern!r} has {part}: use {known}, each once.")
            named.append(name)
            made += f"(?P<{name}>[^/]+?)"
        else:
            made += "[^/]*" if part == "*" else re.escape(part)
    if not named:
        raise InputError(f"The pattern {pattern!r} names no {{animal}}.")
    return re.compile(f"^(?:.*/)?{made}(?:/|$)")


def _read(table: Path | pd.DataFrame) -> tuple[list[dict[str, str]], Path]:
    """Rows of the table, all of it text, and the folder that its paths are from."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        rows, folder, where = table, Path(), "The table"
    else:
        folder, where = table.parent, str(table)
        try:
            rows = read_csv(table, sep=None, engine="python", dtype=str, encoding="utf-8-sig")
        except (OSError, ValueError, csv.Error) as error:
            raise InputError(f"{table} cannot be read as a table: {error}.") from error
    names = [str(name).strip().lower() for name in rows]
    if not {"run", "animal"} & set(names):
        raise InputError(
            f"{where} has the columns {', '.join(names)}: `animal` is needed, and `run`, `day` and "
            "`condition` where they differ."
        )
    known = rows.dropna(how="all").fillna("").astype(str).to_numpy()
    return [dict(zip(names, map(str.strip, row), strict=True)) for row in known], folder


def _joined(
    runs: Sequence[FinishedRun],
    found: Sequence[dict[str, str] | None],
    rows: Sequence[dict[str, str]],
    folder: Path,
) -> tuple[list[dict[str, str] | None], list[str]]:
    """Labels with those of the table; what it says goes before the pattern."""
    by_run = all("run" in row for row in rows)
    if not by_run and not all(each and "animal" in each for each in found):
        raise InputError(
            "The table has no column `run`: add one with the folder or recording of each row, or "
            'give a pattern that finds the animal in the path, such as "{animal}/day{day}".'
        )
    joined: list[dict[str, str] | None] = []
    used: list[int] = []
    for run, own in zip(runs, found, strict=True):
        places = _by_run(run, rows, folder) if by_run else _by_animal(own or {}, rows)
        if len(places) > 1:
            raise InputError(f"The table has several rows for {run.name}.")
        used += places
        more = {n: v for at in places for n, v in rows[at].items() if n != "run"}
        joined.append({**(own or {}), **more} if places else None)
    unknown = [run.name for run, each in zip(runs, joined, strict=True) if each is None]
    unused = [row for at, row in enumerate(rows) if at not in used]
    notes = []
    if unknown:
        of = "run is" if len(unknown) == 1 else "runs are"
        notes.append(f"{len(unknown)} {of} left out, not being in the table: {_few(unknown)}.")
    if unused:
        names = [row.get("run") or row["animal"] for row in unused]
        have = "row of the table has" if len(unused) == 1 else "rows of the table have"
        notes.append(f"{len(unused)} {have} no run: {_few(names)}.")
    return joined, notes


def _by_animal(own: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> list[int]:
    """Rows for an animal, and its day if both name one."""
    keys = [name for name in ("animal", "day") if name in own]
    return [
        at for at, row in enumerate(rows) if all(row.get(n, own[n]) in (own[n], "") for n in keys)
    ]


def _by_run(run: FinishedRun, rows: Sequence[Mapping[str, str]], folder: Path) -> list[int]:
    """Rows for a run: by name, by the path from the table's folder, or else by the path's end."""
    full = run.path.absolute().as_posix()
    texts = [row["run"].replace("\\", "/").strip("/") for row in rows]
    exact = [
        at
        for at, text in enumerate(texts)
        if text == run.name.strip("/") or (folder / text).absolute().as_posix() == full
    ]
    return exact or [at for at, text in enumerate(texts) if full.endswith(f"/{text}")]


def _few(names: Sequence[str]) -> str:
    more = len(names) - FEW
    return ", ".join(names[:FEW]) + (f" and {more} more" if more > 0 else "")


_PARTS = {"fit", "joint", "members"}
"""Folders of a run or sweep that are none themselves."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """One map of a finished run.

    Parameters
    ----------
    path : Path
        Its folder.
    name : str
        Recording as the sweep calls it; else the folder as it was found.
    attribution : Attribution
    goodness : mapping of str to Goodness
    varied : mapping of str to str
        What distinguishes it from other runs of its sweep, in words.
    """

    path: Path
    name: str
    attribution: Attribution
    goodness: Mapping[str, Goodness]
    varied: Mapping[str, str]

    @property
    def factors(self) -> tuple[str, ...]:
        """Factors that were asked for; the state that was not observed is none."""
        return tuple(name for name in self.attribution.factors if name != TIME)


def finished_runs(
    folders: Iterable[str | os.PathLike[str]], method: str
) -> tuple[list[FinishedRun], list[str]]:
    """All finished runs in some folders and those below them, and sentences on what is left out.

    Runs of a sweep whose labels were shifted are controls, and left out.
    """
    found: dict[Path, FinishedRun] = {}
    notes: list[str] = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: name those that run or sweep wrote.")
        for place, name, varied in _places(folder):
            if isinstance(run := _loaded(place, name, varied, method), str):
                notes.append(run)
            else:
                found.setdefault(place.resolve(), run)
    if not found:
        why = f" {notes[0]}" if notes else ""
        raise InputError(
            f"No finished run was found in {', '.join(map(str, folders))}.{why} Name folders that "
            "run, sessions or sweep wrote, or a folder above them."
        )
    return list(found.values()), notes


def _places(folder: Path) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """Folder, name, and what was varied, of every run in a folder or below it."""
    if (folder / "sweep.json").exists():
        sweep = SweepFolder(folder)
        for member in sweep.members:
            if sweep.status(member.id) == "finished" and not member.shift:
                varied = {n: str(v) for n, v in member.varied.items() if n != "recording"}
                yield sweep.home(member.id), member.recording, varied
    elif any((folder / name).exists() for name in ("run.json", "fit/fit.json")):
        yield folder, folder.as_posix(), {}
    else:
        below = sorted(path for path in folder.iterdir() if path.is_dir())
        for path in below:
            if path.name not in _PARTS and not path.name.startswith(".") and not path.is_symlink():
                yield from _places(path)


def _loaded(place: Path, name: str, varied: dict[str, str], method: str) -> FinishedRun | str:
    """The run, or a sentence on why it is left out."""
    found = run_in(place)
    if not found.fit.complete:
        return f"{place} is left out: its training was stopped before the end."
    if method not in found.attributions:
        others = ", ".join(map(title_of_method, found.attributions)) or "no map"
        return f"{place} is left out: it has {others} and not {title_of_method(method)}."
    attribution = found.attributions[method]
    return FinishedRun(place, name, attribution, found.fit.goodness, varied)
