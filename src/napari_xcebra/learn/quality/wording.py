"""Puts a verdict in words, so that the numbers in a sentence agree with what it says."""

from __future__ import annotations

import numpy as np

from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.quality.verdict import (
    BEHIND,
    CLEAR_SHARE,
    LARGEST_P,
    Goodness,
    decoded_of,
    nats_of,
    share_of,
)
from napari_xcebra.text import listed

NEARLY = 0.05
"""Largest p of a factor at chance that a longer recording may well show."""


def measured(of: Goodness) -> str:
    """All that was measured, whatever the verdict, in a line."""
    nats = "" if np.isnan(of.goodness) else f"{nats_of(of)} nats on held-out data"
    share = "" if np.isnan(of.share) else f"{share_of(of)} of what is possible"
    p = "" if np.isnan(of.p) else f"p = {of.p:.2g}{_trials(of)}"
    return "; ".join(filter(None, [nats, share, of.decoding, p]))


def in_short(of: Goodness) -> str:
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


def found(of: Goodness) -> str:
    """Whether a factor is in the cells, with the evidence that says so."""
    if of.factor == TIME:
        latents = "The time latents find" if of.above_chance else "The time latents find no"
        return f"{latents} structure that lasts beyond chance ({_nats(of)})."
    if of.not_tested:
        return f"{of.factor} was not tested against chance ({measured(of)}). {of.untested}"
    if not of.above_chance:
        why = _against(of) or _nats(of)
        return f"{of.factor} is at chance in these cells ({why}): its map means nothing."
    strength = "clearly" if of.is_clear else "weakly"
    return f"{of.factor} is {strength} in these cells ({_evidence(of)})."


def learned(of: Goodness) -> str:
    """What the encoder learned of a factor that is in the cells, and what it adds."""
    if of.factor == TIME or not (of.above_chance or of.not_tested):
        return ""
    nats = f"{nats_of(of)} nats above chance on held-out data"
    if not of.learned:
        nats = "too few steps" if np.isnan(of.goodness) else f"{nats_of(of)} nats"
        return f"The encoder did not learn it ({nats}): its map is from the variables alone."
    # what is clear by its decoding is not called a small part of what is possible
    told = of.allowed > 0 and not (of.is_clear and of.share < CLEAR_SHARE)
    share = f", {share_of(of)} of what is possible" if told else ""
    beyond = " It adds nothing to the regression." if of.encoder_share == 0 else ""
    return f"The encoder learned it ({nats}{share}).{beyond}"


def doubts(of: Goodness) -> list[str]:
    """What a reader should know beside it, a sentence each."""
    said = []
    if of.confounded and of.above_chance:
        said.append(
            f"It goes with {listed(of.confounded)} in nearly every trial: this test cannot "
            "tell them apart."
        )
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


def _evidence(of: Goodness) -> str:
    """What speaks for a factor; what speaks against it is among the doubts."""
    decoded = of.decoding if max(of.r2, np.nan_to_num(of.ridge_r2)) > 0 else ""
    p = f"p = {of.p:.2g}{_trials(of)}" if of.p <= LARGEST_P else ""
    return "; ".join(filter(None, [decoded, p])) or _nats(of)


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
        return f"{nats_of(of)} nats above chance on held-out data"
    where = "where chance is 0" if of.goodness <= 0 else "too close to 0, which is chance"
    return f"{nats_of(of)} nats on held-out data, {where}"


def _trials(of: Goodness) -> str:
    """What trials p comes from, in a few words; empty for labels shifted in time."""
    if of.null == "turned":
        return ", trials shifted"
    if of.null != "permuted":
        return ""
    return f", trials permuted{f' within {listed(of.within)}' if of.within else ''}"
