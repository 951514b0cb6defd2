"""Computes what a training step minimises: the loss of every part, and the Jacobian penalty.

A regression on the labels is the loss of the supervised mode, and the readout of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.sampling import Batch
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.objective.loss import Psi, penalty_directions
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.standardise import standardised

if TYPE_CHECKING:
    from napari_xcebra.learn.device import FrameData


class Objective:
    """Regularised contrastive learning, or regularised regression in supervised mode.

    Parameters
    ----------
    encoder : Encoder
        f.
    data : FrameData
        Inputs x by frame number.
    labels : mapping of str to Labels
        By factor.
    hide : float
        Largest share of the cells that is hidden from the encoder.
    """

    def __init__(
        self,
        encoder: Encoder,
        data: FrameData,
        labels: Mapping[str, Labels],
        parts: Sequence[Part],
        settings: FitSettings,
        hide: float,
    ) -> None:
        self.encoder, self.data, self.parts = encoder, data, parts
        self.settings, self.hide, self.device = settings, hide, data.device
        self.psi = Psi(parts, settings, self.device)
        self.regression = _LabelLoss(labels, parts, self.device)

    def loss(self, batch: Batch, lambdas: Sequence[float], seed: int) -> tuple[Tensor, Tensor]:
        """L_N[ψ; λ] = E[Σ_i ℓ(x, x_i⁺, {x⁻}) + λ‖J_f(x)‖²_F] of a batch (Eq. 10; Eq. 15).

        Parameters
        ----------
        lambdas : (parts,) float
            λ of each part i; rows of J_f are weighted by it.
        seed : int
            Of what is drawn beside the batch: hidden cells and random projections.

        Returns
        -------
        ()
            To be minimised; with the linear readout beside InfoNCE that the settings ask for.
        (parts + 1,)
            Loss of each part and ‖J_f‖²_F, detached; NaN for the latter while λ is 0.
        """
        largest = max(lambdas)
        scale = self.psi.scale()
        directions = None
        if largest > 0:
            shares = [(value / largest) ** 0.5 for value in lambdas]
            each = zip(shares, self.parts, strict=True)
            weighted = torch.cat([share * scale[part.latents] for share, part in each])
            directions = self._penalty_directions(weighted, seed)
        if self.settings.mode == "supervised":
            frames = torch.as_tensor(batch.reference, device=self.device)
            x = self._seen(batch.reference, frames, seed)
            embedding, squared = self.encoder.embed(x, directions)
            losses = self.regression.losses(embedding, frames)
            loss = losses.sum()
        else:
            losses, loss, squared = self._contrastive(batch, directions, scale, seed)
        penalty = squared.mean()  # NaN of none
        if largest > 0:
            loss = loss + largest * penalty
        return loss, torch.cat([losses.detach(), penalty.detach()[None]])

    def _contrastive(
        self, batch: Batch, directions: Tensor | None, scale: Tensor, seed: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """InfoNCE of every part, their sum with the readout, and ‖J_f‖²_F of some frames.

        The batch is encoded once, its references are the negatives.
        """
        rows = {name: batch.rows(name) for name in batch.label}
        groups = [batch.reference, *(batch.label[name][own] for name, own in rows.items())]
        if self.parts[-1].name == TIME:
            groups.append(batch.time)
        sizes = [len(group) for group in groups]
        # all that a step needs of the host, in one go
        wanted = np.concatenate([*groups, *rows.values()])
        sent = torch.as_tensor(wanted, device=self.device)
        frames, *of_part = sent.split([sum(sizes), *map(len, rows.values())])
        on_device = dict(zip(rows, of_part, strict=True))
        x = self._seen(wanted[: sum(sizes)], frames, seed)
        embedding, squared = self.embed(x, directions)
        reference, *positives = (embedding * scale).split(sizes)
        losses = torch.stack(
            [
                self._info_nce(part, reference, positive, batch, on_device.get(part.name))
                for part, positive in zip(self.parts, positives, strict=True)
            ]
        )
        loss = losses.sum()
        if self.settings.readout and self.regression.labels:
            own, here = embedding[: sizes[0]], frames[: sizes[0]]
            known = {name: len(found) for name, found in rows.items()}
            loss = loss + self.settings.readout * self.regression.readout(own, here, known)
        return losses, loss, squared

    def _seen(self, frames: np.ndarray, on_device: Tensor, seed: int) -> Tensor:
        """Inputs of these frames, with cells hidden; their numbers are on the device as well."""
        return self.data.seen(on_device, self.hide, seed)

    def embed(self, x: Tensor, directions: Tensor | None) -> tuple[Tensor, Tensor]:
        """Embedding, and ‖J‖²_F of some frames: of unit vectors where these are compared."""
        if directions is None or not self.psi.on_sphere:
            return self.encoder.embed(x, directions)
        embedding, activations = self.encoder.trace(x)
        some = [each[: len(directions)] for each in activations]
        directions = self.psi.tangent(directions, embedding[: len(directions)])
        return embedding, self.encoder.pullback(directions, some).square().flatten(1).sum(1)

    def _info_nce(
        self,
        part: Part,
        reference: Tensor,
        positive: Tensor,
        batch: Batch,
        rows: Tensor | None,
    ) -> Tensor:
        """InfoNCE of a part, over the references that have a positive (all if not given)."""
        if rows is not None and len(rows) < len(reference):
            if len(rows) < 2:
                return reference.sum() * 0
            reference = reference.index_select(0, rows)
        return self.psi.info_nce(part, reference, positive)

    def _penalty_directions(self, scale: Tensor, seed: int) -> Tensor:
        settings = self.settings
        exact = settings.penalty == "exact" or (
            settings.penalty == "auto" and self.encoder.latents <= 16
        )
        rows = min(settings.penalty_batch, settings.batch_size)
        if exact:
            return penalty_directions(rows, scale)
        return penalty_directions(rows, scale, settings.projections, seed)


class _LabelLoss:
    """Squared errors of an embedding that should equal the labels of each factor."""

    def __init__(
        self, labels: Mapping[str, Labels], parts: Sequence[Part], device: torch.device
    ) -> None:
        self.labels, self.parts, self.device = labels, parts, device

    def losses(self, embedding: Tensor, frames: Tensor) -> Tensor:
        """Mean squared error of every part where its label is known, for the supervised mode."""
        errors = []
        for part in self.parts:
            known = self.known[part.name].index_select(0, frames)[:, None]
            wanted = self.targets[part.name].index_select(0, frames)
            missed = ((embedding[:, part.latents] - wanted) * known).square().mean(1).sum()
            errors.append(missed / known.sum().clamp(min=1))
        return torch.stack(errors)

    def readout(self, embedding: Tensor, frames: Tensor, known: Mapping[str, int]) -> Tensor:
        """Share of each factor's variance that its best linear readout misses, summed: ().

        The readout is that of the batch, in closed form. It does not depend on the scale of the
        embedding, which InfoNCE sets: the two agree, and InfoNCE alone, which looks at steps, is
        slow to tell large differences apart and fast to overfit.

        Parameters
        ----------
        embedding, frames : (n, latents), (n,) int64
        known : mapping of str to int
            Of these frames, those at which each factor is known.
        """
        error = torch.zeros((), device=self.device)
        for part in self.parts:
            if part.name == TIME:
                continue
            count = known[part.name]
            if count <= part.stop - part.start + 1:
                continue
            # frames at which a label is not known weigh nothing: to pick the others, the host
            # would have to send their numbers, or wait for the device
            there = self.known[part.name].index_select(0, frames)[:, None]
            columns = (embedding[:, part.latents], self.targets[part.name].index_select(0, frames))
            latents, wanted = ((each - (each * there).sum(0) / count) * there for each in columns)
            error = error + _missed(latents, wanted, count)
        return error

    @cached_property
    def known(self) -> dict[str, Tensor]:
        """Where each factor is known, 1 and 0: (frames,) float32."""
        return {
            name: torch.as_tensor(each.known.astype(np.float32)).to(self.device)
            for name, each in self.labels.items()
        }

    @cached_property
    def targets(self) -> dict[str, Tensor]:
        """Targets of each factor's latents, 0 where it is not known: (frames, latents)."""
        wanted = {}
        for name, labels in self.labels.items():
            values = standardised(labels.targets(), labels.known).astype(np.float32)
            values[~labels.known] = 0
            wanted[name] = torch.from_numpy(values).to(self.device)
        return wanted


def _missed(latents: Tensor, wanted: Tensor, count: int) -> Tensor:
    """Share of the variance of `wanted` that no linear map of the latents gives, both centred.

    Parameters
    ----------
    count : int
        Rows that count; the others are 0.
    """
    with torch.no_grad():
        product = latents.t() @ latents
        faint = 1e-4 * product.diagonal().mean() + 1e-12
        eye = torch.eye(len(product), device=product.device, dtype=product.dtype)
        weights = torch.linalg.solve(product + faint * eye, latents.t() @ wanted)
    # the weights are the best ones: to first order nothing changes by them
    share: Tensor = (wanted - latents @ weights).square().sum()
    return share / wanted.square().sum().clamp(min=1e-6 * count * wanted.shape[1])
