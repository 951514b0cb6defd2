"""Turns traces of the cells in use into inputs of the encoder: filtered and standardised."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.input_storage import ReadInputs, need_reading, room_for
from napari_xcebra.learn.data.smoothing import blocks, gaussian_kernel, radius_of, smoothed
from napari_xcebra.learn.settings import FitSettings
from napari_xcebra.recording import Recording
from napari_xcebra.standardise import changes

SAMPLED_BYTES = 4 * 2**30
"""Traces that suffice for mean and scale where inputs are computed on demand."""


CLIP = 10.0
"""Standard deviations at which an input is clipped.

Cells that are nearly silent in training reached 112,620 in held-out frames of a real recording.
"""

QUIET = 0.01
"""Least scale of a cell, as a share of the median: a cell that hardly moves is not blown up."""

RARE = 2.0
"""The same for traces of events, where a cell with one event would weigh as much as one with fifty.

Chosen on CA1 events (ridge of the position, blocked: R² 0.52 to 0.53) and checked on simulated
spikes (0.35 to 0.37 at one spike in 25 s a cell, 0.853 to 0.857 at one in 9 s).
"""


@dataclass(frozen=True)
class Filter:
    """One filter over time for all cells: weights of the smoothed frames around each frame.

    Parameters
    ----------
    weights : tuple of float
        An odd number, from the earliest frame on.
    spacing : int
        Frames between two of them.
    """

    weights: tuple[float, ...] = (1.0,)
    spacing: int = 1

    def after(self, kernel: np.ndarray) -> np.ndarray:
        """Weights of a kernel and this filter behind it, as one: (frames,) float32."""
        if self.does_nothing:
            return kernel
        spread = np.zeros((len(self.weights) - 1) * self.spacing + 1)
        spread[:: self.spacing] = self.weights
        return np.convolve(kernel.astype(np.float64), spread).astype(np.float32)

    @property
    def does_nothing(self) -> bool:
        """Whether it leaves frames unchanged."""
        return len(self.weights) == 1


UNFILTERED = Filter()


@dataclass(frozen=True)
class Inputs:
    """Rule that turns traces of a recording into inputs of the encoder.

    Parameters
    ----------
    cell_ids : (cells in use,) int64
        Cells by the ids of the recording.
    mean, scale : (cells in use,) float32
        Taken over the training frames.
    smoothing : float
        Standard deviation of a Gaussian, in frames; 0 for none.
    filter : Filter
        Applied after smoothing, to undo delay and decay of the indicator.
    clip : float
        Standard deviations at which inputs are clipped; infinite in fits of earlier versions.
    """

    cell_ids: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    smoothing: float
    filter: Filter = UNFILTERED
    clip: float = float("inf")

    @property
    def kernel(self) -> np.ndarray:
        """Weights of the frames around each frame, smoothing and filter in one: float32."""
        return self.filter.after(gaussian_kernel(self.smoothing))

    @property
    def radius(self) -> int:
        """Frames on either side that an input depends on."""
        return radius_of(self.kernel)

    def standardise(self, traces: np.ndarray) -> None:
        """Turn filtered traces into inputs, in place: (frames, cells in use) float32.

        Not by `standardise.standardised`: mean and scale were taken over blocks of other frames.
        """
        traces -= self.mean
        traces /= self.scale
        np.clip(traces, -self.clip, self.clip, out=traces)

    def columns(self, recording: Recording) -> np.ndarray:
        """Columns of the recording's traces that hold these cells: (cells in use,) int64."""
        ids = np.asarray(recording.cell_ids)
        order = np.argsort(ids)
        place = np.searchsorted(ids, self.cell_ids, sorter=order)
        columns = order[np.minimum(place, len(ids) - 1)]
        missing = self.cell_ids[ids[columns] != self.cell_ids]
        if len(missing):
            raise InputError(
                f"The recording lacks {len(missing)} of the {len(self.cell_ids)} cells this fit "
                f"was trained on (first: {missing[0]}): the fit belongs to another recording."
            )
        return columns

    def of(self, recording: Recording) -> np.ndarray:
        """Inputs at every frame: (frames, cells in use) float32."""
        columns = self.columns(recording)
        found = room_for(recording.n_frames, len(columns))
        for frames, traces in smoothed(recording, columns, self.kernel):
            found[frames] = traces
            self.standardise(found[frames])
        return found

    def on(self, recording: Recording) -> np.ndarray | ReadInputs:
        """The same, or computed on demand if memory does not hold them."""
        if need_reading(recording, len(self.cell_ids), self.radius):
            return ReadInputs(recording, self)
        return self.of(recording)


