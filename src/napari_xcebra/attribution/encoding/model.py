"""Models every cell by all observed variables, slow drift and the unobserved state together.

A cell is predicted from the columns of all factors at once, at its own lag, in held-out blocks of
time. Its trace is read as it was learned: smoothed and standardised. The unobserved state of the
animal is estimated from the time latents of the other cells, as a cell is among the inputs of the
latents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch

from napari_xcebra.attribution.encoding.predictors import Predictors
from napari_xcebra.attribution.encoding.ridge import (
    BlockSums,
    HeldOut,
    fit_held_out,
    held_out_errors,
)
from napari_xcebra.attribution.stream import Stream, take_stretch
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.factors import TIME
from napari_xcebra.learn.data.inputs import CLIP
from napari_xcebra.learn.data.smoothing import gaussian_kernel, radius_of, smoothed
from napari_xcebra.learn.data.split import TRIALS_A_BLOCK
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.recording import Trials
from napari_xcebra.standardise import changes, mean_and_spread

GROUPS = 8
"""Groups of cells, each explained by latents of the other cells."""
WIDEST = 4.0
"""Standard deviations beyond which a latent is clipped before it is squared."""
MOMENT_FRAMES = 8192
"""Frames from which mean, spread and noise of a cell are estimated."""
BLOCKS = 10
"""Stretches of time, each predicted from the others."""
FEWEST_FRAMES = 200
DECAYS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Decay times of the indicator to choose from, in seconds."""
DECAY_FRAMES, DECAY_CELLS, DECAY_LAGS = 10_000, 100, (-0.3, 0.0, 0.3)
"""Frames, cells, and lags in seconds, with which the decay is chosen."""
LAG_STEP, LAG_REACH, LAG_FRAMES, LAG_VALUES = 0.125, 0.75, 20_000, 100_000_000
"""Seconds between tried lags, the longest lag, and the most frames and values used."""
SURE = 2.0
"""Standard errors by which another lag must be better than none."""
GUARD = 1.0
"""Seconds between blocks that are left unused."""
CHUNK_FRAMES, READ_BYTES = 4096, 32 * 2**20
"""Frames, and bytes of traces, read at a time."""
PASS = 0.2
"""Share of the work in each pass: decay, lags, latents, sums and interactions."""


def _time_latents(stream: Stream) -> slice:
    """Latents that no variable is tied to."""
    last = stream.fit.parts[-1]
    return last.latents if last.name == TIME else slice(0, 0)


def cell_groups(cells: int, latents: int, most: int = GROUPS) -> tuple[np.ndarray, ...]:
    """Interleaved groups of cells; one group if there are no latents."""
    count = min(most, cells) if latents else 1
    return tuple(np.arange(first, cells, count) for first in range(count))


