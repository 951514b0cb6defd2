"""What a trace is predicted from: the columns of every factor, as the indicator shows them.

Columns decay as the indicator does, are smoothed as the traces are, and may be taken some frames
earlier or later, for cells that lead or follow the behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.attribution.encoding.basis import Basis
from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.parts import TIME, Part
from napari_xcebra.learn.split import Frames
from napari_xcebra.recording import Recording

DRIFTS = 4
"""Slow cosines over the whole recording, for bleaching and the like."""
DRIFT = "drift"


@dataclass(frozen=True)
class Predictors:
    """Columns of all behaviour factors and of slow drift.

    Parameters
    ----------
    bases : mapping of str to Basis
    columns : mapping of str to (columns,) int64
        Which columns stand for which factor; those of "drift" come first.
    run : (frames,) int64
        Stretch of frames without a gap that a frame belongs to; the indicator forgets between.
    smoothing : float
        Standard deviation of the Gaussian that the traces were smoothed with, in frames.
    decay : float
        Of the indicator, in frames; 0 for none.
    """

    bases: Mapping[str, Basis]
    columns: Mapping[str, np.ndarray]
    run: np.ndarray
    smoothing: float
    decay: float = 0.0

    @classmethod
    def of(cls, recording: Recording, parts: Sequence[Part], smoothing: float) -> Predictors:
        """Predictors for the behaviour factors among these parts, with no indicator yet."""
        bases = {
            part.name: Basis.of(Labels.of(recording, part.variables, part.name))
            for part in parts
            if part.name != TIME
        }
        columns, stop = {DRIFT: np.arange(DRIFTS)}, DRIFTS
        for name, basis in bases.items():
            columns[name] = np.arange(stop, stop + basis.width)
            stop += basis.width
        usable = ~np.asarray(recording.excluded)
        run = Frames.within(usable, recording.segment, 1).run
        return cls(bases, columns, run, smoothing)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(len(own) for own in self.columns.values())

    @property
    def known(self) -> np.ndarray:
        """(frames,) bool, where the labels of all factors are known."""
        known = [basis.labels.known for basis in self.bases.values()]
        return np.logical_and.reduce(known) if known else np.ones(len(self.run), bool)

    def rows(self, frames: np.ndarray, lag: int = 0) -> np.ndarray:
        """Columns at ascending frames that lie near each other: (frames, columns) float32.

        Parameters
        ----------
        lag : int
            Frames by which the behaviour comes later than the trace.
        """
        phase = np.pi * (frames + 0.5) / len(self.run)
        drift = np.cos(phase[:, None] * np.arange(1, DRIFTS + 1))
        observed = [self.shown(basis.rows, frames, lag) for basis in self.bases.values()]
        return np.hstack([drift, *observed]).astype(np.float32)

    def shown(
        self, columns: Callable[[np.ndarray], np.ndarray], frames: np.ndarray, lag: int = 0
    ) -> np.ndarray:
        """Columns as the indicator shows them.

        Parameters
        ----------
        columns : callable
            Columns at any frames, (frames, columns).
        frames : (n,) int64
            Ascending, near each other.
        """
        reach = int(np.ceil(4 * self.smoothing))
        before = int(np.ceil(5 * self.decay)) + reach + max(0, -lag)
        first = max(0, int(frames[0]) - before)
        stop = min(len(self.run), int(frames[-1]) + reach + max(0, lag) + 1)
        stretch = np.arange(first, stop)
        shown = self._filtered(columns(stretch), self.run[stretch])
        taken = np.clip(frames + lag, first, stop - 1)
        # a run that ends goes on as it ended
        taken = np.where(self.run[taken] == self.run[frames], taken, frames)
        at: np.ndarray = shown[taken - first]
        return at

    def _filtered(self, columns: np.ndarray, run: np.ndarray) -> np.ndarray:
        """Columns as an indicator shows them that starts each run in balance, smoothed."""
        keep = np.exp(-1 / self.decay) if self.decay > 0 else 0.0
        shown = np.empty_like(columns)
        edges = np.r_[0, np.flatnonzero(np.diff(run)) + 1, len(run)]
        for start, stop in pairwise(edges):
            x = columns[start:stop]
            if keep:
                x = scipy.signal.lfilter([1 - keep], [1, -keep], x, axis=0, zi=keep * x[:1])[0]
            if self.smoothing > 0:
                x = scipy.ndimage.gaussian_filter1d(x, self.smoothing, axis=0, mode="nearest")
            shown[start:stop] = x
        return shown
