"""Random injective mixing functions g: latents → cells, with their Jacobian J_g.

Each layer is a full-rank matrix followed by a strictly increasing smooth function, so g can be
inverted on its image. As is usual in work on nonlinear ICA (Hyvärinen and Morioka 2016;
Zimmermann et al. 2021), matrices are drawn several times and the best-conditioned one is kept.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

LEAK = 0.2
"""Slope of the smooth leaky ReLU far below zero; it is 1 far above."""
SHARPNESS = 4.0
"""How quickly the slope changes around zero: latents in [-1, 1] should meet both sides of it."""
DRAWS = 100
"""Candidates for each weight matrix."""
HIDDEN_LAYERS = 2
"""Square layers before the one that lifts to the cells."""


@dataclass(frozen=True)
class Mixing:
    """Injective map g from latents to cells.

    Parameters
    ----------
    weights : tuple of (inputs, outputs) float
        Square ones first; the last lifts to the cells.
    biases : tuple of (outputs,) float
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    def __call__(self, latents: np.ndarray) -> np.ndarray:
        """Activity of the cells, (frames, cells), for (frames, d) latents."""
        activity = latents
        for weight, bias in zip(self.weights, self.biases, strict=True):
            activity = smooth_leaky_relu(activity @ weight + bias)
        return activity

    def jacobian(self, latents: np.ndarray) -> np.ndarray:
        """J_g at each of (frames, d) latents, (frames, cells, d), by the chain rule."""
        activity = latents
        jacobian = np.tile(np.eye(latents.shape[1]), (len(latents), 1, 1))
        for weight, bias in zip(self.weights, self.biases, strict=True):
            drive = activity @ weight + bias
            jacobian = smooth_leaky_relu_slope(drive)[:, :, None] * (weight.T @ jacobian)
            activity = smooth_leaky_relu(drive)
        return jacobian


def draw_mixing(rng: np.random.Generator, d: int, cells: int, draws: int = DRAWS) -> Mixing:
    """Random `Mixing` of `d` latents into at least as many cells, with output of order 1.

    Each weight matrix is the best-conditioned of that many draws.
    """
    sizes = [d] * (HIDDEN_LAYERS + 1) + [cells]
    weights = tuple(_weights(rng, *shape, draws) for shape in itertools.pairwise(sizes))
    biases = tuple(rng.uniform(-0.3, 0.3, size) for size in sizes[1:])
    return Mixing(weights, biases)


def _weights(rng: np.random.Generator, inputs: int, outputs: int, draws: int) -> np.ndarray:
    """Best-conditioned of several random matrices, each cell's weights of norm √2."""
    candidates = rng.standard_normal((draws, inputs, outputs))
    candidates *= np.sqrt(2) / np.linalg.norm(candidates, axis=1, keepdims=True)
    return candidates[np.argmin(np.linalg.cond(candidates))]


def smooth_leaky_relu(x: np.ndarray) -> np.ndarray:
    """Strictly increasing and smooth: slope `LEAK` far below zero, 1 far above."""
    return LEAK * x + (1 - LEAK) * np.logaddexp(0, SHARPNESS * x) / SHARPNESS


def smooth_leaky_relu_slope(x: np.ndarray) -> np.ndarray:
    """Slope of `smooth_leaky_relu`."""
    return LEAK + (1 - LEAK) * expit(SHARPNESS * x)
