"""Scores factors by conditional encoding: the share of a cell's variance beyond all others.

All observed variables predict a cell together, in held-out blocks of time. The share of a factor is
the product of its part of the prediction with what all other parts leave of the trace, in variances
of the trace. It is computed twice: beside the other variables, and beside the unobserved state as
well, estimated from the time latents of the other cells. The score is the geometric mean: a cell
must follow the variable both times. If only the first is large, the state explains the cell as well
as the variable does, and no regression can tell the two apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from napari_xcebra.attribution.encoding.interactions import interactions
from napari_xcebra.attribution.encoding.model import (
    Encoding,
    JointModel,
    Models,
    make_encoding,
)
from napari_xcebra.attribution.encoding.ridge import HeldOut
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.quality.verdict import FOUND
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording.traces import half_fall
from napari_xcebra.text import counted

DRAWS, LEVELS = 400, (0.05, 0.95)
"""Resamples of blocks for an interval, and its ends."""
DIRECTED = 0.5
"""Share of a tuning that must rise or fall from end to end for it to have a sign."""
WORTH = 0.02
"""Share of variance from which a cell is mentioned in the notes."""
DOUBTED = 0.5
"""Share of the score beside the variables below which a cell may follow the state instead."""


@dataclass(frozen=True)
class Shares:
    """What the factors carry in each block.

    Parameters
    ----------
    observed, beside_state : (factors, blocks, cells) float64
        Beside the other variables, and beside the unobserved state as well.
    interaction : (factors, blocks, cells) float64
        By scaling the tuning to other factors.
    variance : (blocks, cells) float64
    sign : (factors, cells) float64
        1 or −1 where a cell rises or falls with a variable, 0 where it does neither, NaN for
        a variable without direction.
    """

    observed: np.ndarray
    beside_state: np.ndarray
    interaction: np.ndarray
    variance: np.ndarray
    sign: np.ndarray

    def scores(self, blocks: np.ndarray | None = None) -> np.ndarray:
        """Over all blocks, or resampled ones: (factors, cells)."""
        every = np.arange(self.observed.shape[1]) if blocks is None else blocks
        total = np.maximum(self.variance[every].sum(0), 1e-12)
        more = self.interaction[:, every].sum(1)
        return both(
            (self.observed[:, every].sum(1) + more) / total,
            (self.beside_state[:, every].sum(1) + more) / total,
        )

    def errors(self) -> np.ndarray:
        """Standard errors of the scores: (factors, cells)."""
        low, high = self.interval()
        # the interval from 5 to 95 % of a normal distribution in standard deviations
        return (high - low) / 3.29

    def doubted(self) -> np.ndarray:
        """Cells that may follow the unobserved state instead: (factors, cells) bool."""
        return self.beside_state.sum(1) < DOUBTED * self.observed.sum(1)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """5 and 95 % of the scores over resampled blocks: (factors, cells) each."""
        rng = np.random.default_rng(0)
        blocks = self.observed.shape[1]
        drawn = [self.scores(own) for own in rng.integers(blocks, size=(DRAWS, blocks))]
        low, high = np.quantile(np.stack(drawn).astype(np.float32), LEVELS, axis=0)
        return low, high


@dataclass(frozen=True)
class FactorScores:
    """Scores of whole factors.

    Parameters
    ----------
    scores : (factors, cells in use) float64
    notes : tuple of str
    details : dict of str to (factors, cells in use) float64
        More columns of the table.
    latents : (latents, cells in use) float64 or None
        Scores for single latents.
    """

    scores: np.ndarray
    notes: tuple[str, ...]
    details: dict[str, np.ndarray]
    latents: np.ndarray | None = None


def both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Geometric mean; the smaller where it is not above 0."""
    least = np.minimum(one, other)
    return np.where(least > 0, np.sqrt(np.maximum(one, 0) * np.maximum(other, 0)), least)


def conditional_encoding(stream: Stream, watch: Watch) -> FactorScores:
    """Held-out share of variance that each factor carries.

    Parameters
    ----------
    stream : Stream
    watch : Watch

    Returns
    -------
    FactorScores
        Scores in shares of variance; about 0 for a cell that does not carry the factor.
    """
    encoding = make_encoding(stream, watch)
    directed = [name for name, b in encoding.predictors.bases.items() if b.has_direction]
    found = shares(encoding, encoding.models(watch), watch, directed=directed)
    return _as_scores(encoding, found)


