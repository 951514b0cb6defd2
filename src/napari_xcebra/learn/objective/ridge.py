"""Ridge regression: the yardstick beside every fit, and the start of its encoder.

The penalty is chosen on frames set aside from training. A variable is decoded from the latents of
an encoder by the same regression, so that the two can be compared. One decomposition serves all
penalties and all factors; of products of frames where cells are many, so that time and memory grow
with cells, not with their cube.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy  # whose parts are imported when they are first used
import torch
from torch import Tensor

from napari_xcebra.learn.data.labels import Labels
from napari_xcebra.learn.data.split import Split
from napari_xcebra.standardise import mean_and_spread

PENALTIES = 10.0 ** np.arange(-6, 4.5, 0.5)
"""Penalties that are tried, in variances of a column."""

UNCHOSEN = 1.0
"""Penalty where there are no frames to choose it."""

MOST_FRAMES, FEW_FRAMES = 8000, 1500
"""Training frames that a regression is made from: with few columns, and with many."""

MANY_COLUMNS = 1200
"""Columns from which on products of frames are cheaper than products of columns."""

BLOCK_BYTES = 16 * 2**20
"""Rows of predictors in double precision at a time."""

KEPT_BYTES = 32 * 2**20
"""Rows of predictors that are kept; more of them are gathered anew when they are needed."""

LOGISTIC_PENALTY = 1e-3
"""Of a logistic regression on a few latents, on squared weights of standardised columns."""

STRETCHES = 5
"""Stretches of time that are decoded from each other."""

LAGS = 2
"""Frames to either side, in steps of a filter, that a regression may look at."""

Columns = Callable[[np.ndarray], np.ndarray]
"""Rows of predictors at some frames: (frames, columns)."""


@dataclass(frozen=True)
class Ridge:
    """A linear map with an intercept.

    Parameters
    ----------
    weights : (columns, targets) float64
    origin : (columns,) float64
        Means of the columns.
    mean : (targets,) float64
        Means of the targets.
    penalty : float
    r2 : float
        Share of the variance of the targets on the frames that chose the penalty; NaN without.
    """

    weights: np.ndarray
    origin: np.ndarray
    mean: np.ndarray
    penalty: float
    r2: float = float("nan")

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        """Predictions: (frames, targets)."""
        step = max(1, BLOCK_BYTES // (8 * max(columns.shape[1], 1)))
        parts = [columns[at : at + step] for at in range(0, len(columns), step)] or [columns]
        return np.concatenate([(part - self.origin) @ self.weights + self.mean for part in parts])


@dataclass(frozen=True)
class DecodedFactor:
    """A factor decoded by regression on held-out frames.

    Parameters
    ----------
    r2 : float
        Share of the variance of the factor's coordinates (discrete values one-hot), of predictions
        times the factor that is best in the other blocks.
    accuracy : float
        Share of right values; NaN unless the factor is discrete.
    aside_r2 : float
        As `r2`, on frames set aside from training.
    frames : (n,) int64
        Held-out frames at which the factor is known.
    predicted : (n, coordinates) float64
        Less the mean of the training frames.
    penalty : float
        Of the regression.
    """

    r2: float
    accuracy: float
    aside_r2: float
    frames: np.ndarray
    predicted: np.ndarray
    penalty: float


class Rows:
    """Rows of predictors at some frames, and their products: all that regressions need of them.

    Parameters
    ----------
    columns : callable
    frames : (n,) int64
    group : (n,) int64, optional
        Groups of frames that are mostly left out, or not, as a whole.
    """

    def __init__(
        self, columns: Columns, frames: np.ndarray, group: np.ndarray | None = None
    ) -> None:
        self._columns, self.frames = columns, frames
        self._group = np.zeros(len(frames), np.int64) if group is None else group
        self.width = columns(frames[:1]).shape[1]
        self._kept: np.ndarray | None = None
        if 4 * self.width * len(frames) <= KEPT_BYTES:
            self._kept = columns(frames)

    def __len__(self) -> int:
        """Frames."""
        return len(self.frames)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Rows at some of the frames: (n, columns)."""
        return self._columns(self.frames[places]) if self._kept is None else self._kept[places]

    def blocks(self, places: np.ndarray) -> Iterator[tuple[slice, Tensor]]:
        """The same, some at a time, in double precision."""
        step = max(1, BLOCK_BYTES // (8 * self.width))
        for start in range(0, len(places), step):
            here = slice(start, min(start + step, len(places)))
            yield here, torch.from_numpy(self.at(places[here])).double()

    @cached_property
    def by_frame(self) -> Tensor | None:
        """Products of frames with frames, where columns are many: (n, n); None elsewhere."""
        if 2 * self.width <= len(self):
            return None
        rows = torch.from_numpy(self.at(np.arange(len(self))))
        products = torch.zeros(len(self), len(self), dtype=torch.float64)
        for some in rows.split(max(1, BLOCK_BYTES // (8 * len(self))), dim=1):
            wide = some.double()
            products.addmm_(wide, wide.t())
        return products

    def moments(self, inside: np.ndarray) -> tuple[Tensor, Tensor]:
        """Sums of columns over some rows, and of their products: (columns,), (columns, columns).

        Those of all rows, less what is not inside: whole groups are known, the rest is little.
        """
        outside = []
        for number, known in self._of_groups.items():
            own = self._group == number
            if not inside[own].any():
                outside.append(known)
            elif not inside[own].all():
                outside.append(self._moments(np.flatnonzero(own & ~inside)))
        each = zip(*self._of_groups.values(), strict=True)
        total, products = (torch.stack(moments).sum(0) for moments in each)
        for less, fewer in outside:
            total -= less
            products -= fewer
        return total, products

    @cached_property
    def _of_groups(self) -> dict[int, tuple[Tensor, Tensor]]:
        numbers = np.unique(self._group)
        return {int(n): self._moments(np.flatnonzero(self._group == n)) for n in numbers}

    def _moments(self, places: np.ndarray) -> tuple[Tensor, Tensor]:
        total = torch.zeros(self.width, dtype=torch.float64)
        products = torch.zeros(self.width, self.width, dtype=torch.float64)
        for _, block in self.blocks(places):
            total += block.sum(0)
            products.addmm_(block.t(), block)
        return total, products


class Regression:
    """Ridge regressions on some rows, for any targets and penalties.

    Parameters
    ----------
    rows : Rows
    inside : (n,) bool
        Rows that they are made from.
    """

    def __init__(self, rows: Rows, inside: np.ndarray) -> None:
        self.rows, self.places = rows, np.flatnonzero(inside)
        count = max(len(self.places), 1)
        if rows.by_frame is None:
            total, products = rows.moments(inside)
            self._origin = total / count
            self._matrix = products - count * torch.outer(self._origin, self._origin)
        else:
            self._to_mean = rows.by_frame[:, self.places].mean(1)
            self._matrix = self._with_these(self.places)
        self._size = max(float(self._matrix.trace()) / rows.width, 1e-12 * count)

    def _with_these(self, places: np.ndarray) -> Tensor:
        """Products of rows with these rows, all less the mean of these."""
        assert self.rows.by_frame is not None
        own, level = self._to_mean[self.places], self._to_mean[places]
        products = self.rows.by_frame[places][:, self.places]
        return products.sub_(level[:, None]).sub_(own).add_(own.mean())

    @cached_property
    def _decomposed(self) -> tuple[Tensor, Tensor]:
        values, vectors = torch.linalg.eigh(self._matrix)
        return values.clamp_(min=0), vectors

    def chosen(self, targets: np.ndarray, tried: np.ndarray, least: float = 0.0) -> Ridge:
        """Regression with the penalty that predicts other rows best.

        Parameters
        ----------
        targets : (n, k)
            At all rows.
        tried : (n,) bool
            Rows that choose the penalty.
        least : float
            Least penalty.
        """
        penalties, others = PENALTIES[PENALTIES >= least], np.flatnonzero(tried)
        right, mean = self._right(targets)
        values, vectors = self._decomposed
        turned = vectors.t() @ right
        shrunk = values[:, None, None] + torch.from_numpy(penalties)[:, None] * self._size
        solutions = (vectors @ (turned[:, None] / shrunk).flatten(1)).unflatten(
            1, (len(penalties), -1)
        )
        wanted = targets[others] - mean
        predicted = self._predicted(solutions.flatten(1), others).reshape(
            len(others), len(penalties), -1
        )
        missed = np.square(predicted - wanted[:, None]).sum((0, 2))
        best = int(missed.argmin())
        r2 = 1 - float(missed[best]) / max(float(np.square(wanted).sum()), 1e-12)
        return self._ridge(solutions[:, best], mean, float(penalties[best]), r2)

    def at(self, penalty: float, targets: np.ndarray) -> Ridge:
        """Regression with one penalty, of targets at all rows: (n, k)."""
        right, mean = self._right(targets)
        return self._ridge(self._solved(right, penalty), mean, penalty)

    def predicted(self, penalty: float, targets: np.ndarray, places: np.ndarray) -> np.ndarray:
        """What one predicts at other rows, less the mean of the targets: (places, k)."""
        return self._predicted(self._solved(self._right(targets)[0], penalty), places)

    def _right(self, targets: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """Right-hand side of the normal equations, and the means of the targets."""
        own = targets[self.places]
        mean = own.mean(0)
        centred = torch.from_numpy(own - mean)
        if self.rows.by_frame is not None:
            return centred, mean
        return self._across(centred), mean

    def _across(self, values: Tensor) -> Tensor:
        """Σ over rows of each row times its values: (columns, k)."""
        total = torch.zeros(self.rows.width, values.shape[1], dtype=torch.float64)
        for here, block in self.rows.blocks(self.places):
            total.addmm_(block.t(), values[here])
        return total

    def _solved(self, right: Tensor, penalty: float) -> Tensor:
        matrix = self._matrix.clone()
        matrix.diagonal().add_(penalty * self._size)
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if not failed:
            return torch.cholesky_solve(right, factor)
        values, vectors = self._decomposed
        return vectors @ ((vectors.t() @ right) / (values + penalty * self._size)[:, None])

    def _predicted(self, solution: Tensor, places: np.ndarray) -> np.ndarray:
        if self.rows.by_frame is not None:
            return (self._with_these(places) @ solution).numpy()
        level = self._origin @ solution
        parts = [block @ solution - level for _, block in self.rows.blocks(places)]
        return torch.cat([*parts, solution.new_zeros(0, solution.shape[1])]).numpy()

    def _ridge(
        self, solution: Tensor, mean: np.ndarray, penalty: float, r2: float = float("nan")
    ) -> Ridge:
        if self.rows.by_frame is None:
            return Ridge(solution.numpy(), self._origin.numpy(), mean, penalty, r2)
        ones = torch.ones(len(self.places), 1, dtype=torch.float64)
        both = self._across(torch.cat([solution, ones], 1))
        origin = both[:, -1] / max(len(self.places), 1)
        weights = both[:, :-1] - origin[:, None] * solution.sum(0)
        return Ridge(weights.numpy(), origin.numpy(), mean, penalty, r2)


def regressed(x: np.ndarray, y: np.ndarray, penalty: float) -> Ridge:
    """Regression of y, (frames, targets), on x, (frames, columns)."""
    rows = Rows(lambda places: x[places], np.arange(len(x)))
    return Regression(rows, np.ones(len(x), bool)).at(penalty, y)


class Yardstick:
    """Regressions on the training frames of a recording, penalties chosen on those set aside.

    What factors are known at the same frames share, is computed once.

    Parameters
    ----------
    columns : callable
    split : Split
        Held-out frames neither fit nor choose.
    """

    def __init__(self, columns: Columns, split: Split) -> None:
        self.columns, self.split = columns, split
        self._most = MOST_FRAMES
        if columns(split.training.anchors[:1]).shape[1] > MANY_COLUMNS:
            self._most = FEW_FRAMES
        self._of: dict[bytes, _Aside] = {}
        self._everywhere: dict[bytes, Rows] = {}

    def aside(self, labels: Labels) -> _Aside:
        """Frames that a regression is made from, and those that choose its penalty."""
        key = np.packbits(labels.known).tobytes()
        if key not in self._of:
            self._of[key] = _Aside(self.columns, labels, self.split, self._most)
        return self._of[key]

    def decoded(self, labels: Labels) -> DecodedFactor:
        """Decode a factor by such a regression on held-out frames."""
        targets, split = labels.targets(), self.split
        held = thinned(split.held_out.anchors[labels.known[split.held_out.anchors]], MOST_FRAMES)
        regression = self.aside(labels).whole(targets)
        predicted = predict(regression, self.columns, held) - regression.mean
        true = targets[held] - regression.mean
        total = np.square(true).sum()
        scaled = _scaled(predicted, true, split.block[held])
        r2 = 1 - np.square(true - scaled).sum() / total if total > 0 else np.nan
        accuracy = np.nan
        if labels.is_discrete:
            right = (predicted + regression.mean).argmax(1) == labels.code[held]
            accuracy = float(right.mean())
        return DecodedFactor(
            float(r2), accuracy, regression.r2, held, predicted, regression.penalty
        )

    def decoded_everywhere(
        self, labels: Labels, guard: int, penalty: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Decode a factor at all frames, each stretch of them by a regression on the others.

        Parameters
        ----------
        guard : int
            Frames on either side of a stretch that are left out of its regression.
        penalty : float

        Returns
        -------
        (m,) int64
            Frames in use at which the factor is known, thinned.
        (m, coordinates) float64
            Predictions, less the mean of the frames that they are made from.
        """
        split = self.split
        frames = np.union1d(split.training.anchors, split.held_out.anchors)
        known = thinned(frames[labels.known[frames]], self._most)
        key = known.tobytes()
        stretch = np.arange(len(known)) * STRETCHES // max(len(known), 1)
        if key not in self._everywhere:
            self._everywhere = {key: Rows(self.columns, known, stretch)}
        rows, targets = self._everywhere[key], labels.targets()[known]
        predicted = np.zeros((len(known), targets.shape[1]))
        for number in np.unique(stretch):
            own = np.flatnonzero(stretch == number)
            first, last = known[own[0]], known[own[-1]]
            others = (known < first - guard) | (known > last + guard)
            if others.sum() > 1:
                predicted[own] = Regression(rows, others).predicted(penalty, targets, own)
        return known, predicted


class _Aside:
    """Rows of training frames, and of those set aside among them, where labels are known."""

    def __init__(self, columns: Columns, labels: Labels, split: Split, most: int) -> None:
        rest, aside, _ = split.set_aside()
        made, tried = (thinned(f.anchors[labels.known[f.anchors]], most) for f in (rest, aside))
        self.enough = len(made) >= 2 and len(tried) >= 2
        frames = np.concatenate([made, tried])
        if not self.enough:
            frames = thinned(split.training.anchors[labels.known[split.training.anchors]], most)
        self.made, self.tried, self._all = made, tried, frames
        self._is_made = np.arange(len(frames)) < len(made)
        self._rows = Rows(columns, frames, self._is_made.astype(np.int64))

    @cached_property
    def _without(self) -> Regression:
        return Regression(self._rows, self._is_made)

    @cached_property
    def _whole(self) -> Regression:
        return Regression(self._rows, np.ones(len(self._rows), bool))

    def best(self, targets: np.ndarray, least: float = 0.0) -> Ridge:
        """Regression without the frames set aside, which choose its penalty.

        Parameters
        ----------
        targets : (frames, k)
            At all frames of the recording.
        least : float
            Least penalty.
        """
        own = targets[self._all]
        if not self.enough:
            return self._whole.at(UNCHOSEN, own)
        return self._without.chosen(own, ~self._is_made, least)

    def whole(self, targets: np.ndarray, best: Ridge | None = None) -> Ridge:
        """Regression on both, with the penalty of `best`."""
        best = best or self.best(targets)
        return replace(self._whole.at(best.penalty, targets[self._all]), r2=best.r2)


def predict(regression: Ridge, columns: Columns, frames: np.ndarray) -> np.ndarray:
    """Predictions at these frames, some of which are read at a time: (frames, targets)."""
    step = max(1, BLOCK_BYTES // (8 * len(regression.weights)))
    some = [frames[at : at + step] for at in range(0, len(frames), step)] or [frames]
    return np.concatenate([regression(columns(each)) for each in some])


def _scaled(predicted: np.ndarray, true: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Predictions times the factor that is best in all the other blocks: (frames, targets).

    A regression fitted to the training frames is overconfident elsewhere.
    """
    scaled = np.zeros_like(predicted)
    for number in np.unique(block):
        others = block != number
        size = np.square(predicted[others]).sum()
        factor = (predicted[others] * true[others]).sum() / size if size > 0 else 0.0
        scaled[~others] = np.clip(factor, 0, 2) * predicted[~others]
    return scaled


def lagged(rows: Columns, segment: np.ndarray, spacing: int, reach: int = LAGS) -> Columns:
    """Predictors of a frame and of those around it, within its trial.

    Parameters
    ----------
    segment : (frames,) int64
        Trial of each frame.
    spacing : int
        Frames between two lags.
    """
    starts = np.flatnonzero(np.r_[True, segment[1:] != segment[:-1]])
    trial = np.searchsorted(starts, np.arange(len(segment)), side="right") - 1
    first, last = starts[trial], np.r_[starts[1:], len(segment)][trial] - 1

    def columns(frames: np.ndarray) -> np.ndarray:
        around: Sequence[np.ndarray] = [
            rows(np.clip(frames + lag * spacing, first[frames], last[frames]))
            for lag in range(-reach, reach + 1)
        ]
        return np.hstack(around)

    return columns


def thinned(frames: np.ndarray, most: int) -> np.ndarray:
    """At most that many frames, evenly spaced."""
    return frames[:: max(1, -(-len(frames) // most))]


def logistic(
    x: np.ndarray, code: np.ndarray, count: int, penalty: float = LOGISTIC_PENALTY
) -> Callable[[np.ndarray], np.ndarray]:
    """Multinomial logistic regression: gives log probabilities, (n, values), of other rows.

    Parameters
    ----------
    x : (n, columns) float64
    code : (n,) int64
        Values, below `count`.
    count : int
    penalty : float
        On the squared weights of standardised columns, a sample.
    """
    mean, spread = mean_and_spread(x)
    columns, truth = (x - mean) / spread, np.eye(count)[code]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, count)
        told = _log_odds(columns, weights)
        missed = (np.exp(told) - truth) / len(x)
        gradient = np.vstack([columns.T @ missed + penalty * weights[:-1], missed.sum(0)])
        value = -(told * truth).sum() / len(x) + penalty / 2 * np.square(weights[:-1]).sum()
        return float(value), gradient.ravel()

    start = np.zeros((x.shape[1] + 1) * count)
    best = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x.reshape(-1, count)
    return partial(_log_odds_of, weights=best, mean=mean, spread=spread)


def _log_odds(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Log probabilities of each value at each standardised row."""
    scores = rows @ weights[:-1] + weights[-1]
    return scores - scipy.special.logsumexp(scores, axis=1, keepdims=True)


def _log_odds_of(
    rows: np.ndarray, weights: np.ndarray, mean: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    return _log_odds((rows - mean) / spread, weights)
