"""Suggests the number of latents at which fits with different seeds agree (App. C, Fig. 6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.learn.data.factors import Factors, as_factors
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.spreadsheets import write_csv

if TYPE_CHECKING:
    import pandas as pd

FRAMES = 5000
"""Frames at most, spread evenly, on which embeddings are compared."""


def consistency(embeddings: Sequence[np.ndarray]) -> np.ndarray:
    """R² between embeddings after affine alignment: (embeddings, embeddings).

    Row i, column j: share of the variance of embedding j that an affine map of embedding i
    explains, the mean over its latents; 1 on the diagonal. A latent that is not needed is small
    and differs from seed to seed: it must count as much as the others. One that collapsed is left
    out.

    Parameters
    ----------
    embeddings : sequence of (frames, latents)
        Of the same frames; those at which one is NaN are left out.
    """
    known = np.logical_and.reduce([~np.isnan(each).any(1) for each in embeddings])
    centred = [each[known] - each[known].mean(0) for each in embeddings]
    # an orthonormal basis of each embedding: the affine map of i that is nearest to j is a
    # projection onto the basis of i
    bases = [_basis(each) for each in centred]
    r2 = np.eye(len(embeddings))
    for i, j in product(range(len(embeddings)), repeat=2):
        if i != j:
            total = np.square(centred[j]).sum(0)
            explained = np.square(bases[i].T @ centred[j]).sum(0)
            alive = total > 1e-9 * total.max(initial=0)
            r2[i, j] = (explained[alive] / total[alive]).mean()
    return r2


def _basis(centred: np.ndarray) -> np.ndarray:
    u, singular, _ = np.linalg.svd(centred, full_matrices=False)
    return u[:, singular > 1e-6 * singular.max(initial=0)]


@dataclass(frozen=True)
class _Dimension:
    """Consistency at one number of latents.

    Parameters
    ----------
    factor_latents : int
        Latents of all behaviour factors together.
    time_latents : int
    r2 : tuple of float
        Consistency of every pair of seeds, the mean of both directions.
    """

    factor_latents: int
    time_latents: int
    r2: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over pairs of seeds."""
        return float(np.mean(self.r2))

    @property
    def error(self) -> float:
        """Standard error of the mean over pairs of seeds; 0 for a single pair."""
        return float(np.std(self.r2, ddof=1) / np.sqrt(len(self.r2))) if len(self.r2) > 1 else 0.0

    @property
    def words(self) -> str:
        """Such as "3 + 2"."""
        counts = [n for n in (self.factor_latents, self.time_latents) if n]
        return " + ".join(str(n) for n in counts)


