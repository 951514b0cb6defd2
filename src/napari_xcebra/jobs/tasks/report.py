"""One page about a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from napari_xcebra.jobs.tasks.task import Report
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.opening import Opening
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
