"""Renders the movie of a simulated field, one frame at a time, when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from napari_xcebra.recording import Footprints, Movie
from napari_xcebra.recording.movies.frames import Frames
from napari_xcebra.simulate.drawing import COUNTS, OFFSET, illumination

NOISE = 0.35
"""Standard deviation of a pixel at brightness 1, in its brightness."""


@dataclass(frozen=True, eq=False)
class SimulatedFrames(Frames):
    """Cells that light up with their traces, over a resting field, with the noise of photons.

    A frame is the same whenever it is asked for. It shares the traces with its recording, so that
    it takes no memory of its own to speak of.

    Parameters
    ----------
    traces : (frames, rois) float32
        ΔF/F.
    rest : (height, width) float32
        The field at ΔF/F 0, in detector counts.
    cell, pixel : (pixels,) int
        ROI of each pixel of the footprints, and its place in the field, row after row.
    gain : (pixels,) float32
        Detector counts that ΔF/F 1 adds there.
    seed : int
    """

    traces: np.ndarray
    rest: np.ndarray
    cell: np.ndarray
    pixel: np.ndarray
    gain: np.ndarray
    seed: int = 0

    dtype = np.dtype(np.int16)

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Frames, height and width."""
        height, width = self.rest.shape
        return len(self.traces), height, width

    def read(self, number: int, rows: slice, columns: slice) -> np.ndarray:
        """Render the frame, and cut the part."""
        image = self.rest.copy()
        np.add.at(image.reshape(-1), self.pixel, self.gain * self.traces[number][self.cell])
        light = np.sqrt(np.maximum(image - OFFSET, 0))
        noise = np.random.default_rng([self.seed, number]).standard_normal(image.shape, np.float32)
        image += np.float32(NOISE * np.sqrt(COUNTS)) * light * noise
        return np.clip(image[rows, columns], 0, np.iinfo(np.int16).max).astype(np.int16)


def movie_of(
    traces: np.ndarray,
    footprints: Footprints,
    brightness: np.ndarray,
    mean: np.ndarray,
    rate: float,
    seed: int = 0,
) -> Movie:
    """Movie whose mean is the mean image, and whose cells follow the traces.

    Parameters
    ----------
    traces : (frames, rois) float32
        ΔF/F.
    footprints : Footprints
    brightness : (rois,) float
        Resting fluorescence.
    mean : (height, width) float32
        In detector counts.
    rate : float
        Frames per second.
    """
    pixel = np.ravel_multi_index(footprints.pixels, mean.shape)
    light = illumination(mean.shape).reshape(-1)[pixel]
    gain = COUNTS * footprints.weight * brightness[footprints.cell] * light
    rest = mean.astype(np.float32)
    np.add.at(rest.reshape(-1), pixel, -gain * traces.mean(axis=0)[footprints.cell])
    # the darkest vessels still scatter some light
    rest = np.maximum(rest, np.float32(OFFSET))
    frames = SimulatedFrames(traces, rest, footprints.cell, pixel, gain.astype(np.float32), seed)
    low, high = np.percentile(mean, [1, 99.5])
    contrast = float(low) * 0.7, float(high) * 1.5
    return Movie((frames,), Path("simulated movie"), rate=rate, contrast=contrast)
