"""Whether a recording is long enough for its maps to be trusted: a rule of thumb.

It is measured where it failed (benchmarks/RESULTS.md, imaged field): with the frames of a few
minutes the encoder fits noise in every cell, and J⁺ ranks the cells hardly better than chance
while the held-out verdict is right.
"""

from __future__ import annotations

import numpy as np

TIMES, LEAST_STEPS = 20, 150
"""Times that training goes over its frames, and steps that it takes at least."""

ENOUGH = 800
"""Independent samples; with half as many, maps of simulated fields were half wrong."""


def independent_samples(frames: int, smoothing: float) -> int:
    """How many frames without memory smoothed ones are worth.

    White noise that is smoothed by a Gaussian of σ frames forgets itself over 2√π σ frames.

    Parameters
    ----------
    frames : int
    smoothing : float
        σ of the Gaussian, in frames.

    Examples
    --------
    >>> independent_samples(2000, 2.5), independent_samples(2000, 0.0)
    (225, 2000)
    """
    return int(frames / max(1.0, 2 * np.sqrt(np.pi) * smoothing))


def steps_for(asked: int, frames: int, batch: int) -> int:
    """Steps to do: those asked for, or fewer where they would only go over the same frames again.

    Measured (benchmarks/RESULTS.md, "Length of training"): held-out decoding is best after some
    twenty times; of a hundred times a fly's heading loses 0.03 of R².

    Parameters
    ----------
    frames : int
        Training frames.
    batch : int
        Frames a step.

    Examples
    --------
    >>> steps_for(400, 2000, 512), steps_for(400, 100_000, 512), steps_for(50, 2000, 512)
    (150, 400, 50)
    """
    return min(asked, max(LEAST_STEPS, round(TIMES * frames / batch)))


def note_on_length(frames: int, smoothing: float) -> str | None:
    """Warning for a short recording, in a sentence; None if it is long enough."""
    samples = independent_samples(frames, smoothing)
    if samples >= ENOUGH:
        return None
    return (
        f"This recording is short (its training frames are worth about {samples} independent "
        f"samples): with fewer than {ENOUGH:,}, maps by gradients of the encoder named "
        "wrong cells in simulated recordings even where the verdict was right: look at conditional "
        "encoding, and at the interval of each score."
    )
