"""Compares conditions over many animals and days: `cohort`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.batch.cohort_files import write_cohort
from napari_xcebra.batch.cohorts import cohort as gathered
from napari_xcebra.cli.given import output_folder
from napari_xcebra.cli.printing import say, say_written, table
from napari_xcebra.text import percent

if TYPE_CHECKING:
    from napari_xcebra.batch.cohorts import Cohort


def cohort(arguments: argparse.Namespace) -> None:
    """Put the runs of many animals and days into one table, and compare conditions."""
    out = output_folder(arguments)
    labels = Path(arguments.table) if arguments.table else None
    found = gathered(
        arguments.runs, labels, arguments.pattern, level=arguments.q, method=arguments.method
    )
    say(arguments, condition_table(found), "", found.summary())
    say_written(arguments, write_cohort(found, out))


def condition_table(found: Cohort) -> str:
    """One row per factor and condition: animals, sessions, and means over animals."""
    rows = []
    for factor in found.factors:
        for condition in found.conditions:
            own = found.animals.query("factor == @factor and condition == @condition")
            tested = own["share"].dropna()
            shares = f"{percent(tested.min())} to {percent(tested.max())}" if len(tested) else "–"
            share = "–" if not len(tested) else percent(tested.mean())
            score = own["score"].mean()
            rows.append([factor, condition, str(len(own)), str(int(own["days"].sum())), share,
                         shares, "–" if np.isnan(score) else f"{score:.3f}"])  # fmt: skip
    header = ["factor", "condition", "animals", "sessions", f"cells at q ≤ {found.level:g}",
              "by animal", "mean score"]  # fmt: skip
    return table(header, rows)
