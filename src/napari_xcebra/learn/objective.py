"""Generalised InfoNCE (Eqs. 8–9) and the Jacobian penalty (Eq. 10)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from napari_xcebra.learn.encoder import Activations, Encoder, squared_jacobian
from napari_xcebra.learn.settings import Similarity


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


def jacobian_penalty(
    encoder: Encoder,
    activations: Activations,
    scale: Tensor,
    projections: int,
    generator: torch.Generator | None = None,
) -> Tensor:
    """‖J_f(x)‖²_F averaged over frames, J in the units of the similarity.

    Parameters
    ----------
    activations : as `Encoder.trace` returned them, of the frames to average over
    scale : (latents,)
        Factor of each latent inside the similarity (1/√τ), so that λ has one meaning at every
        temperature.
    projections : int
        0: exact, over all outputs; else the number of random directions of an unbiased
        estimate (Hoffman et al. 2019).
    """
    frames, latents = activations[-1].shape
    if projections == 0:
        directions = torch.eye(latents, device=scale.device).expand(frames, -1, -1)
        return squared_jacobian(encoder, directions, activations, scale).mean()
    directions = torch.randn(frames, projections, latents, generator=generator).to(scale.device)
    directions = functional.normalize(directions, dim=2)
    squared = squared_jacobian(encoder, directions, activations, scale)
    return squared.mean() * (latents / projections)
