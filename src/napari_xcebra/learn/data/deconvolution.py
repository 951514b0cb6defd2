"""Finds one filter over time for all cells that undoes delay and decay of the indicator.

Fluorescence follows activity late and lingers, by the same kernel in every cell. So the frames
around a frame tell of its behaviour, weighted alike in all cells: a few weights over time and one
weight a cell tell as much of it as a weight for every cell at every lag, with a fraction of the
parameters (results/ordinary.md, "What the encoder sees"). The weights over time
are found by regression on the labels, in turn with those of the cells, and used where they predict
stretches of time that they were not fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from napari_xcebra.learn.data.factors import TrainingPlan
from napari_xcebra.learn.data.inputs import (
    CLIP,
    Filter,
    Inputs,
    ReadInputs,
    columns_in_use,
    inputs_for,
)
from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.smoothing import gaussian_kernel, smoothed
from napari_xcebra.learn.data.split import Split
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.objective.ridge import (
    Columns,
    Regression,
    Ridge,
    Rows,
    lagged,
    thinned,
)
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.standardise import standardised

SPACING = 0.25
"""Seconds between two weights."""

REACH = 2
"""Weights to either side."""

CELLS, VALUES, FRAMES = 300, 30_000_000, 5000
"""Cells, values and training frames at most from which a filter is found."""

FOLDS = 4
"""Folds of the training frames; each is left out once."""

TURNS = 10
"""Turns between the weights over time and those of the cells: they change little after that."""

SAME = 1e-3
"""Change of the largest weight over time below which they are taken for found."""

GAIN = 0.02
"""Share of the error that a filter must save on stretches it was not fitted to."""

SHRUNK = 1e-3
"""Penalty on the weights over time, in mean variances of what they weigh."""


def deconvolved_inputs(
    recording: Recording,
    plan: TrainingPlan,
    split: Split,
    settings: FitSettings,
    report: Callable[[], object] = lambda: None,
) -> tuple[Inputs, np.ndarray | ReadInputs]:
    """Inputs of a run, with the filter of its plan, or the one found on its training frames.

    An encoder with a window learns its own filter.

    Returns
    -------
    As `inputs_for`.
    """
    filter_ = plan.filter or Filter()
    if plan.filter is None and settings.deconvolve and settings.window == 1:
        with limited_threads(settings.threads):
            filter_ = _find_filter(recording, plan.labels, split, settings)
    return inputs_for(recording, split.training.anchors, settings, filter_, report)


def spacing_of(rate: float) -> int:
    """Frames between two weights."""
    return max(1, round(SPACING * rate))


def _find_filter(
    recording: Recording, labels: Mapping[str, Labels], split: Split, settings: FitSettings
) -> Filter:
    """Find the filter of a recording; one that does nothing where none predicts better.

    Parameters
    ----------
    labels : mapping of str to Labels
        Of every factor.
    split : Split
        Training frames alone are used.
    """
    columns = columns_in_use(recording, settings)
    few = min(CELLS, VALUES // recording.n_frames, len(columns))
    if not labels or few < 1:
        return Filter()
    cells = columns[np.linspace(0, len(columns) - 1, few).round().astype(np.int64)]
    traces = _standardised_traces(recording, cells, split.training.anchors, settings)
    spacing = spacing_of(recording.rate)
    every = lagged(lambda frames: traces[frames], recording.segment, spacing, REACH)
    problem = _FilterProblem.of(every, labels, split)
    if problem is None:
        return Filter()
    weights = problem.solved()
    return Filter() if weights is None else Filter(tuple(weights.tolist()), spacing)


def _standardised_traces(
    recording: Recording, cells: np.ndarray, frames: np.ndarray, settings: FitSettings
) -> np.ndarray:
    """Smoothed traces of some cells with mean 0 and variance 1 over these frames."""
    kernel = gaussian_kernel(settings.smoothing * recording.rate)
    chunks = [each for _, each in smoothed(recording, cells, kernel)]
    return np.clip(standardised(np.concatenate(chunks), frames), -CLIP, CLIP)


class _FilterProblem:
    """Training frames in stretches between held-out blocks, every fourth one in a fold.

    Weights of the cells are fitted to three folds and applied to the fourth, where the weights over
    time are found.

    Parameters
    ----------
    lags : (frames, lags, cells) float32
    targets : list of (frames, k) float64
        Of each factor, centred, with total variance 1; NaN where it is not known.
    stretch : (frames,) int64
    """

    def __init__(self, lags: np.ndarray, targets: list[np.ndarray], stretch: np.ndarray) -> None:
        self.lags, self.targets, self.stretch = lags, targets, stretch
        self.nothing = np.eye(lags.shape[1])[lags.shape[1] // 2]

    @classmethod
    def of(
        cls, every: Columns, labels: Mapping[str, Labels], split: Split
    ) -> _FilterProblem | None:
        """The problem of a recording; None if it has too few stretches."""
        stretch = np.maximum.accumulate(split.block) + 1
        frames = thinned(split.training.anchors, FRAMES)
        if len(np.unique(stretch[frames])) < 4:
            return None
        lags = every(frames).reshape(len(frames), 2 * REACH + 1, -1)
        targets = []
        for each in labels.values():
            known = each.known[frames]
            values = np.where(known[:, None], each.targets()[frames], np.nan)
            values = values - np.nanmean(values, 0)
            targets.append(values / np.sqrt(max(np.nansum(np.square(values)) / known.sum(), 1e-12)))
        return cls(lags, targets, stretch[frames])

    def solved(self) -> np.ndarray | None:
        """Weights over time; None if they save too little."""
        weights, plain = self.nothing, 0.0
        penalties: dict[tuple[int, int], float] = {}
        for turn in range(TURNS):
            products, before, total = self._products(weights, penalties)
            if turn == 0:
                plain = self._plain(products, before, total)
            solution = _solution(products, before)
            if not solution.any():  # cells that never move
                return None
            last, weights = weights, solution / np.linalg.norm(solution)
            if np.abs(weights - last).max() < SAME:
                break
        products, before, total = self._products(weights, {})
        missed = 0.0
        for own in range(len(products)):
            others = [i for i in range(len(products)) if i != own]
            made = _solution([products[i] for i in others], [before[i] for i in others])
            missed += _missed(products[own], before[own], total[own], made)
        return weights if missed < (1 - GAIN) * plain else None

    def _plain(
        self, products: list[np.ndarray], before: list[np.ndarray], total: list[float]
    ) -> float:
        """Squared error without a filter, at the best scale."""
        least = max(self.nothing @ np.sum(products, 0) @ self.nothing, 1e-12)
        weights = self.nothing * (self.nothing @ np.sum(before, 0) / least)
        each = zip(products, before, total, strict=True)
        return sum(_missed(product, own, all_, weights) for product, own, all_ in each)

    def _products(
        self, weights: np.ndarray, penalties: dict[tuple[int, int], float]
    ) -> tuple[list[np.ndarray], list[np.ndarray], list[float]]:
        """Normal equations of the weights over time, stretch by stretch.

        Parameters
        ----------
        penalties : dict
            Of each target and fold, from an earlier turn; those that lack are chosen and added.
        """
        filtered = np.einsum("flc,l->fc", self.lags, weights, optimize=True).astype(np.float64)
        stretches = np.unique(self.stretch)
        lags = self.lags.shape[1]
        products = [np.zeros((lags, lags)) for _ in stretches]
        before = [np.zeros(lags) for _ in stretches]
        total = [0.0 for _ in stretches]
        known_at = [~np.isnan(target).any(1) for target in self.targets]
        shared: dict[bytes, _Folds] = {}
        for which, (target, known) in enumerate(zip(self.targets, known_at, strict=True)):
            key = known.tobytes()
            if key not in shared:
                shared[key] = _Folds(filtered, known, self.stretch % FOLDS)
            for fold in range(FOLDS):
                used = known & (self.stretch % FOLDS == fold)
                if known.sum() - used.sum() < 2 or used.sum() < 2:
                    continue
                cells = shared[key].fitted(fold, target, penalties.get((which, fold)))
                penalties[which, fold] = cells.penalty
                told = self.lags[used] @ cells.weights.astype(np.float32)  # frames, lags, k
                told = told - told.mean(0)
                wanted = target[used] - target[used].mean(0)
                for number, stretch in enumerate(stretches):
                    own = self.stretch[used] == stretch
                    x = told[own].transpose(0, 2, 1).reshape(-1, lags).astype(np.float64)
                    y = wanted[own].ravel()
                    products[number] += x.T @ x / known.sum()
                    before[number] += x.T @ y / known.sum()
                    total[number] += float(y @ y) / known.sum()
        return products, before, total


class _Folds:
    """Regressions on all folds but one, for all targets that are known at the same frames."""

    def __init__(self, filtered: np.ndarray, known: np.ndarray, fold: np.ndarray) -> None:
        self._known, self._fold = known, fold[known]
        self._rows = Rows(lambda frames: filtered[frames], np.flatnonzero(known), self._fold)
        self._without: dict[int, Regression] = {}

    def fitted(self, fold: int, target: np.ndarray, penalty: float | None) -> Ridge:
        """Regression of a target without a fold, which chooses the penalty if there is none."""
        inside = self._fold == fold
        if fold not in self._without:
            self._without[fold] = Regression(self._rows, ~inside)
        made = self._without[fold]
        if penalty is None:
            return made.chosen(target[self._known], inside)
        return made.at(penalty, target[self._known])


def _solution(products: list[np.ndarray], before: list[np.ndarray]) -> np.ndarray:
    matrix = np.sum(products, 0)
    shrunk = SHRUNK * max(np.trace(matrix) / len(matrix), 1e-12) * np.eye(len(matrix))
    weights: np.ndarray = np.linalg.solve(matrix + shrunk, np.sum(before, 0))
    return weights


def _missed(product: np.ndarray, before: np.ndarray, total: float, weights: np.ndarray) -> float:
    """Squared error of weights in a stretch."""
    return float(total - 2 * weights @ before + weights @ product @ weights)
