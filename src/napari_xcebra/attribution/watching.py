"""Progress of an attribution, and a way to stop it."""

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
    """Chunks as arrays, with a report after each, and a way to stop between them."""
    for number, chunk in enumerate(chunks):
        if number == 0:
            watch.share = watch.left  # of what was fitted before
        yield chunk.cpu().numpy()
        watch.advance(len(chunk))


class Watch:
    """Counts frames done, tells it, and raises when it should stop.

    Parameters
    ----------
    frames : int
        Frames in all, as the caller knows them.
    share : float
        What a frame counts, for work that is followed by other work.
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
        """Some more are done; for work that takes several passes, a share of each."""
        self._done += self.share * frames
        done = min(self._frames, round(self._done))
        if self._on_progress is not None:
            self._on_progress(done, self._frames)
        if self._stop is not None and done < self._frames and self._stop():
            raise AttributionStopped(f"Stopped after {done} of {self._frames} frames.")

    def finish(self) -> None:
        """All is done."""
        if self._on_progress is not None:
            self._on_progress(self._frames, self._frames)
