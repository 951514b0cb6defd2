"""How well a factor is in the cells, on held-out blocks of time (Theorem 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from napari_xcebra.learn.block_loss import (
    Blocks,
    Size,
    draw_pairs,
    labels_of,
    matched_inside,
    pair_losses,
)
from napari_xcebra.learn.chance import NAN, Chance, Sample, tested
from napari_xcebra.learn.device import embedded
from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.parts import TIME, Part
from napari_xcebra.learn.split import Frames
from napari_xcebra.learn.training import Training
from napari_xcebra.learn.verdict import LARGEST_P, Goodness
from napari_xcebra.recording import InputError

SIZE = Size()
"""Pairs of each block on which InfoNCE is measured."""


@torch.no_grad()
def measure_goodness(training: Training) -> dict[str, Goodness]:
    """Goodness of every part of a trained embedding."""
    unseen, seen = Blocks(training.split.held_out, training.split.block), _seen(training)
    both = np.concatenate([unseen.frames.anchors, seen.frames.anchors])
    embedding = embed(training, both)
    measure = (
        _supervised_goodness if training.settings.mode == "supervised" else _contrastive_goodness
    )
    return {part.name: measure(training, part, embedding, unseen, seen) for part in training.parts}


def check_measurable(training: Training) -> None:
    """Raise before training what would leave a fit that cannot be measured."""
    unseen = Blocks(training.split.held_out, training.split.block)
    for part in training.parts:
        blocks = _blocks(training, part, unseen)
        if part.name == TIME or training.settings.mode == "supervised":
            continue
        if training.labels[part.name].n_codes > 1:
            labels = training.labels[part.name]
            matched = [len(matched_inside(part, labels, unseen, b)[0]) > 0 for b in blocks]
            if sum(matched) < 2:
                raise InputError(
                    f"Factor {part.name!r} has values that no two held-out blocks share: the fit "
                    "could not be measured; use fewer `blocks`, or a variable that repeats."
                )


def _seen(training: Training) -> Blocks:
    """As many stretches of training frames as there are held-out blocks, 20,000 at most."""
    number = np.full(len(training.split.block), -1, np.int64)
    stretches = np.array_split(training.split.training.anchors, training.settings.blocks)
    most = 20_000 // training.settings.blocks
    for block, anchors in enumerate(stretches):
        number[anchors[:most]] = block
    return Blocks(Frames(np.flatnonzero(number >= 0), training.split.training.run), number)


def embed(training: Training, frames: np.ndarray) -> np.ndarray:
    """Embedding in the units of the similarity at these frames, NaN elsewhere."""
    scale = training.scale().detach().cpu().numpy()
    return embedded(training.encoder, training.data, frames) * scale


def _contrastive_goodness(
    training: Training, part: Part, embedding: np.ndarray, unseen: Blocks, seen: Blocks
) -> Goodness:
    labels = labels_of(training, part)
    losses = _losses(training, part, labels, embedding, unseen)
    mean, error, r2, chance = SIZE.chance - float(losses.mean()), _standard_error(losses), NAN, None
    if labels is not None:
        r2 = _decoded(training, part, labels, embedding, unseen, seen)[0]
        sample = _sample(training, part, embedding, unseen)
        chance = tested(labels, training.segment, sample.goodness)
    known = _losses(training, part, labels, embedding, seen)
    return Goodness(
        part.name,
        infonce=float(losses.mean()),
        chance=SIZE.chance,
        goodness=mean,
        error=error,
        training=SIZE.chance - float(known.mean()),
        r2=r2,
        **_judged(mean, error, chance or Chance()),
    )


def _sample(training: Training, part: Part, embedding: np.ndarray, unseen: Blocks) -> Sample:
    frames = Sample.of(unseen)
    x = torch.as_tensor(embedding[frames], device=training.device)
    similarity = training.cross(part, x, x).double().cpu().numpy()
    return Sample(frames, similarity, unseen, part.offset)


def _blocks(training: Training, part: Part, among: Blocks) -> np.ndarray:
    """Blocks in which the labels of a part are known somewhere."""
    blocks = among.where_known(labels_of(training, part))
    if len(blocks) < 2:
        raise InputError(
            f"The variables of factor {part.name!r} are known in {len(blocks)} of the "
            f"{training.settings.blocks} held-out blocks: at least 2 are needed."
        )
    return blocks


def is_above_chance(goodness: float, error: float, p: float = NAN) -> bool:
    """Above chance by a margin that matters, and by more than chance explains.

    What chance explains is what shifted labels reach; where they could not be tried (`p` is NaN),
    the error over blocks has to do, with a wider margin.
    """
    if np.isnan(p):
        return goodness > 0.02 and goodness > 3 * error
    return goodness > 0.005 and p <= LARGEST_P


def _judged(goodness: float, error: float, chance: Chance) -> dict[str, Any]:
    return {
        "above_chance": is_above_chance(goodness, error, chance.p),
        "p": chance.p,
        "null_low": chance.low,
        "null_high": chance.high,
        "samples": chance.samples,
    }


def _losses(
    training: Training,
    part: Part,
    labels: Labels | None,
    embedding: np.ndarray,
    among: Blocks,
) -> np.ndarray:
    """InfoNCE in every block: (blocks,)."""
    pairs = draw_pairs(part, labels, among, SIZE, training.settings.seed)
    return pair_losses(training, part, pairs, embedding)


def _decoded(
    training: Training,
    part: Part,
    labels: Labels,
    embedding: np.ndarray,
    unseen: Blocks,
    seen: Blocks,
) -> tuple[float, np.ndarray]:
    """Held-out R² of a linear decoder, over all blocks and within each."""
    targets, latents = labels.targets(), embedding[:, part.latents]
    fitted, held = (b.frames.anchors[labels.known[b.frames.anchors]] for b in (seen, unseen))
    design = np.c_[np.ones(len(fitted)), latents[fitted]]
    weights, *_ = np.linalg.lstsq(design, targets[fitted], rcond=1e-6)
    residual = targets[held] - np.c_[np.ones(len(held)), latents[held]] @ weights
    spread = targets[held] - targets[fitted].mean(0)
    squares, total = np.square(residual).sum(1), np.square(spread).sum(1)
    blocks = [unseen.number[held] == b for b in unseen.where_known(labels)]
    each = np.array([1 - squares[b].sum() / total[b].sum() for b in blocks])
    return float(1 - squares.sum() / total.sum()), each


def _supervised_goodness(
    training: Training, part: Part, embedding: np.ndarray, unseen: Blocks, seen: Blocks
) -> Goodness:
    """For regression InfoNCE has no meaning: R² takes its place, −½ log(1 − R²) its unit."""
    labels = training.labels[part.name]
    r2, each = _decoded(training, part, labels, embedding, unseen, seen)
    known, _ = _decoded(training, part, labels, embedding, seen, seen)
    nats = _nats(each)
    mean, error = float(nats.mean()), _standard_error(nats)

    def reached(shifted: Labels) -> float:
        return float(_nats(_decoded(training, part, shifted, embedding, unseen, seen)[1]).mean())

    return Goodness(
        part.name,
        infonce=NAN,
        chance=NAN,
        goodness=mean,
        error=error,
        training=float(_nats(np.array(known))),
        r2=r2,
        **_judged(mean, error, tested(labels, training.segment, reached)),
    )


def _nats(r2: np.ndarray) -> np.ndarray:
    return -0.5 * np.log1p(-np.clip(r2, -50, 0.9999))


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
