"""Regression on the labels: the supervised mode, and the first steps of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.parts import Part, part_named


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
        """Mean squared error of every part, for the supervised mode: (parts,)."""
        errors = [
            (embedding[:, part.latents] - self.targets[part.name][frames]).square().mean()
            for part in self.parts
        ]
        return torch.stack(errors)

    def warm_up(self, embedding: Tensor, frames: np.ndarray) -> Tensor:
        """Squared distance of the embedding from the labels, for while InfoNCE settles: ().

        InfoNCE has optima in which a label is folded over, and the penalty, once it comes, may
        hold a latent at nothing; an encoder that has seen the labels starts out of their reach.
        """
        error = torch.zeros((), device=self.device)
        for name, labels in self.labels.items():
            latents = part_named(name, self.parts).latents
            if labels.n_codes > 1 or labels.dimensions != latents.stop - latents.start:
                continue
            points = torch.as_tensor(labels.points(frames), dtype=torch.float32)
            error = error + (embedding[:, latents] - points.to(self.device)).square().mean()
        return error

    @cached_property
    def targets(self) -> dict[str, Tensor]:
        """What each factor's latents are to be: (frames, latents)."""
        return {
            name: torch.as_tensor(_standardised(label.targets(), label.known)).to(self.device)
            for name, label in self.labels.items()
        }


def _standardised(targets: np.ndarray, known: np.ndarray) -> np.ndarray:
    mean, scale = targets[known].mean(0), targets[known].std(0)
    return ((targets - mean) / np.where(scale > 0, scale, 1)).astype(np.float32)
