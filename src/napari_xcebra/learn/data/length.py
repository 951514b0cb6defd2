"""Scales steps and hidden units to a recording, and warns if it is short.

What short means was measured (benchmarks/RESULTS.md, imaged field): with the frames of a few
minutes the encoder fits noise in every cell, and J⁺ ranks the cells hardly better than chance
while the held-out verdict is right.
"""

from __future__ import annotations

import numpy as np

TIMES, LEAST_STEPS = 20, 150
"""Passes over the training frames at most, and steps at least."""

SAMPLES_A_UNIT = 20
"""Independent samples for each hidden unit.

Imaged fields of 600 to 1,600 of them decode best with 32 to 80 units, the box model without noise
of 13,000 with 128 or more.
"""

ENOUGH = 800
"""Independent samples that suffice; with half as many, maps of simulated fields were half wrong."""


def independent_samples(frames: int, smoothing: float) -> int:
    """Number of independent frames that smoothed ones are worth.

    White noise smoothed by a Gaussian of σ frames (`smoothing`) stays correlated for 2√π σ frames.

    Examples
    --------
    >>> independent_samples(2000, 2.5), independent_samples(2000, 0.0)
    (225, 2000)
    """
    return int(frames / max(1.0, 2 * np.sqrt(np.pi) * smoothing))


def steps_for(asked: int, frames: int, batch: int) -> int:
    """Steps to do: those requested, or fewer where they would only repeat the same frames.

    Measured (benchmarks/RESULTS.md, "Length of training"): held-out decoding is best after about
    twenty passes; after a hundred, a fly's heading loses 0.03 of R².

    Examples
    --------
    >>> steps_for(400, 2000, 512), steps_for(400, 100_000, 512), steps_for(50, 2000, 512)
    (150, 400, 50)
    """
    return min(asked, max(LEAST_STEPS, round(TIMES * frames / batch)))


def hidden_units(requested: int, latents: int, samples: int) -> int:
    """Units of the first hidden layers: as requested, else as many as the recording can fill.

    One unit for twenty independent samples of the training frames, from 48 up to 30 per latent.
    """
    if requested:
        return requested
    most = min(max(30 * latents, 64), 256)
    return min(max(samples // SAMPLES_A_UNIT, 48, 4 * latents), most)


def widths_for(requested: int, latents: int, samples: int, window: int = 1) -> tuple[int, ...]:
    """Units of the hidden layers; the last of three has room for a pair a latent and some more."""
    hidden = hidden_units(requested, latents, samples)
    return (hidden, hidden, max(hidden // 3, 2 * latents + 4)) if window == 1 else (hidden,)


def note_on_length(frames: int, smoothing: float) -> str | None:
    """Warning for a short recording, in a sentence; None if it is long enough."""
    samples = independent_samples(frames, smoothing)
    if samples >= ENOUGH:
        return None
    return (
        f"This recording is short (its training frames amount to about {samples} independent "
        f"samples): with fewer than {ENOUGH:,}, gradient maps of the encoder picked the wrong "
        "cells in simulated recordings, even where the verdict was right; look at conditional "
        "encoding, and at the interval of each score."
    )
