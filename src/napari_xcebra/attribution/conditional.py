"""Conditional encoding: what a factor explains in a cell beyond everything else.

The share of a cell's variance, in blocks of time not seen, that a factor's variables explain
beyond the variables of the other factors, slow drift, and the unobserved state that the time
latents tell. For the time factor: what its latents explain beyond all observed variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from napari_xcebra.attribution.block_ridge import BlockSums, held_out_r2
from napari_xcebra.attribution.hidden_state import (
    GROUPS,
    SharedPart,
    cell_groups,
    latents_without,
    shared_part,
    state_columns,
)
from napari_xcebra.attribution.predictors import Predictors
from napari_xcebra.attribution.stream import ROW_BYTES, Stream
from napari_xcebra.attribution.watching import Watch
from napari_xcebra.learn.parts import TIME
from napari_xcebra.recording import InputError

BLOCKS = 10
"""Stretches of time, each predicted from the others."""
FEWEST_FRAMES = 200
DECAYS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Decay times of the indicator to choose from, in seconds."""
DECAY_FRAMES, DECAY_CELLS = 10_000, 100
"""Frames and cells on which the decay is chosen."""
GUARD = 1.0
"""Seconds between blocks that are used for nothing."""
CHUNK_FRAMES = 4096
PASS = 0.25
"""Share of the work of one pass: for the decay, the latents, and twice for sums."""


@dataclass(frozen=True)
class Effort:
    """How much is spent on an encoding.

    Parameters
    ----------
    blocks : int
        Stretches of time, each predicted from the others.
    groups : int
        Groups of cells, each scored beside latents of the other cells.
    predictors : Predictors, optional
        Those of an encoding of the same factors, whose decay need not be found again.
    """

    blocks: int = BLOCKS
    groups: int = GROUPS
    predictors: Predictors | None = None


THOROUGH = Effort()


