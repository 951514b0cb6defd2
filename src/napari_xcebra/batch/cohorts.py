"""Holds the scores of many animals and days in tidy tables, and compares their conditions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.attribution.methods import DEFAULT
from napari_xcebra.attribution.shift_test.result import LEVEL
from napari_xcebra.batch.finished_runs import (
    LABELS,
    FinishedRun,
    RunLabels,
    finished_runs,
    labels_of,
    natural,
)
from napari_xcebra.batch.permutation import AnimalTest, compare_animals, holm
from napari_xcebra.batch.plan import knob_name
from napari_xcebra.errors import InputError
from napari_xcebra.text import counted, listed

if TYPE_CHECKING:
    import pandas as pd


MEASURES = {"share": "share of cells at q ≤ {level:g}", "score": "mean score of the cells"}
"""What conditions are compared by, and what it is called."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """Runs of many animals and days.

    Parameters
    ----------
    cells : DataFrame
        A row a cell, factor and run: animal, day, condition, run, factor, cell, score, z, p, q,
        and found (q up to `level`). Cells that were not used are left out.
    runs : DataFrame
        A row a factor and run: animal, day, condition, run, factor, verdict, goodness (nats), r2,
        accuracy, cells, tested, found, share (of the tested cells that were found), score (the
        mean over cells). Share is NaN where the factor could not be tested.
    method : str
        Map that the scores are of.
    level : float
        q up to which a cell counts as found.
    notes : tuple of str
        What was left out or averaged, in a sentence each.
    """

    cells: pd.DataFrame
    runs: pd.DataFrame
    method: str
    level: float
    notes: tuple[str, ...] = ()

    @property
    def factors(self) -> tuple[str, ...]:
        """Factors of any run."""
        return tuple(dict.fromkeys(self.runs["factor"]))

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions in their order."""
        return tuple(dict.fromkeys(self.runs["condition"]))

    @property
    def days(self) -> tuple[str, ...]:
        """Days in their order."""
        return tuple(sorted(set(self.runs["day"]), key=natural))

    def called(self, measure: str) -> str:
        """What a measure is called."""
        return MEASURES[measure].format(level=self.level)

    @cached_property
    def sessions(self) -> pd.DataFrame:
        """A row a factor, animal, condition and day: the mean over its runs, such as seeds."""
        keys = ["factor", "animal", "condition", "day"]
        return self.runs.groupby(keys, sort=False, as_index=False)[list(MEASURES)].mean()

    @cached_property
    def animals(self) -> pd.DataFrame:
        """A row a factor, animal and condition: the mean over its days, and their number."""
        groups = self.sessions.groupby(["factor", "animal", "condition"], sort=False)
        days = groups.size().rename("days")
        return groups[list(MEASURES)].mean().join(days).reset_index()

    def by_animal(self, factor: str, measure: str) -> pd.DataFrame:
        """A row an animal, a column a condition: the mean over days, NaN where there is none."""
        rows = self.animals[self.animals["factor"] == factor]
        table = rows.pivot(index="animal", columns="condition", values=measure)
        return table.reindex(columns=list(self.conditions))

    def test(
        self, factor: str, measure: str = "share", conditions: Sequence[str] | None = None
    ) -> AnimalTest:
        """Compare conditions, all of them if none are given, with the animal as the unit."""
        table = self.by_animal(factor, measure)
        return compare_animals(table if conditions is None else table[list(conditions)])

    @cached_property
    def tests(self) -> pd.DataFrame:
        """A row a factor, measure and comparison; with three conditions or more, also each pair.

        Columns: factor, measure, conditions, design, animals, means, p, p_holm (over the pairs of
        the same factor and measure), smallest_p, arrangements, exact, and a sentence.
        """
        import pandas as pd

        rows = []
        if len(self.conditions) > 1:
            pairs = list(combinations(self.conditions, 2))
            for factor in self.factors:
                for measure in MEASURES:
                    every = [self.test(factor, measure)]
                    of_pairs = [self.test(factor, measure, pair) for pair in pairs]
                    corrected = holm([each.p for each in of_pairs])
                    if len(pairs) > 1:
                        every, corrected = [*every, *of_pairs], [np.nan, *corrected]
                    rows += [
                        self._row(factor, measure, test, p)
                        for test, p in zip(every, corrected, strict=True)
                    ]
        return pd.DataFrame(rows)

    def _row(self, factor: str, measure: str, test: AnimalTest, p_holm: float) -> dict[str, object]:
        return {
            "factor": factor,
            "measure": measure,
            "conditions": " vs ".join(test.conditions),
            "design": test.design,
            "animals": ", ".join(map(str, test.animals)),
            "means": ", ".join(f"{mean:.4g}" for mean in test.means),
            "p": test.p,
            "p_holm": p_holm,
            "smallest_p": test.smallest,
            "arrangements": test.arrangements,
            "exact": test.exact,
            "sentence": f"{factor}, {self.called(measure)}: {test.sentence}",
        }

    def summary(self) -> str:
        """What was compared and found, a sentence a line."""
        animals, runs = self.runs["animal"].nunique(), self.runs["run"].nunique()
        days = len(self.sessions[["animal", "condition", "day"]].drop_duplicates())
        lines = [
            f"{counted(animals, 'animal')}, {counted(days, 'session')}, {counted(runs, 'run')}."
        ]
        if len(self.conditions) > 1:
            lines += list(self.tests["sentence"])
            left_out = {name for f in self.factors for name in self.test(f).left_out}
            if left_out:
                lines.append(
                    "Conditions are compared within animals; left out, as they lack a condition: "
                    f"{listed(sorted(left_out, key=natural))}."
                )
        else:
            lines.append("There is one condition: nothing is compared.")
        return "\n".join([*lines, *self.notes])


