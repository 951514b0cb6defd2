"""Compares the embeddings of sessions where their labels are the same.

Frames of two sessions do not correspond, but places do: the embedding of each session is averaged
in bins of the shared labels, and the averages are aligned (Schneider 2023, CEBRA across subjects).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.learn.data.factors import TIME, Factor, factor_labels
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.joint.fitting import part_of, pooled
from napari_xcebra.learn.quality.consistency import consistency
from napari_xcebra.learn.quality.decoding import held_out_frames
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording
from napari_xcebra.spreadsheets import write_csv

BINS, FRAMES_A_BIN = (10, 100), 20
"""Bins of the labels of a factor, about, at least and at most, and held-out frames for each."""

SHIFTS = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Shares of a session by which its labels are shifted, to measure chance."""

LEAST_FRAMES = 5
"""Frames that a bin needs in a session."""

LEAST_BINS = 3
"""Bins, for each latent, that two sessions need in common."""


@dataclass(frozen=True)
class SessionConsistency:
    """R² between sessions, for each factor.

    Parameters
    ----------
    sessions : tuple of str
    r2 : mapping of str to (sessions, sessions)
        Row i, column j: share of the variance of session j, over bins of the labels, that an
        affine map of session i explains, the mean over the factor's latents; NaN where two
        sessions have too few bins in common.
    unaligned : mapping of str to (sessions, sessions)
        The same without any map: whether it is the same embedding, not only the same shape.
    chance : mapping of str to float
        Mean R² after alignment with the labels of session j shifted in time, by several shares
        of its length.
    """

    sessions: tuple[str, ...]
    r2: Mapping[str, np.ndarray]
    unaligned: Mapping[str, np.ndarray]
    chance: Mapping[str, float]

    def mean(self, factor: str) -> float:
        """Mean over all pairs of sessions, in both directions."""
        return _mean_of_pairs(self.r2[factor])

    def table(self) -> pd.DataFrame:
        """One row a factor and pair of sessions."""
        return pd.DataFrame(
            [
                {
                    "factor": factor,
                    "from": self.sessions[i],
                    "to": self.sessions[j],
                    "r2": r2[i, j],
                    "r2_unaligned": self.unaligned[factor][i, j],
                    "chance": self.chance[factor],
                }
                for factor, r2 in self.r2.items()
                for i, j in product(range(len(r2)), repeat=2)
                if i != j
            ]
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the table."""
        with whole(path) as file:
            write_csv(self.table(), file)
        return Path(path)

    def summary(self) -> str:
        """A sentence for each factor."""
        return "\n".join(
            f"{factor}: consistency between sessions R² {self.mean(factor):.2f} after alignment, "
            f"{_mean_of_pairs(self.unaligned[factor]):.2f} as they are (chance "
            f"{self.chance[factor]:.2f})."
            for factor in self.r2
        )


def session_consistency(
    fits: Mapping[str, Fit], recordings: Mapping[str, Recording]
) -> SessionConsistency:
    """Compare the embeddings of held-out frames of sessions, trained together or one by one.

    Parameters
    ----------
    fits : mapping of str to Fit
        By session, with the same factors; `JointFit.fits`, for one.
    recordings : mapping of str to Recording
        By the same names.
    """
    if list(fits) != list(recordings):
        raise InputError(
            f"There are fits of {', '.join(fits)} and recordings of {', '.join(recordings)}: one "
            "recording for each fit is needed, in the same order."
        )
    shared = [p for p in next(iter(fits.values())).parts if p.name != TIME]
    for name, fit in fits.items():
        if [(p.name, p.variables) for p in fit.parts if p.name != TIME] != [
            (p.name, p.variables) for p in shared
        ]:
            raise InputError(f"The fit of {name!r} has other factors than the first one.")
    factors = {part.name: Factor(part.variables) for part in shared}
    pool = pooled(recordings, factors)
    labels = factor_labels(pool.behavior, factors)
    embeddings = [fit.embed(recordings[name]) for name, fit in fits.items()]
    own = [part_of(labels, pool, number) for number in range(len(fits))]
    # an encoder that overfits its labels has them on the frames it was trained on, true or not
    unseen = [held_out_frames(fit, recordings[name]) for name, fit in fits.items()]
    bins = int(np.clip(min(map(len, unseen)) // FRAMES_A_BIN, *BINS))
    r2, unaligned, chance = {}, {}, {}
    for part in shared:
        cells = [
            _bins(each[part.name], labels[part.name], bins)[frames]
            for each, frames in zip(own, unseen, strict=True)
        ]
        latents = [
            each[frames, fit.part(part.name).latents]
            for each, frames, fit in zip(embeddings, unseen, fits.values(), strict=True)
        ]
        averaged = _averages(latents, cells)
        shifted = [
            _averages(latents, [np.roll(each, int(share * len(each))) for each in cells])
            for share in SHIFTS
        ]
        r2[part.name] = _pairs(averaged, averaged, _aligned)
        unaligned[part.name] = _pairs(averaged, averaged, _as_they_are)
        reached = [_mean_of_pairs(_pairs(averaged, each, _aligned)) for each in shifted]
        chance[part.name] = float(np.mean(reached))
    return SessionConsistency(tuple(fits), r2, unaligned, chance)


def _bins(labels: Labels, pooled_labels: Labels, bins: int) -> np.ndarray:
    """Bin of each frame, −1 where the labels are not known: (frames,) int64.

    Bins are of equal width between the 2 % and 98 % quantiles over all sessions.
    """
    columns = labels.linear.shape[1] + labels.angles.shape[1]
    each = max(3, round((bins / pooled_labels.n_codes) ** (1 / columns))) if columns else 1
    number = labels.code.copy()
    for column, everywhere in zip(labels.linear.T, pooled_labels.linear.T, strict=True):
        low, high = np.quantile(everywhere[pooled_labels.known], [0.02, 0.98])
        inside = np.clip((column - low) / max(high - low, 1e-12), 0, 1 - 1e-9)
        number = number * each + (np.nan_to_num(inside) * each).astype(np.int64)
    for column in labels.angles.T:
        turn = np.nan_to_num(column / (2 * np.pi)) % 1
        number = number * each + np.minimum((turn * each).astype(np.int64), each - 1)
    return np.where(labels.known, number, -1)


def _averages(latents: list[np.ndarray], cells: list[np.ndarray]) -> list[np.ndarray]:
    """Mean latents of each session in each bin, NaN where it has too few frames."""
    bins = max(int(each.max(initial=-1)) for each in cells) + 1
    averages = []
    for values, cell in zip(latents, cells, strict=True):
        used = (cell >= 0) & ~np.isnan(values).any(1)
        count = np.bincount(cell[used], minlength=bins)
        sums = np.stack([np.bincount(cell[used], v, minlength=bins) for v in values[used].T], 1)
        mean = sums / np.maximum(count, 1)[:, None]
        averages.append(np.where(count[:, None] >= LEAST_FRAMES, mean, np.nan))
    return averages


def _pairs(
    ones: list[np.ndarray],
    others: list[np.ndarray],
    measure: Callable[[np.ndarray, np.ndarray], float],
) -> np.ndarray:
    r2 = np.eye(len(ones))
    for i, j in product(range(len(ones)), repeat=2):
        if i == j:
            continue
        both = ~(np.isnan(ones[i]).any(1) | np.isnan(others[j]).any(1))
        enough = both.sum() >= LEAST_BINS * (ones[i].shape[1] + 1)
        r2[i, j] = measure(ones[i][both], others[j][both]) if enough else np.nan
    return r2


def _aligned(one: np.ndarray, other: np.ndarray) -> float:
    return float(consistency([one, other])[0, 1])


def _as_they_are(one: np.ndarray, other: np.ndarray) -> float:
    if one.shape != other.shape:
        return float("nan")
    total = np.square(other - other.mean(0)).sum(0)
    return float((1 - np.square(other - one).sum(0) / np.maximum(total, 1e-12)).mean())


def _mean_of_pairs(r2: np.ndarray) -> float:
    pairs = r2[~np.eye(len(r2), dtype=bool)]
    return float(np.nanmean(pairs)) if not np.isnan(pairs).all() else float("nan")
