"""Chance as a tested statement: what labels shifted in time reach with the same encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from napari_xcebra.learn.block_loss import Blocks
from napari_xcebra.learn.labels import Labels, correlation_time

SHIFTS = 99
"""Shifts of the labels; the smallest p is 1 / (SHIFTS + 1)."""

LEAST_SAMPLES = 10
"""Independent samples below which nothing can be said: any two slow things look alike."""

SAMPLED = 512
"""Held-out frames on which shifted labels are tried."""

NAN = float("nan")


@dataclass(frozen=True)
class Chance:
    """What shifted labels reach.

    Parameters
    ----------
    p : float
        Share of the shifts, the true labels among them, that reach what the true labels reach;
        NaN if it was not tested.
    low, high : float
        5 and 95 % of what shifted labels reach, in nats; NaN if it was not tested.
    samples : float
        Independent samples of the label: frames / frames after which it has forgotten itself.
    """

    p: float = NAN
    low: float = NAN
    high: float = NAN
    samples: float = NAN


def tested(labels: Labels, segment: np.ndarray, reached: Callable[[Labels], float]) -> Chance:
    """Test a goodness against labels shifted around the recording, by more than they remember.

    The encoder is that of the true labels. Labels that have nothing to do with the cells are as
    likely to reach more than any shift of them as to reach less, however slow they are; shifted
    around in even steps they keep their autocorrelation.

    Parameters
    ----------
    segment : (frames,) int64
        Trial of each frame.
    reached : callable
        Goodness on held-out frames for any labels.
    """
    frames = len(labels.known)
    memory = correlation_time(labels, segment, frames // 2)
    samples = labels.known.sum() / memory
    if samples < LEAST_SAMPLES:
        return Chance(samples=float(samples))
    shifts = np.linspace(memory, frames - memory, SHIFTS).round().astype(int)
    null = np.array([reached(shifted(labels, shift)) for shift in shifts])
    null = null[np.isfinite(null)]
    low, high = np.quantile(null, [0.05, 0.95])
    p = (1 + (null >= reached(labels)).sum()) / (1 + len(null))
    return Chance(float(p), float(low), float(high), float(samples))


def shifted(labels: Labels, frames: int) -> Labels:
    """Labels moved by so many frames, the last ones to the beginning."""
    return replace(labels, **{n: np.roll(v, frames, axis=0) for n, v in vars(labels).items()})


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

    def goodness(self, labels: Labels) -> float:
        """Log N − InfoNCE with positives by these labels; NaN if there are none."""
        rng = np.random.default_rng(0)
        known = labels.known[self.starts] & labels.known[self.starts + self.offset]
        if not known.any():
            return NAN
        start = rng.choice(self.starts[known], size=len(self.frames))
        target = labels.moved(self.frames, start, start + self.offset)
        distance = self._distance(target, labels, rng)
        positive = distance.argmin(1)
        rows = np.flatnonzero(np.isfinite(distance.min(1)))
        return float(self.nats[rows, positive[rows]].mean()) if len(rows) else NAN

    def _distance(self, target: np.ndarray, labels: Labels, rng: np.random.Generator) -> np.ndarray:
        """Of the labels of all frames from the targets, infinite where there can be no pair."""
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
