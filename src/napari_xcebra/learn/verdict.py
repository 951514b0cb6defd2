"""How well a factor is in the cells, as a value that a window can show without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from napari_xcebra.learn.parts import TIME

NAN = float("nan")

LARGEST_P = 0.005
"""p up to which a factor counts as present; fitted tails are trusted to within a factor of four."""

CLEAR_SHARE, CLEAR_R2 = 0.25, 0.3
"""Share of the nats that a label allows, or of its variance, from which on it is clearly there."""

BEHIND = 0.05
"""R² by which a regression may be better before that is said."""


@dataclass(frozen=True)
class Goodness:
    """How well one factor is found in the cells, on frames the encoder never saw.

    Parameters
    ----------
    factor : str
    infonce : float
        Held-out InfoNCE in nats, the mean over blocks, with the temperature that is best in the
        other blocks; NaN for a supervised fit.
    chance : float
        log N, what an encoder that knows nothing reaches.
    goodness : float
        chance − InfoNCE in nats; for a supervised fit, the nats that its R² is worth.
    error : float
        Standard error of `goodness` over blocks.
    training : float
        The same on training frames; far above `goodness` means overfitting.
    r2 : float
        Held-out R² of a ridge regression from the factor's latents, with lags where they help, to
        its variables (discrete values one-hot); NaN for time.
    above_chance : bool
        Whether a map of this factor means anything.
    p : float
        Of the labels being told so well by chance: twice the smaller p of two tests against labels
        shifted in time, that of decoding and that of the strongest cell. NaN where it was not
        tested: for time, and for a variable too slow for its recording.
    null_low, null_high : float
        5 and 95 % of the goodness that shifted labels reach, in nats.
    samples : float
        Independent samples of the variable in the recording.
    allowed : float
        Goodness that the label itself would reach, the most that is possible.
    accuracy : float
        Held-out share of right values, read as `r2`; NaN unless the factor is discrete.
    ridge_r2, ridge_accuracy : float
        The same of a ridge regression from the cells themselves: the yardstick.
    shifts : float
        Truly different shifts that the test has.
    scale : float
        Factor on the similarity that fits held-out frames; below 1 the encoder is overconfident.
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
    allowed: float = NAN
    accuracy: float = NAN
    ridge_r2: float = NAN
    ridge_accuracy: float = NAN
    shifts: float = NAN
    scale: float = NAN

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
    def share(self) -> float:
        """Share of what the label allows that is found; NaN where that is not known."""
        return self.goodness / self.allowed if self.allowed > 0 else NAN

    @property
    def is_clear(self) -> bool:
        """Whether it is found in a good part of what its label allows, or decoded well."""
        if self.factor == TIME or np.isnan(self.allowed):
            return self.goodness > 0.5
        return self.share >= CLEAR_SHARE or self.r2 >= CLEAR_R2

    @property
    def strength(self) -> str:
        """The result in a word or two: "clear", "weak", "not tested" or "at chance"."""
        if self.too_slow:
            return "not tested"
        if not self.above_chance:
            return "at chance"
        return "clear" if self.is_clear else "weak"

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        return " ".join([self._found(), *self._doubts()])

    @property
    def decoding(self) -> str:
        """How well it is decoded, and how well a regression does, in a few words."""
        if np.isnan(self.r2):
            return ""
        what, own, ridge = "R²", self.r2, self.ridge_r2
        if not np.isnan(self.accuracy):
            what, own, ridge = "accuracy", self.accuracy, self.ridge_accuracy
        beside = "" if np.isnan(ridge) else f" (ridge regression {_two(ridge)})"
        return f"{what} {_two(own)}{beside}"

    def _found(self) -> str:
        measured = f"{_two(self.goodness)} ± {self.error:.2f} nats above chance on held-out data"
        if np.isnan(self.error):
            measured = f"{_two(self.goodness)} nats above chance on held-out data"
        if self.allowed > 0:
            measured += f", {min(max(self.share, 0), 1):.0%} of what is possible"
        if self.decoding:
            measured += f"; {self.decoding}"
        if not np.isnan(self.p):
            measured += f"; p = {self.p:.2g}"
        if self.factor == TIME:
            found = "The time latents find" if self.above_chance else "The time latents find no"
            return f"{found} structure that lasts beyond chance ({measured})."
        if self.too_slow:
            may = "may be" if self.above_chance else "is not found"
            return f"{self.factor} {may} in these cells ({measured})."
        if not self.above_chance:
            return f"{self.factor} is at chance in these cells ({measured}): its map means nothing."
        strength = "clearly" if self.is_clear else "weakly"
        return f"{self.factor} is {strength} in these cells ({measured})."

    def _doubts(self) -> list[str]:
        doubts = []
        if self.too_slow:
            doubts.append(
                f"It changes so slowly, or so regularly, that the recording holds about "
                f"{max(self.samples, 1):.0f} independent samples of it: too few to test this "
                "against chance."
            )
        unlearned = self.goodness < 0.01 and self.r2 < BEHIND
        if self.factor != TIME and self.above_chance and unlearned and not self.too_slow:
            doubts.append(
                "Single cells follow it, but the encoder did not learn it: trust the test of each "
                "cell and the conditional encoding, not the maps of the encoder."
            )
        elif self.factor != TIME and self.above_chance and self.ridge_r2 - self.r2 > BEHIND:
            doubts.append(
                f"A ridge regression decodes it better (R² {self.ridge_r2:.2f} against "
                f"{self.r2:.2f}): compare its map with the conditional encoding."
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


def _two(value: float) -> str:
    """Two decimals, and no sign on what rounds to nothing.

    >>> _two(-0.001), _two(-0.25)
    ('0.00', '-0.25')
    """
    return f"{round(value, 2) + 0.0:.2f}"