@dataclass(frozen=True)
class Encoding:
    """Everything a cell is predicted from, at the frames of a stream.

    Parameters
    ----------
    stream : Stream
        At all its frames the labels are known.
    predictors : Predictors
    blocks : tuple of (frames in block,) int64
        Positions among the frames of the stream.
    groups : tuple of (cells in group,) int64
        Cells in use, by the latents they are scored beside.
    latents : (groups, frames, latents) float32
        Time latents without the cells of the group.
    shared : mapping of str to SharedPart
        What the latents lack beside each factor.
    """

    stream: Stream
    predictors: Predictors
    blocks: tuple[np.ndarray, ...]
    groups: tuple[np.ndarray, ...]
    latents: np.ndarray
    shared: Mapping[str, SharedPart]

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """Numbers of the columns of `rows`, by what they stand for.

        "drift", each factor, "time", and "beside" each factor the state it is compared with.
        """
        columns = {name: np.r_[span] for name, span in self.predictors.columns.items()}
        width, stop = state_columns(self.latents[0, :1]).shape[1], self.predictors.width
        for name in (TIME, *(f"beside {factor}" for factor in self.shared)):
            columns[name] = np.arange(stop, stop + width)
            stop += width
        return columns

    def compared(self, factor: str) -> tuple[np.ndarray, np.ndarray]:
        """Columns of everything else, and columns of the factor."""
        others = [self.columns[name] for name in self.predictors.columns if name != factor]
        if factor != TIME:
            others.append(self.columns[f"beside {factor}"])
        return np.concatenate(others), self.columns[factor]

    def rows(self, positions: np.ndarray) -> Iterator[np.ndarray]:
        """All columns, for one group of cells after the other: (frames, columns) float32."""
        observed = self.predictors.rows(self.stream.frames[positions])
        for group in range(len(self.groups)):
            yield self._with_state(observed, group, positions)

    def rows_of(self, group: int, positions: np.ndarray) -> np.ndarray:
        """All columns, for one group of cells: (frames, columns) float32."""
        observed = self.predictors.rows(self.stream.frames[positions])
        return self._with_state(observed, group, positions)

    def _with_state(self, observed: np.ndarray, group: int, positions: np.ndarray) -> np.ndarray:
        latents = self.latents[group, positions]
        columns = [observed, state_columns(latents)]
        for factor, lacking in self.shared.items():
            own = observed[:, self.predictors.columns[factor]]
            columns.append(state_columns(lacking.added(latents, own)))
        return np.hstack(columns)

    def linear_rows(self, positions: np.ndarray) -> Iterator[np.ndarray]:
        """Observed columns and latents as they are: (frames, columns) float32."""
        observed = self.predictors.rows(self.stream.frames[positions])
        for of_group in self.latents:
            yield np.hstack([observed, of_group[positions]])

    def read(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Number of the block, positions, and standardised traces (frames, cells), by chunks."""
        frames, reach = self.stream.frames, ROW_BYTES // (4 * self.stream.recording.n_cells)
        for block, positions in enumerate(self.blocks):
            start = 0
            while start < len(positions):
                near = int(np.searchsorted(frames[positions], frames[positions[start]] + reach))
                stop = min(start + CHUNK_FRAMES, max(near, start + 1))
                chunk = positions[start:stop]
                yield block, chunk, read_traces(self.stream, frames[chunk])
                start = stop

    def sums(
        self, rows: Callable[[np.ndarray], Iterator[np.ndarray]], watch: Watch
    ) -> list[BlockSums]:
        """Sums of products of these rows with each other and with traces, for each group."""
        widths = [x.shape[1] for x in rows(self.blocks[0][:1])]
        sums = [
            BlockSums.empty(len(self.blocks), width, len(cells))
            for width, cells in zip(widths, self.groups, strict=True)
        ]
        for block, positions, traces in self.read():
            for own, cells, x in zip(sums, self.groups, rows(positions), strict=True):
                own.add(block, x, traces[:, cells])
            watch.advance(PASS * len(positions))
        return sums


def conditional_encoding(stream: Stream, watch: Watch) -> tuple[np.ndarray, tuple[str, ...]]:
    """Held-out share of variance that each factor alone explains.

    Parameters
    ----------
    stream : Stream
    watch : Watch

    Returns
    -------
    scores : (factors, cells in use) float64
        In R²; about 0, and often just below, for a cell that does not carry the factor.
    notes : tuple of str
    """
    encoding = make_encoding(stream, watch)
    scores = scores_of(encoding, watch)
    watch.finish()
    return scores, (_note(encoding),)


def scores_of(encoding: Encoding, watch: Watch) -> np.ndarray:
    """Held-out share of variance that each factor alone explains: (factors, cells in use)."""
    sums = encoding.sums(encoding.rows, watch)
    parts = encoding.stream.fit.parts
    scores = np.empty((len(parts), len(encoding.stream.fit.inputs.cell_ids)))
    for row, part in zip(scores, parts, strict=True):
        others, own = encoding.compared(part.name)
        for of_group, cells in zip(sums, encoding.groups, strict=True):
            everything = held_out_r2(of_group.of(np.r_[others, own]))
            # where the others predict worse than the mean, the mean is what is to be beaten
            row[cells] = everything - np.maximum(held_out_r2(of_group.of(others)), 0)
        watch.advance(0)  # it may be asked to stop
    return scores


def make_encoding(stream: Stream, watch: Watch, effort: Effort = THOROUGH) -> Encoding:
    """Predictors, blocks and latents for a fit and the frames of a recording."""
    fit, recording = stream.fit, stream.recording
    predictors = effort.predictors or Predictors.of(recording, fit.parts)
    stream = replace(stream, frames=_with_labels(stream.frames, predictors))
    blocks = cut(stream.frames, GUARD * recording.rate, effort.blocks)
    time = fit.parts[-1].latents if fit.parts[-1].name == TIME else slice(0, 0)
    n_latents = time.stop - time.start
    groups = cell_groups(len(fit.inputs.cell_ids), n_latents, effort.groups)
    if effort.predictors is None:
        none = np.empty((1, len(stream.frames), 0), np.float32)
        every = np.arange(len(fit.inputs.cell_ids))
        predictors = with_best_decay(Encoding(stream, predictors, blocks, (every,), none, {}))
    watch.advance(PASS * len(stream.frames))
    latents = latents_without(stream, time, groups)
    watch.advance(PASS * len(stream.frames))
    encoding = Encoding(stream, predictors, blocks, groups, latents, {})
    linear = encoding.sums(encoding.linear_rows, watch)
    columns = {name: np.r_[span] for name, span in predictors.columns.items()}
    state = np.arange(predictors.width, predictors.width + n_latents)
    shared = {
        factor: shared_part(
            linear,
            np.concatenate([own for name, own in columns.items() if name != factor]),
            state,
            columns[factor],
        )
        for factor in predictors.bases
    }
    return replace(encoding, shared=shared)


def with_best_decay(encoding: Encoding) -> Predictors:
    """Predictors with the decay of the indicator that predicts held-out traces best."""
    predictors = encoding.predictors
    if not predictors.bases:
        return predictors
    cells = encoding.groups[0]
    some = cells[np.linspace(0, len(cells) - 1, min(DECAY_CELLS, len(cells))).astype(int)]
    most = DECAY_FRAMES // len(encoding.blocks)
    blocks = tuple(positions[:most] for positions in encoding.blocks)
    encoding = replace(encoding, blocks=blocks)
    tried = [replace(predictors, decay=decay * encoding.stream.recording.rate) for decay in DECAYS]
    width = predictors.width
    sums = [BlockSums.empty(len(blocks), width, len(some)) for _ in tried]
    for block, positions, traces in encoding.read():
        for own, candidate in zip(sums, tried, strict=True):
            own.add(block, candidate.rows(encoding.stream.frames[positions]), traces[:, some])
    explained = [np.maximum(held_out_r2(own), 0).sum() for own in sums]
    return tried[int(np.argmax(explained))]


def cut(frames: np.ndarray, guard: float, count: int = BLOCKS) -> tuple[np.ndarray, ...]:
    """Positions of ascending frames in stretches of equal number, with gaps between them.

    Parameters
    ----------
    guard : float
        Frames between two stretches, at most a tenth of one.
    count : int
        Stretches.
    """
    stretches = np.array_split(np.arange(len(frames)), count)
    guard = min(guard, (frames[-1] - frames[0]) / (10 * count))
    kept = []
    for number, own in enumerate(stretches):
        inside = np.ones(len(own), bool)
        if number > 0:
            inside &= frames[own] - frames[stretches[number - 1][-1]] > guard / 2
        if number < count - 1:
            inside &= frames[stretches[number + 1][0]] - frames[own] > guard / 2
        kept.append(own[inside])
    return tuple(kept)


def read_traces(stream: Stream, frames: np.ndarray) -> np.ndarray:
    """Traces of the cells in use, not smoothed, in units of the encoder's input."""
    inputs, recording = stream.fit.inputs, stream.recording
    first = int(frames[0])
    stretch = recording.traces[first : int(frames[-1]) + 1]
    traces = stretch[frames - first][:, inputs.columns(recording)]
    return (traces - inputs.mean) / inputs.scale


def _with_labels(frames: np.ndarray, predictors: Predictors) -> np.ndarray:
    kept = frames[predictors.known[frames]]
    if len(kept) < FEWEST_FRAMES:
        raise InputError(
            f"{len(kept)} of the {len(frames)} frames can be used, those at which the variables of "
            f"all factors are known: conditional encoding needs at least {FEWEST_FRAMES}, to "
            "predict some of them from the others."
        )
    return kept


def _note(encoding: Encoding) -> str:
    seconds = encoding.predictors.decay / encoding.stream.recording.rate
    latents = encoding.latents.shape[2]
    beside = f" and {latents} time latent{'s' * (latents > 1)}" if latents else ""
    return (
        f"Scores are shares of variance (R²) in {len(encoding.blocks)} held-out blocks, beyond the "
        f"other factors{beside}; the indicator was taken to decay in {seconds:g} s."
    )
