"""Writes the tables and figures of a cohort, from the command line, Python or the window."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from napari_xcebra.cohorts.comparison import Cohort, cohort
from napari_xcebra.files import in_a_sentence, whole
from napari_xcebra.jobs.tasks.task import Report
from napari_xcebra.spreadsheets import write_csv

TABLES = ("cells", "runs", "animals", "tests")


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


@dataclass(frozen=True, eq=False)
class CohortTask:
    """Make the cohort of a sweep, and write it into a folder; the result is what it says.

    Parameters
    ----------
    folder : Path
        With finished runs; tables and figures are written there.
    table : Path or None
    pattern : str
        As of `cohort`; empty for none.
    """

    doing: ClassVar[str] = "Comparing conditions"
    sparing: ClassVar[str] = "close other programs"

    folder: Path
    table: Path | None = None
    pattern: str = ""

    def run(self, report: Report) -> str:
        """Make and write it."""
        found = cohort(self.folder, self.table, self.pattern or None)
        write_cohort(found, self.folder)
        return found.summary()
