"""Tasks that write a run to a file: a report, or an NWB file."""

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
