"""From rates to the response of a calcium indicator: spikes, kinetics, saturation."""

from __future__ import annotations

import numpy as np
import scipy  # whose parts are imported when they are first used

RISE, DECAY = 0.07, 0.6
"""Time constants of the indicator, in s; those of GCaMP6f in a soma."""
BRIGHTEST, HALF, COOPERATIVITY = 4.0, 10.0, 1.4
"""ΔF/F of a saturated cell; calcium of how many spikes reaches half of it; Hill exponent."""


def draw_spikes(
    rng: np.random.Generator, rates: np.ndarray, frame_rate: float, mean_rate: float
) -> np.ndarray:
    """Poisson spikes of cells that differ in how much they fire.

    Parameters
    ----------
    rng : numpy.random.Generator
    rates : (frames, cells) float
        In any unit; a cell with negative ones is shifted so that its lowest is 0.
    frame_rate : float
        Frames per second.
    mean_rate : float
        Spikes per second, mean over time of a usual cell.

    Returns
    -------
    (frames, cells) float32 counts
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

    Parameters
    ----------
    rng : numpy.random.Generator
        Time constants differ between cells by about 15 %.
    spikes : (frames, cells) float
    frame_rate : float
        Frames per second.

    Returns
    -------
    (frames, cells) float32
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
