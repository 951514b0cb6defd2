"""Measures InfoNCE on blocks of time, with partners from other blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.sampling import LabelNeighbours
from napari_xcebra.learn.data.split import Frames
from napari_xcebra.learn.objective.loss import info_nce

if TYPE_CHECKING:
    from napari_xcebra.learn.training.training import Training

SCALES = (1.0, 1.4, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.06, 0.03, 0.01)
"""Factors on ψ that are tried when goodness is measured; near 0 it is at chance."""


@dataclass(frozen=True)
class Blocks:
    """Frames on which a fit is measured.

    Parameters
    ----------
    frames : Frames
    number : (frames,) int64
        Block a frame belongs to, −1 outside.
    """

    frames: Frames
    number: np.ndarray

    def where_known(self, labels: Labels | None) -> np.ndarray:
        """Blocks in which the labels are known somewhere; all of them if there are no labels."""
        anchors = self.frames.anchors
        if labels is not None:
            anchors = anchors[labels.known[anchors]]
        return np.unique(self.number[anchors])


@dataclass(frozen=True)
class Size:
    """Number of pairs drawn from each block."""

    references: int = 512
    negatives: int = 512

    @property
    def chance(self) -> float:
        """Upper bound of InfoNCE, log N, which an encoder that knows nothing reaches (Eq. 26)."""
        return float(np.log(self.negatives))


@dataclass(frozen=True)
class Pairs:
    """Frames of one block, their positive partners, and the negatives that all of them share."""

    reference: np.ndarray
    positive: np.ndarray
    negative: np.ndarray


def draw_pairs(
    part: Part, labels: Labels | None, among: Blocks, size: Size, seed: int
) -> list[Pairs]:
    """Pairs of every block that has some.

    Within a block everything that is slow looks alike; partners from elsewhere, positive and
    negative, make sure that only the label can bring them together. A time pair cannot leave
    its block, so there only the negatives come from elsewhere.

    Parameters
    ----------
    labels : Labels or None
        None for the time part.
    """
    drawn = [_block_pairs(part, labels, among, b, size, seed) for b in among.where_known(labels)]
    return [pairs for pairs in drawn if pairs is not None]


def _block_pairs(
    part: Part,
    labels: Labels | None,
    among: Blocks,
    block: int,
    size: Size,
    seed: int,
) -> Pairs | None:
    rng = np.random.default_rng([seed, block])
    anchors, number = among.frames.anchors, among.number
    if labels is None:
        starts = among.frames.pairs(part.offset)
        inside, neighbours = starts[number[starts] == block], None
    else:
        inside, neighbours = matched_inside(part, labels, among, block)
    elsewhere = anchors[number[anchors] != block]
    if len(inside) == 0 or len(elsewhere) == 0:
        return None
    reference = inside[rng.integers(len(inside), size=size.references)]
    positive = neighbours.draw(reference, rng) if neighbours else reference + part.offset
    negative = elsewhere[rng.integers(len(elsewhere), size=size.negatives)]
    return Pairs(reference, positive, negative)


def matched_inside(
    part: Part, labels: Labels, among: Blocks, block: int
) -> tuple[np.ndarray, LabelNeighbours]:
    """References of one block that have label neighbours in the others, and how to find them."""
    anchors, offset = among.frames.anchors, part.offset
    known = anchors[labels.known[anchors]]
    steps = labels.steps(among.frames.pairs(offset), offset)
    elsewhere = known[among.number[known] != block]
    inside = known[among.number[known] == block]
    neighbours = LabelNeighbours(labels, elsewhere, steps, offset)
    if len(steps) == 0 or len(elsewhere) == 0:
        return inside[:0], neighbours
    return neighbours.matched(inside), neighbours


def pair_losses(
    training: Training,
    part: Part,
    pairs: list[Pairs],
    embedding: np.ndarray,
    scales: Sequence[float] = (1.0,),
) -> np.ndarray:
    """InfoNCE in every block, with ψ multiplied by each of these: (scales, blocks).

    Parameters
    ----------
    embedding : (frames, latents)
        In the units of the similarity, at the frames of the pairs at least.
    """
    losses = []
    for each in pairs:
        a, b, c = (
            torch.as_tensor(embedding[frames], device=training.device)
            for frames in (each.reference, each.positive, each.negative)
        )
        alike, apart = training.psi.pair(part, a, b), training.psi.cross(part, a, c)
        losses.append([float(info_nce(s * alike, s * apart).mean()) for s in scales])
    return np.array(losses).T


def calibrated(losses: np.ndarray) -> np.ndarray:
    """Loss of each block with the scale of ψ that is best in all the others: (blocks,).

    An overconfident encoder has a temperature that does not fit, and may still know the label. One
    number for all blocks, never chosen on the block it is used in, corrects that.

    Parameters
    ----------
    losses : (scales, blocks)
    """
    others = losses.sum(1, keepdims=True) - losses
    return losses[others.argmin(0), np.arange(losses.shape[1])]


def labels_of(training: Training, part: Part) -> Labels | None:
    """Labels of a behaviour part; None for time."""
    return None if part.name == TIME else training.labels[part.name]
