"""Turns rates into ΔF/F: spikes, indicator, neuropil, drift and noise, then extraction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are imported when they are first used
from scipy import sparse

from napari_xcebra.simulate.simulation import (
    check_number,
    check_positive,
    ornstein_uhlenbeck,
    smoothed,
)

RISE, DECAY = 0.07, 0.6
"""Time constants of the indicator, in s; those of GCaMP6f in a soma."""
BRIGHTEST, HALF, COOPERATIVITY = 4.0, 10.0, 1.4
"""ΔF/F of a saturated cell; calcium of how many spikes reaches half of it; Hill exponent."""
SUBTRACTED = 0.7
"""Share of the surrounding neuropil that extractors subtract from an ROI."""
CONTAMINATION = (0.55, 0.9)
"""Range of the true contamination; the difference is left in the traces."""
NEUROPIL_SWING = 0.06
"""Standard deviation of neuropil, in its mean."""
LEAK = 0.5
"""Share of the light of an overlapping neighbour that extractors leave in an ROI."""
BURST = 5
"""Spikes of the burst that signal-to-noise ratios refer to."""
BASELINE_WINDOW, BASELINE_PERCENTILE = 60.0, 8
"""Seconds over which, and the percentile at which, a baseline is taken."""


@dataclass(frozen=True)
class Optics:
    """Quality of the imaging.

    Parameters
    ----------
    mean_rate, snr, neuropil_level, drift : float
        As `field` takes them.
    """

    mean_rate: float = 2.0
    snr: float = 12.0
    neuropil_level: float = 0.6
    drift: float = 0.1

    def __post_init__(self) -> None:
        check_positive("mean_rate", self.mean_rate)
        check_positive("snr", self.snr)
        check_number("neuropil_level", self.neuropil_level, 0)
        check_number("drift", self.drift, 0, 0.9)

    def __str__(self) -> str:
        """Phrase for the notes of a recording."""
        return (
            f"{self.mean_rate:g} spikes per second, signal-to-noise {self.snr:g}, "
            f"neuropil {self.neuropil_level:g}, drift {self.drift:g}"
        )

    @property
    def photons(self) -> float:
        """Photons per frame at brightness 1, which give a typical cell its signal-to-noise."""
        resting = 1 + SUBTRACTED * self.neuropil_level
        return (self.snr / burst_response()) ** 2 * resting


def draw_spikes(
    rng: np.random.Generator, rates: np.ndarray, frame_rate: float, mean_rate: float
) -> np.ndarray:
    """Poisson spikes of cells that differ in how much they fire: (frames, cells) float32 counts.

    Parameters
    ----------
    rates : (frames, cells) float
        In any unit; a cell with negative ones is shifted so that its lowest is 0.
    frame_rate, mean_rate : float
        Frames per second, and spikes per second of a typical cell.
    """
    positive = rates - np.minimum(rates.min(axis=0), 0)
    mean = positive.mean(axis=0)
    wanted = mean_rate * rng.lognormal(-0.06, 0.35, rates.shape[1])
    scale = np.divide(wanted / frame_rate, mean, out=np.zeros_like(wanted), where=mean > 0)
    return rng.poisson(positive * scale).astype(np.float32)


def indicator_response(
    rng: np.random.Generator, spikes: np.ndarray, frame_rate: float
) -> np.ndarray:
    """ΔF/F of the indicator: double-exponential kernel, then saturation.

    Spikes and ΔF/F are (frames, cells); time constants differ between cells by about 15 %.
    """
    response = np.empty(spikes.shape, np.float32)
    decay = DECAY * rng.uniform(0.8, 1.25, (spikes.shape[1],))
    for cell in range(spikes.shape[1]):
        response[:, cell] = calcium(spikes[:, cell], RISE, decay[cell], frame_rate)
    return saturated(response)


def calcium(spikes: np.ndarray, rise: float, decay: float, frame_rate: float) -> np.ndarray:
    """Calcium of a spike train, 1 at the peak of a lone spike."""
    slow, fast = np.exp(-1 / (decay * frame_rate)), np.exp(-1 / (rise * frame_rate))
    time = np.arange(1, 2 + int(np.ceil(5 * rise * frame_rate)) + int(decay * frame_rate))
    peak = (slow**time - fast**time).max()
    # The difference of two exponentials, as one recursion.
    return scipy.signal.lfilter([(slow - fast) / peak], [1, -slow - fast, slow * fast], spikes)


def saturated(calcium: np.ndarray) -> np.ndarray:
    """Hill curve: ΔF/F of calcium given in units of a lone spike."""
    bound = np.maximum(calcium, 0) ** COOPERATIVITY
    return (BRIGHTEST * bound / (bound + HALF**COOPERATIVITY)).astype(np.float32)


def neuropil(
    rng: np.random.Generator,
    response: np.ndarray,
    centres: np.ndarray,
    shape: tuple[int, ...],
    frame_rate: float,
) -> np.ndarray:
    """Fluorescence of the tissue around each ROI, in its mean.

    Part of it is common (slow, and following the population), part differs from place to place.

    Parameters
    ----------
    response : (frames, cells) float
        ΔF/F of the cells.
    centres : (rois, 2) float
        Rows and columns of the ROIs.

    Returns
    -------
    (frames, rois) float32
    """
    frames = len(response)
    population = smoothed(response.mean(axis=1), frame_rate)
    population = (population - population.mean()) / max(population.std(), 1e-9)
    common = (population + ornstein_uhlenbeck(rng, frames, 20 * frame_rate)) / np.sqrt(2)
    sources = rng.uniform(0, shape, (8, 2))
    near = ((centres[None] - sources[:, None]) ** 2).sum(axis=2) / (0.25 * max(shape)) ** 2
    local = ornstein_uhlenbeck(rng, frames, 3 * frame_rate, len(sources)) @ np.exp(-near / 2)
    return (1 + NEUROPIL_SWING * (common[:, None] + local)).astype(np.float32)


def imaged(
    rng: np.random.Generator,
    response: np.ndarray,
    around: np.ndarray,
    brightness: np.ndarray,
    shared: sparse.csr_array,
    frame_rate: float,
    optics: Optics,
) -> tuple[np.ndarray, np.ndarray]:
    """Raw fluorescence of the ROIs and of the neuropil around them: two (frames, rois) float32.

    Parameters
    ----------
    response : (frames, rois) float32
        ΔF/F of what lies in the ROI.
    around : (frames, rois) float32
        Neuropil, in its mean.
    brightness : (rois,) float
        Resting fluorescence, typically 1.
    shared : (rois, rois) sparse
        See `drawing.shared_light`.
    """
    frames, rois = response.shape
    leaking = LEAK * shared + (1 - LEAK) * sparse.eye_array(rois)
    somatic = (leaking @ (brightness * (1 + response)).T).T
    contamination = rng.uniform(*CONTAMINATION, rois)
    outside = (optics.neuropil_level * around).astype(np.float32)
    light = (somatic + contamination * outside).astype(np.float32)
    fading = _fading(rng, frames, rois, frame_rate, optics.drift)
    light, outside = light * fading, outside * fading
    noise = np.sqrt(light / optics.photons) * rng.standard_normal(light.shape, np.float32)
    # A ring of neuropil has many more pixels than a soma, so it is less noisy.
    ring_noise = np.sqrt(outside / (10 * optics.photons)) * rng.standard_normal(
        light.shape, np.float32
    )
    return light + noise, outside + ring_noise


def burst_response() -> float:
    """ΔF/F at the peak of a burst of `BURST` spikes at once."""
    return float(saturated(np.array(float(BURST))))


def _fading(
    rng: np.random.Generator, frames: int, rois: int, frame_rate: float, drift: float
) -> np.ndarray:
    """Bleaching to a share 1 - drift, and slow movement in depth, (frames, rois)."""
    elapsed = np.linspace(0, 1, frames)
    bleached = (1 - np.exp(-2 * elapsed)) / (1 - np.exp(-2))
    depth = ornstein_uhlenbeck(rng, frames, 120 * frame_rate)[:, None]
    sensitivity = np.clip(rng.normal(0, 0.15 * drift, rois), -0.2, 0.2)
    moved = np.maximum(1 + depth * sensitivity, 0.1)
    return ((1 - drift * bleached)[:, None] * moved).astype(np.float32)


def delta_f(raw: np.ndarray, ring: np.ndarray, frame_rate: float) -> np.ndarray:
    """ΔF/F after subtraction of neuropil, over a running baseline: (frames, rois) float32.

    The median of the neuropil is added back, so that dim cells are not divided by almost nothing.

    Parameters
    ----------
    raw, ring : (frames, rois) float
        Fluorescence of the ROIs, and around them.
    """
    corrected = raw - SUBTRACTED * (ring - np.median(ring, axis=0))
    baseline = running_baseline(corrected, max(2, round(BASELINE_WINDOW * frame_rate)))
    floor = 0.05 * np.maximum(np.median(raw, axis=0), 1e-6)
    baseline = np.maximum(baseline, floor)
    return ((corrected - baseline) / baseline).astype(np.float32)


def running_baseline(traces: np.ndarray, window: int) -> np.ndarray:
    """Low percentile of successive windows, joined by straight lines; (frames, rois)."""
    blocks = np.array_split(np.arange(len(traces)), max(1, len(traces) // window))
    levels = [np.percentile(traces[block], BASELINE_PERCENTILE, axis=0) for block in blocks]
    if len(blocks) == 1:
        return np.broadcast_to(levels[0], traces.shape)
    middles = np.array([block.mean() for block in blocks])
    frames = np.clip(np.arange(len(traces)), middles[0], middles[-1])
    return scipy.interpolate.make_interp_spline(middles, np.array(levels), k=1)(frames)
