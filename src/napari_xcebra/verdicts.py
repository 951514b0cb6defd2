"""A verdict as tables, pictures and docks show it: its tone, and its numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from napari_xcebra.learn.verdict import Goodness

Tone = Literal["plain", "good", "warning"]

TONES: Mapping[str, Tone] = {
    "clear": "good",
    "weak": "good",
    "not tested": "plain",
    "at chance": "warning",
}
"""Of `Goodness.strength`: what could not be tested is neither good nor bad."""

FOUND = tuple(strength for strength, tone in TONES.items() if tone == "good")
"""Strengths of a factor that is in the cells."""

NOTHING = "–"


def tone_of_all(strengths: Iterable[str]) -> Tone:
    """Of several verdicts together: that of the one to beware of most.

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


def decoded_of(goodness: Goodness) -> tuple[str, str]:
    """How well its latents tell a factor, and how well a regression on the cells does.

    The accuracy of a discrete factor, R² of others.
    """
    what, own, ridge = decoding_of(goodness)
    return (NOTHING if np.isnan(own) else f"{what} {_brief(own)}",
            NOTHING if np.isnan(ridge) else _brief(ridge))  # fmt: skip


def decoding_of(goodness: Goodness) -> tuple[str, float, float]:
    """What is told of decoding ("R²" or "accuracy"), and its values as of `decoded_of`."""
    if np.isnan(goodness.accuracy):
        return "R²", goodness.r2, goodness.ridge_r2
    return "accuracy", goodness.accuracy, goodness.ridge_accuracy


def _brief(value: float) -> str:
    """Two decimals, without a negative zero."""
    if abs(value) >= 1e4:
        return f"{value:.1e}"
    return f"{round(value, 2) + 0:.2f}"
