"""Writes the tables and figures of a cohort, from the command line, Python or the window."""

from __future__ import annotations

from pathlib import Path

from napari_xcebra.cohorts.comparison import Cohort, cohort
from napari_xcebra.files import in_a_sentence, whole
from napari_xcebra.spreadsheets import write_csv

TABLES = ("cells", "runs", "animals", "tests")


def compare_runs(folder: Path, table: Path | None = None, pattern: str = "") -> str:
    """Make the cohort of the runs in a folder, write it there, and return what it says."""
    found = cohort(folder, table, pattern or None)
    write_cohort(found, folder)
    return found.summary()


def write_cohort(found: Cohort, folder: Path) -> list[Path]:
    """Write tidy tables and a figure a question; each file whole or not at all."""
    from napari_xcebra.report.figures.cohorts import scores_by_condition, share_by_condition

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in TABLES:
        path = folder / f"cohort-{name}.csv"
        table = getattr(found, name)
        with in_a_sentence(path):
            if not len(table):  # of an earlier time, when there was something to compare
                path.unlink(missing_ok=True)
                continue
            with whole(path) as file:
                write_csv(table, file)
        written.append(path)
    figures = {"share": share_by_condition, "scores": scores_by_condition}
    for name, draw in figures.items():
        draw(found, folder / f"cohort-{name}.png")
        written.append(folder / f"cohort-{name}.png")
    return written
