"""Orders cells by who is active together, draws all of them at once, and cuts clips of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.ndimage import uniform_filter1d

from napari_xcebra.errors import InputError, Stopped
from napari_xcebra.recording.footprints import CellShapes
from napari_xcebra.recording.movies import Movie
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.traces import in_blocks, largest_transients

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


FEW = 4
"""Cells that are not divided any further."""
STEPS = 12
"""Of the power iteration that finds a principal component."""
NEAR = 10
"""Cells at the ends of two groups whose likeness decides which ends meet."""
INSTALL = 'pip install "napari-xcebra[rastermap]"'


def by_correlation(activity: np.ndarray) -> np.ndarray:
    """Positions of the cells, correlated ones beside each other: (cells,) int64.

    Cells are divided in two along the first principal component of their traces, each half again,
    and so on; halves are turned so that the ends that meet are the most alike.

    Parameters
    ----------
    activity : (cells, blocks) float

    Examples
    --------
    >>> phase = np.arange(40) % 4 * np.pi / 2
    >>> activity = np.sin(np.linspace(0, 60, 300) + phase[:, None])
    >>> order = by_correlation(activity)
    >>> int((np.diff(order % 4) != 0).sum())  # four groups, each in one piece
    3
    """
    z = np.asarray(activity, np.float32)
    z = z - z.mean(1, keepdims=True)
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    return _divided(np.arange(len(z)), z)


def _divided(cells: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Some cells, in order."""
    score = _first_component(z[cells])
    cells = cells[np.argsort(score, kind="stable")]
    low = int((score < 0).sum())
    if len(cells) <= FEW or not 0 < low < len(cells):
        return cells
    if min(low, len(cells) - low) < len(cells) // 50:  # one that stands apart would halve nothing
        low = len(cells) // 2
    return _joined(_divided(cells[:low], z), _divided(cells[low:], z), z)


def _first_component(z: np.ndarray) -> np.ndarray:
    """Score of each row on the first principal component: (rows,) float32."""
    z = z - z.mean(0)
    # from the row that differs most, so that the same cells are always sorted alike
    axis = z[np.square(z).sum(1).argmax()]
    for _ in range(STEPS):
        axis = z.T @ (z @ axis)
        axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
    score: np.ndarray = z @ axis
    return score


