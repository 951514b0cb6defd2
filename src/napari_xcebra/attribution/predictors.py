"""What a trace is predicted from: bases of the observed variables, as the indicator shows them.

A factor's variables become columns in which any smooth tuning is a weighted sum: cubic splines of
a variable, their products for two that belong together (such as x and y), harmonics of an angle,
a column a value of a discrete variable. Each column then decays as the indicator does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # whose parts are imported when they are first used

from napari_xcebra.learn.labels import Labels
from napari_xcebra.learn.parts import TIME, Part
from napari_xcebra.learn.split import Frames
from napari_xcebra.recording import Recording

SPLINES, SPLINES_OF_TWO, FEWEST_SPLINES = 8, 7, 4
"""Splines of a variable that stands alone, of each of two together, and of each of many."""
HARMONICS = 4
DRIFTS = 4
"""Slow cosines over the whole recording, for bleaching and the like."""


@dataclass(frozen=True)
class Basis:
    """Columns of one factor.

    Parameters
    ----------
    labels : Labels
    knots : tuple of (knots,) float64
        Of each continuous column, by its quantiles.
    latest : (frames,) int64
        Last frame at which the label was known, the first such frame before that.
    """

    labels: Labels
    knots: tuple[np.ndarray, ...]
    latest: np.ndarray

    @classmethod
    def of(cls, labels: Labels) -> Basis:
        """Basis by the number of columns that the labels have."""
        columns = labels.linear.shape[1]
        splines = SPLINES_OF_TWO if columns == 2 else SPLINES if columns < 6 else FEWEST_SPLINES
        known = np.flatnonzero(labels.known)
        knots = tuple(_knots(column[known], splines) for column in labels.linear.T)
        position = np.searchsorted(known, np.arange(len(labels.known)), side="right") - 1
        return cls(labels, knots, known[np.maximum(position, 0)])

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Columns at these frames, before the indicator: (frames, columns) float64."""
        at, labels = self.latest[frames], self.labels
        columns = [splines(labels.linear[at, i], knots) for i, knots in enumerate(self.knots)]
        if len(columns) == 2:
            columns = [(columns[0][:, :, None] * columns[1][:, None]).reshape(len(at), -1)]
        turns = np.arange(1, HARMONICS + 1)
        for angle in labels.angles[at].T:
            columns += [np.cos(angle[:, None] * turns), np.sin(angle[:, None] * turns)]
        if labels.n_codes > 1:
            columns.append(np.eye(labels.n_codes)[labels.code[at]])
        return np.hstack(columns)


@dataclass(frozen=True)
class Predictors:
    """Columns of all behaviour factors and of slow drift.

    Parameters
    ----------
    bases : mapping of str to Basis
    columns : mapping of str to slice
        Which columns stand for which factor; those of "drift" come first.
    run : (frames,) int64
        Stretch of frames without a gap that a frame belongs to; the indicator forgets between.
    decay : float
        Of the indicator, in frames; 0 for none.
    """

    bases: Mapping[str, Basis]
    columns: Mapping[str, slice]
    run: np.ndarray
    decay: float

    @classmethod
    def of(cls, recording: Recording, parts: Sequence[Part]) -> Predictors:
        """Predictors for the behaviour factors among these parts, with no indicator yet."""
        bases = {
            part.name: Basis.of(Labels.of(recording, part.variables, part.name))
            for part in parts
            if part.name != TIME
        }
        columns, stop = {"drift": slice(0, DRIFTS)}, DRIFTS
        for name, basis in bases.items():
            width = basis.rows(np.zeros(1, np.int64)).shape[1]
            columns[name] = slice(stop, stop + width)
            stop += width
        usable = ~np.asarray(recording.excluded)
        run = Frames.within(usable, recording.segment, 1).run
        return cls(bases, columns, run, 0.0)

    @property
    def width(self) -> int:
        """Number of columns."""
        return max(span.stop for span in self.columns.values())

    @property
    def known(self) -> np.ndarray:
        """(frames,) bool, where the labels of all factors are known."""
        known = [basis.labels.known for basis in self.bases.values()]
        return np.logical_and.reduce(known) if known else np.ones(len(self.run), bool)

    def rows(self, frames: np.ndarray) -> np.ndarray:
        """Columns at ascending frames that lie near each other: (frames, columns) float32."""
        first = max(0, int(frames[0]) - int(np.ceil(5 * self.decay)))
        stretch = np.arange(first, int(frames[-1]) + 1)
        phase = np.pi * (frames + 0.5) / len(self.run)
        drift = np.cos(phase[:, None] * np.arange(1, DRIFTS + 1))
        if not self.bases:
            return drift.astype(np.float32)
        observed = np.hstack([basis.rows(stretch) for basis in self.bases.values()])
        shown = self._decayed(observed, self.run[stretch])
        return np.hstack([drift, shown[frames - first]]).astype(np.float32)

    def _decayed(self, columns: np.ndarray, run: np.ndarray) -> np.ndarray:
        """Columns as an indicator shows them that starts each run in balance."""
        if self.decay == 0:
            return columns
        keep = np.exp(-1 / self.decay)
        shown = np.empty_like(columns)
        edges = np.r_[0, np.flatnonzero(np.diff(run)) + 1, len(run)]
        for start, stop in pairwise(edges):
            x = columns[start:stop]
            shown[start:stop] = scipy.signal.lfilter(
                [1 - keep], [1, -keep], x, axis=0, zi=keep * x[:1]
            )[0]
        return shown


def splines(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Cubic splines, constant beyond the outermost knots: (values, knots + 2) float64."""
    padded = np.r_[[knots[0]] * 3, knots, [knots[-1]] * 3]
    inside = np.clip(values, knots[0], knots[-1])
    return scipy.interpolate.BSpline.design_matrix(inside, padded, 3).toarray()


def _knots(values: np.ndarray, count: int) -> np.ndarray:
    """Knots for so many splines, at even quantiles; fewer where values repeat."""
    knots = np.unique(np.quantile(values, np.linspace(0, 1, count - 2)))
    if len(knots) == 1:
        knots = np.array([values.min(), values.max()])
    return knots if knots[-1] > knots[0] else knots[0] + np.array([0.0, 1.0])
