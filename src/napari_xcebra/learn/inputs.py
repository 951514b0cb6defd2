"""What the encoder is fed: traces of the cells in use, smoothed and standardised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import InputError, Recording


@dataclass(frozen=True)
class Inputs:
    """How traces of a recording become inputs of the encoder.

    Parameters
    ----------
    cell_ids : (cells in use,) int64
        Cells by the ids of the recording.
    mean, scale : (cells in use,) float32
        Taken over the training frames.
    smoothing : float
        Standard deviation of a Gaussian, in frames; 0 for none.
    """

    cell_ids: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    smoothing: float

    def columns(self, recording: Recording) -> np.ndarray:
        """Columns of the recording's traces that hold these cells: (cells in use,) int64."""
        position = {int(cell): i for i, cell in enumerate(np.asarray(recording.cell_ids))}
        missing = [int(cell) for cell in self.cell_ids if int(cell) not in position]
        if missing:
            raise InputError(
                f"The recording lacks {len(missing)} of the {len(self.cell_ids)} cells this fit "
                f"was trained on (first: {missing[0]}): it belongs to another recording."
            )
        return np.array([position[int(cell)] for cell in self.cell_ids])

    def of(self, recording: Recording) -> np.ndarray:
        """Inputs at every frame: (frames, cells in use) float32."""
        traces = smooth(recording.traces[:, self.columns(recording)], recording, self.smoothing)
        return (traces - self.mean) / self.scale


def inputs_for(recording: Recording, frames: np.ndarray, settings: FitSettings) -> Inputs:
    """Cells in use and their standardisation.

    Cells that are not accepted (unless asked for) or constant over these frames take no part.
    """
    use = np.asarray(recording.accepted) if settings.accepted_only else np.ones(recording.n_cells)
    columns = np.flatnonzero(use)
    if len(columns) == 0:
        raise InputError("No cell is accepted: accept some, or turn `accepted_only` off.")
    smoothing = settings.smoothing * recording.rate
    traces = smooth(recording.traces[:, columns], recording, smoothing)[frames]
    mean, scale = traces.mean(0, dtype=np.float64), traces.std(0, dtype=np.float64)
    moving = scale > 1e-6 * np.maximum(np.abs(mean), 1e-30)
    if not moving.any():
        raise InputError(
            f"All {len(columns)} cells in use are constant over the training frames: at least one "
            "that changes is needed."
        )
    return Inputs(
        np.asarray(recording.cell_ids)[columns[moving]],
        mean[moving].astype(np.float32),
        scale[moving].astype(np.float32),
        smoothing,
    )


def smooth(traces: np.ndarray, recording: Recording, frames: float) -> np.ndarray:
    """Traces smoothed by a Gaussian within each run of frames in use: (frames, cells) float32."""
    if frames == 0:
        return traces
    smoothed = np.empty_like(traces)
    for span in _spans(recording):
        smoothed[span] = gaussian_filter1d(traces[span], frames, axis=0, mode="nearest")
    return smoothed


def _spans(recording: Recording) -> Iterator[slice]:
    excluded = np.asarray(recording.excluded)
    changes = np.flatnonzero(excluded[1:] != excluded[:-1]) + 1
    edges = np.unique(np.r_[np.asarray(recording.starts), changes, recording.n_frames])
    for start, stop in pairwise(edges):
        yield slice(int(start), int(stop))
