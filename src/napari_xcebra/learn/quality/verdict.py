"""Judges how well a factor is found in the cells; imports no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from napari_xcebra.learn.data.factors import TIME

NAN = float("nan")

Null = Literal["shifted", "reordered", "permuted", "turned"]

LARGEST_P = 0.005
"""p up to which a factor counts as present; fitted tails are trusted to within a factor of four."""

CLEAR_SHARE, CLEAR_R2 = 0.25, 0.3
"""Share of the nats that a label allows, or of its variance, from which on it is clearly there."""

BEHIND = 0.05
"""R² by which a regression may be better before the verdict mentions it."""


@dataclass(frozen=True)
class Goodness:
    """Goodness of fit of one factor, on frames the encoder never saw.

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
        Whether the factor was found in the cells; False where that could not be tested.
    p : float
        Of the cells telling the labels that well by chance: three times the smallest p of three
        tests against other labels: decoding from the cells, decoding from the latents, and the
        strongest cell. NaN where it was not tested: for time, and for a variable of which the
        recording has too little.
    learned : bool
        Whether the encoder learned it: its goodness is above 0, and its goodness and decoding from
        its latents are above what other labels reach; without other labels, its goodness is above 0
        by more than three standard errors. Maps from the encoder mean nothing without.
    encoder_share : float
        Share of the encoder in its mean with a ridge regression; 1 where they were not averaged.
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
    null : {"shifted", "reordered", "permuted", "turned"}
        What the labels were compared with: themselves shifted in time, in stretches in another
        order, with the values of trials permuted, or with their sequence turned as a whole.
    within : tuple of str
        Factors within whose conditions trials were permuted.
    confounded : tuple of str
        Factors that go with it in so many trials that the test cannot tell them apart.
    untested : str
        Why it could not be tested, and what would be needed, in a sentence; empty if it was.
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
    null: Null = "shifted"
    within: tuple[str, ...] = ()
    confounded: tuple[str, ...] = ()
    learned: bool = True
    encoder_share: float = NAN
    untested: str = ""

    @property
    def overfits(self) -> bool:
        """Whether most of the goodness is peculiar to the training frames.

        Measured (benchmarks/RESULTS.md, "Overfitting"): below a quarter, maps of |J| fall short.
        """
        return self.training > 0.1 and self.goodness < self.training / 4

    @property
    def not_tested(self) -> bool:
        """Whether the recording has too little of the variable to test it."""
        return bool(self.untested)

    @property
    def share(self) -> float:
        """Share of what the label allows that is found; NaN where that is not known."""
        return self.goodness / self.allowed if self.allowed > 0 else NAN

    @property
    def is_clear(self) -> bool:
        """Whether it reaches a good part of what its label allows, or is decoded well."""
        if self.factor == TIME or np.isnan(self.allowed):
            return self.goodness > 0.5
        best = np.nanmax([self.r2, self.ridge_r2, -np.inf])
        return bool((self.learned and self.share >= CLEAR_SHARE) or best >= CLEAR_R2)

    @property
    def strength(self) -> str:
        """The result in a word or two: "clear", "weak", "not tested" or "at chance"."""
        if self.not_tested:
            return "not tested"
        if not self.above_chance:
            return "at chance"
        return "clear" if self.is_clear else "weak"

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        from napari_xcebra.learn.quality.wording import doubts, found, learned

        return " ".join(filter(None, [found(self), learned(self), *doubts(self)]))

    @property
    def decoding(self) -> str:
        """Decoding, beside that of a regression, in a few words."""
        if np.isnan(self.r2):
            return ""
        what, own, ridge = decoding_of(self)
        beside = "" if np.isnan(ridge) else f" (ridge regression {_brief(ridge)})"
        return f"{what} {_brief(own)}{beside}"

    @property
    def measured(self) -> str:
        """All that was measured, whatever the verdict, in a line."""
        from napari_xcebra.learn.quality.wording import measured

        return measured(self)

    @property
    def in_short(self) -> str:
        """The result and what decided it, in a few words."""
        from napari_xcebra.learn.quality.wording import in_short

        return in_short(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file; JSON has no NaN, so None stands for it."""
        return {
            n: None if isinstance(v, float) and np.isnan(v) else v for n, v in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Goodness:
        """Goodness from a file; fields that this version does not know are ignored."""
        known: dict[str, Any] = {
            about.name: NAN if (value := values[about.name]) is None else value
            for about in fields(cls)
        }
        return cls(**known | {n: tuple(known[n]) for n in ("within", "confounded")})


Tone = Literal["plain", "good", "warning"]

TONES: Mapping[str, Tone] = {
    "clear": "good",
    "weak": "good",
    "not tested": "plain",
    "at chance": "warning",
}
"""Tone of `Goodness.strength`: what could not be tested is neither good nor bad."""

FOUND = tuple(strength for strength, tone in TONES.items() if tone == "good")
"""Strengths of a factor that is in the cells."""

NOTHING = "–"


def tone_of_all(strengths: Iterable[str]) -> Tone:
    """Tone of several verdicts together: the most cautious one.

    >>> tone_of_all(["clear", "not tested"]), tone_of_all(["not tested", "at chance"])
    ('plain', 'warning')
    """
    tones = {TONES[strength] for strength in strengths}
    return next((tone for tone in ("warning", "plain") if tone in tones), "good")


def nats_of(goodness: Goodness) -> str:
    """Goodness with its standard error, if it has one."""
    each = (goodness.goodness, goodness.error)
    return " ± ".join(_brief(value) for value in each if not np.isnan(value)) or NOTHING


def share_of(goodness: Goodness) -> str:
    """Share of what the label allows, within 0 and 100 %."""
    return NOTHING if np.isnan(goodness.share) else f"{min(max(goodness.share, 0), 1):.0%}"


def encoder_of(goodness: Goodness) -> str:
    """Whether the encoder learned a factor, and its share beside the regression."""
    if goodness.factor == TIME or np.isnan(goodness.encoder_share):
        return NOTHING
    if not goodness.learned:
        return "not learned"
    share = goodness.encoder_share
    return "adds nothing" if share == 0 else f"{100 * share:.0f}%"


def decoded_of(goodness: Goodness) -> tuple[str, str]:
    """Decoding of a factor from its latents, and by a regression on the cells.

    The accuracy of a discrete factor, R² of others.
    """
    what, own, ridge = decoding_of(goodness)
    return (NOTHING if np.isnan(own) else f"{what} {_brief(own)}",
            NOTHING if np.isnan(ridge) else _brief(ridge))  # fmt: skip


def decoding_of(goodness: Goodness) -> tuple[str, float, float]:
    """Measure of decoding ("R²" or "accuracy"), and its values as of `decoded_of`."""
    if np.isnan(goodness.accuracy):
        return "R²", goodness.r2, goodness.ridge_r2
    return "accuracy", goodness.accuracy, goodness.ridge_accuracy


def _brief(value: float) -> str:
    """Two decimals, without a negative zero.

    >>> _brief(-0.001), _brief(-0.25)
    ('0.00', '-0.25')
    """
    if abs(value) >= 1e4:
        return f"{value:.1e}"
    return f"{round(value, 2) + 0:.2f}"
