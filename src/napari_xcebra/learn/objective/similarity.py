"""Computes ψ: similarities with their temperatures, and their weights in the time objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.objective.loss import (
    cross_similarity,
    euclidean_info_nce,
    info_nce,
    pair_similarity,
)
from napari_xcebra.learn.settings import FitSettings

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
