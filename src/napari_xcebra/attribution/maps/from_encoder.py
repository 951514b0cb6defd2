"""Scores factors from the encoder: how much of a cell the latents of the other cells explain.

The theory has x = g(z) and inverts the Jacobian of the encoder to get that of g. With noise,
x = g(z) + ε, that Jacobian carries the noise of the cells, and no pseudo-inverse removes it. So g
is fitted: a group of cells is hidden from the encoder, as cells are while it is trained, and each
of them is predicted from the latents that the other cells give, in held-out blocks of time. Its own
noise is then in nothing that explains it. No label is used.

The gradients of the encoder itself follow, and, to compare, captum's methods. There a baseline of
zeros is every cell at its mean, as inputs are standardised. Each of captum's methods passes through
the encoder many times a frame: a tenth of the frames is usually enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.attribution.encoding.basis import Expansion
from napari_xcebra.attribution.encoding.model import (
    BLOCKS,
    FEWEST_FRAMES,
    GUARD,
    LAG_FRAMES,
    PASS,
    WIDEST,
    JointModel,
    best_lags,
    candidate_lags,
    cell_groups,
    cut,
    latents_without,
    state_columns,
    state_slopes,
)
from napari_xcebra.attribution.encoding.predictors import DRIFT, DRIFTS
from napari_xcebra.attribution.encoding.ridge import BlockSums, held_out_errors
from napari_xcebra.attribution.maps.conditional import FactorScores, Shares, shares
from napari_xcebra.attribution.stream import Stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn.data.factors import TIME, Part
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.model.encoder import CUT_OFF, inverse

GROUPS = 8
"""Groups of cells, each explained by latents of the other cells; 32 give the same maps."""
MOST_LATENTS, STRETCH = 2**25, 512
"""Latents that are kept, of all frames and groups; of longer recordings, stretches are used."""
LAG_STEP = 0.25
"""Seconds between tried lags: each costs regressions of its own."""
SAMPLED = 8192
"""Frames from which the splines, and what time latents share with factors, are found."""
SHARED_RIDGE = 1e-2
"""Penalty of the regression of time latents on those of factors, in variances of a column."""
FAINT = 0.01
"""What is left of a score no larger than its error, so that cells keep their order."""
FITTING = 0.8
"""Share of the work spent on fitting the map; the rest explains the frames."""
CHUNK_BYTES = 32 * 2**20
"""Bytes of slopes computed at a time."""
PATH_STEPS = 20
"""Points on the path from the baseline to the input; with 50 the scores differ by 1e-7."""
SHAPLEY_SAMPLES = 5
"""Random points on that path a frame, for Shapley values; frames average out the rest."""
SHUFFLED_FRAMES = 512
"""Frames of the recording that serve as shuffled baselines."""


@dataclass(frozen=True)
class _EncoderInputs:
    """Reads what the encoder sees of each cell at a frame."""

    stream: Stream

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Inputs at ascending frames: (frames, cells) float32."""
        x = self.stream.inputs(frames)
        return (x[:, :, x.shape[2] // 2] if x.ndim == 3 else x).cpu().numpy()


@dataclass(frozen=True)
class _Decoding(JointModel):
    """Cells, predicted from the latents of the other cells and slow drift.

    The two regressions of a cell have the time latents as they are, and without what they share
    with the latents of the factors.

    Parameters
    ----------
    expansions : mapping of str to Expansion
        Of the latents of each behaviour factor.
    shared : (groups, columns + 1, time latents) float64
        Regression of the time latents on all columns before them.
    spread : (groups, time latents) float64
        Of what is left of the time latents.
    moments : (2, groups, 1, latents) float32
        Mean and spread by which the latents were standardised.
    """

    expansions: Mapping[str, Expansion]
    shared: np.ndarray
    spread: np.ndarray
    moments: np.ndarray

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the embedding."""
        return self.stream.fit.parts

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        columns, stop = {DRIFT: np.arange(DRIFTS)}, DRIFTS
        for name, expansion in self.expansions.items():
            columns[name] = np.arange(stop, stop + len(expansion.order))
            stop += len(expansion.order)
        return columns | {TIME: np.arange(stop, stop + 2 * self.spread.shape[1])}

    @property
    def observed(self) -> np.ndarray:
        return np.r_[np.arange(self._width), self.columns[TIME] + len(self.columns[TIME])]

    @property
    def with_state(self) -> np.ndarray:
        return np.arange(self._width + len(self.columns[TIME]))

    @property
    def _width(self) -> int:
        return DRIFTS + sum(len(each.order) for each in self.expansions.values())

    @property
    def leading(self) -> dict[str, np.ndarray]:
        return {name: self.columns[name][e.leading] for name, e in self.expansions.items()}

    def rows(self, positions: np.ndarray) -> Iterator[np.ndarray]:
        drift = self.drift(positions)
        for batch in self.batches:
            latents = self.latents[batch.group, self.lagged(positions, batch.lag)]
            design = np.hstack([drift, *self.expanded(latents)])
            time = latents[:, self.time]
            left = time - design @ self.shared[batch.group, :-1] - self.shared[batch.group, -1]
            both = state_columns(time), state_columns(left / self.spread[batch.group])
            yield np.hstack([design, *both]).astype(np.float32)

    def drift(self, positions: np.ndarray) -> np.ndarray:
        """Slow cosines over the recording: (frames, DRIFTS) float32."""
        phase = np.pi * (self.stream.frames[positions] + 0.5) / self.stream.recording.n_frames
        return np.cos(phase[:, None] * np.arange(1, DRIFTS + 1)).astype(np.float32)

    def expanded(self, latents: np.ndarray) -> list[np.ndarray]:
        """Columns of each behaviour factor at these latents: (frames, columns) float32 each."""
        return [
            expansion(list(latents[:, part.latents].T.astype(np.float64))).astype(np.float32)
            for part, expansion in self._expanded_parts
        ]

    @property
    def _expanded_parts(self) -> list[tuple[Part, Expansion]]:
        return [(p, self.expansions[p.name]) for p in self.parts if p.name in self.expansions]

    @property
    def time(self) -> slice:
        """Latents that no variable is tied to."""
        last = self.parts[-1]
        return last.latents if last.name == TIME else slice(0, 0)

    def lagged(self, positions: np.ndarray, lag: int) -> np.ndarray:
        """Positions of the frames that come later by a lag, or the same ones at an end."""
        if lag == 0:
            return positions
        frames, segment = self.stream.frames, self.stream.recording.segment
        at = np.searchsorted(frames, frames[positions] + lag)
        at = np.minimum(at, len(frames) - 1)
        fits = (frames[at] == frames[positions] + lag) & (
            segment[frames[at]] == segment[frames[positions]]
        )
        return np.where(fits, at, positions)


def _make_decoding(
    stream: Stream, watch: Watch, groups: int = GROUPS, blocks: int = BLOCKS
) -> _Decoding:
    """Latents without each group of cells, their splines, and the lag of every cell."""
    fit, recording = stream.fit, stream.recording
    cells, latents = len(fit.inputs.cell_ids), len(fit.scale)
    hidden = cell_groups(cells, latents, groups)
    frames = _take_stretches(_select_known(stream), MOST_LATENTS // (latents * len(hidden)))
    stream = replace(stream, frames=frames)
    found, moments = latents_without(stream, slice(0, latents), hidden, watch)
    np.clip(found, -WIDEST, WIDEST, out=found)
    watch.advance(PASS * len(stream.frames))
    sample = np.unique(np.linspace(0, len(stream.frames) - 1, SAMPLED).astype(np.int64))
    pooled = np.concatenate([each[sample[i :: len(hidden)]] for i, each in enumerate(found)])
    expansions = {
        part.name: Expansion.of(
            pooled[:, part.latents].astype(np.float64), few=part.stop - part.start > 2
        )
        for part in fit.parts
        if part.name != TIME
    }
    decoding = _Decoding(
        stream,
        _EncoderInputs(stream),
        cut(stream.frames, GUARD * recording.rate, blocks, recording.trials),
        hidden,
        found,
        np.zeros(cells, np.int64),
        np.zeros(cells),
        expansions,
        np.zeros(0),
        np.zeros(0),
        moments,
    )
    decoding = _without_shared(decoding, sample)
    decoding = _with_lags(decoding, watch)
    watch.advance(PASS * len(stream.frames))
    return decoding


def _select_known(stream: Stream) -> np.ndarray:
    """Frames at which some factor is known: elsewhere, its latents were not trained."""
    parts = [part for part in stream.fit.parts if part.name != TIME]
    if not parts:
        return stream.frames
    recording = stream.recording
    known = [
        np.logical_and.reduce([recording.variable(name).known for name in part.variables])
        for part in parts
    ]
    frames = stream.frames[np.logical_or.reduce(known)[stream.frames]]
    return frames if len(frames) >= FEWEST_FRAMES else stream.frames


def _take_stretches(frames: np.ndarray, most: int) -> np.ndarray:
    """Frames, or about that many of them in stretches."""
    if len(frames) <= most:
        return frames
    stretches = np.array_split(frames, -(-len(frames) // STRETCH))
    every = -(-len(frames) // most)
    return np.concatenate(stretches[::every])


def _without_shared(decoding: _Decoding, sample: np.ndarray) -> _Decoding:
    """Find what the time latents of each group share with the columns of the factors."""
    shared, spread = [], []
    for latents in decoding.latents:
        design = np.hstack([decoding.drift(sample), *decoding.expanded(latents[sample])])
        x, t = design.astype(np.float64), latents[sample][:, decoding.time].astype(np.float64)
        mean_x, mean_t = x.mean(0), t.mean(0)
        gram = (x - mean_x).T @ (x - mean_x)
        gram[np.diag_indices_from(gram)] += SHARED_RIDGE * len(x)
        weights = np.linalg.solve(gram, (x - mean_x).T @ (t - mean_t))
        left = t - mean_t - (x - mean_x) @ weights
        shared.append(np.vstack([weights, mean_t - mean_x @ weights]))
        spread.append(np.maximum(left.std(0), 1e-9))
    return replace(decoding, shared=np.stack(shared), spread=np.stack(spread))


def _with_lags(decoding: _Decoding, watch: Watch) -> _Decoding:
    """Let each cell lead or follow the latents, where that predicts it clearly better."""
    lags = candidate_lags(decoding.stream.recording.rate, LAG_STEP)
    blocks, cells = len(decoding.blocks), len(decoding.lags)
    width = DRIFTS + 2 * decoding.latents.shape[2]
    errors = np.empty((len(lags), blocks, cells))
    sums = [[BlockSums.empty(blocks, width, len(own)) for _ in lags] for own in decoding.groups]
    for block, positions, traces in decoding.read(max(1, LAG_FRAMES // blocks)):
        watch.advance(0)
        drift, at = decoding.drift(positions), [decoding.lagged(positions, lag) for lag in lags]
        for by_lag, group, latents in zip(sums, decoding.groups, decoding.latents, strict=True):
            y = traces[:, group]
            yy = np.square(y).sum(0)
            for own, here in zip(by_lag, at, strict=True):
                own.add(block, np.hstack([drift, state_columns(latents[here])]), y, yy)
    for by_lag, group in zip(sums, decoding.groups, strict=True):
        for row, own in zip(errors, by_lag, strict=True):
            row[:, group] = held_out_errors(own)
            watch.advance(0)  # may stop here
    chosen, spread = best_lags(errors, lags)
    return replace(decoding, lags=chosen, lag_errors=spread)


@dataclass(frozen=True)
class EncoderMap:
    """The fitted map from latents to cells.

    Parameters
    ----------
    decoding : _Decoding
    shares : Shares
        What every factor carries in every cell.
    weights : mapping of str to (columns, cells) float32
        Of every factor: the mean over held-out blocks, as far as these bear it out.
    """

    decoding: _Decoding
    shares: Shares
    weights: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls,
        stream: Stream,
        watch: Watch,
        *,
        groups: int = GROUPS,
        blocks: int = BLOCKS,
    ) -> EncoderMap:
        """Fit it to the frames of a stream; with fewer groups and blocks, for a provisional map."""
        decoding = _make_decoding(stream, watch, groups, blocks)
        models = decoding.models(watch)
        found = shares(decoding, models, watch, thorough=False)
        sure = np.maximum(found.scores() - found.errors(), FAINT * found.scores())
        carried = np.maximum(sure * found.variance.sum(0), 0)
        weights = {}
        for part, share in zip(decoding.parts, carried, strict=True):
            columns = decoding.columns[part.name]
            weights[part.name] = np.empty((len(columns), len(decoding.lags)), np.float32)
            for batch, both in zip(decoding.batches, models, strict=True):
                model = both.with_state if part.name == TIME else both.observed
                size = np.maximum(model.size(columns).sum(0), 1e-9)
                borne_out = np.minimum(share[batch.cells] / size, 1)
                mean = model.weights[:, columns].mean(0)
                weights[part.name][:, batch.cells] = mean * borne_out
        return cls(decoding, found, weights)

    def local(self, stream: Stream) -> Iterator[Tensor]:
        """∂g/∂z at the frames of a stream: (frames in chunk, latents, cells)."""
        cells, latents = len(self.decoding.lags), len(stream.fit.scale)
        at_once = max(1, CHUNK_BYTES // (4 * cells * latents))
        for start in range(0, len(stream.frames), at_once):
            here = replace(stream, frames=stream.frames[start : start + at_once])
            found, _ = latents_without(
                here,
                slice(0, latents),
                self.decoding.groups,
                Watch(0, None, None),  # a chunk is short
                self.decoding.moments,
            )
            np.clip(found, -WIDEST, WIDEST, out=found)
            slopes = np.empty((latents, len(here.frames), cells), np.float32)
            for own, group in zip(found, self.decoding.groups, strict=True):
                slopes[:, :, group] = self._slopes(own, group)
            yield torch.as_tensor(slopes).transpose(0, 1)

    def sizes(self) -> np.ndarray:
        """Mean |∂g/∂z| over some of the frames it was fitted to: (latents, cells) float64."""
        latents = self.decoding.latents
        some = np.unique(np.linspace(0, latents.shape[1] - 1, SAMPLED // 4).astype(np.int64))
        found = np.empty((latents.shape[2], len(self.decoding.lags)))
        for own, group in zip(latents[:, some], self.decoding.groups, strict=True):
            found[:, group] = np.abs(self._slopes(own, group)).mean(1)
        return found

    def _slopes(self, latents: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Change of some cells along each latent: (latents, frames, cells)."""
        slopes = []
        for part in self.decoding.parts:
            own = latents[:, part.latents]
            if part.name == TIME:
                columns = state_slopes(own)
            else:
                values = list(own.T.astype(np.float64))
                columns = self.decoding.expansions[part.name].slopes(values).astype(np.float32)
            slopes.append(columns @ self.weights[part.name][:, cells])
        return np.concatenate(slopes)


def generative_gradient(stream: Stream, watch: Watch) -> FactorScores:
    """Held-out share of variance that each factor carries, from the latents of the other cells.

    Returns
    -------
    FactorScores
        With the mean size of the slope along each latent.
    """
    fitted = _fit_once(stream, watch)
    found = fitted.shares
    low, high = found.interval()
    notes = (
        f"Scores are shares of variance in {len(fitted.decoding.blocks)} held-out blocks, "
        "explained by the latents that the other cells give; no variable is used.",
    )
    return FactorScores(found.scores(), notes, {"low": low, "high": high}, fitted.sizes())


def local_gradient(stream: Stream, watch: Watch | None = None) -> Iterator[Tensor]:
    """∂g/∂z at every frame of a stream: (frames in chunk, latents, cells).

    The map is fitted to all usable frames of the recording, whichever are explained.
    """
    usable = usable_frames(stream.recording, stream.fit.settings.window)
    watch = watch or Watch(len(usable), None, None)
    watch.share = FITTING * len(stream.frames) / len(usable)
    return _fit_once(replace(stream, frames=usable), watch).local(stream)


_last: dict[bytes, EncoderMap] = {}
"""The last map: the first map, its scores and those over time are all made of it."""


def _fit_once(stream: Stream, watch: Watch) -> EncoderMap:
    """Map fitted to the frames of a stream, or the last one if it is that."""
    if stream.key not in _last:
        fitted = EncoderMap.of(stream, watch)
        _last.clear()
        _last[stream.key] = fitted
    return _last[stream.key]


def neuron_gradient(stream: Stream) -> Iterator[Tensor]:
    """J_f at every frame: (frames in chunk, latents, cells[, window])."""
    yield from _on_all_cores(stream.encoder.jacobian, stream)


def inverted_neuron_gradient(stream: Stream) -> Iterator[Tensor]:
    """J_f⁺ at every frame, transposed: (frames in chunk, latents, cells[, window]).

    A window is inverted whole, (cells × window): averaging over lags first, as the reference
    does, lets a cell whose lags differ in sign cancel itself.
    """
    encoder, scale = stream.encoder, stream.scale
    yield from _on_all_cores(lambda x: inverse(encoder.jacobian(x), scale, CUT_OFF), stream)


def _on_all_cores(explain: Callable[[Tensor], Tensor], stream: Stream) -> Iterator[Tensor]:
    """Explain the chunks in order, several at a time.

    A chunk on each core is faster than all cores on one chunk: the products are small.
    """
    if stream.workers == 1:
        yield from map(explain, stream.chunks())
        return
    with ThreadPoolExecutor(stream.workers) as pool:
        under_way: deque[Future[Tensor]] = deque()
        try:
            for x in stream.chunks():
                under_way.append(pool.submit(_without_gradients, explain, x))
                if len(under_way) > stream.workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            # a consumer that stops waits only for what has begun
            pool.shutdown(wait=False, cancel_futures=True)


def _without_gradients(explain: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.no_grad():  # per thread
        return explain(x)


def integrated_gradients(stream: Stream) -> Iterator[Tensor]:
    """Gradient along the straight path from the mean trace to the input, times the input."""
    from captum.attr import IntegratedGradients  # slow to import, and rarely used

    method = IntegratedGradients(stream.encoder)
    for x, latent in _for_each_latent(stream, PATH_STEPS):
        yield _by_frame(method.attribute(x, target=latent, n_steps=PATH_STEPS), stream)


def feature_ablation(stream: Stream) -> Iterator[Tensor]:
    """Change of a latent when one cell, with all its lags, is set to its mean."""
    from captum.attr import FeatureAblation

    method = FeatureAblation(stream.encoder)
    cells = torch.arange(stream.encoder.n_cells, device=stream.device)
    mask = cells[None] if stream.encoder.window == 1 else cells[None, :, None]
    for x, latent in _for_each_latent(stream, 4):
        mask_of_x = mask.expand(1, *x.shape[1:])
        yield _by_frame(method.attribute(x, target=latent, feature_mask=mask_of_x), stream)


def shapley_zeros(stream: Stream) -> Iterator[Tensor]:
    """Shapley values (captum's GradientShap) against every cell at its mean."""
    first = next(stream.chunks())[:1]
    return _shapley(stream, torch.zeros_like(first))


def shapley_shuffled(stream: Stream) -> Iterator[Tensor]:
    """Shapley values (captum's GradientShap) against other frames, drawn at random."""
    return _shapley(stream, stream.drawn(SHUFFLED_FRAMES))


def _shapley(stream: Stream, baselines: Tensor) -> Iterator[Tensor]:
    from captum.attr import GradientShap

    method = GradientShap(stream.encoder)
    for number, (x, latent) in enumerate(_for_each_latent(stream, SHAPLEY_SAMPLES)):
        with _seeded(stream.seed + number, stream.device):
            local = method.attribute(x, baselines, target=latent, n_samples=SHAPLEY_SAMPLES)
        yield _by_frame(local, stream)


def _for_each_latent(stream: Stream, copies: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs repeated for every latent, and the latent each copy is for.

    Yields
    ------
    (frames × latents, cells[, window]), (frames × latents,)
    """
    latents = stream.encoder.latents
    for x in stream.chunks(4 * copies):
        repeated = x.repeat_interleave(latents, 0).requires_grad_()
        yield repeated, torch.arange(latents, device=x.device).repeat(len(x))


def _by_frame(local: Tensor, stream: Stream) -> Tensor:
    return local.detach().unflatten(0, (-1, stream.encoder.latents))


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators that captum draws from, and restore them after."""
    state = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
