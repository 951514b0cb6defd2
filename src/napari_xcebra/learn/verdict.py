"""How well a factor is in the cells, as a value that a window can show without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from napari_xcebra.learn.parts import TIME


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
    """

    factor: str
    infonce: float
    chance: float
    goodness: float
    error: float
    training: float
    r2: float
    above_chance: bool

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        measured = f"{self.goodness:.2f} ± {self.error:.2f} nats above chance on held-out data"
        if self.factor == TIME:
            found = "The time latents find" if self.above_chance else "The time latents find no"
            return f"{found} structure that lasts beyond chance ({measured})."
        if not self.above_chance:
            return f"{self.factor} is at chance in these cells ({measured}): its map means nothing."
        strength = "clearly" if self.goodness > 0.5 else "weakly"
        sentence = f"{self.factor} is {strength} in these cells ({measured}, R² {self.r2:.2f})."
        if self.training - self.goodness > max(0.5, self.goodness):
            sentence += " The fit is much better on its training frames: it overfits."
        return sentence

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; JSON has no NaN, so None stands for it."""
        return {
            n: None if isinstance(v, float) and np.isnan(v) else v for n, v in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Goodness:
        """Goodness from a file; what this version does not know is passed over."""
        known: dict[str, Any] = {}
        for about in fields(cls):
            value = values[about.name]
            known[about.name] = float("nan") if value is None else value
        return cls(**known)
