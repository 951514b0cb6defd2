"""Makes the movie of a simulated field, which is rendered when it is looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_xcebra.recording import Footprints, Movie
from napari_xcebra.recording.movies.rendered import RenderedFrames
from napari_xcebra.simulate.drawing import COUNTS, OFFSET, illumination

NOISE = 0.35
"""Standard deviation of a pixel at brightness 1, in its brightness."""


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
    noise = NOISE * float(np.sqrt(COUNTS))
    frames = RenderedFrames(traces, footprints, rest, gain.astype(np.float32), OFFSET, noise, seed)
    low, high = np.percentile(mean, [1, 99.5])
    contrast = float(low) * 0.7, float(high) * 1.5
    return Movie((frames,), Path("simulated movie"), rate=rate, contrast=contrast)
