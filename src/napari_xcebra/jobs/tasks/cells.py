"""Tasks on cells: scores, tests, statistics, scores over time, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from napari_xcebra.attribution.methods import DEFAULT, OVER_TIME
from napari_xcebra.attribution.shift_test.result import SHIFTS, Significance
from napari_xcebra.errors import InputError
from napari_xcebra.jobs.tasks.task import FrameCount, Report, none_if_stopped
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
        """Attribute; None if stopped, since scores of the first frames alone would mislead."""
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
    """Compute single-cell statistics, as `attribution.single_cell.cell_statistics` does."""

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
    method: str = OVER_TIME
    latent: int | None = None
    smooth: float = 0.0

    @none_if_stopped
    def run(self, report: Report) -> np.ndarray:
        """Attribute frame by frame, unless it was done before; None if stopped."""
        from napari_xcebra.attribution.over_time import kept_scores, key_of, scores_by_frame
        from napari_xcebra.attribution.stream import resolve_frames

        asked = resolve_frames(self.recording, self.frames)
        frames = np.arange(self.recording.n_frames) if asked is None else np.unique(asked)
        of = (self.fit, self.recording, self.latents, self.method, frames)
        compute = partial(
            scores_by_frame,
            *of,
            smooth=self.smooth,
            on_progress=FrameCount(report),
            stop=report.stop,
        )
        return kept_scores().get(key_of(*of, self.smooth), compute)

    @property
    def latents(self) -> slice:
        """Dimensions of the embedding to score."""
        part = self.fit.part(self.factor)
        if self.latent is None:
            return part.latents
        if not 0 <= self.latent < part.stop - part.start:
            raise InputError(
                f"Factor {self.factor!r} has no latent {self.latent}: it has 0 to "
                f"{part.stop - part.start - 1}."
            )
        return slice(part.start + self.latent, part.start + self.latent + 1)


@dataclass(frozen=True, eq=False)
class AroundTask:
    """Scores of a factor by the time from an event, as `attribution.scores_around` gives them.

    The result is seconds, (bins,), scores, (bins, cells), and the bin of each frame, (frames,), −1
    outside: arrays, which the window reads without torch.
    """

    doing: ClassVar[str] = "Scoring around an event"
    sparing: ClassVar[str] = "use fewer cells or frames"

    fit: Fit
    recording: Recording
    event: str
    factor: str
    window: tuple[float, float] = (1.0, 2.0)
    bin: float = 0.25

    @none_if_stopped
    def run(self, report: Report) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score; None if stopped."""
        from napari_xcebra.attribution import scores_around

        found = scores_around(
            self.fit,
            self.recording,
            self.event,
            self.factor,
            window=self.window,
            bin=self.bin,
            on_progress=FrameCount(report),
            stop=report.stop,
        )
        return found.seconds, found.scores, found.place


@dataclass(frozen=True, eq=False)
class EmbedTask:
    """Embedding at some frames, all if not given: (frames asked for, latents) float32."""

    doing: ClassVar[str] = "Embedding"
    sparing: ClassVar[str] = "ask for fewer frames, or set `device` to cpu"

    fit: Fit
    recording: Recording
    frames: FrameChoice = None

    @none_if_stopped
    def run(self, report: Report) -> np.ndarray:
        """Embed; None if stopped."""
        from napari_xcebra.attribution.over_time import embedding_by_frame

        return embedding_by_frame(
            self.fit,
            self.recording,
            self.frames,
            on_progress=FrameCount(report),
            stop=report.stop,
        )


@dataclass(frozen=True, eq=False)
class RastermapTask:
    """Sort cells by rastermap; the result is their order, (cells,) int64."""

    doing: ClassVar[str] = "Sorting by rastermap"
    sparing: ClassVar[str] = "sort by correlation"

    activity: np.ndarray

    def run(self, report: Report) -> np.ndarray:
        """Sort (cells, blocks) traces."""
        from napari_xcebra.recording.overview.cell_order import by_rastermap

        return by_rastermap(self.activity)
