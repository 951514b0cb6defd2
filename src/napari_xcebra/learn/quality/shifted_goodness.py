"""Measures the goodness that shifted labels reach, to show beside that of the label."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.objective.block_loss import Blocks
from napari_xcebra.learn.objective.ridge import thinned
from napari_xcebra.learn.quality.chance import Shifts, rearranged

DRAWN = 49
"""Shifts whose goodness is measured."""

SAMPLED = 512
"""Held-out frames on which it is measured."""

NAN = float("nan")


class Sample:
    """Held-out frames among which goodness is measured anew for any labels, at little cost.

    Only which pairs are positive depends on the labels; the similarities do not.

    Parameters
    ----------
    frames : (n,) int64
    similarity : (n, n) float
        ψ between them.
    among : Blocks
        Held-out frames; partners come from other blocks.
    offset : int
        Frames over which the labels step.
    """

    def __init__(
        self, frames: np.ndarray, similarity: np.ndarray, among: Blocks, offset: int
    ) -> None:
        block = among.number[frames]
        self.frames, self.offset = frames, offset
        self.same_block = block[:, None] == block
        negatives = np.where(self.same_block, -np.inf, similarity)
        elsewhere = (~self.same_block).sum(1)
        # log N − InfoNCE of every pair that might be positive
        self.nats = similarity - (logsumexp(negatives, axis=1) - np.log(elsewhere))[:, None]
        self.starts = among.frames.pairs(offset)

    @staticmethod
    def of(among: Blocks) -> np.ndarray:
        """Frames to take: evenly spaced, 512 or a few more at most."""
        anchors = among.frames.anchors
        return anchors[:: max(1, len(anchors) // SAMPLED)]

    def null(self, labels: Labels, shifts: Shifts) -> tuple[float, float]:
        """5 and 95 % of what shifted labels reach, in nats; NaN without any."""
        some = thinned(np.arange(len(shifts)), DRAWN)
        null = np.array([self.goodness(rearranged(labels, shifts.source(n))) for n in some])
        null = null[np.isfinite(null)]
        if len(null) == 0:
            return NAN, NAN
        low, high = np.quantile(null, [0.05, 0.95])
        return float(low), float(high)

    def goodness(self, labels: Labels) -> float:
        """Log N − InfoNCE with positives by these labels; NaN if there are none."""
        rng = np.random.default_rng(0)
        starts = labels.steps(self.starts, self.offset)
        if len(starts) == 0:
            return NAN
        start = rng.choice(starts, size=len(self.frames))
        target = labels.moved(self.frames, start, start + self.offset)
        if not labels.near.all():  # far from an event all frames are alike
            target += rng.normal(scale=1e-4, size=target.shape)
        distance = self._distance(target, labels, rng)
        positive = distance.argmin(1)
        rows = np.flatnonzero(np.isfinite(distance.min(1)))
        return float(self.nats[rows, positive[rows]].mean()) if len(rows) else NAN

    def _distance(self, target: np.ndarray, labels: Labels, rng: np.random.Generator) -> np.ndarray:
        """Distances of all labels from the targets, infinite where there can be no pair."""
        if labels.is_discrete:
            distance = rng.random(self.nats.shape)
        else:
            points = labels.points(self.frames)
            # a trace of noise makes ties fall at random
            points += rng.normal(scale=1e-4, size=points.shape)
            distance = cdist(target, points, "sqeuclidean")
        distance[self.same_block] = np.inf
        if labels.n_codes > 1:
            code = labels.code[self.frames]
            distance[code[:, None] != code] = np.inf
        missing = ~labels.known[self.frames]
        distance[missing] = distance[:, missing] = np.inf
        return distance
