"""Encoders, inputs and objective of several sessions that share one embedding."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.sampling import Batch
from napari_xcebra.learn.model.encoder import Encoder
from napari_xcebra.learn.model.frame_encoder import FrameEncoder
from napari_xcebra.learn.model.window_encoder import WindowEncoder
from napari_xcebra.learn.objective.regularised import Objective
from napari_xcebra.learn.training.device import FrameData

Own = Literal["input layer", "encoder"]
"""Layers that each session has for itself."""


@dataclass(frozen=True)
class JointFrames:
    """Inputs of frames of several sessions.

    Parameters
    ----------
    places : sequence of (n,) int64
        Positions of each session's frames among all.
    inputs : sequence of (n, cells) or (n, cells, window)
        Of each session; cells differ.
    """

    places: Sequence[Tensor]
    inputs: Sequence[Tensor]


class JointData:
    """Inputs of all sessions, gathered by pooled frame number.

    Parameters
    ----------
    sessions : sequence of FrameData
    first : (sessions + 1,) int64
        Pooled frame at which each begins.
    """

    def __init__(self, sessions: Sequence[FrameData], first: np.ndarray) -> None:
        self.sessions, self.first = sessions, first
        self.device = sessions[0].device

    def __len__(self) -> int:
        """Frames of all sessions."""
        return int(self.first[-1])

    def digest(self) -> str:
        """Hash of all inputs, to tell recordings apart."""
        return hashlib.sha256("".join(s.digest() for s in self.sessions).encode()).hexdigest()

    def places_of(self, frames: np.ndarray) -> list[Tensor]:
        """Positions of each session's frames among these: (n,) int64 each."""
        session = np.searchsorted(self.first, frames, side="right") - 1
        numbers = range(len(self.sessions))
        return [torch.as_tensor(np.flatnonzero(session == s), device=self.device) for s in numbers]

    def __getitem__(self, frames: np.ndarray) -> JointFrames:
        """Inputs by session, in the order of the frames within each."""
        places = self.places_of(frames)
        inputs = [
            data[frames[place.cpu().numpy()] - start]
            for data, place, start in zip(self.sessions, places, self.first, strict=False)
        ]
        return JointFrames(places, inputs)

    def seen(self, frames: np.ndarray, hide: float, seed: int) -> JointFrames:
        """The same, with some cells hidden from each frame; other ones in each session."""
        places = self.places_of(frames)
        each = zip(self.sessions, places, self.first, strict=False)
        inputs = [
            data.seen(frames[place.cpu().numpy()] - start, hide, seed + number)
            for number, (data, place, start) in enumerate(each)
        ]
        return JointFrames(places, inputs)

    @property
    def bytes_of_frame(self) -> int:
        """Memory that the inputs of a frame take, at most."""
        return max(session.bytes_of_frame for session in self.sessions)


class JointEncoder(nn.Module):
    """An encoder a session; with `own="input layer"` all that follows the first layer is shared.

    Parameters
    ----------
    encoders : sequence of Encoder
        Of the same shape but for the number of cells.
    own : {"input layer", "encoder"}
    """

    def __init__(self, encoders: Sequence[Encoder], own: Own) -> None:
        super().__init__()
        if own == "input layer":
            for encoder in encoders[1:]:
                share_after_input(encoders[0], encoder)
        self.encoders = nn.ModuleList(encoders)
        self.latents, self.bound = encoders[0].latents, encoders[0].bound

    def __getitem__(self, session: int) -> Encoder:
        """Encoder of one session."""
        return cast(Encoder, self.encoders[session])

    def forward(self, x: JointFrames) -> Tensor:
        """Embedding: (frames, latents)."""
        each = [self[number](inputs) for number, inputs in enumerate(x.inputs)]
        return in_order(each, x.places)

    def embed(self, x: JointFrames, directions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """As `Encoder.embed`: Σ_k ‖v_kᵀ J_f‖² counts the cells of a frame's own session alone."""
        found = [
            self[number].embed(inputs, own)
            for number, (inputs, own) in enumerate(
                zip(x.inputs, _by_session(x.places, directions), strict=True)
            )
        ]
        squared = torch.cat([each for _, each in found])
        return in_order([embedding for embedding, _ in found], x.places), squared


def _by_session(places: Sequence[Tensor], directions: Tensor | None) -> list[Tensor | None]:
    """Directions for the first frames, which are in their order within each session, too."""
    if directions is None:
        return [None] * len(places)
    return [directions[place[place < len(directions)]] for place in places]


def in_order(values: Sequence[Tensor], places: Sequence[Tensor]) -> Tensor:
    """Rows of all sessions, each put in its place."""
    order = torch.argsort(torch.cat(list(places)))
    return torch.cat(list(values)).index_select(0, order)


def share_after_input(one: Encoder, other: Encoder) -> None:
    """Let an encoder share all layers of another but the first, which sees its own cells."""
    if isinstance(one, FrameEncoder) and isinstance(other, FrameEncoder):
        for number in range(1, len(one.layers)):
            other.layers[number] = one.layers[number]
    elif isinstance(one, WindowEncoder) and isinstance(other, WindowEncoder):
        other.skips, other.last = one.skips, one.last
    else:
        raise TypeError(f"{type(one).__name__} and {type(other).__name__} cannot share layers")


class JointObjective(Objective):
    """The objective of several sessions: a time pair has negatives of its own session alone."""

    data: JointData  # type: ignore[assignment]

    def _info_nce(
        self,
        part: Part,
        reference: Tensor,
        positive: Tensor,
        batch: Batch,
        rows: np.ndarray | None,
    ) -> Tensor:
        if part.name != TIME:
            return super()._info_nce(part, reference, positive, batch, rows)
        terms = [
            len(own) * self.psi.info_nce(part, reference[own], positive[own])
            for own in self.data.places_of(batch.reference)
            if len(own) > 1
        ]
        return torch.stack(terms).sum() / len(reference)