def _joined(one: np.ndarray, other: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Two groups one after the other, each as it is or the other way round."""
    ends = [(z[group[:NEAR]].mean(0), z[group[-NEAR:]].mean(0)) for group in (one, other)]
    alike = np.array([[float(a @ b) for b in ends[1]] for a in ends[0]])
    of_one, of_other = np.unravel_index(alike.argmax(), (2, 2))
    first = one if of_one == 1 else one[::-1]
    return np.concatenate([first, other if of_other == 0 else other[::-1]])


def has_rastermap() -> bool:
    """Whether rastermap is installed; it is an extra, as its licence is the GPL."""
    return find_spec("rastermap") is not None


def by_rastermap(activity: np.ndarray) -> np.ndarray:
    """Positions of the cells as rastermap sorts them (Stringer et al. 2025): (cells,) int64.

    Parameters
    ----------
    activity : (cells, blocks) float
    """
    if not has_rastermap():
        raise InputError(f"rastermap is not installed: {INSTALL}")
    from rastermap import Rastermap

    z = np.asarray(activity, np.float32)
    clusters = None if len(z) < 200 else 100
    parts = min(128, *(size - 1 for size in z.shape))
    model = Rastermap(n_clusters=clusters, n_PCs=parts, locality=0.0, verbose=False)
    return np.asarray(model.fit(z, compute_X_embedding=False).isort, np.int64)


BEFORE, AFTER = 1.0, 2.0
"""Seconds of a clip before and after the peak, or more where the rise is slow."""
SLOWEST = 8.0
"""Seconds that a rise may take: a cell may fire for as long as an animal crosses a place."""
BEGUN = 0.2
"""Share of its height at which a transient has begun."""
PEAK = 0.25
"""Seconds on either side of the peak that are averaged."""
MOST_FRAMES = 30
"""Frames of a clip at most: of a fast movie, some are left out."""
ACROSS = 5.0
"""Width of a clip, in diameters of the median cell."""


@dataclass(frozen=True, eq=False)
class Clips:
    """The largest transients of one cell as the movie shows them.

    Parameters
    ----------
    peaks : (clips,) int64
        Frames of the recording, the largest transient first.
    clips : sequence of (frames, rows, columns) float32
        They may differ in length: at either end of a segment they are cut off.
    seconds : float
        Between two frames of a clip.
    average : (rows, columns) float32
        At the peaks, less what was there before.
    corner : (row, column)
        First pixel of the clips in the field.
    """

    peaks: np.ndarray
    clips: tuple[np.ndarray, ...]
    seconds: float
    average: np.ndarray
    corner: tuple[int, int]


def read_clips(
    recording: Recording,
    shapes: CellShapes,
    cell: int,
    trace: np.ndarray,
    stopped: Callable[[], bool] = lambda: False,
) -> Clips | None:
    """Read the clips of a cell; None without a movie, pixels or transients.

    Parameters
    ----------
    recording : Recording
    shapes : CellShapes
        Of its cells.
    cell : int
        Position in the recording.
    trace : (frames,) float
        Of this cell.
    stopped : function
        Asked between two clips; if it says yes, `Stopped` is raised.
    """
    movie = recording.movie
    peaks = largest_transients(trace, recording.rate)
    if movie is None or not shapes.sizes[cell] or not len(peaks):
        return None
    rows, columns = _around(shapes, cell, movie.field)
    plane = shapes.plane(cell) if movie.stacked else 0
    onsets = [_onset_of(recording, trace, int(peak)) for peak in peaks]
    before = max(BEFORE, (peaks - onsets).max() / recording.rate + 2 * PEAK)
    step = max(1, int(np.ceil((before + AFTER) * recording.rate / MOST_FRAMES)))
    clips, rises = [], []
    for peak, onset in zip(peaks, onsets, strict=True):
        if stopped():
            raise Stopped
        frames = _clip_frames(recording, int(peak), before, step)
        clip = movie.crop(_in_movie(movie, frames), plane, rows, columns)
        clips.append(clip)
        rises.append(_rise(clip, frames <= onset, np.abs(frames - peak) / recording.rate))
    average = np.stack(rises).mean(axis=0)
    seconds = step / recording.rate
    return Clips(peaks, tuple(clips), seconds, average, (rows.start, columns.start))


def _onset_of(recording: Recording, trace: np.ndarray, peak: int) -> int:
    """The last frame before a peak at which the trace was still low."""
    start = max(0, peak - round(SLOWEST * recording.rate))
    before = trace[start : peak + 1]
    width = max(1, round(PEAK * recording.rate))
    smooth = uniform_filter1d(np.asarray(before, float), width, mode="nearest")
    smooth[recording.segment[start : peak + 1] != recording.segment[peak]] = np.nan
    low, high = np.nanmin(smooth), smooth[-1]
    return start + int(np.flatnonzero(smooth <= low + BEGUN * max(high - low, 0))[-1])


def _clip_frames(recording: Recording, peak: int, before: float, step: int) -> np.ndarray:
    """Frames of the recording from seconds before a peak to after it, within its segment."""
    first, last = (round(seconds * recording.rate / step) for seconds in (before, AFTER))
    frames = peak + step * np.arange(-first, last + 1)
    frames = frames[(frames >= 0) & (frames < recording.n_frames)]
    segment = recording.segment
    return frames[segment[frames] == segment[peak]]


def _around(shapes: CellShapes, cell: int, field: tuple[int, int]) -> tuple[slice, slice]:
    """Square around a cell, moved into the field where it would reach beyond it."""
    side = int(np.ceil(ACROSS * shapes.diameter))
    parts = []
    for center, size in zip(shapes.centers[cell, 1:], field, strict=True):
        start = int(np.clip(round(center - side / 2), 0, max(size - side, 0)))
        parts.append(slice(start, min(start + side, size)))
    return parts[0], parts[1]


def _in_movie(movie: Movie, frames: np.ndarray) -> list[int]:
    return [movie.of_frame(int(frame)) for frame in frames]


def _rise(clip: np.ndarray, before: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Mean image at the peak, less that before the onset; `away` is in seconds from the peak."""
    peak = away <= max(PEAK, away.min())
    rest = clip[before].mean(axis=0) if before.any() else clip.min(axis=0)
    return clip[peak].mean(axis=0) - rest
