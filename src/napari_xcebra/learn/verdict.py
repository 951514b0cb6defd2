"""How well a factor is in the cells, as a value that a window can show without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from napari_xcebra.learn.parts import TIME

NAN = float("nan")

LARGEST_P = 0.01
"""p up to which a factor counts as present: no shift of the labels, of 99, reaches as much."""


@dataclass(frozen=True)
class Goodness:
    """How well one factor is found in the cells, on frames the encoder never saw.

    Parameters
    ----------
    factor : str
    infonce : float
        Held-out InfoNCE in nats, the mean over blocks; NaN for a supervised fit.
    chance : float
        log N, what an encoder that knows nothing reaches.
    goodness : float
        chance − InfoNCE in nats; for a supervised fit, the nats that its R² is worth.
    error : float
        Standard error of `goodness` over blocks.
    training : float
        The same on training frames; far above `goodness` means overfitting.
    r2 : float
        Held-out R² of a linear decoder from the factor's latents to its variables; NaN for time.
    above_chance : bool
        Whether a map of this factor means anything.
    p : float
        Share of 99 shifts of the labels in time, and the labels themselves, that reach as much;
        NaN where it was not tested: for time, and for a variable too slow for its recording.
    null_low, null_high : float
        5 and 95 % of the goodness that shifted labels reach, in nats.
    samples : float
        Independent samples of the variable in the recording.
    """

    factor: str
    infonce: float
    chance: float
    goodness: float
    error: float
    training: float
    r2: float
    above_chance: bool
    p: float = NAN
    null_low: float = NAN
    null_high: float = NAN
    samples: float = NAN

    @property
    def overfits(self) -> bool:
        """Whether what is found is mostly peculiar to the training frames.

        Measured (benchmarks/RESULTS.md, "Overfitting"): below a quarter, maps of |J| fall short.
        """
        return self.training > 0.1 and self.goodness < self.training / 4

    @property
    def too_slow(self) -> bool:
        """Whether the variable changes too slowly for its recording to be tested."""
        return np.isnan(self.p) and not np.isnan(self.samples)

    @property
    def strength(self) -> str:
        """The result in a word or two: "clear", "weak" or "at chance"."""
        if not self.above_chance:
            return "at chance"
        return "clear" if self.goodness > 0.5 else "weak"

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        return " ".join([self._found(), *self._doubts()])

    def _found(self) -> str:
        measured = f"{self.goodness:.2f} ± {self.error:.2f} nats above chance on held-out data"
        if not np.isnan(self.p):
            measured += f", p = {self.p:.2g}"
        if self.factor == TIME:
            found = "The time latents find" if self.above_chance else "The time latents find no"
            return f"{found} structure that lasts beyond chance ({measured})."
        if not self.above_chance and self.p <= LARGEST_P:
            return (
                f"{self.factor} leaves a trace in these cells, but the fit of it does not hold on "
                f"held-out data ({measured}): its map means nothing."
            )
        if not self.above_chance:
            return f"{self.factor} is at chance in these cells ({measured}): its map means nothing."
        strength = "clearly" if self.goodness > 0.5 else "weakly"
        return f"{self.factor} is {strength} in these cells ({measured}, R² {self.r2:.2f})."

    def _doubts(self) -> list[str]:
        doubts = []
        if self.too_slow:
            doubts.append(
                f"It changes so slowly that the recording holds about {self.samples:.0f} "
                "independent samples of it: too few to test this against chance."
            )
        if self.factor != TIME and self.above_chance and self.overfits:
            doubts.append(
                f"The fit is much better on its training frames ({self.training:.2f} nats): it "
                "overfits."
            )
        return doubts

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; JSON has no NaN, so None stands for it."""
        return {
            n: None if isinstance(v, float) and np.isnan(v) else v for n, v in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Goodness:
        """Goodness from a file; what this version does not know is passed over.

        What an earlier version did not measure is NaN.
        """
        known: dict[str, Any] = {}
        for about in fields(cls):
            value = values.get(about.name) if about.default is NAN else values[about.name]
            known[about.name] = NAN if value is None else value
        return cls(**known)
