"""The encoder f: cells → latents, its Jacobian J_f as explicit products, and the inverse of that.

Differentiating a product of layers once is cheaper than differentiating a gradient, and the
same code serves the penalty and the attribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from napari_xcebra.learn.device import in_double

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
    """Base of both encoders: a bound on the embedding, and the Jacobian.

    Parameters
    ----------
    latents : int
        d, the dimensions of the embedding.
    bound : float
        The embedding stays within ±bound by a scaled tanh, which leaves no row of J at zero.
    clips : bool
        Whether by a clip instead, as in the reference.
    """

    window: int
    n_cells: int
    width: int

    def __init__(self, latents: int, bound: float, clips: bool = False) -> None:
        super().__init__()
        self.latents, self.bound, self.clips = latents, bound, clips

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

    def without(self, x: Tensor, groups: Sequence[np.ndarray]) -> Iterator[Tensor]:
        """Embedding with each group of cells held at its mean: (frames, latents) each.

        Parameters
        ----------
        x : (frames, cells) or (frames, cells, window)
            With mean 0.
        groups : sequence of (n,) int64
            Cells.
        """
        for cells in groups:
            held = x.clone()
            held[:, torch.as_tensor(cells, device=x.device)] = 0
            yield self(held)

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

    @torch.no_grad()
    def start_small(self) -> None:
        """Shrink the weights of the first layer, and grow those of the second by as much."""
        first, second = self._first_two
        first.mul_(FIRST_LAYER)
        second.div_(FIRST_LAYER)

    @property
    def _first_two(self) -> tuple[Tensor, Tensor]:
        """Weights of the first two layers."""
        raise NotImplementedError

    def _bounded(self, h: Tensor) -> Tensor:
        if self.clips:
            return h.clamp(-self.bound, self.bound)
        return self.bound * torch.tanh(h / self.bound)

    def _bound_slope(self, h: Tensor) -> Tensor:
        if self.clips:
            return (h.abs() < self.bound).to(h.dtype)
        return 1 - torch.tanh(h / self.bound) ** 2


CUT_OFF = 0.05
"""Singular values of J below this share of the largest count as zero.

With more latents than the recording has dimensions, what is left over has next to no gradient,
and its inverse drowns the rest: box model with 2 time latents too many, auROC 0.93–0.96 with
1e-6, 0.97–1.00 with 0.05; with the right number both give 0.99–1.00 (3 recordings each).
"""

PRECISE_BELOW = 0.01
"""Cut-off under which JJᵀ is computed in double precision."""


def inverse(jacobian: Tensor, scale: Tensor, cut_off: float) -> Tensor:
    """J_f⁺ = Jᵀ(JJᵀ)⁻¹, transposed, by the small matrix JJᵀ.

    At the minimum of the loss J_f⁺ ∝ J_g, the Jacobian of the mixing (Theorem 2, Eq. 46).
    The rows are brought to the units of the similarity for it, in which the parts of the
    embedding are comparable, and back: (SJ)⁺S = J⁺ for any J of full rank.

    Parameters
    ----------
    jacobian : (frames, latents, cells) or (frames, latents, cells, window)
    scale : (latents,)
        S.
    cut_off : float
        As in `numpy.linalg.pinv`.

    Returns
    -------
    Of the shape of `jacobian`.
    """
    rows = jacobian.flatten(2)
    # JJᵀ squares the condition number: what a small cut-off keeps, single precision does not hold
    precise = in_double(rows) if cut_off < PRECISE_BELOW else rows
    weight = torch.outer(scale, scale).to(precise)
    gram = (precise @ precise.transpose(1, 2)).mul_(weight)
    inverted = _pseudo_inverse(gram, cut_off**2).mul_(weight)
    return (inverted @ precise).to(jacobian).view_as(jacobian)


def _pseudo_inverse(gram: Tensor, cut_off: float) -> Tensor:
    """Inverse of symmetric matrices, eigenvalues below a share of the largest taken as zero.

    A plain inverse takes a twentieth of the time of an eigen-decomposition; it will do wherever
    the norms show that no eigenvalue is that small.

    Parameters
    ----------
    gram : (frames, latents, latents)
    """
    inverted, failed = torch.linalg.inv_ex(gram)
    condition = gram.flatten(1).norm(dim=1) * inverted.flatten(1).norm(dim=1)
    doubtful = ((failed != 0) | ~(condition * cut_off < 1)).nonzero()[:, 0]
    if len(doubtful):
        values, vectors = torch.linalg.eigh(in_double(gram[doubtful]))
        sizes = torch.where(values > cut_off * values[:, -1:], 1 / values, 0)
        exact = (vectors * sizes[:, None]) @ vectors.transpose(1, 2)
        inverted[doubtful] = exact.to(gram)
    return inverted
