"""Writes decisions and everything else about the cells as a table (CSV)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from napari_xcebra.io.decisions.decided import Decided
from napari_xcebra.io.transaction.plan import Plan, change_to, target_of
from napari_xcebra.report.exports import default_path
from napari_xcebra.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Table of everything (.csv)"


def plan(decided: Decided, destination: Path | None) -> Plan:
    """One file: a row per cell."""
    default = default_path(decided.recording, "decisions", suffix=".csv")
    path = target_of(default, destination)
    table = decided.everything()
    what = f"A row for each of the {len(table)} cells: {', '.join(table.columns)}."
    return Plan("csv", (change_to(path, what, writing(table)),), decided.summary())


def writing(table: pd.DataFrame) -> Callable[[Path], None]:
    """Function that writes the table to a path."""
    return lambda path: write_csv(table, path)
