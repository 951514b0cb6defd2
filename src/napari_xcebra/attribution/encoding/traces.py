"""Reads traces as an encoding predicts them: smoothed as in training, and standardised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napari_xcebra.attribution.stream import Stream, stretch_of
from napari_xcebra.learn.data.inputs import CLIP
from napari_xcebra.learn.data.smoothing import gaussian_kernel, radius_of, smoothed
from napari_xcebra.standardise import changes, mean_and_spread

MOMENT_FRAMES = 8192
"""Frames from which mean, spread and noise of a cell are estimated."""


@dataclass(frozen=True)
class Traces:
    """How the traces of the cells in use are read.

    Parameters
    ----------
    stream : Stream
    mean, spread : (cells,) float32
        Of the smoothed traces.
    explainable : (cells,) float64
        Share of their variance that is not frame-to-frame noise.
    """

    stream: Stream
    mean: np.ndarray
    spread: np.ndarray
    explainable: np.ndarray

    @classmethod
    def of(cls, stream: Stream) -> Traces:
        """Mean, spread and noise, from evenly spaced stretches of the frames."""
        kernel = gaussian_kernel(stream.fit.inputs.smoothing)
        pieces = np.array_split(stream.frames, max(1, len(stream.frames) // 256))
        few = max(1, MOMENT_FRAMES // 256)
        chosen = [pieces[i] for i in np.unique(np.linspace(0, len(pieces) - 1, few).astype(int))]
        shown = np.concatenate([_read(stream, piece, kernel) for piece in chosen])
        raw = [_read(stream, piece, gaussian_kernel(0.0)) for piece in chosen]
        mean, spread = (each[0] for each in mean_and_spread(shown))
        # constant traces become exactly 0, which rounding by some processors would not give
        spread = np.where(changes(mean, spread), spread, np.float32(np.inf))
        centre = np.concatenate(raw).mean(0)

        def product(lag: int) -> np.ndarray:
            total = sum(((p - centre)[lag:] * (p - centre)[: len(p) - lag]).sum(0) for p in raw)
            return np.asarray(total) / sum(max(len(p) - lag, 1) for p in raw)

        # noise is the variance above the line through the autocovariance at lags 1 and 2
        noise = np.maximum(product(0) - np.maximum(2 * product(1) - product(2), 0), 0)
        share = noise * np.square(kernel).sum() / np.square(spread)
        return cls(stream, mean, spread, np.clip(1 - share, 0.01, 1.0))

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Smoothed and standardised: (frames, cells) float32."""
        kernel = gaussian_kernel(self.stream.fit.inputs.smoothing)
        traces = (_read(self.stream, frames, kernel) - self.mean) / self.spread
        return np.clip(traces, -CLIP, CLIP, out=traces)


def _read(stream: Stream, frames: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Traces of the cells in use at ascending frames, filtered: (frames, cells) float32."""
    recording, radius = stream.recording, radius_of(kernel)
    first = max(0, int(frames[0]) - radius)
    last = min(recording.n_frames, int(frames[-1]) + radius + 1)
    stretch = stretch_of(recording, first, last)
    columns = stream.fit.inputs.columns(recording)
    found = np.zeros((last - first, len(columns)), np.float32)
    for here, traces in smoothed(stretch, columns, kernel):
        found[here] = traces
    at: np.ndarray = found[frames - first]
    return at
