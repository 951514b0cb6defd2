"""Ridge regression: the yardstick beside every fit, and the start of its encoder.

The penalty is chosen on frames set aside from training. A variable is decoded from the latents of
an encoder by the same regression, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are imported when they are first used

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
        predicted: np.ndarray = (columns - self.origin) @ self.weights + self.mean
        return predicted


@dataclass(frozen=True)
class Decoded:
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


def regressed(x: np.ndarray, y: np.ndarray, penalty: float) -> Ridge:
    """Regression of y, (frames, targets), on x, (frames, columns)."""
    origin, mean = x.mean(0), y.mean(0)
    return Ridge(_solutions(x - origin, y - mean)(penalty), origin, mean, penalty)


def fitted(
    x: np.ndarray, y: np.ndarray, tried: tuple[np.ndarray, np.ndarray], least: float = 0.0
) -> Ridge:
    """Regression of y on x, with the penalty that predicts other frames best.

    Parameters
    ----------
    x, y : (frames, columns), (frames, targets)
    tried : (other frames, columns), (other frames, targets)
        Frames that choose the penalty.
    least : float
        Least penalty.
    """
    origin, mean = x.mean(0), y.mean(0)
    solve = _solutions(x - origin, y - mean)
    missed = {
        penalty: np.square((tried[0] - origin) @ solve(penalty) + mean - tried[1]).sum()
        for penalty in PENALTIES[PENALTIES >= least]
    }
    best = min(missed, key=lambda penalty: missed[penalty])
    total = max(float(np.square(tried[1] - mean).sum()), 1e-12)
    return Ridge(solve(best), origin, mean, float(best), 1 - float(missed[best]) / total)


def _solutions(x: np.ndarray, y: np.ndarray) -> Callable[[float], np.ndarray]:
    """Weights for any penalty, by one decomposition of the smaller product."""
    frames, columns = x.shape
    size = max(float(np.square(x).mean()), 1e-12) * frames
    if columns <= frames:
        values, vectors = np.linalg.eigh(x.T @ x)
        turned = vectors.T @ (x.T @ y)
        return lambda penalty: (
            vectors @ (turned / (np.maximum(values, 0) + penalty * size)[:, None])
        )
    values, vectors = np.linalg.eigh(x @ x.T)
    turned = vectors.T @ y
    return lambda penalty: (
        x.T @ (vectors @ (turned / (np.maximum(values, 0) + penalty * size)[:, None]))
    )


def chosen_on_aside(
    columns: Columns, labels: Labels, split: Split, targets: np.ndarray, least: float = 0.0
) -> tuple[Ridge, Ridge]:
    """Regression on training frames, its penalty chosen on those set aside among them.

    Parameters
    ----------
    targets : (frames, k)
        At all frames of the recording.
    least : float
        Least penalty.

    Returns
    -------
    Ridge
        Made without the frames set aside.
    Ridge
        Made with them, at the same penalty.
    """
    rest, aside, _ = split.set_aside()
    first = columns(split.training.anchors[:1])
    most = MOST_FRAMES if first.shape[1] <= MANY_COLUMNS else FEW_FRAMES
    made, tried = (thinned(f.anchors[labels.known[f.anchors]], most) for f in (rest, aside))
    if len(made) < 2 or len(tried) < 2:
        every = thinned(split.training.anchors[labels.known[split.training.anchors]], most)
        return (regressed(columns(every), targets[every], UNCHOSEN),) * 2
    there, here = columns(tried), columns(made)
    best = fitted(here, targets[made], (there, targets[tried]), least)
    x, y = np.concatenate([here, there]), np.concatenate([targets[made], targets[tried]])
    return best, replace(regressed(x, y, best.penalty), r2=best.r2)


def decoded(columns: Columns, labels: Labels, split: Split) -> Decoded:
    """Decode a factor by such a regression on held-out frames."""
    targets = labels.targets()
    held = thinned(split.held_out.anchors[labels.known[split.held_out.anchors]], MOST_FRAMES)
    _, regression = chosen_on_aside(columns, labels, split, targets)
    predicted, true = regression(columns(held)) - regression.mean, targets[held] - regression.mean
    total = np.square(true).sum()
    scaled = _scaled(predicted, true, split.block[held])
    r2 = 1 - np.square(true - scaled).sum() / total if total > 0 else np.nan
    accuracy = np.nan
    if labels.is_discrete:
        right = (predicted + regression.mean).argmax(1) == labels.code[held]
        accuracy = float(right.mean())
    return Decoded(float(r2), accuracy, regression.r2, held, predicted, regression.penalty)


def decoded_everywhere(
    columns: Columns, labels: Labels, frames: np.ndarray, guard: int, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Decode a factor at all frames, each stretch of them by a regression on the others.

    Parameters
    ----------
    frames : (n,) int64
        Ascending.
    guard : int
        Frames on either side of a stretch that are left out of its regression.
    penalty : float

    Returns
    -------
    (m,) int64
        Those frames at which the factor is known, thinned.
    (m, coordinates) float64
        Predictions, less the mean of the frames that they are made from.
    """
    targets, known = labels.targets(), frames[labels.known[frames]]
    most = MOST_FRAMES if columns(known[:1]).shape[1] <= MANY_COLUMNS else FEW_FRAMES
    known = thinned(known, most)
    x, predicted = columns(known), np.zeros((len(known), targets.shape[1]))
    for own in np.array_split(np.arange(len(known)), STRETCHES):
        if len(own) == 0:
            continue
        first, last = known[own[0]], known[own[-1]]
        others = (known < first - guard) | (known > last + guard)
        if others.sum() > 1:
            made = regressed(x[others], targets[known[others]], penalty)
            predicted[own] = made(x[own]) - made.mean
    return known, predicted


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

    def log_odds(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        scores = rows @ weights[:-1] + weights[-1]
        return scores - scipy.special.logsumexp(scores, axis=1, keepdims=True)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, count)
        told = log_odds(weights, columns)
        missed = (np.exp(told) - truth) / len(x)
        gradient = np.vstack([columns.T @ missed + penalty * weights[:-1], missed.sum(0)])
        value = -(told * truth).sum() / len(x) + penalty / 2 * np.square(weights[:-1]).sum()
        return float(value), gradient.ravel()

    start = np.zeros((x.shape[1] + 1) * count)
    best = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x.reshape(-1, count)
    return lambda rows: log_odds(best, (rows - mean) / spread)
