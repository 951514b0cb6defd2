"""Compares hypotheses on which variables, alone or together, are in the cells.

As in Schneider et al. 2023 (CEBRA, hypothesis-driven analysis): an encoder is trained on every
combination of variables, with several seeds, and beside it on the same labels shuffled. A variable
that belongs to the cells adds nats to those without it, and its embeddings agree between seeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.batch.running import shifted
from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.learn.data.factors import Factor, Factors, as_factors
from napari_xcebra.learn.quality.consistency import FRAMES, pairwise_consistency
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.spreadsheets import write_csv
from napari_xcebra.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.learn.result import Fit

MOST = 31
"""Combinations that are tried without being asked for by name: those of five variables."""
EDGE = 0.1
"""Share of the recording, at either end, by which labels are not shifted: they would still fit."""


@dataclass(frozen=True)
class Hypothesis:
    """What encoders trained on one combination of variables learned.

    Parameters
    ----------
    factors : tuple of str
        Trained together, as one factor.
    goodness, r2 : tuple of float
        Held-out nats above chance, and R² of decoding, of each seed.
    shuffled_goodness, shuffled_r2 : tuple of float
        The same with shuffled labels.
    consistency : float
        R² between the embeddings of two seeds, the mean over pairs; NaN with one seed.
    p, strength : float, str
        Whether the labels are in the cells, as `fit` tests it, and the verdict in a word or two.
    """

    factors: tuple[str, ...]
    goodness: tuple[float, ...]
    r2: tuple[float, ...]
    shuffled_goodness: tuple[float, ...]
    shuffled_r2: tuple[float, ...]
    consistency: float
    p: float
    strength: str

    @property
    def name(self) -> str:
        """Such as "position + speed"."""
        return " + ".join(self.factors)

    @property
    def nats(self) -> float:
        """Mean goodness over seeds."""
        return float(np.mean(self.goodness))

    @property
    def stands_out(self) -> bool:
        """Whether every seed is better than all shuffled labels."""
        return min(self.goodness) > max(self.shuffled_goodness, default=0.0)


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses that were compared."""

    tried: tuple[Hypothesis, ...]

    def adds(self, hypothesis: Hypothesis) -> float:
        """Nats beyond the best of its parts; NaN where no part of it was tried."""
        parts = [each.nats for each in self._parts(hypothesis)]
        return hypothesis.nats - max(parts) if parts else float("nan")

    def _parts(self, hypothesis: Hypothesis) -> list[Hypothesis]:
        own = set(hypothesis.factors)
        return [each for each in self.tried if set(each.factors) < own]

    def _beats_parts(self, hypothesis: Hypothesis) -> bool:
        least = min(hypothesis.goodness)
        return all(least > max(part.goodness) for part in self._parts(hypothesis))

    @property
    def ranked(self) -> list[Hypothesis]:
        """From most to fewest nats."""
        return sorted(self.tried, key=lambda each: -each.nats)

    @property
    def reason(self) -> str:
        """Which hypothesis has most, in a sentence or two.

        A combination is preferred to its parts only if its worst seed is better than all of theirs.
        """
        out = [each for each in self.ranked if each.stands_out and each.strength != "at chance"]
        if not out:
            return "No combination of these variables is learned better than shuffled labels."
        best = next(each for each in out if self._beats_parts(each) or each is out[-1])
        told = f"{best.name} has the most: {best.nats:.2f} nats above chance"
        if best.shuffled_goodness:
            told += f" (shuffled labels: {max(best.shuffled_goodness):.2f} at most)"
        if not np.isnan(self.adds(best)):
            told += f", {self.adds(best):.2f} more than the best of its parts"
        less = [each.name for each in self.tried if each not in out]
        return f"{told}." + (f" Not beyond shuffled labels: {', '.join(less)}." if less else "")

    def table(self) -> pd.DataFrame:
        """One row a hypothesis, from most to fewest nats."""
        import pandas as pd

        columns = {
            "hypothesis": [h.name for h in self.ranked],
            "goodness": [h.nats for h in self.ranked],
            "goodness_sd": [float(np.std(h.goodness)) for h in self.ranked],
            "shuffled": [_mean(h.shuffled_goodness) for h in self.ranked],
            "shuffled_highest": [max(h.shuffled_goodness, default=np.nan) for h in self.ranked],
            "adds": [self.adds(h) for h in self.ranked],
            "r2": [_mean(h.r2) for h in self.ranked],
            "shuffled_r2": [_mean(h.shuffled_r2) for h in self.ranked],
            "consistency": [h.consistency for h in self.ranked],
            "p": [h.p for h in self.ranked],
            "verdict": [h.strength for h in self.ranked],
        }
        return pd.DataFrame(columns)

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the table."""
        with whole(path) as file:
            write_csv(self.table(), file)
        return Path(path)


def hypotheses(
    recording: Recording,
    variables: Sequence[str] | Factors,
    settings: FitSettings | None = None,
    *,
    together: Iterable[Sequence[str]] | None = None,
    seeds: int = 3,
    shuffles: int = 3,
    on_progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> Hypotheses | None:
    """Train on every combination of variables, and on shuffled labels, and compare.

    Parameters
    ----------
    recording : Recording
    variables : sequence of str, or mapping as `fit` takes it
        What to combine. Those of a combination are one factor, trained without time latents.
    settings : FitSettings, optional
    together : sequence of sequences of str, optional
        Combinations to try, if not all of them.
    seeds : int
        Fits of each combination.
    shuffles : int
        Fits of each with shuffled labels: shifted in time all together, or, where they are known
        by trial, with the trials exchanged.
    on_progress : callable, optional
        Called with the training steps done and in all.
    stop : callable, optional
        When it returns True, the comparison ends.
    executor : Executor, optional
        Trains several fits at a time.

    Returns
    -------
    Hypotheses or None
        None if it was stopped.

    Examples
    --------
    >>> from napari_xcebra.simulate import arena
    >>> recording = arena(place=8, grid=0, direction=0, speed=8, frames=3000).recording
    >>> found = hypotheses(
    ...     recording, ["position", "speed"], FitSettings(steps=20), seeds=1, shuffles=1
    ... )
    >>> sorted(each.name for each in found.tried)
    ['position', 'position + speed', 'speed']
    """
    from napari_xcebra.learn.fitting import Repeat, fit_each

    settings = replace(settings or FitSettings(), mode="behavior")
    given = variables if not _is_names(variables) else {name: [name] for name in variables}
    factors = as_factors(given, settings)  # type: ignore[arg-type]
    tried = _combinations(factors, together)
    if seeds < 1 or shuffles < 0:
        raise InputError(f"seeds is {seeds} and shuffles {shuffles}: 1 and 0 are the least.")
    joined = {names: {" + ".join(names): _joined(factors, names)} for names in tried}
    total = settings.steps * len(tried) * (seeds + shuffles)
    fits: dict[tuple[str, ...], list[Fit]] = {names: [] for names in tried}
    embeddings: dict[tuple[str, ...], list[np.ndarray]] = {names: [] for names in tried}
    shuffled: dict[tuple[str, ...], list[Fit]] = {names: [] for names in tried}
    every = max(1, recording.n_frames // FRAMES)
    done = 0

    def advance(steps: int, _: int) -> None:
        if on_progress is not None:
            on_progress(min(done + steps, total), total)

    for number in range(1 + shuffles):
        own = _shuffled(recording, number, shuffles, settings.seed) if number else recording
        members = [
            (names, replace(settings, seed=settings.seed + seed))
            for names in tried
            for seed in range(1 if number else seeds)
        ]
        repeats = [Repeat(joined[names], each) for names, each in members]
        trained = fit_each(own, repeats, on_progress=advance, stop=stop, executor=executor)
        finished = 0
        for (names, _), fit in zip(members, trained, strict=False):
            finished += 1
            (shuffled if number else fits)[names].append(fit)
            if not number:
                embeddings[names].append((fit.embed(recording) * fit.scale)[::every])
        if finished < len(members):
            return None
        done += settings.steps * len(members)
    return Hypotheses(
        tuple(_compared(names, fits[names], shuffled[names], embeddings[names]) for names in tried)
    )


def _is_names(variables: object) -> bool:
    return isinstance(variables, Sequence) and not isinstance(variables, str)


def _combinations(
    factors: dict[str, Factor], together: Iterable[Sequence[str]] | None
) -> list[tuple[str, ...]]:
    """Those that were asked for, else all, from single variables to all together."""
    if together is not None:
        asked = [tuple([each] if isinstance(each, str) else each) for each in together]
        for name in (name for names in asked for name in names):
            if name not in factors:
                raise InputError(f"{name!r} is none of {', '.join(factors)}.")
        return list(dict.fromkeys(names for names in asked if names))
    every = [names for n in range(1, len(factors) + 1) for names in combinations(factors, n)]
    if len(every) > MOST:
        raise InputError(
            f"{counted(len(factors), 'variable')} have {len(every):,} combinations: name those to "
            f"try with `together`; up to {MOST} are tried without."
        )
    return every


def _joined(factors: dict[str, Factor], names: Sequence[str]) -> Factor:
    """One factor with the variables of all, and as many latents as they have together."""
    variables = [name for each in names for name in factors[each].variables]
    counts = [factors[each].latents for each in names]
    known = [count for count in counts if count is not None]
    return Factor(variables, sum(known) if len(known) == len(counts) else None)


def _shuffled(recording: Recording, number: int, shuffles: int, seed: int) -> Recording:
    """Labels that have nothing to do with the cells: shifted, or with their trials exchanged."""
    rng = np.random.default_rng([seed, number])
    place = EDGE + (1 - 2 * EDGE) * (number - rng.uniform()) / shuffles
    moved = shifted(recording, place * recording.n_frames / recording.rate)
    trials = recording.trials
    if trials is None:
        return moved
    order, by_trial = rng.permutation(len(trials)), []
    inside = trials.number(recording.n_frames)
    for variable in recording.behavior.values():
        if variable.name in trials.columns and variable.values.shape[1] == 1:
            values = np.where(inside >= 0, trials.columns[variable.name][order][inside], np.nan)
            by_trial.append(replace(variable, values=values[:, None]))
    return moved.with_behavior(*by_trial)


def _compared(
    names: tuple[str, ...], fits: list[Fit], shuffled: list[Fit], embeddings: list[np.ndarray]
) -> Hypothesis:
    of = [fit.goodness[" + ".join(names)] for fit in fits]
    null = [fit.goodness[" + ".join(names)] for fit in shuffled]
    return Hypothesis(
        names,
        tuple(each.goodness for each in of),
        tuple(each.r2 for each in of),
        tuple(each.goodness for each in null),
        tuple(each.r2 for each in null),
        _mean(pairwise_consistency(embeddings)),
        float(np.median([each.p for each in of])),
        of[0].strength,
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
