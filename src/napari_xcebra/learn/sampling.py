"""Positive pairs (paper Sec. 3): by time, and by label through a k-d tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.split import Frames
from napari_xcebra.recording import InputError

_JITTER = 1e-4


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
    """

    def __init__(
        self,
        frames: Frames,
        labels: Mapping[str, Labels],
        offset: int,
        label_offsets: Mapping[str, int] | None = None,
    ) -> None:
        self.offset = offset
        starts = frames.pairs(offset)
        known = np.zeros(len(frames.run), bool)
        self._known = {name: label.known for name, label in labels.items()}
        self.neighbours: dict[str, LabelNeighbours] = {}
        for name, label in labels.items():
            known |= label.known
            step = (label_offsets or {}).get(name, offset)
            steps = frames.pairs(step)
            steps = steps[label.known[steps] & label.known[steps + step]]
            candidates = frames.anchors[label.known[frames.anchors]]
            if len(steps) == 0:
                raise InputError(
                    f"Factor {name!r} has no two frames {step} apart, within one trial and "
                    "in use, at which its variables are known."
                )
            self.neighbours[name] = LabelNeighbours(label, candidates, steps, step)
        self.references = starts[known[starts]] if labels else starts
        if len(self.references) == 0:
            raise InputError("There is no frame at which the variables of any factor are known.")

    def draw(self, size: int, rng: np.random.Generator) -> Batch:
        """One batch of `size` references with their positives."""
        reference = self.references[rng.integers(len(self.references), size=size)]
        label = {name: self._positives(name, reference, rng) for name in self.neighbours}
        return Batch(reference, reference + self.offset, label)

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
