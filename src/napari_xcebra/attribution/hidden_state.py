"""The unobserved state of the animal, as the other cells tell it through the time latents.

Two things would spoil a comparison "beyond the time latents". A cell is itself among the inputs of
the latents: so it is scored beside latents that were computed without it. And latents know the
state only up to noise, and up to what it shares with a variable, which then seems to explain every
cell that follows the state. What they lack is the same for all those cells, in proportion to how
much each follows the state: so it can be found from the population, and added to the latents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from napari_xcebra.attribution.block_ridge import BlockSums, ridge_weights
from napari_xcebra.attribution.predictors import splines
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.learn.device import limited_threads

GROUPS = 8
"""Groups of cells, each scored beside latents of the other cells."""
KNOTS = np.array([-2.5, -1.0, 0.0, 1.0, 2.5])
"""Of the splines of a latent, in its standard deviations."""
RIDGE = 1e-3
COPY = 0.6
"""Share of a latent's variance that a factor explains, from which on it is but a copy of it."""
FEWEST_CELLS = 8
"""Cells a latent that are needed to find what it shares with a variable."""


def cell_groups(cells: int, latents: int, most: int = GROUPS) -> tuple[np.ndarray, ...]:
    """Groups of cells, interleaved; one group if there are no latents to compute without them."""
    count = min(most, cells) if latents else 1
    return tuple(np.arange(first, cells, count) for first in range(count))


def latents_without(stream: Stream, latents: slice, groups: Sequence[np.ndarray]) -> np.ndarray:
    """Latents with each group of cells held at its mean, standardised.

    Returns
    -------
    (groups, frames, latents) float32
    """
    found = np.empty((len(groups), len(stream.frames), latents.stop - latents.start), np.float32)
    if found.shape[2] == 0:
        return found
    done = 0
    with limited_threads(stream.fit.settings.threads), torch.no_grad():
        for x in stream.chunks(copies=1):
            for rows, cells in zip(found, groups, strict=True):
                held = x.clone()
                held[:, torch.as_tensor(cells)] = 0
                rows[done : done + len(x)] = stream.encoder(held)[:, latents].cpu().numpy()
            done += len(x)
    found -= found.mean(1, keepdims=True)
    spread = found.std(1, keepdims=True)
    return found / np.where(spread > 0, spread, 1)


def state_columns(latents: np.ndarray) -> np.ndarray:
    """Splines of each latent, in which any smooth dependence on it is a weighted sum."""
    if latents.shape[1] == 0:
        return np.empty((len(latents), 0), np.float32)
    columns = [splines(latent, KNOTS) for latent in np.asarray(latents, np.float64).T]
    return np.hstack(columns).astype(np.float32)


@dataclass(frozen=True)
class SharedPart:
    """What the latents lack of the state, as weights of a factor's columns.

    Parameters
    ----------
    weights : (columns, latents) float64
    mean : (columns,) float64
        Of the columns.
    spread : (latents,) float64
        Standard deviation of the latents with what they lacked.
    """

    weights: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    def added(self, latents: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Latents with what they lacked, standardised: (frames, latents)."""
        return (latents + (columns - self.mean) @ self.weights) / self.spread


def shared_part(
    sums: Sequence[BlockSums], others: np.ndarray, latents: np.ndarray, tested: np.ndarray
) -> SharedPart:
    """What to add to the latents before a factor is compared with them.

    In a regression on both, a cell that follows the state and not the factor has weights β of the
    factor in proportion to its weights γ of the latents, β = αγ, for α is what the latents lack.
    Cells that carry the factor are outliers to that, so α is found by least absolute deviations.

    Parameters
    ----------
    sums : sequence of BlockSums
        Of each group of cells, with linear latents.
    others, latents, tested : (columns,) int64
        Columns of the other predictors, of the latents, and of the factor.

    Returns
    -------
    SharedPart
        Nothing is added if there are too few cells to tell.
    """
    if len(latents) == 0:
        return SharedPart(np.zeros((len(tested), 0)), np.zeros(len(tested)), np.ones(0))
    columns = np.r_[others, latents, tested]
    moments = sums[0].of(columns).centred()
    own = moments.xx[len(others) :, len(others) :]
    if sum(s.yy.shape[1] for s in sums) < FEWEST_CELLS * len(latents):
        alpha = np.zeros((len(tested), len(latents)))
    else:
        alpha = _lacking(sums, columns, len(latents), len(tested))
    combined = np.vstack([np.eye(len(latents)), alpha])
    variance = (combined * (own @ combined)).sum(0) + 1e-9
    left = np.diag(_left_over(_turned(own, len(latents)), len(latents)))
    copies = left < (1 - COPY) * np.diag(own)[: len(latents)]
    # beside a copy of itself a factor explains nothing, so that copies are left out
    spread = np.where(copies, np.inf, np.sqrt(variance))
    return SharedPart(alpha, moments.mean_x[len(columns) - len(tested) :], spread)


def _lacking(
    sums: Sequence[BlockSums], columns: np.ndarray, latents: int, tested: int
) -> np.ndarray:
    """α of β = αγ; the latents and the tested factor are the last of the columns."""
    weights, metric = [], np.zeros((tested, tested))
    for s in sums:
        chosen = s.of(columns)
        weights.append(ridge_weights(chosen, None, (RIDGE,))[0, :-1])
        metric += _left_over(chosen.centred().xx, tested) / len(sums)
    joined = np.hstack(weights)
    gamma, beta = joined[-tested - latents : -tested], joined[-tested:]
    # distances between weights are counted by what they do to the prediction
    values, vectors = np.linalg.eigh(metric)
    kept = values > 1e-3 * values.max()
    root = np.sqrt(values[kept])
    frames = sums[0].xx[:, -1, -1].sum()
    slope = _least_absolute(root[:, None] * (vectors[:, kept].T @ beta), gamma, 20 / frames)
    lacking: np.ndarray = vectors[:, kept] / root @ slope
    return lacking


def _turned(covariance: np.ndarray, first: int) -> np.ndarray:
    """Covariance with the first columns put last."""
    order = np.roll(np.arange(len(covariance)), -first)
    return covariance[order[:, None], order]


def _left_over(covariance: np.ndarray, last: int) -> np.ndarray:
    """Covariance of the last columns that the columns before them do not explain."""
    before, cross, own = covariance[:-last, :-last], covariance[:-last, -last:], covariance[-last:]
    scale = np.diag(np.diag(before)) + 1e-12 * np.eye(len(before))
    return own[:, -last:] - cross.T @ np.linalg.solve(before + RIDGE * scale, cross)


def _least_absolute(beta: np.ndarray, gamma: np.ndarray, noise: float) -> np.ndarray:
    """α that minimises Σ ‖β − αγ‖ over cells, by reweighted least squares.

    Parameters
    ----------
    beta : (columns, cells)
    gamma : (latents, cells)
    noise : float
        Variance of γ that is estimation error: where γ is no more than that, α is drawn to 0.
    """
    weight = np.ones(beta.shape[1])
    slope = np.zeros((len(beta), len(gamma)))
    for _ in range(50):
        moment = (gamma * weight) @ gamma.T + noise * weight.sum() * np.eye(len(gamma))
        slope = (beta * weight) @ gamma.T @ np.linalg.inv(moment)
        weight = 1 / np.maximum(np.linalg.norm(beta - slope @ gamma, axis=0), 1e-3)
    return slope