def shares(
    encoding: JointModel,
    models: Sequence[Models],
    watch: Watch,
    *,
    thorough: bool = True,
    directed: Collection[str] = (),
) -> Shares:
    """What every factor carries in every cell.

    Parameters
    ----------
    thorough : bool
        Whether to look for interactions.
    directed : collection of str
        Factors with which a cell can rise or fall.
    """
    parts, cells = encoding.stream.fit.parts, len(encoding.lags)
    size = len(parts), len(encoding.blocks), cells
    observed, beside, more = np.zeros(size), np.zeros(size), np.zeros(size)
    variance, sign = np.empty(size[1:]), np.full((len(parts), cells), np.nan)
    for cohort, (alone, with_state) in zip(encoding.cohorts, models, strict=True):
        variance[:, cohort.cells] = alone.variance
        for i, part in enumerate(parts):
            own = encoding.columns[part.name]
            beside[i][:, cohort.cells] = with_state.carried(own)
            model = with_state if part.name == TIME else alone
            observed[i][:, cohort.cells] = model.carried(own)
            if part.name in directed:
                sign[i, cohort.cells] = _sign(alone, own)
    if thorough:
        found = interactions(encoding, [model.observed for model in models], watch)
        for i, part in enumerate(parts):
            more[i] = found.get(part.name, 0.0)
    return Shares(observed, beside, more, variance, sign)


def _sign(model: HeldOut, own: np.ndarray) -> np.ndarray:
    """Whether the tuning rises or falls with the variable: (cells,)."""
    weights = model.weights[:, own].mean(0)
    spread = np.sqrt(sum(np.diag(at.xx)[own] for at in model.blocks))
    size = np.square(weights * spread[:, None])
    directed = size[0] > DIRECTED * np.maximum(size.sum(0), 1e-12)
    return np.where(directed, np.sign(weights[0]), 0.0)


def _as_scores(encoding: Encoding, found: Shares) -> FactorScores:
    scores = found.scores()
    total = np.maximum(found.variance.sum(0), 1e-12)
    low, high = found.interval()
    rate = encoding.stream.recording.rate
    behavior = np.array([part.name != TIME for part in encoding.stream.fit.parts])[:, None]
    present = np.array([in_cells(encoding.stream.fit, p.name) for p in encoding.stream.fit.parts])
    followed = behavior & (low > 0) & present[:, None]
    details = {
        "low": low,
        "high": high,
        "of_explainable": np.minimum(scores / encoding.traces.explainable, 1.0),
        "beside_variables": (found.observed + found.interaction).sum(1) / total,
        "beside_state": (found.beside_state + found.interaction).sum(1) / total,
        "interaction": np.where(behavior, found.interaction.sum(1) / total, np.nan),
        "lag": np.where(followed, -encoding.lags / rate, np.nan),
        "lag_error": np.where(followed, encoding.lag_errors / rate, np.nan),
        "sign": np.where(followed, found.sign, np.nan),
    }
    return FactorScores(scores, _notes(encoding, found, details), details)


def in_cells(fit: Fit, factor: str) -> bool:
    """Whether a factor was found: cells that follow one that was not are not spoken of."""
    goodness = fit.goodness.get(factor)
    return goodness is None or goodness.strength in FOUND


def _decay(encoding: Encoding) -> str:
    """What was found of the decay of the indicator, in words."""
    recording = encoding.stream.recording
    seconds = encoding.predictors.decay / recording.rate
    if seconds:
        return f"decay time of the indicator: {seconds:g} s"
    if recording.origin.signal == "events":
        return "the traces are events, in which the indicator does not linger"
    half = half_fall(recording.traces, recording.rate)
    fall = "" if half is None else f" (its transients fall to half in {half:.2g} s)"
    return (
        f"no decay of the indicator is assumed{fall}, as one does not predict held-out traces "
        "better"
    )


def _notes(encoding: Encoding, found: Shares, details: dict[str, np.ndarray]) -> tuple[str, ...]:
    latents = encoding.latents.shape[2]
    beside = f" and {counted(latents, 'time latent')}" if latents else ""
    notes = [
        f"Scores are shares of variance in {len(encoding.blocks)} held-out blocks, beside the "
        f"other factors{beside}; {_decay(encoding)}."
    ]
    for i, part in enumerate(encoding.stream.fit.parts):
        if not in_cells(encoding.stream.fit, part.name):
            continue
        clear = (details["low"][i] > 0) & (details["beside_variables"][i] > WORTH)
        doubted = int((clear & found.doubted()[i]).sum())
        if part.name != TIME and doubted:
            notes.append(
                f"In {doubted} of the {int(clear.sum())} cells that follow {part.name}, an "
                f"unobserved state explains at least half of it too: {part.name} and the state "
                "cannot be told apart there."
            )
        mixed = int((details["interaction"][i] > WORTH).sum())
        if mixed:
            notes.append(
                f"In {counted(mixed, 'cell')} with mixed selectivity, {part.name} scales the "
                "tuning to another factor (column interaction)."
            )
    return tuple(notes)
