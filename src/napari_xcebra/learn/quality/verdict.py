"""Judges how well a factor is found in the cells, and puts it in words; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.text import listed

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
        Factors that go with it in so many trials, or so closely, that a test cannot tell them
        apart.
    untested : str
        Why it could not be tested, and what would be needed, in a sentence; empty if it was.
    in_sample : bool
        Whether the encoder may have been trained on the frames that it was measured on: nats and
        decoding from its latents are then too high, and p comes from the cells alone.
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
    in_sample: bool = False

    @property
    def overfits(self) -> bool:
        """Whether most of the goodness is peculiar to the training frames.

        Measured (results/paper.md, "Overfitting"): below a quarter, maps of |J| fall short.
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
        if self.in_sample:
            return bool(self.ridge_r2 >= CLEAR_R2)
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
        return " ".join(filter(None, [_say_found(self), _say_learned(self), *_say_doubts(self)]))

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
        return _say_measured(self)

    @property
    def in_short(self) -> str:
        """The result and what decided it, in a few words."""
        return _say_in_short(self)

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
            if about.name in values or about.name != "in_sample"  # which earlier versions lack
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


NEARLY = 0.05
"""Largest p of a factor at chance that a longer recording may well show."""


def _say_measured(of: Goodness) -> str:
    """All that was measured, whatever the verdict, in a line."""
    nats = "" if np.isnan(of.goodness) else f"{nats_of(of)} nats {_where(of)}"
    share = "" if np.isnan(of.share) else f"{share_of(of)} of what is possible"
    p = "" if np.isnan(of.p) else f"p = {of.p:.2g}{_trials(of)}"
    return "; ".join(filter(None, [nats, share, of.decoding, p]))


def _say_in_short(of: Goodness) -> str:
    """The result and what decided it, in a few words."""
    words = [of.strength]
    if of.strength == "at chance" and of.p > LARGEST_P:
        words.append(f"p = {_missing(of.p)}, not ≤ {LARGEST_P:g}")
    elif of.strength == "not tested":
        words.append(
            "too few trials" if of.null in ("permuted", "turned") else "changes too slowly"
        )
    elif of.above_chance:
        decoded = "" if np.isnan(of.r2) or of.r2 <= 0 else decoded_of(of)[0]
        nats = f"{nats_of(of)} nats" if not decoded and of.goodness > 0 else ""
        p = f"p = {of.p:.2g}" if of.p <= LARGEST_P else ""
        words += filter(None, [decoded, nats, p, "" if of.learned else "not learned"])
    return " · ".join(words)


def _say_found(of: Goodness) -> str:
    """Whether a factor is in the cells, with the evidence that says so."""
    if of.factor == TIME:
        lasting = "Activity, shared or a cell's own," if of.above_chance else "No activity"
        return f"{lasting} lasts beyond chance."
    if of.not_tested:
        return f"{of.factor} was not tested against chance ({_say_measured(of)}). {of.untested}"
    if not of.above_chance:
        why = _against(of) or _nats(of)
        return f"{of.factor} is at chance in these cells ({why}): its map means nothing."
    if of.is_clear:
        return f"These cells encode {of.factor}: {_decoding_in_words(of) or _evidence(of)}."
    return f"These cells weakly encode {of.factor}: {_evidence(of)}."


def _say_learned(of: Goodness) -> str:
    """What the encoder did not learn of a factor that is in the cells."""
    if of.factor == TIME or not (of.above_chance or of.not_tested):
        return ""
    if not of.learned:
        return "The encoder did not learn it: its map is from the variables alone."
    return "The encoder adds nothing to the ridge." if of.encoder_share == 0 else ""


def _say_doubts(of: Goodness) -> list[str]:
    """What a reader should know beside it, a sentence each."""
    said = []
    if of.confounded and of.above_chance:
        trials = of.null in ("permuted", "turned")
        how = "in nearly every trial: this test cannot" if trials else "so closely that no test can"
        said.append(f"It goes with {listed(of.confounded)} {how} tell them apart.")
    if of.strength == "at chance" and of.p <= NEARLY:
        said.append("It came close: a longer recording may show it.")
    if of.factor == TIME or not of.above_chance:
        return said
    if of.ridge_r2 - of.r2 > BEHIND:
        said.append(
            f"A ridge regression decodes it better (R² {of.ridge_r2:.2f} against "
            f"{of.r2:.2f}): trust the map from the variables more."
        )
    if of.overfits:
        said.append(
            f"The fit is much better on its training frames ({of.training:.2f} nats): it overfits."
        )
    return said


def _decoding_in_words(of: Goodness) -> str:
    """Decoding beside a ridge regression, and on what: empty if neither decodes it."""
    what, own, ridge = decoding_of(of)
    if np.isnan(own) or max(of.r2, np.nan_to_num(of.ridge_r2)) <= 0:
        return ""
    where = "on frames it may have been trained on" if of.in_sample else "held out"
    beside = "" if np.isnan(ridge) else f" (ridge {_brief(ridge)})"
    return f"{what} {_brief(own)} {where}{beside}"


def _evidence(of: Goodness) -> str:
    """What speaks for a factor; what speaks against it is among the doubts."""
    p = f"p = {of.p:.2g}{_trials(of)}" if of.p <= LARGEST_P else ""
    return ", ".join(filter(None, [_decoding_in_words(of), p])) or _nats(of)


def _against(of: Goodness) -> str:
    """The p that leaves a factor at chance, with the limit that it misses; else empty."""
    if not of.p > LARGEST_P:
        return ""
    return f"p = {_missing(of.p)}{_trials(of)}, and only p ≤ {LARGEST_P:g} counts as found"


def _missing(p: float) -> str:
    """A p above the limit, with so many digits that it does not seem to be at it."""
    return f"{p:.2g}" if float(f"{p:.2g}") > LARGEST_P else f"{p:.4g}"


def _nats(of: Goodness) -> str:
    """Nats of a factor that is judged by their standard error alone."""
    if of.above_chance:
        return f"{nats_of(of)} nats above chance {_where(of)}"
    where = "where chance is 0" if of.goodness <= 0 else "too close to 0, which is chance"
    return f"{nats_of(of)} nats {_where(of)}, {where}"


def _where(of: Goodness) -> str:
    """What nats were measured on."""
    return "on frames it may have been trained on" if of.in_sample else "on held-out data"


def _trials(of: Goodness) -> str:
    """What trials p comes from, in a few words; empty for labels shifted in time."""
    if of.null == "turned":
        return ", trials shifted"
    if of.null != "permuted":
        return ""
    return f", trials permuted{f' within {listed(of.within)}' if of.within else ''}"
