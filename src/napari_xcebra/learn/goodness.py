"""How well a factor is in the cells, on held-out blocks of time (Theorem 1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from napari_xcebra.learn.objective import info_nce
from napari_xcebra.learn.parts import TIME, Part
from napari_xcebra.learn.sampling import LabelNeighbours
from napari_xcebra.learn.training import Training
from napari_xcebra.recording import InputError

REFERENCES = 512
"""References a block on which InfoNCE is measured, and negatives of each."""


@dataclass(frozen=True)
class Goodness:
    """How well one factor is found in the cells, on frames the encoder never saw.

    Parameters
    ----------
    factor : str
    infonce : float
        Held-out InfoNCE in nats, the mean over blocks; NaN for a supervised fit.
    chance : float
        log N, what an encoder that knows nothing reaches.
    goodness : float
        chance − InfoNCE in nats; for a supervised fit, the nats that its R² is worth.
    error : float
        Standard error of `goodness` over blocks.
    training : float
        The same on training frames; far above `goodness` means overfitting.
    r2 : float
        Held-out R² of a linear decoder from the factor's latents to its variables; NaN for time.
    above_chance : bool
        Whether a map of this factor means anything.
    """

    factor: str
    infonce: float
    chance: float
    goodness: float
    error: float
    training: float
    r2: float
    above_chance: bool

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        measured = f"{self.goodness:.2f} ± {self.error:.2f} nats above chance on held-out data"
        if self.factor == TIME:
            found = "The time latents find" if self.above_chance else "The time latents find no"
            return f"{found} structure that lasts beyond chance ({measured})."
        if not self.above_chance:
            return f"{self.factor} is at chance in these cells ({measured}): its map means nothing."
        strength = "clearly" if self.goodness > 0.5 else "weakly"
        sentence = f"{self.factor} is {strength} in these cells ({measured}, R² {self.r2:.2f})."
        if self.training - self.goodness > max(0.5, self.goodness):
            sentence += " The fit is much better on its training frames: it overfits."
        return sentence

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)


@torch.no_grad()
def measure_goodness(training: Training) -> dict[str, Goodness]:
    """Goodness of every part of a trained embedding."""
    seen = _some(training.split.training.anchors, 20_000)
    embedding = embed(training, np.concatenate([training.split.held_out.anchors, seen]))
    result = {}
    for part in training.parts:
        if training.settings.mode == "supervised":
            result[part.name] = _supervised_goodness(training, part, embedding, seen)
        else:
            result[part.name] = _contrastive_goodness(training, part, embedding, seen)
    return result


def embed(training: Training, frames: np.ndarray) -> np.ndarray:
    """Embedding in the units of the similarity at these frames, NaN elsewhere."""
    embedding = np.full((len(training.data.rows), training.encoder.latents), np.nan, np.float32)
    scale = training.scale()
    for chunk in np.array_split(frames, max(1, len(frames) // 4096)):
        embedding[chunk] = (training.encoder(training.data[chunk]) * scale).cpu().numpy()
    return embedding


def _contrastive_goodness(
    training: Training, part: Part, embedding: np.ndarray, seen: np.ndarray
) -> Goodness:
    losses = np.array([_block_loss(training, part, embedding, b) for b in _blocks(training, part)])
    losses = losses[np.isfinite(losses)]
    if len(losses) < 2:
        raise InputError(
            f"Factor {part.name!r} has values that no two held-out blocks share: the fit cannot "
            "be measured; use more blocks, or a variable that repeats."
        )
    chance = float(np.log(REFERENCES))
    goodness = chance - losses
    mean, error = float(goodness.mean()), _standard_error(goodness)
    fitted = np.nanmean(training.history[part.name][-20:])
    return Goodness(
        part.name,
        infonce=float(losses.mean()),
        chance=chance,
        goodness=mean,
        error=error,
        training=float(np.log(training.negatives) - fitted),
        r2=float("nan") if part.name == TIME else _decoded(training, part, embedding, seen)[0],
        above_chance=is_above_chance(mean, error),
    )


def _blocks(training: Training, part: Part) -> np.ndarray:
    """Held-out blocks in which the labels of a part are known somewhere."""
    anchors = training.split.held_out.anchors
    if part.name != TIME:
        anchors = anchors[training.labels[part.name].known[anchors]]
    blocks = np.unique(training.split.block[anchors])
    if len(blocks) < 2:
        raise InputError(
            f"The variables of factor {part.name!r} are known in {len(blocks)} of the "
            f"{training.settings.blocks} held-out blocks: at least 2 are needed."
        )
    return blocks


def is_above_chance(goodness: float, error: float) -> bool:
    """Above chance by a margin that matters, and by more than its error explains."""
    return goodness > 0.02 and goodness > 3 * error


def _block_loss(training: Training, part: Part, embedding: np.ndarray, block: int) -> float:
    """InfoNCE of references in one block, with all partners from other blocks.

    Within a block everything that is slow looks alike; partners from elsewhere, positive and
    negative, make sure that only the label can bring them together. A time pair cannot leave
    its block, so there only the negatives come from elsewhere.
    """
    rng = np.random.default_rng([training.settings.seed, block])
    anchors, number = training.split.held_out.anchors, training.split.block
    if part.name == TIME:
        starts = training.split.held_out.pairs(part.offset)
        reference = _drawn(starts[number[starts] == block], rng)
        positive = reference + part.offset
    else:
        known = training.labels[part.name].known
        neighbours = _elsewhere(training, part, block)
        inside = neighbours.matched(anchors[(number[anchors] == block) & known[anchors]])
        if len(inside) == 0:
            return float("nan")
        reference = _drawn(inside, rng)
        positive = neighbours.draw(reference, rng)
    negative = _drawn(anchors[number[anchors] != block], rng)
    a, b, c = (
        torch.as_tensor(embedding[frames], device=training.device)
        for frames in (reference, positive, negative)
    )
    return float(info_nce(training.pair(part, a, b), training.cross(part, a, c)).mean())


def _drawn(frames: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return frames[rng.integers(len(frames), size=REFERENCES)]


def _elsewhere(training: Training, part: Part, block: int) -> LabelNeighbours:
    """Finds label neighbours in the other held-out blocks."""
    labels, offset = training.labels[part.name], part.offset
    anchors, starts = training.split.held_out.anchors, training.split.held_out.pairs(offset)
    candidates = anchors[(training.split.block[anchors] != block) & labels.known[anchors]]
    steps = starts[labels.known[starts] & labels.known[starts + offset]]
    return LabelNeighbours(labels, candidates, steps, offset)


def _decoded(
    training: Training, part: Part, embedding: np.ndarray, seen: np.ndarray
) -> tuple[float, np.ndarray]:
    """Held-out R² of a linear decoder, over all blocks and within each."""
    labels, number = training.labels[part.name], training.split.block
    targets = labels.targets()
    seen = seen[labels.known[seen]]
    unseen = training.split.held_out.anchors
    unseen = unseen[labels.known[unseen]]
    latents = embedding[:, part.latents]
    design = np.c_[np.ones(len(seen)), latents[seen]]
    weights, *_ = np.linalg.lstsq(design, targets[seen], rcond=1e-6)
    residual = targets[unseen] - np.c_[np.ones(len(unseen)), latents[unseen]] @ weights
    spread = targets[unseen] - targets[seen].mean(0)
    squares, total = np.square(residual).sum(1), np.square(spread).sum(1)
    blocks = [number[unseen] == b for b in _blocks(training, part)]
    each = np.array([1 - squares[b].sum() / total[b].sum() for b in blocks])
    return float(1 - squares.sum() / total.sum()), each


def _supervised_goodness(
    training: Training, part: Part, embedding: np.ndarray, seen: np.ndarray
) -> Goodness:
    """For regression InfoNCE has no meaning: R² takes its place, −½ log(1 − R²) its unit."""
    r2, each = _decoded(training, part, embedding, seen)
    nats = -0.5 * np.log1p(-np.clip(each, -50, 0.9999))
    mean, error = float(nats.mean()), _standard_error(nats)
    fitted = 1 - np.nanmean(training.history[part.name][-20:])
    return Goodness(
        part.name,
        infonce=float("nan"),
        chance=float("nan"),
        goodness=mean,
        error=error,
        training=float(-0.5 * np.log1p(-np.clip(fitted, -50, 0.9999))),
        r2=r2,
        above_chance=is_above_chance(mean, error),
    )


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _some(frames: np.ndarray, most: int) -> np.ndarray:
    return frames[:: max(1, len(frames) // most)]
