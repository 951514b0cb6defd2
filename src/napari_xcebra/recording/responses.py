"""Averages all cells around an event, on a scale on which cells can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from napari_xcebra.recording.around_events import bins_of, few_cells, means_of
from napari_xcebra.recording.moments import Moments
from napari_xcebra.recording.recording import Recording


@dataclass(frozen=True, eq=False)
class Responses:
    """Mean of every cell around the moments of each group.

    Sorted by its peak, even noise looks like a sequence of cells. So the mean is kept for every
    other moment by itself: cells are sorted by one half and drawn from the other.

    Parameters
    ----------
    moments : Moments
    seconds : (bins,) float64
        Middle of each bin, from the event on.
    halves : (2, groups, bins, cells) float32
        Mean over every other moment and over the rest, in standard deviations of the cell's trace
        from its mean; NaN where nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_xcebra.recording import Recording, Variable
    >>> cue = Variable("cue", np.arange(400) % 50 == 20, "event")
    >>> since = (np.arange(400) - 20) % 50
    >>> traces = np.stack([since == 7, since == 3], axis=1).astype(float)
    >>> recording = Recording(traces, 10.0, {"cue": cue})
    >>> found = responses(recording, Moments.of(recording, "cue"), (1, 2))
    >>> found.peak().tolist(), found.mean().shape
    ([0.7, 0.3], (1, 30, 2))
    """

    moments: Moments
    seconds: np.ndarray
    halves: np.ndarray

    def mean(self) -> np.ndarray:
        """Mean over all moments of each group: (groups, bins, cells)."""
        counts = [np.bincount(half.group[half.group >= 0], minlength=self.halves.shape[1])
                  for half in _halves(self.moments)]  # fmt: skip
        weights = np.array(counts)[:, :, None, None] * np.isfinite(self.halves)
        total, count = (np.nan_to_num(self.halves) * weights).sum(0), weights.sum(0)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        return mean.astype(np.float32)

    def peak(self) -> np.ndarray:
        """Seconds at which each cell is highest in the first half, in any group: (cells,)."""
        first = np.where(np.isnan(self.halves[0]), -np.inf, self.halves[0]).max(0)
        found: np.ndarray = self.seconds[first.argmax(0)]
        return np.where(np.isfinite(first).any(0), found, np.nan)


def responses(
    recording: Recording,
    moments: Moments,
    window: tuple[float, float],
    bin: float | None = None,
    stop: Callable[[], bool] | None = None,
) -> Responses:
    """Responses of all cells, a few cells at a time.

    Parameters
    ----------
    recording : Recording
    moments : Moments
    window : (float, float)
        Seconds before and after.
    bin : float, optional
        Seconds; one frame if not given.
    stop : callable, optional
        Says whether nobody waits for the result any more; the other cells then stay NaN.
    """
    seconds, offsets = bins_of(recording, window, bin)
    used = ~np.asarray(recording.excluded)
    shape = (2, len(moments.groups), len(seconds), recording.n_cells)
    found = np.full(shape, np.nan, np.float32)
    for cells, traces in few_cells(recording, moments, offsets):
        if stop is not None and stop():
            break
        own = traces[used] if not used.all() else traces
        middle, spread = own.mean(0, dtype=np.float64), own.std(0, dtype=np.float64)
        for number, half in enumerate(_halves(moments)):
            mean = means_of(traces, half, offsets, recording)
            # a cell that never changes stays at 0
            found[number, :, :, cells] = (mean - middle) / np.where(spread > 0, spread, 1)
    return Responses(moments, seconds, found)


def _halves(moments: Moments) -> tuple[Moments, Moments]:
    """Every other moment of each group, beginning with the first, and the rest."""
    odd = np.zeros(len(moments.group), bool)
    for group in range(len(moments.groups)):
        odd[np.flatnonzero(moments.group == group)[1::2]] = True
    first, rest = (np.where(left_out, -1, moments.group) for left_out in (odd, ~odd))
    return replace(moments, group=first), replace(moments, group=rest)
