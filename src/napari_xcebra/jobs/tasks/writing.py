"""Tasks that write files: a report on a run, an NWB file, the tables of a cohort."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from napari_xcebra.attribution.methods import first_to_look_at
from napari_xcebra.jobs.tasks.task import Report
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.io.opening import Opening
    from napari_xcebra.runs import Run


@dataclass(frozen=True, eq=False)
class ReportTask:
    """Write one page about a run; the result is its path."""

    doing: ClassVar[str] = "Writing the report"
    sparing: ClassVar[str] = "close other programs"

    run_: Run
    recording: Recording
    path: Path
    opening: Opening | None = None
    statistics: CellStatistics | None = None

    def run(self, report: Report) -> Path:
        """Write it, whole or not at all."""
        from napari_xcebra.report import Material, run_report, write_report

        material = Material.of_run(self.run_, self.recording, self.opening, self.statistics)
        return write_report(run_report(material), self.path)


@dataclass(frozen=True, eq=False)
class NwbTask:
    """Write a run with its recording as NWB; the result is the path of the file."""

    doing: ClassVar[str] = "Writing the NWB file"
    sparing: ClassVar[str] = "close other programs"

    run_: Run
    recording: Recording
    path: Path
    decisions: pd.DataFrame | None = None
    threshold: float = 0.0

    def run(self, report: Report) -> Path:
        """Write it, whole or not at all."""
        from napari_xcebra.io.nwb.writing import write_nwb

        maps = first_to_look_at(self.run_.attributions)
        maps = [replace(each, fit=self.run_.fit) for each in maps]
        return write_nwb(
            self.recording, self.path, maps, decisions=self.decisions, threshold=self.threshold
        )


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
        from napari_xcebra.cohorts.comparison import cohort
        from napari_xcebra.cohorts.writing import write_cohort

        found = cohort(self.folder, self.table, self.pattern or None)
        write_cohort(found, self.folder)
        return found.summary()
