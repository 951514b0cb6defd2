"""Draws positive pairs (paper Sec. 3): by time, and by label through a k-d tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.split import UsableFrames

DRAWN_AHEAD = 32
"""Steps whose pairs are drawn at once: one call of the k-d tree serves them all."""

_JITTER = 1e-4

RARE, EVERY = 0.2, 4
"""Share of a value, in that of an even one, below which every fourth reference is drawn in balance.

Of a state in 1 to 3 % of the frames that gains 0.01 nats for 0.01 of R²; with every second, R²
falls by 0.05 to 0.1."""


@dataclass(frozen=True)
class Batch:
    """Frame numbers of one batch.

    Parameters
    ----------
    reference : (n,) int64
    time : (n,) int64
        Reference + offset.
    label : mapping of factor to (n,) int64
        Frame whose label is nearest to that of the reference plus a step; −1 where the label of
        the reference is not known.
    """

    reference: np.ndarray
    time: np.ndarray
    label: Mapping[str, np.ndarray]

    def rows(self, factor: str) -> np.ndarray:
        """References that have a positive of this factor: (some,) int64."""
        return np.flatnonzero(self.label[factor] >= 0)


class LabelNeighbours:
    """Finds the frame whose label is nearest to c(t) + Δ.

    Parameters
    ----------
    candidates : (n,) int64
        Frames that may be found; all have known labels.
    starts, offset : (m,) int64, int
        Steps Δ are drawn from c(start + offset) − c(start).
    """

    def __init__(
        self, labels: Labels, candidates: np.ndarray, starts: np.ndarray, offset: int
    ) -> None:
        self.labels, self.starts, self.offset = labels, starts, offset
        order = np.argsort(labels.code[candidates], kind="stable")
        self._candidates = candidates[order]
        codes = np.arange(labels.n_codes + 1)
        self._bounds = np.searchsorted(labels.code[self._candidates], codes)
        self._trees = [] if labels.is_discrete else [self._tree(code) for code in codes[:-1]]

    def _tree(self, code: int) -> cKDTree:
        points = self.labels.points(self._frames(code))
        # an animal at rest gives many equal labels: a trace of noise makes ties fall at random
        jitter = np.random.default_rng(code).normal(scale=_JITTER, size=points.shape)
        return cKDTree(points + jitter, balanced_tree=False, compact_nodes=False)

    def _frames(self, code: int) -> np.ndarray:
        return self._candidates[self._bounds[code] : self._bounds[code + 1]]

    def matched(self, frames: np.ndarray) -> np.ndarray:
        """Those frames whose discrete value some candidate shares: (n,) int64."""
        code = self.labels.code[frames]
        return frames[self._bounds[code + 1] > self._bounds[code]]

    def draw(self, reference: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Positive partner of each reference, all of them `matched`: (n,) int64."""
        if self.labels.is_discrete:
            return self._same_value(reference, rng)
        start = self.starts[rng.integers(len(self.starts), size=len(reference))]
        target = self.labels.moved(reference, start, start + self.offset)
        target += rng.normal(scale=_JITTER, size=target.shape)
        positive = np.empty_like(reference)
        code = self.labels.code[reference]
        for value in np.unique(code):
            which = np.flatnonzero(code == value)
            # targets that lie close visit the same branches, which are in the cache by then
            which = which[np.argsort(target[which, 0])]
            positive[which] = self._frames(value)[self._trees[value].query(target[which])[1]]
        return positive

    def _same_value(self, reference: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        code = self.labels.code[reference]
        low, high = self._bounds[code], self._bounds[code + 1]
        return self._candidates[rng.integers(low, high)]


class Sampler:
    """Draws batches whose pairs stay within the runs of `frames`.

    Parameters
    ----------
    labels : mapping of factor name to Labels
    offset : int
        k of the time pair (t, t + k), in frames.
    label_offsets : mapping of factor name to int, optional
        k of each factor's label step, where it is not `offset`.
    balance : bool
        Whether rare values of a discrete label are drawn as often as the others.
    """

    def __init__(
        self,
        frames: UsableFrames,
        labels: Mapping[str, Labels],
        offset: int,
        label_offsets: Mapping[str, int] | None = None,
        balance: bool = True,
    ) -> None:
        self.offset = offset
        self._drawn: tuple[tuple[int, int, int], Batch] | None = None
        starts = frames.pairs(offset)
        known = np.zeros(len(frames.run), bool)
        self._known = {name: label.known for name, label in labels.items()}
        self.neighbours: dict[str, LabelNeighbours] = {}
        for name, label in labels.items():
            known |= label.known
            step = (label_offsets or {}).get(name, offset)
            steps = label.steps(frames.pairs(step), step)
            candidates = frames.anchors[label.known[frames.anchors]]
            if len(steps) == 0:
                raise InputError(
                    f"Factor {name!r} has no two frames {step} apart, within one trial and "
                    "in use, at which its variables are known."
                )
            self.neighbours[name] = LabelNeighbours(label, candidates, steps, step)
        self.references = starts[known[starts]] if labels else starts
        if len(self.references) == 0:
            raise InputError("The variables of the factors are not known at any frame.")
        found = (_values_apart(label, self.references) for label in labels.values())
        self._uneven = [values for values in found if values] if balance else []

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """One batch of `size` references with their positives."""
        reference = self.references[rng.integers(len(self.references), size=size)]
        if self._uneven:
            reference[::EVERY] = self._balanced(len(reference[::EVERY]), rng)
        label = {name: self._positives(name, reference, rng) for name in self.neighbours}
        return Batch(reference, reference + self.offset, label)

    def batch(self, step: int, size: int, seed: int) -> Batch:
        """Batch of a training step, cut from those drawn ahead for several steps."""
        chunk, within = divmod(step, DRAWN_AHEAD)
        if self._drawn is None or self._drawn[0] != (chunk, size, seed):
            drawn = self.draw(size * DRAWN_AHEAD, np.random.default_rng([seed, chunk]))
            self._drawn = (chunk, size, seed), drawn
        drawn = self._drawn[1]
        cut = slice(within * size, (within + 1) * size)
        labels = {name: frames[cut] for name, frames in drawn.label.items()}
        return Batch(drawn.reference[cut], drawn.time[cut], labels)

    def _balanced(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """References with every value of a factor as often as any other: (size,) int64."""
        drawn = np.empty(size, np.int64)
        factor = rng.integers(len(self._uneven), size=size)
        for number, values in enumerate(self._uneven):
            which = np.flatnonzero(factor == number)
            chosen = rng.integers(len(values), size=len(which))
            for value, frames in enumerate(values):
                own = which[chosen == value]
                drawn[own] = frames[rng.integers(len(frames), size=len(own))]
        return drawn

    def _positives(
        self, factor: str, reference: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Partners by label, −1 where the label of a reference is not known: (n,) int64."""
        known = self._known[factor][reference]
        if known.all():
            return self.neighbours[factor].draw(reference, rng)
        positive = np.full(len(reference), -1, np.int64)
        positive[known] = self.neighbours[factor].draw(reference[known], rng)
        return positive


def _values_apart(labels: Labels, references: np.ndarray) -> list[np.ndarray]:
    """References by discrete value, if some value is rare; none if all are about as frequent."""
    known = references[labels.known[references]]
    counts = np.bincount(labels.code[known])
    if (counts > 0).sum() < 2 or counts[counts > 0].min() >= RARE * len(known) / labels.n_codes:
        return []
    return [known[labels.code[known] == value] for value in np.flatnonzero(counts)]
