"""Scores frame by frame, computed in stretches and kept as long as memory allows."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from napari_xcebra.recording import Recording

MOST_FRAMES = 2000
"""Frames of a stretch, where there are few cells."""
STRETCH_BYTES = 16 * 2**20
BUDGET = 256 * 2**20
"""Bytes of all stretches that are kept."""


def stretch_length(cells: int, *, slow: bool = False) -> int:
    """Frames that are computed at once, few enough to be there soon.

    >>> stretch_length(150), stretch_length(10_000), stretch_length(150, slow=True)
    (2000, 419, 100)
    """
    frames = min(MOST_FRAMES, STRETCH_BYTES // (4 * max(cells, 1)))
    return max(20, frames // 20 if slow else frames)


class ScoresOverTime:
    """Stands for (frames, cells) scores, averaged over a window; NaN where not yet computed.

    Parameters
    ----------
    recording : Recording
    length : int
        Frames of a stretch.
    window : int
        Frames that are averaged around each one, within its trial.
    budget : int
        Bytes of the stretches that are kept; those looked at longest ago go first.
    """

    def __init__(
        self, recording: Recording, length: int, window: int = 1, budget: int = BUDGET
    ) -> None:
        self.shape = (recording.n_frames, recording.n_cells)
        self.length = length
        self.window = window
        self._budget = budget
        self._edges = np.r_[np.asarray(recording.starts), recording.n_frames]
        self._stretches: OrderedDict[int, np.ndarray] = OrderedDict()
        self._usable: dict[int, np.ndarray] = {}

    def __getitem__(self, frame: int) -> np.ndarray:
        """(cells,) float32, averaged over the window around the frame."""
        number = int(frame) // self.length
        if number not in self._stretches:
            return np.full(self.shape[1], np.nan, np.float32)
        self._stretches.move_to_end(number)
        first, last = self._around(int(frame))
        total, count = np.zeros(self.shape[1], np.float32), 0
        for i in range(first // self.length, (last - 1) // self.length + 1):
            if i in self._stretches:
                inside = slice(max(first - i * self.length, 0), last - i * self.length)
                usable = self._usable[i][inside]
                rows = self._stretches[i][inside]
                total += (rows if usable.all() else rows[usable]).sum(0)
                count += int(usable.sum())
        return total / count if count else np.full(self.shape[1], np.nan, np.float32)

    def wanted(self, frame: int) -> slice | None:
        """Frames to compute next: around the slider first, then a little ahead."""
        first, last = self._around(frame)
        ahead = min(frame + self.length // 2, self.shape[0] - 1)
        for place in (frame, last - 1, first, ahead):
            if place // self.length not in self._stretches:
                start = place // self.length * self.length
                return slice(start, min(start + self.length, self.shape[0]))
        return None

    def put(self, frames: slice, scores: np.ndarray) -> None:
        """Keep the scores of a stretch that `wanted` asked for."""
        number = frames.start // self.length
        self._stretches[number] = scores
        # frames whose window leaves the trial have no score at all
        self._usable[number] = np.isfinite(scores).any(1)
        while self.nbytes > self._budget and len(self._stretches) > 2:
            gone, _ = self._stretches.popitem(last=False)
            del self._usable[gone]

    @property
    def nbytes(self) -> int:
        """Bytes of the stretches that are kept."""
        return sum(scores.nbytes for scores in self._stretches.values())

    def sample(self) -> np.ndarray:
        """Scores that are known so far, some thousands of them: (n,) float32."""
        thinned = [s[:: max(1, len(s) // 50)].ravel() for s in self._stretches.values()]
        scores = np.concatenate(thinned) if thinned else np.zeros(0, np.float32)
        return scores[np.isfinite(scores)]

    def _around(self, frame: int) -> tuple[int, int]:
        """First frame of the window, and the one after its last."""
        trial = int(np.searchsorted(self._edges, frame, side="right"))
        first = max(frame - (self.window - 1) // 2, int(self._edges[trial - 1]))
        return first, min(frame + self.window // 2 + 1, int(self._edges[trial]))
