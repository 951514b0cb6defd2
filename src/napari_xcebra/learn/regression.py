"""Regression on the labels: the supervised mode, and what is read out in the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.parts import TIME, Part


class Regression:
    """Squared errors of an embedding that is to be the labels.

    Parameters
    ----------
    labels : mapping of str to Labels
        By factor.
    parts : sequence of Part
    device : torch.device
    """

    def __init__(
        self, labels: Mapping[str, Labels], parts: Sequence[Part], device: torch.device
    ) -> None:
        self.labels, self.parts, self.device = labels, parts, device

    def losses(self, embedding: Tensor, frames: np.ndarray) -> Tensor:
        """Mean squared error of every part where its label is known, for the supervised mode."""
        errors = []
        for part in self.parts:
            known = np.flatnonzero(self.labels[part.name].known[frames])
            wanted = self.targets[part.name][frames[known]]
            missed = (embedding[known][:, part.latents] - wanted).square()
            errors.append(missed.mean() if len(known) else embedding.sum() * 0)
        return torch.stack(errors)

    def readout(self, embedding: Tensor, frames: np.ndarray) -> Tensor:
        """What the best linear readout of each factor misses, as a share of its variance: ().

        The readout is that of the batch, in closed form. It does not depend on the scale of the
        embedding, which InfoNCE sets: the two agree, and InfoNCE alone, which looks at steps, is
        slow to tell large differences apart and fast to overfit.
        """
        error = torch.zeros((), device=self.device)
        for part in self.parts:
            if part.name == TIME:
                continue
            known = np.flatnonzero(self.labels[part.name].known[frames])
            if len(known) <= part.stop - part.start + 1:
                continue
            latents = embedding[known][:, part.latents]
            wanted = self.targets[part.name][frames[known]]
            error = error + _missed(latents - latents.mean(0), wanted - wanted.mean(0))
        return error

    @cached_property
    def targets(self) -> dict[str, Tensor]:
        """What each factor's latents are to be: (frames, latents)."""
        return {
            name: torch.as_tensor(_standardised(label.targets(), label.known)).to(self.device)
            for name, label in self.labels.items()
        }


def _missed(latents: Tensor, wanted: Tensor) -> Tensor:
    """Share of the variance of `wanted` that no linear map of the latents gives, both centred."""
    with torch.no_grad():
        product = latents.t() @ latents
        faint = 1e-4 * product.diagonal().mean() + 1e-12
        eye = torch.eye(len(product), device=product.device, dtype=product.dtype)
        weights = torch.linalg.solve(product + faint * eye, latents.t() @ wanted)
    # the weights are the best ones: to first order nothing changes by them
    share: Tensor = (wanted - latents @ weights).square().mean()
    return share / wanted.square().mean().clamp(min=1e-6)


def _standardised(targets: np.ndarray, known: np.ndarray) -> np.ndarray:
    mean, scale = targets[known].mean(0), targets[known].std(0)
    return ((targets - mean) / np.where(scale > 0, scale, 1)).astype(np.float32)
