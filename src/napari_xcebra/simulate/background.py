"""Background images of a simulated field of view: what the eye expects of two-photon imaging."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter
from skimage.draw import disk

from napari_xcebra.recording import Footprints

COUNTS, OFFSET = 400.0, 150.0
"""Detector counts of usual resting fluorescence, and of darkness."""


def draw_vessels(rng: np.random.Generator, shape: tuple[int, int], number: int = 3) -> np.ndarray:
    """Darkness of blood vessels, (height, width) float from 0 to 1."""
    vessels = np.zeros(shape)
    size = max(shape)
    for radius in rng.uniform(0.006, 0.02, number) * size:
        place, heading = rng.uniform(0, shape), rng.uniform(0, 2 * np.pi)
        # From the middle both ways, so that every vessel crosses the field.
        for way in (0, np.pi):
            turns = np.cumsum(rng.normal(0, 0.07, 2 * size))
            angle = heading + way + turns
            path = place + np.cumsum(np.stack([np.sin(angle), np.cos(angle)], 1), axis=0)
            for centre in path[:: max(1, int(radius / 2))]:
                vessels[disk(centre, radius, shape=shape)] = 1
    return gaussian_filter(vessels, 1.2)


def mean_and_max(
    rng: np.random.Generator,
    footprints: Footprints,
    brightness: np.ndarray,
    response: np.ndarray,
    vessels: np.ndarray,
    neuropil_level: float,
) -> dict[str, np.ndarray]:
    """Mean image and maximum projection over time, drawn rather than rendered frame by frame.

    Parameters
    ----------
    rng : numpy.random.Generator
    footprints : Footprints
    brightness : (rois,) float
        Resting fluorescence.
    response : (frames, rois) float
        ΔF/F.
    vessels : (height, width) float
        Darkness, 0 to 1.
    neuropil_level : float

    Returns
    -------
    dict of "mean" and "max" to (height, width) float32, in detector counts
    """
    shape = footprints.shape
    tissue = 1.2 * neuropil_level * _texture(rng, shape) * (1 - 0.75 * vessels)
    at_mean = _painted(footprints, brightness * (1 + response.mean(axis=0)))
    at_max = _painted(footprints, brightness * (1 + 0.7 * response.max(axis=0)))
    light = 1 - 0.35 * _distance_from_middle(shape) ** 2
    mean, most = ((tissue + somata) * light for somata in (at_mean, at_max))
    mean, most = gaussian_filter(mean, 0.7), gaussian_filter(most, 0.7)
    mean += 0.02 * np.sqrt(mean) * rng.standard_normal(shape)
    # The maximum of many noisy frames lies a few deviations above what is there.
    most += np.sqrt(most) * rng.gumbel(0.35, 0.05, shape)
    return {
        "mean": (OFFSET + COUNTS * mean).astype(np.float32),
        "max": (OFFSET + COUNTS * most).astype(np.float32),
    }


def _painted(footprints: Footprints, value: np.ndarray) -> np.ndarray:
    image = np.zeros(footprints.shape)
    np.add.at(
        image, (footprints.row, footprints.column), footprints.weight * value[footprints.cell]
    )
    return image


def _texture(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Mottled brightness of neuropil around 1."""
    texture = np.ones(shape)
    for sigma, size in ((1.2, 0.12), (4, 0.12), (25, 0.15)):
        layer = gaussian_filter(rng.standard_normal(shape), sigma)
        texture += size * layer / layer.std()
    return np.maximum(texture, 0.1)


def _distance_from_middle(shape: tuple[int, ...]) -> np.ndarray:
    """0 in the middle of the field, 1 in its corners."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    return np.hypot(y, x) / np.sqrt(2)