def cohort(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    table: str | os.PathLike[str] | pd.DataFrame | None = None,
    pattern: str | None = None,
    *,
    level: float = LEVEL,
    method: str = DEFAULT,
) -> Cohort:
    """Put the finished runs of many animals and days side by side.

    Parameters
    ----------
    folders : path or iterable of path
        Folders that `napari-xcebra run`, `sessions` or `sweep` wrote, saved runs, or folders above
        them.
    table : path or DataFrame, optional
        Which animal, day and condition each `run` (or, with a pattern, each animal) is of.
    pattern : str, optional
        Finds them in the path of a run, or in the name of its recording in a sweep:
        "{animal}/{condition}/day{day}".
    level : float
        q up to which a cell counts as found.
    method : str
        Map to compare scores of.

    Returns
    -------
    Cohort
    """
    folders = [folders] if isinstance(folders, str | os.PathLike) else list(folders)
    if not 0 < level < 1:
        raise InputError(f"level is {level:g}: a q between 0 and 1 is needed.")
    runs, notes = finished_runs(folders, method)
    given = Path(table) if isinstance(table, str | os.PathLike) else table
    labels = labels_of(runs, given, pattern)
    return _tabulated(runs, labels, method, level, [*notes, *labels.notes])


def _tabulated(
    runs: Sequence[FinishedRun], labels: RunLabels, method: str, level: float, notes: list[str]
) -> Cohort:
    import pandas as pd

    kept = [(run, of) for run, of in zip(runs, labels.of_runs, strict=True) if of is not None]
    if not kept:
        raise InputError(f"The table fits none of the runs. {' '.join(notes)}")
    order = labels.conditions.index
    kept.sort(
        key=lambda e: (order(e[1]["condition"]), natural(e[1]["animal"]), natural(e[1]["day"]))
    )
    cells, rows = [], []
    for run, of in kept:
        about = {**of, "run": str(run.path)}
        for factor in run.factors:
            table = _cells(run, factor, level)
            cells.append(table.assign(**about))
            rows.append({**about, **_run_row(run, factor, table)})
    notes = [*notes, *_averaged(kept), *_untested(rows)]
    front = list(dict.fromkeys([*LABELS, *(n for _, of in kept for n in of), "run", "factor"]))
    tables = [pd.concat(cells, ignore_index=True), pd.DataFrame(rows)]
    tables = [each[[*front, *each.columns.drop(front)]] for each in tables]
    return Cohort(tables[0], tables[1], method, level, tuple(notes))


def _cells(run: FinishedRun, factor: str, level: float) -> pd.DataFrame:
    table = run.attribution.table(factor)
    for name in ("p", "q"):
        if name not in table:
            table[name] = np.nan
    table = table.loc[table["score"].notna(), ["cell", "score", "z", "p", "q"]]
    table["found"] = table["q"] <= level
    return table.assign(factor=factor)


def _run_row(run: FinishedRun, factor: str, cells: pd.DataFrame) -> dict[str, object]:
    goodness, tested = run.goodness[factor], int(cells["q"].notna().sum())
    return {
        "factor": factor,
        "verdict": goodness.strength,
        "goodness": goodness.goodness,
        "r2": goodness.r2,
        "accuracy": goodness.accuracy,
        "cells": len(cells),
        "tested": tested,
        "found": int(cells["found"].sum()),
        "share": cells["found"].sum() / tested if tested else np.nan,
        "score": cells["score"].mean(),
    }


def _averaged(kept: Sequence[tuple[FinishedRun, Mapping[str, str]]]) -> list[str]:
    """A sentence if there are several runs of one session, which are averaged."""
    sessions: dict[tuple[str, ...], list[FinishedRun]] = {}
    for run, of in kept:
        sessions.setdefault(tuple(of[name] for name in LABELS), []).append(run)
    most = max(map(len, sessions.values()))
    if most == 1:
        return []
    knobs = {
        knob_name(name)
        for same in sessions.values()
        for name in same[0].varied
        if len({run.varied.get(name) for run in same}) > 1
    }
    what = f" that differ in {listed(sorted(knobs))}" if knobs else ""
    return [f"Up to {most} runs of one session{what} were averaged."]


def _untested(rows: Sequence[dict[str, object]]) -> list[str]:
    missing = [str(row["run"]) for row in rows if not row["tested"]]
    if not missing:
        return []
    return [
        f"{counted(len(missing), 'map')} could not be tested, the first in {missing[0]}: shares of "
        "cells are over the others."
    ]
