"""Similarities φ, ψ with its temperatures, generalised InfoNCE, and directions of the penalty."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.device import seeded
from napari_xcebra.learn.settings import FitSettings, Similarity

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
    seed: int = 0,
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
    seed : int
        Of these.

    Returns
    -------
    (frames, k, latents)
    """
    if projections == 0:
        return torch.diag(scale).expand(frames, -1, -1)
    latents = len(scale)
    generator, device = seeded(seed, scale.device), scale.device
    directions = torch.randn(frames, projections, latents, generator=generator, device=device)
    directions = functional.normalize(directions, dim=2)
    return directions * (scale * math.sqrt(latents / projections))


LEAST_TEMPERATURE = 0.01
"""τ below which a learned one does not go: pairs would be told apart by noise alone."""


class Psi(nn.Module):
    """ψ of every part, with what is learned of it."""

    def __init__(self, parts: Sequence[Part], settings: FitSettings, device: torch.device) -> None:
        super().__init__()
        self.parts, self.settings = parts, settings
        temperatures = torch.tensor([part.temperature for part in parts])
        self.log_temperature = nn.Parameter(temperatures.log().to(device))
        self.log_temperature.requires_grad_(any(part.learned for part in parts))
        self._learned = torch.tensor([part.learned for part in parts], device=device)
        weights = torch.tensor([part.time_weight for part in parts])
        self.log_time_weight = nn.Parameter(weights.log().to(device))
        self.log_time_weight.requires_grad_(settings.time_weights == "learned")
        root = {"euclidean": 2.0, "power": settings.power, "dot": float("inf")}
        self._roots = torch.tensor([root[p.similarity] for p in parts], device=device)
        sizes = torch.tensor([part.stop - part.start for part in parts])
        self._part_of_latent = torch.arange(len(sizes)).repeat_interleave(sizes).to(device)

    def info_nce(self, part: Part, reference: Tensor, positive: Tensor) -> Tensor:
        """L_N[ψ_i] = E ℓ(x, x⁺, {x⁻}) of a part: the mean over a batch, in nats (Eq. 8).

        ℓ is `loss.info_nce`.

        Parameters
        ----------
        reference, positive : (pairs, latents)
            Scaled embeddings; the references are one another's negatives.
        """
        include = self.settings.include_positive
        if part.name == TIME and self._is_euclidean:
            root = self._time_root()
            return euclidean_info_nce(reference * root, positive * root, include)
        if part.name != TIME and part.similarity == "euclidean":
            own = part.latents
            return euclidean_info_nce(reference[:, own], positive[:, own], include)
        negative = self.cross(part, reference, reference)
        negative = negative.fill_diagonal_(-1e9)  # a frame is not its own negative
        return info_nce(self.pair(part, reference, positive), negative, include).mean()

    def pair(self, part: Part, a: Tensor, b: Tensor) -> Tensor:
        """ψ(x, x⁺) of one part, for scaled embeddings of corresponding frames: (pairs,)."""
        return self._of(pair_similarity, part, a, b)

    def cross(self, part: Part, a: Tensor, b: Tensor) -> Tensor:
        """ψ of one part for every frame of `a` with every frame of `b`."""
        return self._of(cross_similarity, part, a, b)

    def scale(self) -> Tensor:
        """Factor of each latent inside the similarity: τ^(−1/2), or τ^(−1/p): (latents,)."""
        return self.of_latents(torch.exp(-self.log_tau() / self._roots))

    @property
    def on_sphere(self) -> bool:
        """Whether a part is compared by the dot product of unit vectors."""
        return any(part.similarity == "dot" for part in self.parts)

    def tangent(self, directions: Tensor, embedding: Tensor) -> Tensor:
        """Directions w for which wᵀJ_f is vᵀJ of what is compared, where that is a unit vector.

        J of f/‖f‖ is (I − nnᵀ)J_f/‖f‖ with n = f/‖f‖. As n·n′/τ is −‖n − n′‖²/2τ but for a
        constant, its unit in the similarity is (2τ)^(−1/2).

        Parameters
        ----------
        directions : (frames, k, latents)
        embedding : (frames, latents)
        """
        pieces = []
        temperature = torch.exp(self.log_tau())
        for part, tau in zip(self.parts, temperature, strict=True):
            v = directions[:, :, part.latents]
            if part.similarity == "dot":
                own = embedding[:, part.latents]
                norm = own.norm(dim=1, keepdim=True).clamp(min=1e-6)
                unit = (own / norm)[:, None]
                v = (v - (v * unit).sum(2, keepdim=True) * unit) / norm[:, None]
                v = v * torch.rsqrt(2 * tau)
            pieces.append(v)
        return torch.cat(pieces, dim=2)

    def log_tau(self) -> Tensor:
        """Log τ of each part: learned but not below a least one, or as given: (parts,)."""
        if not self.log_temperature.requires_grad:
            return self.log_temperature
        least = self.log_temperature.clamp(min=math.log(LEAST_TEMPERATURE))
        return torch.where(self._learned, least, self.log_temperature.detach())

    def _of(self, measure: Callable[..., Tensor], part: Part, a: Tensor, b: Tensor) -> Tensor:
        """ψ_G = Σ_i φ_i(f_i(x), f_i(y)) of time, which covers the whole embedding (Eq. 25).

        Of a behaviour part, `_own`.
        """
        if part.name != TIME:
            return self._own(measure, part, a, b)
        if self._is_euclidean:
            root = self._time_root()
            return measure(a * root, b * root, "euclidean")
        weights = torch.exp(self.log_time_weight)
        terms = [w * self._own(measure, p, a, b) for w, p in zip(weights, self.parts, strict=True)]
        return torch.stack(terms).sum(0)

    @property
    def _is_euclidean(self) -> bool:
        return all(part.similarity == "euclidean" for part in self.parts)

    def _time_root(self) -> Tensor:
        """Factor of each latent inside the time objective, if all are Euclidean: (latents,)."""
        return self.of_latents(torch.exp(self.log_time_weight / 2))

    def _own(self, measure: Callable[..., Tensor], part: Part, a: Tensor, b: Tensor) -> Tensor:
        """ψ_i = φ_i(f_i(x), f_i(y)) / τ_i on the latents of a part (Eq. 24).

        Except on the sphere, τ is already in the scale of the latents.
        """
        a, b = a[:, part.latents], b[:, part.latents]
        similarity = measure(a, b, part.similarity, self.settings.power)
        if part.similarity != "dot":
            return similarity
        return similarity * torch.exp(-self.log_tau()[self.parts.index(part)])

    def of_latents(self, values: Tensor) -> Tensor:
        """Value of its part for each latent: (latents,)."""
        return values.index_select(0, self._part_of_latent)