def columns_in_use(recording: Recording, settings: FitSettings) -> np.ndarray:
    """Columns of the traces to use, before constant ones are left out: int64."""
    use = np.asarray(recording.accepted) if settings.accepted_only else np.ones(recording.n_cells)
    columns = np.flatnonzero(use)
    if len(columns) == 0:
        raise InputError("No cell is accepted: accept some, or turn `accepted_only` off.")
    return columns


def inputs_for(
    recording: Recording, frames: np.ndarray, settings: FitSettings, filter_: Filter = UNFILTERED
) -> tuple[Inputs, np.ndarray | ReadInputs]:
    """Cells in use with their standardisation, and the inputs it gives.

    Cells that are not accepted (unless asked for) or constant over these frames are left out.
    Where inputs are computed on demand, mean and scale come from evenly spaced blocks of frames.

    Parameters
    ----------
    frames : (n,) int64
        Frames over which mean and scale are taken, ascending.
    filter_ : Filter
        Behind the smoothing that the settings ask for.

    Returns
    -------
    Inputs
    (frames, cells in use) float32
        As `Inputs.of` gives them.
    """
    columns = columns_in_use(recording, settings)
    # this imports torch, which a window that only shows a fit does without
    from napari_xcebra.learn.training.device import limited_threads

    smoothing = settings.smoothing * recording.rate
    kernel = filter_.after(gaussian_kernel(smoothing))
    size = recording.n_frames, len(columns)
    reading = need_reading(recording, len(columns), radius_of(kernel))
    kept = None if reading else room_for(*size)
    every = 1 if kept is not None else -(-4 * size[0] * size[1] // SAMPLED_BYTES)
    moments = _Moments(len(columns))
    with limited_threads(settings.threads):
        for here, traces in smoothed(recording, columns, kernel, every):
            if kept is not None:
                kept[here] = traces
            first, last = np.searchsorted(frames, [here.start, here.stop])
            all_of_them = last - first == len(traces)
            moments.add(traces if all_of_them else traces[frames[first:last] - here.start])
    inputs, moving = _standardisation(recording, columns, moments, smoothing, filter_)
    if kept is None:
        return inputs, ReadInputs(recording, inputs)
    if not moving.all():
        kept = np.compress(moving, kept, axis=1)
    for here in blocks(slice(0, len(kept)), kept.shape[1]):
        inputs.standardise(kept[here])
    return inputs, kept


def _standardisation(
    recording: Recording,
    columns: np.ndarray,
    moments: _Moments,
    smoothing: float,
    filter_: Filter,
) -> tuple[Inputs, np.ndarray]:
    """Inputs of the cells that change, and which of these columns they are: (columns,) bool."""
    mean, scale = moments.mean, moments.deviation
    moving = changes(mean, scale)
    if not moving.any():
        raise InputError(
            f"All {len(columns)} cells in use are constant over the training frames: at least one "
            "that changes is needed."
        )
    least = RARE if recording.origin.signal == "events" else QUIET
    scale = np.maximum(scale, least * np.median(scale[moving]))
    inputs = Inputs(
        np.asarray(recording.cell_ids)[columns[moving]],
        mean[moving].astype(np.float32),
        scale[moving].astype(np.float32),
        smoothing,
        filter_,
        CLIP,
    )
    return inputs, moving


class _Moments:
    """Mean and standard deviation of each cell, from frames that come in blocks."""

    def __init__(self, cells: int) -> None:
        self.count = 0
        self.sums, self.squares = np.zeros(cells), np.zeros(cells)
        self.origin: np.ndarray | None = None

    def add(self, traces: np.ndarray) -> None:
        """(frames, cells) float32 more."""
        if len(traces) == 0:
            return
        if self.origin is None:
            self.origin = traces[0].copy()
        # from a value it has: squares of a bright cell's own values would hide how little it moves
        centred = traces - self.origin
        self.count += len(centred)
        self.sums += centred.sum(0, dtype=np.float64)
        self.squares += np.square(centred, out=centred).sum(0, dtype=np.float64)

    @property
    def mean(self) -> np.ndarray:
        return self.sums / max(self.count, 1) + (0 if self.origin is None else self.origin)

    @property
    def deviation(self) -> np.ndarray:
        count = max(self.count, 1)
        return np.sqrt(np.maximum(self.squares / count - np.square(self.sums / count), 0))
