"""A score for every cell: attribution, tests against chance, single-cell statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from napari_xcebra.attribution.method_notes import DEFAULT
from napari_xcebra.attribution.tested import SHIFTS, Significance
from napari_xcebra.jobs.tasks.pace import FrameCount
from napari_xcebra.jobs.tasks.task import Report, none_if_stopped
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution.result import Attribution
    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn.result import Fit


@dataclass(frozen=True, eq=False)
class AttributeTask:
    """Score every cell, as `attribution.attribute` does; the result is an `Attribution`."""

    doing: ClassVar[str] = "Attribution"
    sparing: ClassVar[str] = "ask for fewer frames, or set `device` to cpu"

    fit: Fit
    recording: Recording
    method: str = DEFAULT
    frames: FrameChoice = None
    aggregate: Literal["mean", "median", "max"] = "mean"

    @none_if_stopped
    def run(self, report: Report) -> Attribution:
        """Attribute; None if stopped, since scores over the first frames would mislead."""
        from napari_xcebra.attribution import attribute

        return attribute(
            self.fit,
            self.recording,
            self.method,
            frames=self.frames,
            aggregate=self.aggregate,
            on_progress=FrameCount(report),
            stop=report.stop,
        )


@dataclass(frozen=True, eq=False)
class SignificanceTask:
    """Test every cell, as `attribution.significance` does; the result is a `Significance`."""

    doing: ClassVar[str] = "The test"
    sparing: ClassVar[str] = "use fewer frames or cells"

    fit: Fit
    recording: Recording
    shifts: int = SHIFTS

    @none_if_stopped
    def run(self, report: Report) -> Significance:
        """Test; None if stopped."""
        from napari_xcebra.attribution import significance

        return significance(
            self.fit,
            self.recording,
            shifts=self.shifts,
            on_progress=FrameCount(report),
            stop=report.stop,
        )


@dataclass(frozen=True, eq=False)
class StatisticsTask:
    """What labs compute of single cells, as `attribution.single_cell.cell_statistics` does."""

    doing: ClassVar[str] = "Computing statistics"
    sparing: ClassVar[str] = "use fewer cells or frames"

    recording: Recording
    factors: Mapping[str, Sequence[str]]
    statistics: tuple[str, ...] | None = None
    cells: np.ndarray | None = None

    @none_if_stopped
    def run(self, report: Report) -> CellStatistics:
        """Compute them; None if stopped."""
        from napari_xcebra.attribution.single_cell import cell_statistics

        return cell_statistics(
            self.recording,
            self.factors,
            self.statistics,
            cells=self.cells,
            on_progress=FrameCount(report, "cell"),
            stop=report.stop,
        )
