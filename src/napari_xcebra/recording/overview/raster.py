"""Averages all traces in ever longer blocks of frames, small enough to draw all cells at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from napari_xcebra.errors import Stopped
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import in_blocks

MOST_BYTES = 32 * 2**20
"""Of the finest level; the coarser ones take as much again."""
LOWEST, HIGHEST = -2.0, 10.0
"""z of the codes 1 and 255. Code 0 is free for pixels that have no frame."""
COARSEST = 64
"""Blocks below which no coarser level is kept."""


@dataclass(frozen=True, eq=False)
class Raster:
    """Traces of all cells as codes of their z, at several resolutions.

    Parameters
    ----------
    step : int
        Frames of a block of the first level; those of each further one have twice as many.
    levels : sequence of (cells, blocks) uint8
        Mean z of each block, as codes from 1 to 255; z is counted in standard deviations of the
        cell's trace from its mean.

    Examples
    --------
    >>> recording = Recording.from_arrays(np.eye(400, 3), rate=10.0)
    >>> raster = raster_of(recording)
    >>> [level.shape for level in raster.levels], raster.step
    ([(3, 400), (3, 200), (3, 100)], 1)
    """

    step: int
    levels: tuple[np.ndarray, ...]

    def at(self, frames: np.ndarray, each: float, cells: np.ndarray) -> np.ndarray:
        """Codes of some cells at ascending frames, as means over about `each` frames.

        Returns
        -------
        (cells, frames) uint8
        """
        finest = int(np.ceil(np.log2(max(each / self.step, 1))))
        level = min(finest, len(self.levels) - 1)
        block = frames // (self.step << level)
        first, last = int(block[0]), int(block[-1]) + 1
        near: np.ndarray = self.levels[level][:, first:last][cells]
        return near if last - first == len(block) else near[:, block - first]

    def means(self, most: int) -> np.ndarray:
        """Of the finest level with no more than so many values, z: (cells, blocks) float32."""
        level = next((level for level in self.levels if level.size <= most), self.levels[-1])
        return z_of(level)


def z_of(codes: np.ndarray | int) -> np.ndarray:
    """What codes stand for, in standard deviations."""
    z = LOWEST + (np.asarray(codes, np.float32) - 1) * np.float32((HIGHEST - LOWEST) / 254)
    return np.asarray(z, np.float32)


def raster_of(
    recording: Recording, most: int = MOST_BYTES, stop: Callable[[], bool] | None = None
) -> Raster:
    """Raster of all cells of a recording, read a few cells at a time.

    A trace that never changes, or that has no value somewhere, is at 0 throughout.

    Parameters
    ----------
    recording : Recording
    most : int
        Bytes of the finest level.
    stop : callable, optional
        Says whether nobody waits for it any more; then `Stopped` is raised.
    """
    frames, cells = recording.traces.shape
    step = -(-frames * cells // most)
    used = ~np.asarray(recording.excluded)
    levels: list[np.ndarray] = []
    for some, traces in in_blocks(recording.traces):
        if stop is not None and stop():
            raise Stopped
        blocks = _means(_standardised(traces, used), step)
        for number in range(64):
            if number == len(levels):
                levels.append(np.empty((cells, len(blocks)), np.uint8))
            share = (blocks.T - LOWEST) * (254 / (HIGHEST - LOWEST))
            levels[number][some] = np.clip(np.round(share), 0, 254).astype(np.uint8) + 1
            if len(blocks) < 2 * COARSEST:
                break
            blocks = _means(blocks, 2)
    return Raster(int(step), tuple(levels))


def _standardised(traces: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Traces, in place, in standard deviations of their used frames: (frames, cells) float32."""
    own = traces if used.all() or not used.any() else traces[used]
    with np.errstate(all="ignore"):
        middle, spread = own.mean(0, dtype=np.float64), own.std(0, dtype=np.float64)
        traces -= middle.astype(np.float32)
        traces /= np.where(spread > 0, spread, 1).astype(np.float32)
    return np.nan_to_num(traces, copy=False, nan=0.0, posinf=0.0, neginf=0.0)


def _means(values: np.ndarray, step: int) -> np.ndarray:
    """Mean over every few rows; the last block may be shorter: (blocks, columns)."""
    if step == 1:
        return values
    whole = len(values) // step * step
    means = values[:whole].reshape(-1, step, values.shape[1]).mean(1)
    if whole == len(values):
        return means
    return np.concatenate([means, values[whole:].mean(0, keepdims=True)])
