"""Cuts the largest transients of a cell out of the movie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d

from napari_xcebra.errors import Stopped
from napari_xcebra.recording.cell_shapes import CellShapes
from napari_xcebra.recording.movies.movie import Movie
from napari_xcebra.recording.recording import Recording
from napari_xcebra.recording.transients import largest_transients

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
    onsets = [onset_of(recording, trace, int(peak)) for peak in peaks]
    before = max(BEFORE, (peaks - onsets).max() / recording.rate + 2 * PEAK)
    step = max(1, int(np.ceil((before + AFTER) * recording.rate / MOST_FRAMES)))
    clips, rises = [], []
    for peak, onset in zip(peaks, onsets, strict=True):
        if stopped():
            raise Stopped
        frames = clip_frames(recording, int(peak), before, step)
        clip = movie.crop(_in_movie(movie, frames), plane, rows, columns)
        clips.append(clip)
        rises.append(_rise(clip, frames <= onset, np.abs(frames - peak) / recording.rate))
    average = np.stack(rises).mean(axis=0)
    seconds = step / recording.rate
    return Clips(peaks, tuple(clips), seconds, average, (rows.start, columns.start))


def onset_of(recording: Recording, trace: np.ndarray, peak: int) -> int:
    """The last frame before a peak at which the trace was still low."""
    start = max(0, peak - round(SLOWEST * recording.rate))
    before = trace[start : peak + 1]
    width = max(1, round(PEAK * recording.rate))
    smooth = uniform_filter1d(np.asarray(before, float), width, mode="nearest")
    smooth[recording.segment[start : peak + 1] != recording.segment[peak]] = np.nan
    low, high = np.nanmin(smooth), smooth[-1]
    return start + int(np.flatnonzero(smooth <= low + BEGUN * max(high - low, 0))[-1])


def clip_frames(recording: Recording, peak: int, before: float, step: int) -> np.ndarray:
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