def latents_without(
    stream: Stream,
    latents: slice,
    groups: Sequence[np.ndarray],
    watch: Watch,
    moments: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Latents with each group of cells held at its mean, standardised.

    Parameters
    ----------
    latents : slice
        Dimensions of the embedding.
    watch : Watch
        Asked whether to stop.
    moments : (2, groups, 1, latents) float32, optional
        Mean and spread to standardise by; those of these frames if not given.

    Returns
    -------
    (groups, frames, latents) float32
    (2, groups, 1, latents) float32
        Mean and spread.
    """
    found = np.empty((len(groups), len(stream.frames), latents.stop - latents.start), np.float32)
    if found.shape[2] == 0:
        return found, np.ones((2, len(groups), 1, 0), np.float32)
    done = 0
    with limited_threads(stream.fit.settings.threads), torch.no_grad():
        for x in stream.chunks(copies=1):
            embeddings = stream.encoder.without(x, groups)
            for rows, embedding in zip(found, embeddings, strict=True):
                rows[done : done + len(x)] = embedding[:, latents].cpu().numpy()
            done += len(x)
            watch.advance(0)  # may stop here
    if moments is None:
        moments = np.stack(mean_and_spread(found, axis=1))
    # in place: copies of all frames may be large
    found -= moments[0]
    found /= moments[1]
    return found, moments


def state_columns(latents: np.ndarray) -> np.ndarray:
    """Each latent, and its square for cells that prefer mid-range: (frames, 2 latents)."""
    cut = np.clip(latents, -WIDEST, WIDEST)
    return np.hstack([cut, (np.square(cut) - 1) / 2]).astype(np.float32)


def state_slopes(latents: np.ndarray) -> np.ndarray:
    """Change of these columns along each latent: (latents, frames, 2 latents)."""
    count = latents.shape[1]
    slopes = np.zeros((count, len(latents), 2 * count), np.float32)
    for i in range(count):
        slopes[i, :, i] = 1
        slopes[i, :, count + i] = np.clip(latents[:, i], -WIDEST, WIDEST)
    return slopes


@dataclass(frozen=True)
class Traces:
    """How the traces of the cells in use are read.

    Parameters
    ----------
    stream : Stream
    mean, spread : (cells,) float32
        Of the smoothed traces.
    explainable : (cells,) float64
        Share of their variance that is not frame-to-frame noise.
    """

    stream: Stream
    mean: np.ndarray
    spread: np.ndarray
    explainable: np.ndarray

    @classmethod
    def of(cls, stream: Stream) -> Traces:
        """Mean, spread and noise, from evenly spaced stretches of the frames."""
        kernel = gaussian_kernel(stream.fit.inputs.smoothing)
        pieces = np.array_split(stream.frames, max(1, len(stream.frames) // 256))
        few = max(1, MOMENT_FRAMES // 256)
        chosen = [pieces[i] for i in np.unique(np.linspace(0, len(pieces) - 1, few).astype(int))]
        shown, raw = (
            _TraceMoments(),
            _TraceMoments(),
        )  # of all cells, these frames would be gigabytes
        for piece in chosen:
            shown.add(_read(stream, piece, kernel))
            raw.add(_read(stream, piece, gaussian_kernel(0.0)), lags=3)
        mean, variance = shown.mean, shown.products[0]
        spread = np.sqrt(np.maximum(variance, 0)).astype(np.float32)
        # constant traces become exactly 0, which rounding by some processors would not give
        spread = np.where(changes(mean, spread), spread, np.float32(np.inf))
        at_once, next_one, after = raw.products
        # noise is the variance above the line through the autocovariance at lags 1 and 2
        noise = np.maximum(at_once - np.maximum(2 * next_one - after, 0), 0)
        share = noise * np.square(kernel).sum() / np.square(spread)
        return cls(stream, mean, spread, np.clip(1 - share, 0.01, 1.0))

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Smoothed and standardised: (frames, cells) float32."""
        kernel = gaussian_kernel(self.stream.fit.inputs.smoothing)
        traces = (_read(self.stream, frames, kernel) - self.mean) / self.spread
        return np.clip(traces, -CLIP, CLIP, out=traces)


class _TraceMoments:
    """Mean of traces and their autocovariance at the first lags, stretch by stretch."""

    def __init__(self) -> None:
        self._pairs: list[int] = []
        self._sums: list[np.ndarray] = []

    def add(self, traces: np.ndarray, lags: int = 1) -> None:
        """Count a stretch in: (frames, cells) float32."""
        if not self._pairs:
            # near the mean: squares of large values that hardly change would lose what changes
            self._near = traces.mean(0)
            self._pairs = [0] * lags
            self._sums = [np.zeros((3, traces.shape[1])) for _ in range(lags)]
        traces = traces - self._near
        for lag, sums in enumerate(self._sums):
            later, sooner = traces[lag:], traces[: max(len(traces) - lag, 0)]
            sums[0] += np.einsum("ij,ij->j", later, sooner)
            sums[1] += later.sum(0)
            sums[2] += sooner.sum(0)
            self._pairs[lag] += len(sooner)

    @property
    def mean(self) -> np.ndarray:
        """Over all frames: (cells,) float32."""
        return np.asarray(self._near + self._sums[0][1] / self._pairs[0], np.float32)

    @property
    def products(self) -> list[np.ndarray]:
        """Autocovariance at lags 0, 1, …: (cells,) float64 each."""
        shift = self._sums[0][1] / self._pairs[0]
        return [
            (product - shift * (later + sooner)) / max(pairs, 1) + shift**2
            for (product, later, sooner), pairs in zip(self._sums, self._pairs, strict=True)
        ]


def _read(stream: Stream, frames: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Traces of the cells in use at ascending frames, filtered: (frames, cells) float32."""
    recording, radius = stream.recording, radius_of(kernel)
    first = max(0, int(frames[0]) - radius)
    last = min(recording.n_frames, int(frames[-1]) + radius + 1)
    stretch = take_stretch(recording, first, last)
    columns = stream.fit.inputs.columns(recording)
    found = np.zeros((last - first, len(columns)), np.float32)
    for here, traces in smoothed(stretch, columns, kernel):
        found[here] = traces
    at: np.ndarray = found[frames - first]
    return at


@dataclass(frozen=True)
class Effort:
    """How much is spent on an encoding.

    Parameters
    ----------
    blocks : int
        Stretches of time, each predicted from the others.
    groups : int
        Groups of cells, each explained by latents of the other cells.
    lags : bool
        Whether to find each cell's own lag.
    predictors : Predictors, optional
        From an encoding of the same factors, so that the decay is not searched again.
    """

    blocks: int = BLOCKS
    groups: int = GROUPS
    lags: bool = True
    predictors: Predictors | None = None


THOROUGH = Effort()


@dataclass(frozen=True)
class _CellBatch:
    """Cells that are predicted from the same columns.

    Parameters
    ----------
    group : int
        By whose latents they are explained.
    lag : int
        In frames.
    cells : (n,) int64
        Among the cells in use.
    """

    group: int
    lag: int
    cells: np.ndarray


class Models(NamedTuple):
    """Regressions of the cells of a batch: on the observed variables, and on the state too."""

    observed: HeldOut
    with_state: HeldOut


class _ReadsTraces(Protocol):
    """Gives traces at ascending frames: (frames, cells) float32."""

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Traces at these frames."""


@dataclass(frozen=True)
class JointModel(ABC):
    """Cells, each predicted in held-out blocks from the columns of all factors at once.

    Parameters
    ----------
    stream : Stream
    traces : _ReadsTraces
        Of the cells in use.
    blocks : tuple of (frames in block,) int64
        Positions among the frames of the stream.
    groups : tuple of (cells in group,) int64
        Cells in use, by the latents they are explained by.
    latents : (groups, frames, latents) float32
        Computed without the cells of the group.
    lags : (cells,) int64
        Frames by which the predictors come later than the trace that they predict best.
    lag_errors : (cells,) float64
        Standard errors of the lags, in frames.
    """

    stream: Stream
    traces: _ReadsTraces
    blocks: tuple[np.ndarray, ...]
    groups: tuple[np.ndarray, ...]
    latents: np.ndarray
    lags: np.ndarray
    lag_errors: np.ndarray

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, np.ndarray]:
        """Numbers of the columns of "drift", each factor, and "time"."""

    @property
    @abstractmethod
    def observed(self) -> np.ndarray:
        """Columns of the first of both `Models`; those of all factors come first."""

    @property
    @abstractmethod
    def with_state(self) -> np.ndarray:
        """Columns of the second; those of "time" come last."""

    @property
    @abstractmethod
    def leading(self) -> Mapping[str, np.ndarray]:
        """Numbers of the columns of each factor that wiggle least."""

    @abstractmethod
    def rows(self, positions: np.ndarray) -> Iterator[np.ndarray]:
        """All columns, for one batch after the other: (frames, columns) float32."""

    @cached_property
    def batches(self) -> tuple[_CellBatch, ...]:
        """All cells, by what they are predicted from."""
        found = []
        for group, cells in enumerate(self.groups):
            for lag in np.unique(self.lags[cells]):
                found.append(_CellBatch(group, int(lag), cells[self.lags[cells] == lag]))
        return tuple(found)

    def read(self, most: int | None = None) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Number of the block, positions, and standardised traces (frames, cells), by chunks.

        Parameters
        ----------
        most : int, optional
            Frames of each block, its first ones; all if not given.
        """
        frames, reach = self.stream.frames, READ_BYTES // (4 * self.stream.recording.n_cells)
        for block, whole in enumerate(self.blocks):
            positions, start = whole[:most], 0
            while start < len(positions):
                near = int(np.searchsorted(frames[positions], frames[positions[start]] + reach))
                stop = min(start + CHUNK_FRAMES, max(near, start + 1))
                chunk = positions[start:stop]
                yield block, chunk, self.traces.at(frames[chunk])
                start = stop

    def models(self, watch: Watch) -> list[Models]:
        """Both regressions of each batch."""
        found, waiting = [], self.sums(watch)[::-1]
        while waiting:
            sums = waiting.pop()  # of many cells, they take hundreds of megabytes
            observed = fit_held_out(sums.of(self.observed))
            has_state = len(self.columns.get(TIME, ())) > 0
            found.append(
                Models(observed, fit_held_out(sums.of(self.with_state)) if has_state else observed)
            )
            watch.advance(0)  # may stop here
        return found

    def sums(self, watch: Watch) -> list[BlockSums]:
        """Sums of products of all columns with each other and with traces, for each batch."""
        width = int(max(self.observed.max(initial=-1), self.with_state.max(initial=-1))) + 1
        sums = [BlockSums.empty(len(self.blocks), width, len(c.cells)) for c in self.batches]
        for block, positions, traces in self.read():
            for own, batch, x in zip(sums, self.batches, self.rows(positions), strict=True):
                own.add(block, x, traces[:, batch.cells])
            watch.advance(PASS * len(positions))
        return sums


@dataclass(frozen=True)
class Encoding(JointModel):
    """Cells, predicted from the observed variables, slow drift and the unobserved state.

    The labels of some factor are known at all frames of the stream; `latents` are those of time.

    Parameters
    ----------
    predictors : Predictors
    """

    traces: Traces
    predictors: Predictors

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:  # noqa: D102
        width = state_columns(self.latents[0, :1]).shape[1]
        state = np.arange(self.predictors.width, self.predictors.width + width)
        return {**self.predictors.columns, TIME: state}

    @property
    def observed(self) -> np.ndarray:  # noqa: D102
        return np.arange(self.predictors.width)

    @property
    def with_state(self) -> np.ndarray:  # noqa: D102
        return np.r_[self.observed, self.columns[TIME]]

    @property
    def leading(self) -> dict[str, np.ndarray]:  # noqa: D102
        bases = self.predictors.bases
        return {name: self.columns[name][basis.leading] for name, basis in bases.items()}

    def rows(self, positions: np.ndarray) -> Iterator[np.ndarray]:  # noqa: D102
        lags = sorted({batch.lag for batch in self.batches})
        rows = self.predictors.rows(self.stream.frames[positions], lags)
        observed = dict(zip(lags, rows, strict=True))
        for batch in self.batches:
            state = state_columns(self.latents[batch.group, positions])
            yield np.hstack([observed[batch.lag], state])


def make_encoding(stream: Stream, watch: Watch, effort: Effort = THOROUGH) -> Encoding:
    """Predictors, blocks, lags and latents for a fit and the frames of a recording."""
    fit, recording = stream.fit, stream.recording
    predictors = effort.predictors or Predictors.of(recording, fit.parts, fit.inputs.smoothing)
    stream = replace(stream, frames=_with_labels(stream.frames, predictors))
    time, cells = _time_latents(stream), len(fit.inputs.cell_ids)
    groups = cell_groups(cells, time.stop - time.start, effort.groups)
    encoding = Encoding(
        stream,
        Traces.of(stream),
        cut(stream.frames, GUARD * recording.rate, effort.blocks, recording.trials),
        groups,
        np.empty((len(groups), len(stream.frames), 0), np.float32),
        np.zeros(cells, np.int64),
        np.zeros(cells),
        predictors,
    )
    thorough = effort == replace(THOROUGH, groups=effort.groups)
    if thorough and stream.key in _last:
        decay, lags, lag_errors = _last[stream.key]
        predictors = replace(predictors, decay=decay)
        encoding = replace(encoding, predictors=predictors, lags=lags, lag_errors=lag_errors)
        watch.advance(2 * PASS * len(stream.frames))
    else:
        if effort.predictors is None:
            encoding = replace(encoding, predictors=_with_best_decay(encoding, watch))
        watch.advance(PASS * len(stream.frames))
        if effort.lags:
            encoding = _with_lags(encoding, watch)
        watch.advance(PASS * len(stream.frames))
    if thorough:
        _last.clear()
        _last[stream.key] = encoding.predictors.decay, encoding.lags, encoding.lag_errors
    encoding = replace(encoding, latents=latents_without(stream, time, groups, watch)[0])
    watch.advance(PASS * len(stream.frames))
    return encoding


_last: dict[bytes, tuple[float, np.ndarray, np.ndarray]] = {}
"""Decay and lags of the last encoding: its scores and its test are made of the same."""


def _with_best_decay(encoding: Encoding, watch: Watch) -> Predictors:
    """Predictors with the decay of the indicator that predicts held-out traces best."""
    predictors, rate = encoding.predictors, encoding.stream.recording.rate
    if not predictors.bases:
        return predictors
    cells = len(encoding.lags)
    some = np.unique(np.linspace(0, cells - 1, min(DECAY_CELLS, cells)).astype(int))
    tried = [replace(predictors, decay=decay * rate) for decay in DECAYS]
    lags = np.unique(np.round(np.array(DECAY_LAGS) * rate).astype(int))
    blocks, width = len(encoding.blocks), predictors.width
    sums = [[BlockSums.empty(blocks, width, len(some)) for _ in lags] for _ in tried]
    for block, positions, traces in encoding.read(DECAY_FRAMES // blocks):
        watch.advance(0)  # may stop here
        frames = encoding.stream.frames[positions]
        for by_lag, candidate in zip(sums, tried, strict=True):
            for own, x in zip(by_lag, candidate.rows(frames, lags.tolist()), strict=True):
                own.add(block, x, traces[:, some])
    # a cell that follows late must not look like one that decays slowly
    missed = np.stack([_missed([fit_held_out(own) for own in by_lag]) for by_lag in sums])
    best = int(missed.sum(1).argmin())
    saved = missed[0] - missed[best]
    return tried[best if saved.sum() > np.sqrt(blocks) * saved.std(ddof=1) else 0]


def _missed(by_lag: Sequence[HeldOut]) -> np.ndarray:
    """Share of the variance missed in each block, at the best lag of each cell."""
    errors = np.stack([model.errors for model in by_lag])
    variance = by_lag[0].variance.sum(0)
    best = errors.sum(1).argmin(0)
    least = np.take_along_axis(errors, best[None, None], 0)[0]
    # a cell that follows nothing is missed completely, and not more
    scale = np.maximum(np.maximum(least.sum(0), variance), 1e-12)
    missed: np.ndarray = (least / scale).sum(1)
    return missed


def _with_lags(encoding: Encoding, watch: Watch) -> Encoding:
    """Encoding with the lag of each cell that predicts it best."""
    predictors = encoding.predictors
    lags = candidate_lags(encoding.stream.recording.rate)
    if not predictors.bases:
        return encoding
    blocks, cells = len(encoding.blocks), len(encoding.lags)
    sample = list(encoding.read(max(1, min(LAG_FRAMES, LAG_VALUES // cells) // blocks)))
    rows = [predictors.rows(encoding.stream.frames[at], lags.tolist()) for _, at, _ in sample]
    errors = np.empty((len(lags), blocks, cells))
    for number, own in enumerate(errors):
        sums = BlockSums.empty(blocks, predictors.width, cells)
        for (block, _, traces), x in zip(sample, rows, strict=True):
            sums.add(block, x[number], traces)
        own[:] = held_out_errors(sums)
        watch.advance(0)  # may stop here
    chosen, spread = best_lags(errors, lags)
    return replace(encoding, lags=chosen, lag_errors=spread)


def candidate_lags(rate: float, seconds: float = LAG_STEP) -> np.ndarray:
    """Lags to try, some seconds apart, none in the middle: (lags,) int64, in frames."""
    step = max(1, round(seconds * rate))
    later = step * np.arange(1, max(1, int(LAG_REACH * rate / step)) + 1)
    return np.r_[-later[::-1], 0, later]


def best_lags(errors: np.ndarray, lags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lag of each cell with the least error, 0 unless it is clearly better; and its error.

    Better by more than two standard errors of the difference over blocks.

    Parameters
    ----------
    errors : (lags, blocks, cells) float64
    lags : (lags,) int64
    """
    blocks, step = errors.shape[1], lags[-1] - lags[-2]
    best = errors.sum(1).argmin(0)
    saved = errors[len(lags) // 2] - np.take_along_axis(errors, best[None, None], 0)[0]
    better = saved.sum(0) > SURE * np.sqrt(blocks) * saved.std(0, ddof=1)
    without = lags[(errors.sum(1, keepdims=True) - errors).argmin(0)]
    spread = np.sqrt((blocks - 1) * without.var(0) + step**2 / 12)
    return np.where(better, lags[best], 0), spread


def cut(
    frames: np.ndarray, guard: float, count: int = BLOCKS, trials: Trials | None = None
) -> tuple[np.ndarray, ...]:
    """Positions of ascending frames in stretches of about equal number, with gaps between them.

    Parameters
    ----------
    guard : float
        Frames between two stretches, at most a tenth of one.
    count : int
        Stretches.
    trials : Trials, optional
        A stretch ends where a trial does, if these are not too few.
    """
    stretches = np.array_split(np.arange(len(frames)), count)
    if trials is not None and len(trials) >= TRIALS_A_BLOCK * count:
        first = np.array([frames[own[0]] for own in stretches[1:]])
        number = np.maximum(np.searchsorted(trials.first, first, side="right") - 1, 0)
        begins = np.where(first < trials.stop[number], trials.first[number], first)
        edges = np.searchsorted(frames, np.minimum(begins, first))
        if (np.diff(np.r_[0, edges, len(frames)]) > 0).all():
            stretches = np.split(np.arange(len(frames)), edges)
    guard = min(guard, (frames[-1] - frames[0]) / (10 * count))
    kept = []
    for i, own in enumerate(stretches):
        inside = np.ones(len(own), bool)
        if i > 0:
            inside &= frames[own] - frames[stretches[i - 1][-1]] > guard / 2
        if i < count - 1:
            inside &= frames[stretches[i + 1][0]] - frames[own] > guard / 2
        kept.append(own[inside])
    return tuple(kept)


def _with_labels(frames: np.ndarray, predictors: Predictors) -> np.ndarray:
    kept = frames[predictors.known[frames]]
    if len(kept) < FEWEST_FRAMES:
        raise InputError(
            f"Variables of the factors are known at {len(kept)} of the {len(frames)} frames: "
            f"an encoding model needs at least {FEWEST_FRAMES}, to predict some of them from the "
            "others."
        )
    return kept
