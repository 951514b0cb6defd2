"""Computes similarities φ, generalised InfoNCE, and the directions of the Jacobian penalty."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from napari_xcebra.learn.settings import Similarity

SIMILARITIES = 2**18
"""Pairs of frames whose similarities are in memory at a time."""


def pair_similarity(a: Tensor, b: Tensor, kind: Similarity, power: float = 1.0) -> Tensor:
    """φ(a, b) of corresponding rows.

    Parameters
    ----------
    a, b : (pairs, latents)
    kind : {"euclidean", "dot", "power"}
        −‖a − b‖², the dot product on the sphere, or −Σ|a − b|^power.

    Returns
    -------
    (pairs,)
    """
    if kind == "dot":
        return (functional.normalize(a, dim=1) * functional.normalize(b, dim=1)).sum(1)
    if kind == "euclidean":
        return -(a - b).square().sum(1)
    return -_powered((a - b).abs(), power).sum(1)


def cross_similarity(a: Tensor, b: Tensor, kind: Similarity, power: float = 1.0) -> Tensor:
    """φ of every row of `a` with every row of `b`: (rows of a, rows of b)."""
    if kind == "dot":
        return functional.normalize(a, dim=1) @ functional.normalize(b, dim=1).t()
    if kind == "euclidean":
        norms = a.square().sum(1)[:, None] + b.square().sum(1)[None]
        return torch.addmm(norms, a, b.t(), beta=-1, alpha=2)
    return -_powered((a[:, None] - b[None]).abs(), power).sum(2)


def _powered(distance: Tensor, power: float) -> Tensor:
    # |x|^p has no finite slope at 0 for p < 1, and a costly one elsewhere for p = 1
    return distance if power == 1 else (distance + 1e-6) ** power


def info_nce(positive: Tensor, negative: Tensor, include_positive: bool = False) -> Tensor:
    """ℓ(x, x⁺, S) = −ψ(x, x⁺) + log Σ_{x⁻ ∈ S} exp ψ(x, x⁻), one value a reference (Eq. 9).

    Parameters
    ----------
    positive : (references,)
        ψ(x, x⁺).
    negative : (references, negatives)
        ψ(x, x⁻); −inf takes a pair out of the sum.
    include_positive : bool
        Counts the positive pair in the sum, which bounds the loss below by 0.

    Returns
    -------
    (references,)
    """
    uniform = _LogSumExp.apply(negative)
    if include_positive:
        uniform = torch.logaddexp(uniform, positive)
    return uniform - positive


class _LogSumExp(torch.autograd.Function):
    """log Σ exp over rows, with one exponential for value and gradient.

    `torch.logsumexp` takes two, and each is ten times slower where exp underflows, as it does
    for most pairs of frames.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        softmax = torch.softmax(x, dim=1)
        ctx.save_for_backward(softmax)
        return x.amax(1) - softmax.amax(1).log()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (softmax,) = ctx.saved_tensors
        return softmax * gradients[0][:, None]


def euclidean_info_nce(reference: Tensor, positive: Tensor, include_positive: bool) -> Tensor:
    """Mean InfoNCE with −‖·‖², of references that are one another's negatives.

    As `info_nce` of `pair_similarity` and `cross_similarity`, at a third of its cost.

    Parameters
    ----------
    reference, positive : (pairs, latents)

    Returns
    -------
    ()
    """
    return _EuclideanInfoNCE.apply(reference, positive, include_positive)


class _EuclideanInfoNCE(torch.autograd.Function):
    """Value and gradient in one go, some references at a time.

    Only some rows of the similarities exist at a time, small enough to stay in the processor's
    cache: the gradient needs nothing of them but two thin products.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, include_positive: bool) -> Tensor:
        count, latents = a.shape
        norms = a.square().sum(1)
        ones = torch.ones_like(norms)
        left, right = torch.cat([a.t(), ones[None]]), torch.cat([2 * a.t(), -norms[None]])
        apart = a - b
        attraction = apart.square().sum(1)
        loss = a.new_zeros(())
        by_a = torch.empty_like(left)
        onto = torch.zeros_like(left)  # what a reference gets as a negative of others
        shares = torch.empty_like(norms)
        most = max(1, SIMILARITIES // count)
        for start in range(0, count, most):
            rows = slice(start, min(start + most, count))
            # −‖aᵢ − aⱼ‖² but for ‖aᵢ‖², which no softmax over j sees
            similarity = left[:, rows].t() @ right
            similarity[:, rows].fill_diagonal_(-1e9)  # a frame is not its own negative
            softmax = torch.softmax(similarity, dim=1)
            uniform = similarity.amax(1) - softmax.amax(1).log_() - norms[rows]
            each = uniform + attraction[rows]
            shares[rows] = torch.sigmoid(each) if include_positive else 1
            loss += (functional.softplus(each) if include_positive else each).sum()
            by_a[:, rows] = left @ softmax.t()
            onto.addmm_(left[:, rows] * shares[rows], softmax)
        ctx.save_for_backward(a, b, shares / count, by_a[:latents].t(), onto.t() / count)
        return loss / count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        a, b, shares, by_a, onto = ctx.saved_tensors
        shares = (2 * gradients[0] * shares)[:, None]
        repelled = onto[:, :-1] - onto[:, -1:] * a
        by_reference = torch.addcmul(2 * gradients[0] * repelled, shares, by_a - b)
        return by_reference, shares * (b - a), None


def penalty_directions(
    frames: int,
    scale: Tensor,
    projections: int = 0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Directions v_k for which Σ_k ‖v_kᵀ J_f‖² is ‖J_f‖²_F, J in the units of the similarity.

    Parameters
    ----------
    scale : (latents,)
        Factor of each latent inside the similarity (1/√τ), so that λ has one meaning at every
        temperature.
    projections : int
        0: exact, over all outputs; else the number of random directions of an unbiased
        estimate (Hoffman et al. 2019).

    Returns
    -------
    (frames, k, latents)
    """
    if projections == 0:
        return torch.diag(scale).expand(frames, -1, -1)
    latents = len(scale)
    directions = torch.randn(frames, projections, latents, generator=generator).to(scale.device)
    directions = functional.normalize(directions, dim=2)
    return directions * (scale * math.sqrt(latents / projections))
