"""Several sessions: trained together, or one carried to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from napari_xcebra.jobs.tasks.task import Report
from napari_xcebra.jobs.tasks.training import FitTask, StepCount
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.learn.adaptation import How
    from napari_xcebra.learn.joint.result import JointFit
    from napari_xcebra.learn.parts import Factors
    from napari_xcebra.learn.result import Fit


@dataclass(frozen=True, eq=False)
class AdaptTask:
    """Carry a fit to another recording, as `learn.adaptation.adapt` does; the result is a `Fit`."""

    doing: ClassVar[str] = "Carrying a run over"
    sparing: ClassVar[str] = FitTask.sparing

    fit: Fit
    recording: Recording
    how: How = "auto"

    def run(self, report: Report) -> Fit:
        """Carry it over."""
        from napari_xcebra.learn.adaptation import adapt

        counted = StepCount(report, self.fit.settings)
        return adapt(self.fit, self.recording, self.how, on_progress=counted, stop=report.stop)


@dataclass(frozen=True, eq=False)
class JointTask:
    """Train on several recordings, as `learn.joint.fitting.fit_sessions` does.

    The result is a `JointFit`.
    """

    doing: ClassVar[str] = "Training together"
    sparing: ClassVar[str] = FitTask.sparing

    recordings: Mapping[str, Recording]
    factors: Factors | None = None
    settings: FitSettings = field(default_factory=FitSettings)

    def run(self, report: Report) -> JointFit:
        """Train."""
        from napari_xcebra.learn.joint.fitting import fit_sessions

        return fit_sessions(
            self.recordings,
            self.factors,
            self.settings,
            on_progress=StepCount(report, self.settings),
            stop=report.stop,
        )
