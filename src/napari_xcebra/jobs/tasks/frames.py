"""What is known of every frame: scores over time, the embedding."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from napari_xcebra.attribution.method_notes import OVER_TIME
from napari_xcebra.jobs.tasks.pace import FrameCount
from napari_xcebra.jobs.tasks.task import Report, none_if_stopped
from napari_xcebra.recording import InputError, Recording

if TYPE_CHECKING:
    from napari_xcebra.attribution.stream import FrameChoice
    from napari_xcebra.learn.result import Fit


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
        from napari_xcebra.attribution.by_frame import scores_by_frame
        from napari_xcebra.attribution.kept_scores import kept_scores, key_of
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

    @none_if_stopped
    def run(self, report: Report) -> np.ndarray:
        """Embed; None if stopped."""
        from napari_xcebra.attribution.by_frame import embedding_by_frame

        return embedding_by_frame(
            self.fit,
            self.recording,
            self.frames,
            on_progress=FrameCount(report),
            stop=report.stop,
        )
