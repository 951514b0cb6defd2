"""Decodes a variable from an embedding, by nearest neighbours and by a linear map.

Both decoders predict held-out frames as weighted means over the frames they were fitted to. Which
frames, and with which weights, does not depend on the variable: labels shifted in time are decoded
again at little cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from napari_xcebra.recording import Variable

Decoder = Callable[[np.ndarray], np.ndarray]
"""From coordinates at the frames it was made from, (frames, k), to those of other frames."""

NEIGHBOURS = (1, 4, 9, 16, 25, 49, 100)
"""Numbers of neighbours that are tried."""


@dataclass(frozen=True)
class Target:
    """A variable to predict.

    Parameters
    ----------
    coordinates : (frames, k) float64
        Values; cos and sin of an angle; a column for each value of a discrete variable. NaN where
        the variable is not known.
    variable : Variable
    """

    coordinates: np.ndarray
    variable: Variable

    @classmethod
    def of(cls, variable: Variable) -> Target:
        """Coordinates of a variable."""
        values, known = variable.values, variable.known
        if variable.kind == "circular":
            angles = values * (2 * np.pi / variable.period)
            return cls(np.hstack([np.cos(angles), np.sin(angles)]), variable)
        if variable.kind == "continuous":
            return cls(np.where(known[:, None], values, np.nan), variable)
        code = np.unique(values[known], axis=0, return_inverse=True)[1].ravel()
        coordinates = np.full((len(known), int(code.max(initial=0)) + 1), np.nan)
        coordinates[known] = np.eye(coordinates.shape[1])[code]
        return cls(coordinates, variable)

    def shifted(self, frames: int) -> Target:
        """The same, moved by so many frames, the last ones to the beginning."""
        return Target(np.roll(self.coordinates, frames, axis=0), self.variable)

    def errors(self, predicted: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Errors of predictions, in units of the variable: (frames,), NaN where it is not known.

        Several columns count as one place, by its distance; a discrete value is right (0) or
        wrong (1).
        """
        true = self.coordinates[frames]
        if self.variable.kind == "continuous":
            return np.linalg.norm(predicted - true, axis=1)
        if self.variable.kind == "circular":
            turn = np.abs(np.angle(_complex(predicted) * _complex(true).conj()))
            off = np.linalg.norm(turn, axis=1) * self.variable.period / (2 * np.pi)
            return np.asarray(off)
        wrong = np.argmax(np.nan_to_num(predicted), axis=1) != np.argmax(
            np.nan_to_num(true), axis=1
        )
        return np.where(np.isnan(true).any(1) | np.isnan(predicted).any(1), np.nan, wrong)

    def error(self, predicted: np.ndarray, frames: np.ndarray) -> float:
        """Median absolute error, or the share of wrong values if they are discrete."""
        errors = self.errors(predicted, frames)
        if np.isnan(errors).all():
            return float("nan")
        discrete = self.variable.kind == "discrete"
        return float(np.nanmean(errors) if discrete else np.nanmedian(errors))

    def r2(self, predicted: np.ndarray, frames: np.ndarray, mean: np.ndarray) -> float:
        """Share of the variance of all coordinates that is predicted; NaN if discrete.

        Parameters
        ----------
        mean : (k,)
            Of the frames the decoder was fitted to.
        """
        if self.variable.kind == "discrete":
            return float("nan")
        true = self.coordinates[frames]
        both = ~(np.isnan(true) | np.isnan(predicted)).any(1)
        total = np.square(true[both] - mean).sum()
        missed = np.square(true[both] - predicted[both]).sum()
        return float(1 - missed / total) if total > 0 else float("nan")


def _complex(coordinates: np.ndarray) -> np.ndarray:
    cosine, sine = np.hsplit(coordinates, 2)
    return np.asarray(cosine + 1j * sine)


def nearest(latents: np.ndarray, frames: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The `frames` nearest to each of the others, as many as are ever used: (others, most) int."""
    most = min(max(NEIGHBOURS), len(frames))
    index = cKDTree(latents[frames]).query(latents[others], k=most)[1]
    return np.reshape(index, (len(others), most))


def neighbour_decoder(near: np.ndarray) -> Decoder:
    """Mean over these frames where they are known; for discrete values, the votes."""

    def predict(coordinates: np.ndarray) -> np.ndarray:
        values = coordinates[near]
        known = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            return np.where(known, values, 0.0).sum(1) / known.sum(1)

    return predict


def linear_decoder(latents: np.ndarray, frames: np.ndarray, others: np.ndarray) -> Decoder:
    """Least squares, with an intercept."""
    design, applied = (np.c_[np.ones(len(each)), latents[each]] for each in (frames, others))

    def predict(coordinates: np.ndarray) -> np.ndarray:
        known = ~np.isnan(coordinates).any(1)
        weights, *_ = np.linalg.lstsq(design[known], coordinates[known], rcond=1e-6)
        return applied @ weights

    return predict
