"""Reports the progress of an attribution, and stops it when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from torch import Tensor

from napari_xcebra.errors import Stopped

OnProgress = Callable[[int, int], object] | None
Stop = Callable[[], bool] | None


class AttributionStopped(Stopped):
    """The caller asked to stop; scores over the first frames only would mislead."""


def watched(chunks: Iterator[Tensor], watch: Watch) -> Iterator[np.ndarray]:
    """Chunks as arrays; reports after each, and may stop between them."""
    for number, chunk in enumerate(chunks):
        if number == 0:
            watch.share = watch.left  # the rest of the work, after fitting
        yield chunk.cpu().numpy()
        watch.advance(len(chunk))


class Watch:
    """Counts the frames done, reports them, and raises when asked to stop.

    Parameters
    ----------
    frames : int
        Frames in all.
    share : float
        What a frame counts, if other work follows.
    """

    def __init__(
        self, frames: int, on_progress: OnProgress, stop: Stop, share: float = 1.0
    ) -> None:
        self._frames, self._done, self.share = frames, 0.0, share
        self._on_progress, self._stop = on_progress, stop

    @property
    def left(self) -> float:
        """Share of the work that is not done."""
        return 1 - self._done / max(self._frames, 1)

    def advance(self, frames: float) -> None:
        """More frames are done; work in several passes counts a share of each."""
        self._done += self.share * frames
        done = min(self._frames, round(self._done))
        if self._on_progress is not None:
            self._on_progress(done, self._frames)
        if self._stop is not None and done < self._frames and self._stop():
            raise AttributionStopped(f"Stopped after {done} of {self._frames} frames.")

    def finish(self) -> None:
        """Report that everything is done."""
        if self._on_progress is not None:
            self._on_progress(self._frames, self._frames)
