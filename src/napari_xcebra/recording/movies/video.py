"""Holds the video of the animal: its file, and when each of its frames was taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

STANDS = 0.5
"""Seconds that a frame stands for at most, unless they are farther apart throughout."""


@dataclass(frozen=True, eq=False)
class Video:
    """A video on the clock of a recording; it stays on disk.

    Parameters
    ----------
    path : Path
    times : (frames,) float64
        Seconds on the clock of the recording, ascending.
    field : (height, width)
        In pixels.
    stamps : (frames,) float64
        Seconds at which the file shows them, by which a frame is found in it.
    """

    path: Path
    times: np.ndarray
    field: tuple[int, int]
    stamps: np.ndarray

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.times)

    @property
    def words(self) -> str:
        """Its file, size and span, for people."""
        height, width = self.field
        first, last = self.times[[0, -1]]
        return (
            f"{self.path.name}, {width} × {height}, {self.n_frames:,} frames, "
            f"{first:,.1f} to {last:,.1f} s"
        )

    def at(self, seconds: float) -> int | None:
        """The frame that was taken last at a time of the recording; None where there is none."""
        step = float(np.median(np.diff(self.times[:1000]))) if self.n_frames > 1 else 0.0
        place = int(np.searchsorted(self.times, seconds + 1e-6, side="right")) - 1
        if place < 0 or seconds - self.times[place] > max(2 * step, STANDS):
            return None
        return place