@dataclass(frozen=True)
class Dimensions:
    """Consistency over numbers of latents, and which to take."""

    tried: tuple[_Dimension, ...]

    @property
    def suggested(self) -> _Dimension:
        """The largest embedding whose consistency is at its peak, within its error.

        An embedding too small leaves out what is there, and may still be consistent; one too
        large is free to differ from seed to seed.
        """
        best = max(self.tried, key=lambda each: each.mean)
        at_peak = [d for d in self.tried if d.mean >= best.mean - max(best.error, d.error)]
        return max(at_peak, key=lambda d: (d.factor_latents + d.time_latents, d.mean))

    @property
    def reason(self) -> str:
        """The suggestion and its reason, in a sentence."""
        chosen, best = self.suggested, max(self.tried, key=lambda each: each.mean)
        sentence = (
            f"{chosen.words} latents: the most at which fits with different seeds agree best "
            f"(consistency R² {chosen.mean:.3f} ± {chosen.error:.3f}"
        )
        if chosen is not best:
            sentence += f"; {best.mean:.3f} ± {best.error:.3f} at {best.words}"
        largest = max(d.factor_latents + d.time_latents for d in self.tried)
        if chosen.factor_latents + chosen.time_latents == largest and len(self.tried) > 1:
            return sentence + "). No larger embedding was tried: try more latents."
        return sentence + ")."

    @property
    def axis(self) -> str:
        """Horizontal axis of a plot: the time latents, if they differ."""
        over_time = len({d.time_latents for d in self.tried}) > 1
        same = len({d.factor_latents for d in self.tried}) == 1
        return "time latents" if over_time or same else "latents of the factors"

    def place(self, dimension: _Dimension) -> int:
        """Position of a dimension on that axis."""
        over_time = self.axis == "time latents"
        return dimension.time_latents if over_time else dimension.factor_latents

    @property
    def lines(self) -> dict[str, list[_Dimension]]:
        """Lines of a plot, by name: one for each number of the other latents."""
        lines: dict[str, list[_Dimension]] = {}
        for each in sorted(self.tried, key=lambda d: (d.factor_latents, d.time_latents)):
            of = each.factor_latents if self.axis == "time latents" else each.time_latents
            whose = "for the factors" if self.axis == "time latents" else "for time"
            lines.setdefault(f"{of} {whose}" if of else "no others", []).append(each)
        return lines

    def table(self) -> pd.DataFrame:
        """One row a number of latents, with consistency R², its error and the pairs of seeds."""
        import pandas as pd

        return pd.DataFrame(
            {
                "factor_latents": [d.factor_latents for d in self.tried],
                "time_latents": [d.time_latents for d in self.tried],
                "r2": [d.mean for d in self.tried],
                "error": [d.error for d in self.tried],
                "pairs": [len(d.r2) for d in self.tried],
                "suggested": [d is self.suggested for d in self.tried],
            }
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the table."""
        with whole(path) as file:
            write_csv(self.table(), file)
        return Path(path)


def suggest_dimension(
    recording: Recording,
    factors: Factors | None = None,
    settings: FitSettings | None = None,
    *,
    time_latents: Sequence[int] = (1, 2, 3, 4),
    factor_latents: Sequence[int] | None = None,
    seeds: int = 3,
    on_progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> Dimensions | None:
    """Train with several seeds at each number of latents, and compare the embeddings.

    Parameters
    ----------
    recording, factors, settings
        As `fit` takes them.
    time_latents : sequence of int
        Numbers to try, in modes that have time latents.
    factor_latents : sequence of int, optional
        Numbers to try for a single factor; by default, as many as its variables have.
    seeds : int
        Fits at each number of latents, 2 or more.
    on_progress : callable, optional
        Called with the training steps done and in all, over all fits.
    stop : callable, optional
        When it returns True, only the numbers of latents with two or more fits are returned.
    executor : Executor, optional
        Trains several fits at a time; by default they run here, one after the other.

    Returns
    -------
    Dimensions or None
        None if it was stopped before two fits could be compared.
    """
    from napari_xcebra.learn.fitting import Repeat, fit_each

    settings = settings or FitSettings()
    if seeds < 2:
        raise InputError(f"seeds is {seeds}: 2 or more are needed, to compare fits.")
    sizes = list(product(_factor_sizes(factors, settings, factor_latents), time_latents))
    if settings.mode not in ("hybrid", "time"):
        sizes = [(n, settings.time_latents) for n in dict.fromkeys(n for n, _ in sizes)]
    repeats = [
        Repeat(
            _with_latents(factors, size, settings),
            replace(settings, time_latents=time, seed=settings.seed + number),
        )
        for size, time in sizes
        for number in range(seeds)
    ]
    tried: list[_Dimension] = []
    embeddings: list[np.ndarray] = []
    for done in fit_each(recording, repeats, on_progress=on_progress, stop=stop, executor=executor):
        every = max(1, recording.n_frames // FRAMES)
        embeddings.append((done.embed(recording) * done.scale)[::every])
        of_time = done.parts[-1].stop - done.parts[-1].start if "time" in done.factors else 0
        if len(embeddings) > 1:
            of_factors = done.parts[-1].stop - of_time
            found = _Dimension(of_factors, of_time, pairwise_consistency(embeddings))
            tried[-1 if len(embeddings) > 2 else len(tried) :] = [found]
        if len(embeddings) == seeds:
            embeddings = []
    return Dimensions(tuple(tried)) if tried else None


def pairwise_consistency(embeddings: Sequence[np.ndarray]) -> tuple[float, ...]:
    """`consistency` of every pair, the mean of both directions."""
    r2 = consistency(embeddings)
    both = (r2 + r2.T) / 2
    return tuple(float(value) for value in both[np.triu_indices(len(r2), 1)])


def _factor_sizes(
    factors: Factors | None, settings: FitSettings, factor_latents: Sequence[int] | None
) -> list[int | None]:
    if factor_latents is None or settings.mode == "time":
        return [None]
    if len(as_factors(factors, settings)) != 1:
        raise InputError(
            "factor_latents can be tried for one factor only: name one, or leave it out, and each "
            "factor takes as many latents as its variables have dimensions."
        )
    return list(factor_latents)


def _with_latents(
    factors: Factors | None, size: int | None, settings: FitSettings
) -> Factors | None:
    if size is None:
        return factors
    ((name, factor),) = as_factors(factors, settings).items()
    return {name: replace(factor, latents=size)}
