"""The encoder f: cells → latents, with its Jacobian J_f as explicit products.

Differentiating a product of layers once is cheaper than differentiating a gradient, and the
same code serves the penalty and the attribution.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

Activations = list[Tensor]

FIRST_LAYER = 0.1
"""Factor on the initial weights of the first layer, and its inverse on those of the second.

What the first layer weighs at random in directions that the data never take is all the penalty
has to remove; starting small removes most of it beforehand. On the box model the map settles
in a third of the steps (4 + 2 latents, 200 steps: auROC 0.99 instead of 0.94).
"""


def gelu_slope(x: Tensor) -> Tensor:
    """Derivative of GELU."""
    density = torch.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return torch.addcmul(0.5 + 0.5 * torch.erf(x * math.sqrt(0.5)), x, density)


class Encoder(nn.Module):
    """Base of both encoders: a smooth bound on the embedding, and the Jacobian.

    Parameters
    ----------
    latents : int
        d, the dimensions of the embedding.
    bound : float
        The embedding stays within ±bound by a scaled tanh, which leaves no row of J at zero
        as a clip would.
    """

    window: int
    n_cells: int
    width: int

    def __init__(self, latents: int, bound: float) -> None:
        super().__init__()
        self.latents = latents
        self.bound = bound

    def forward(self, x: Tensor) -> Tensor:
        """Embedding.

        Parameters
        ----------
        x : (frames, cells) or (frames, cells, window)

        Returns
        -------
        (frames, latents)
        """
        return self.trace(x)[0]

    def trace(self, x: Tensor) -> tuple[Tensor, Activations]:
        """Embedding, and the inputs of every nonlinearity, which `pullback` needs."""
        raise NotImplementedError

    def pullback(self, directions: Tensor, activations: Activations) -> Tensor:
        """Products vᵀJ_f for directions v in the embedding.

        Parameters
        ----------
        directions : (frames, k, latents)
        activations : as `trace` returned them

        Returns
        -------
        (frames, k, cells) or (frames, k, cells, window)
        """
        raise NotImplementedError

    def embed(self, x: Tensor, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Embedding of every frame, and Σ_k ‖v_kᵀ J_f‖² at the first of them, for training.

        Parameters
        ----------
        directions : (some frames, k, latents), optional
            v_k, of as many frames as the second is wanted for.

        Returns
        -------
        (frames, latents), (some frames,)
        """
        embedding, activations = self.trace(x)
        if directions is None:
            return embedding, x.new_zeros(0)
        some = [each[: len(directions)] for each in activations]
        return embedding, self.pullback(directions, some).square().flatten(1).sum(1)

    def jacobian(self, x: Tensor) -> Tensor:
        """J_f at every frame.

        Returns
        -------
        (frames, latents, cells) or (frames, latents, cells, window)
        """
        _, activations = self.trace(x)
        eye = torch.eye(self.latents, dtype=x.dtype, device=x.device)
        return self.pullback(eye.expand(len(x), -1, -1), activations)

    def _bounded(self, h: Tensor) -> Tensor:
        return self.bound * torch.tanh(h / self.bound)

    def _bound_slope(self, h: Tensor) -> Tensor:
        return 1 - torch.tanh(h / self.bound) ** 2


def start_small(first: Tensor, second: Tensor) -> None:
    """Shrink the weights of the first layer, and grow those of the second by as much."""
    with torch.no_grad():
        first.mul_(FIRST_LAYER)
        second.div_(FIRST_LAYER)
