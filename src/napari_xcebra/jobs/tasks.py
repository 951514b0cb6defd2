"""What the child can be asked to do: plain values that say how to run themselves.

They are made in the window, which does without torch; it is imported inside `run`, in the child.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from napari_xcebra.attribution.tested import SHIFTS, Significance
from napari_xcebra.jobs.events import NAN, Advanced, Unit
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution.result import Attribution
    from napari_xcebra.attribution.single_cell import CellStatistics
    from napari_xcebra.attribution.stability import Stability
    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn.parts import Factors
    from napari_xcebra.learn.result import Fit
    from napari_xcebra.learn.training import Progress
    from napari_xcebra.opening import Opening
    from napari_xcebra.runs import Run


class Report(Protocol):
    """How a running task tells where it stands, and learns that it should stop."""

    def __call__(self, advanced: Advanced) -> None:
        """Tell where it stands; may be called as often as one likes."""

    def stop(self) -> bool:
        """Whether it should stop."""


class Task(Protocol):
    """A value that can be pickled, and run elsewhere."""

    @property
    def doing(self) -> str:
        """What it does, to begin a sentence with."""

    @property
    def sparing(self) -> str:
        """What the user can change so that it needs less memory."""

    def run(self, report: Report) -> Any:
        """Do it; None if it was stopped and has nothing to show."""


@dataclass(frozen=True, eq=False)
class FitTask:
    """Train on a recording, as `learn.fit` does; the result is a `Fit`."""

    doing: ClassVar[str] = "Training"
    sparing: ClassVar[str] = (
        "lower `batch_size` or `window`, use fewer cells or frames, or set `device` to cpu"
    )

    recording: Recording
    factors: Factors | None = None
    settings: FitSettings = field(default_factory=FitSettings)
    checkpoint: Path | None = None

    def run(self, report: Report) -> Fit:
        """Train."""
        from napari_xcebra.learn.fitting import fit

        pace = Pace()
        contrastive = self.settings.mode != "supervised"
        chance = float(np.log(self.settings.negatives)) if contrastive else NAN

        def advance(at: Progress) -> None:
            left = pace.seconds_left(at.step, at.steps)
            report(
                Advanced(
                    at.step,
                    at.steps,
                    "step",
                    left,
                    at.phase,
                    at.loss,
                    chance,
                    at.penalty,
                    at.lambda_,
                )
            )

        return fit(
            self.recording,
            self.factors,
            self.settings,
            on_progress=advance,
            stop=report.stop,
            checkpoint=self.checkpoint,
        )


@dataclass(frozen=True, eq=False)
class AttributeTask:
    """Score every cell, as `attribution.attribute` does; the result is an `Attribution`."""

    doing: ClassVar[str] = "Attribution"
    sparing: ClassVar[str] = "ask for fewer frames, or set `device` to cpu"

    fit: Fit
    recording: Recording
    method: str = "inverted-neuron-gradient"
    frames: FrameChoice = None
    aggregate: Literal["mean", "median", "max"] = "mean"

    def run(self, report: Report) -> Attribution | None:
        """Attribute; None if stopped, since scores over the first frames would mislead."""
        from napari_xcebra.attribution import AttributionStopped, attribute

        try:
            return attribute(
                self.fit,
                self.recording,
                self.method,
                frames=self.frames,
                aggregate=self.aggregate,
                on_progress=FrameCount(report),
                stop=report.stop,
            )
        except AttributionStopped:
            return None


@dataclass(frozen=True, eq=False)
class SignificanceTask:
    """Test every cell, as `attribution.significance` does; the result is a `Significance`."""

    doing: ClassVar[str] = "The test"
    sparing: ClassVar[str] = "use fewer frames or cells"

    fit: Fit
    recording: Recording
    shifts: int = SHIFTS

    def run(self, report: Report) -> Significance | None:
        """Test; None if stopped."""
        from napari_xcebra.attribution import AttributionStopped, significance

        try:
            return significance(
                self.fit,
                self.recording,
                shifts=self.shifts,
                on_progress=FrameCount(report),
                stop=report.stop,
            )
        except AttributionStopped:
            return None


@dataclass(frozen=True, eq=False)
class OverTimeTask:
    """Score of every cell at every frame of a stretch: (frames asked for, cells) float32.

    Parameters
    ----------
    factor : str
    latent : int, optional
        One of the factor's latents; the mean over all of them if not given.
    frames, method, smooth
        As of `Attribution.over_time`.
    """

    doing: ClassVar[str] = "Attribution over time"
    sparing: ClassVar[str] = "ask for fewer frames, or set `device` to cpu"

    fit: Fit
    recording: Recording
    factor: str
    frames: FrameChoice = field(default_factory=lambda: slice(0, 500))
    method: str = "inverted-neuron-gradient"
    latent: int | None = None
    smooth: float = 0.0

    def run(self, report: Report) -> np.ndarray | None:
        """Attribute frame by frame; None if stopped."""
        from napari_xcebra.attribution import AttributionStopped
        from napari_xcebra.attribution.by_frame import scores_by_frame

        try:
            return scores_by_frame(
                self.fit,
                self.recording,
                self.latents,
                self.method,
                self.frames,
                smooth=self.smooth,
                on_progress=FrameCount(report),
                stop=report.stop,
            )
        except AttributionStopped:
            return None

    @property
    def latents(self) -> slice:
        """Dimensions of the embedding that are asked for."""
        part = self.fit.part(self.factor)
        if self.latent is None:
            return part.latents
        if not 0 <= self.latent < part.stop - part.start:
            raise InputError(
                f"Factor {self.factor!r} has no latent {self.latent}: 0 to "
                f"{part.stop - part.start - 1} is what it has."
            )
        return slice(part.start + self.latent, part.start + self.latent + 1)


@dataclass(frozen=True, eq=False)
class EmbedTask:
    """Embedding at some frames, all if not given: (frames asked for, latents) float32."""

    doing: ClassVar[str] = "Embedding"
    sparing: ClassVar[str] = "ask for fewer frames, or set `device` to cpu"

    fit: Fit
    recording: Recording
    frames: FrameChoice = None

    def run(self, report: Report) -> np.ndarray | None:
        """Embed; None if stopped."""
        from napari_xcebra.attribution import AttributionStopped
        from napari_xcebra.attribution.by_frame import embedding_by_frame

        try:
            return embedding_by_frame(
                self.fit,
                self.recording,
                self.frames,
                on_progress=FrameCount(report),
                stop=report.stop,
            )
        except AttributionStopped:
            return None


@dataclass(frozen=True, eq=False)
class DeviceTask:
    """Name, in words, of the device that these settings come to on this computer."""

    doing: ClassVar[str] = "Looking for the device"
    sparing: ClassVar[str] = "set `device` to cpu"

    device: str = "auto"
    threads: int = 1

    def run(self, report: Report) -> str:
        """Look."""
        from napari_xcebra.learn.device import describe_device

        return describe_device(self.device, self.threads)


@dataclass(frozen=True, eq=False)
class StatisticsTask:
    """What labs compute of single cells, as `attribution.single_cell.cell_statistics` does."""

    doing: ClassVar[str] = "Computing statistics"
    sparing: ClassVar[str] = "use fewer cells or frames"

    recording: Recording
    factors: Mapping[str, Sequence[str]]
    statistics: tuple[str, ...] | None = None
    cells: np.ndarray | None = None

    def run(self, report: Report) -> CellStatistics | None:
        """Compute them; None if stopped."""
        from napari_xcebra.attribution.single_cell import StatisticsStopped, cell_statistics

        try:
            return cell_statistics(
                self.recording,
                self.factors,
                self.statistics,
                cells=self.cells,
                on_progress=FrameCount(report, "cell"),
                stop=report.stop,
            )
        except StatisticsStopped:
            return None


@dataclass(frozen=True, eq=False)
class StabilityTask:
    """Train and attribute with several seeds; the result is a `Stability`, its fits in it."""

    doing: ClassVar[str] = "Training with several seeds"
    sparing: ClassVar[str] = FitTask.sparing

    recording: Recording
    factors: Factors | None = None
    settings: FitSettings = field(default_factory=FitSettings)
    seeds: tuple[int, ...] = (0, 1, 2)
    method: str = "inverted-neuron-gradient"

    def run(self, report: Report) -> Stability | None:
        """Train; if stopped, the seeds that are finished, or None if there are none."""
        from napari_xcebra.attribution.stability import across_seeds

        return across_seeds(
            self.recording,
            self.factors,
            self.settings,
            self.seeds,
            self.method,
            on_progress=FrameCount(report, "step"),
            stop=report.stop,
        )


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


class Pace:
    """How long the rest will take, if it goes on as from the first report to the present one."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def seconds_left(self, done: int, total: int) -> float:
        """Seconds; NaN at the first report."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, done
        began, before = self._first
        return (now - began) / (done - before) * (total - done) if done > before else NAN


class FrameCount:
    """Reports frames, cells or steps, done and in all."""

    def __init__(self, report: Report, unit: Unit = "frame") -> None:
        self._report, self._unit, self._pace = report, unit, Pace()

    def __call__(self, done: int, total: int) -> None:
        """To be called as `on_progress` is."""
        self._report(Advanced(done, total, self._unit, self._pace.seconds_left(done, total)))
