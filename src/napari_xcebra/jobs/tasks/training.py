"""Tasks that train: once, or with several seeds, dimensions or sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from napari_xcebra.attribution.methods import DEFAULT
from napari_xcebra.jobs.events import NAN, Advanced, Sketched
from napari_xcebra.jobs.tasks.task import FrameCount, Pace, Report
from napari_xcebra.learn import FitSettings
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn import Fit, Progress, Training
    from napari_xcebra.learn.adaptation import How
    from napari_xcebra.learn.data.factors import Factors
    from napari_xcebra.learn.joint.result import JointFit
    from napari_xcebra.learn.quality.consistency import Dimensions


class StepCount:
    """Reports the steps of a training, with its losses beside chance."""

    def __init__(self, report: Report, settings: FitSettings) -> None:
        self._report, self._pace = report, Pace()
        contrastive = settings.mode != "supervised"
        self._chance = float(np.log(settings.negatives)) if contrastive else NAN

    def __call__(self, at: Progress) -> None:
        """Called as `on_progress` of a training."""
        self._report(
            Advanced(
                at.step,
                at.steps,
                "step",
                self._pace.seconds_left(at.step, at.steps),
                at.phase,
                at.loss,
                self._chance,
                at.penalty,
                at.lambda_,
            )
        )


@dataclass(frozen=True, eq=False)
class FitTask:
    """Train on a recording, as `learn.fit` does; the result is a `Fit`.

    Parameters
    ----------
    live : str
        Method for the provisional maps shown every few seconds; empty for none.
    """

    doing: ClassVar[str] = "Training"
    sparing: ClassVar[str] = (
        "lower `batch_size` or `window`, use fewer cells or frames, or set `device` to cpu"
    )

    recording: Recording
    factors: Factors | None = None
    settings: FitSettings = field(default_factory=FitSettings)
    checkpoint: Path | None = None
    live: str = ""

    def run(self, report: Report) -> Fit:
        """Train."""
        from napari_xcebra.learn import fit

        return fit(
            self.recording,
            self.factors,
            self.settings,
            on_progress=StepCount(report, self.settings),
            stop=report.stop,
            checkpoint=self.checkpoint,
            look=self._sketching(report) if self.live else None,
        )

    def _sketching(self, report: Report) -> Callable[[Training], None]:
        from napari_xcebra.attribution.maps.live import LiveMap

        live = LiveMap(self.recording, self.live, report.stop)

        def look(training: Training) -> None:
            if (found := live.look(training)) is not None:
                report(Sketched(found, training.step, training.steps))

        return look


@dataclass(frozen=True, eq=False)
class StabilityTask:
    """Train and attribute with several seeds; the result is a `Stability`, its fits in it."""

    doing: ClassVar[str] = "Training with several seeds"
    sparing: ClassVar[str] = FitTask.sparing

    recording: Recording
    factors: Factors | None = None
    settings: FitSettings = field(default_factory=FitSettings)
    seeds: tuple[int, ...] = (0, 1, 2)
    method: str = DEFAULT
    frames: FrameChoice = None
    aggregate: Literal["mean", "median", "max"] = "mean"

    def run(self, report: Report) -> Stability | None:
        """Train; if stopped, return the finished seeds, or None if there are none."""
        from napari_xcebra.attribution.stability import across_seeds

        return across_seeds(
            self.recording,
            self.factors,
            self.settings,
            self.seeds,
            self.method,
            frames=self.frames,
            aggregate=self.aggregate,
            on_progress=FrameCount(report, "step"),
            stop=report.stop,
        )


@dataclass(frozen=True, eq=False)
class DimensionTask:
    """Train with several numbers of latents, as `suggest_dimension` does.

    The result is a `Dimensions`; if stopped, of the numbers finished so far.

    Parameters
    ----------
    recording, factors, settings
        As of `FitTask`.
    time_latents : tuple of int
    factor_latents : tuple of int or None
        Of the single factor; None for as many as its variables have.
    seeds : int
        Fits at each number of latents.
    """

    doing: ClassVar[str] = "Training with several numbers of latents"
    sparing: ClassVar[str] = FitTask.sparing

    recording: Recording
    factors: Factors | None = None
    settings: FitSettings = field(default_factory=FitSettings)
    time_latents: tuple[int, ...] = (1, 2, 3, 4)
    factor_latents: tuple[int, ...] | None = None
    seeds: int = 3

    def run(self, report: Report) -> Dimensions | None:
        """Train and compare; None if it was stopped before two fits could be compared."""
        from napari_xcebra.learn.quality.consistency import suggest_dimension

        return suggest_dimension(
            self.recording,
            self.factors,
            self.settings,
            time_latents=self.time_latents,
            factor_latents=self.factor_latents,
            seeds=self.seeds,
            on_progress=FrameCount(report, "step"),
            stop=report.stop,
        )


@dataclass(frozen=True, eq=False)
class DeviceTask:
    """Name of the device that these settings select on this computer."""

    doing: ClassVar[str] = "Finding the device"
    sparing: ClassVar[str] = "set `device` to cpu"

    device: str = "auto"
    threads: int = 1

    def run(self, report: Report) -> str:
        """Look."""
        from napari_xcebra.learn.training.device import describe_device

        return describe_device(self.device, self.threads)


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
