"""Inputs made of the traces as they are asked for, where no copy of them fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.learn.smoothing import radius_of, smoothed_within, spans
from napari_xcebra.recording import Recording
from napari_xcebra.traces import read_block

if TYPE_CHECKING:
    from napari_xcebra.learn.inputs import Inputs


class ReadInputs:
    """What stands for (frames, cells in use) float32 inputs: indexed by frames, it makes them.

    Parameters
    ----------
    recording : Recording
        Whose traces are read quickly frame by frame.
    inputs : Inputs
    """

    def __init__(self, recording: Recording, inputs: Inputs) -> None:
        self.traces, self.inputs = recording.traces, inputs
        self._columns = inputs.columns(recording)
        self._extent = slice(int(self._columns.min()), int(self._columns.max()) + 1)
        self._own = self._columns - self._extent.start
        self._all = np.array_equal(self._columns, np.arange(self._extent.start, self._extent.stop))
        self._spans = list(spans(recording))
        self._starts = np.array([span.start for span in self._spans])

    @property
    def shape(self) -> tuple[int, int]:
        """Frames, and cells in use."""
        return self.traces.shape[0], len(self._columns)

    def __getitem__(self, frames: np.ndarray) -> np.ndarray:
        """As `Inputs.of` finds them at these frames, in any order: (n, cells in use) float32."""
        order = np.argsort(frames)
        ascending = frames[order]
        number = np.searchsorted(self._starts, ascending, side="right") - 1
        # frames that are smoothed over the same others are read together
        apart = np.diff(ascending) > 2 * radius_of(self.inputs.kernel) + 1
        edges = np.flatnonzero(apart | (np.diff(number) > 0)) + 1
        found = np.empty((len(frames), len(self._columns)), np.float32)
        for some in np.split(np.arange(len(frames)), edges) if len(frames) else []:
            first, last = int(ascending[some[0]]), int(ascending[some[-1]])
            stretch = smoothed_within(
                self._spans[number[some[0]]],
                slice(first, last + 1),
                self._read,
                self.inputs.kernel,
            )
            found[order[some]] = stretch[ascending[some] - first]
        self.inputs.standardise(found)
        return found

    def _read(self, frames: slice) -> np.ndarray:
        """(frames, cells in use) float32."""
        traces = read_block(self.traces, frames, self._extent)
        if not np.isfinite(traces.sum()):
            self.traces[frames, self._columns]  # says where
        return traces if self._all else np.take(traces, self._own, axis=1)
