"""What is wanted frame by frame, for playback and plots: local scores, and the embedding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution.method_notes import OVER_TIME
from napari_xcebra.attribution.methods import local_scores
from napari_xcebra.attribution.stream import FrameChoice, make_stream, resolve_frames, spread_out
from napari_xcebra.attribution.watching import Watch, watched
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.split import usable_frames
from napari_xcebra.recording import Recording


def scores_by_frame(
    fit: Fit,
    recording: Recording,
    latents: slice,
    method: str = OVER_TIME,
    frames: FrameChoice = slice(0, 500),
    *,
    smooth: float = 0.0,
    seed: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> np.ndarray:
    """|A| of every cell at every frame, averaged over some latents.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    latents : slice
        Dimensions of the embedding, such as ``fit.part("place").latents``.
    method : str
        One of `METHODS`.
    frames : slice, (n,) int or (frames,) bool, optional
        All frames if None.
    smooth : float
        Standard deviation in frames of a Gaussian within each trial; 0 for none.
    seed, on_progress, stop
        As of `attribute`.

    Returns
    -------
    (frames asked for, cells) float32
        NaN at frames whose window leaves its trial, and for cells that were not used.
    """
    asked, used = _asked(fit, recording, frames)
    scores = np.full((len(asked), recording.n_cells), np.nan, np.float32)
    if used.any():
        stream = make_stream(fit, recording, asked, seed)
        with limited_threads(fit.settings.threads), torch.no_grad():
            watch = Watch(len(stream.frames), on_progress, stop)
            every = local_scores(method, stream, watch)
            local = (chunk[:, latents].mean(1) for chunk in every)
            rows = list(watched(local, watch))
        scores[used] = spread_out(np.concatenate(rows), fit, recording)
    if smooth > 0:
        _smooth_runs(scores, asked, used, recording.segment[asked], smooth)
    return scores


def embedding_by_frame(
    fit: Fit,
    recording: Recording,
    frames: FrameChoice = None,
    *,
    on_progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> np.ndarray:
    """Embedding at some frames, read and embedded a stretch at a time.

    Returns
    -------
    (frames asked for, latents) float32
        NaN at frames whose window leaves its trial.
    """
    asked, used = _asked(fit, recording, frames)
    embedding = np.full((len(asked), len(fit.scale)), np.nan, np.float32)
    if used.any():
        stream = make_stream(fit, recording, asked)
        with limited_threads(fit.settings.threads), torch.no_grad():
            rows = (stream.encoder(x) for x in stream.chunks(copies=1))
            chunks = list(watched(rows, Watch(len(stream.frames), on_progress, stop)))
        embedding[used] = np.concatenate(chunks)
    return embedding


def _asked(fit: Fit, recording: Recording, frames: FrameChoice) -> tuple[np.ndarray, np.ndarray]:
    """Frames asked for, ascending, and which of them the encoder can see: (n,) int64, bool."""
    asked = resolve_frames(recording, frames)
    asked = np.arange(recording.n_frames) if asked is None else np.unique(asked)
    return asked, np.isin(asked, usable_frames(recording, fit.settings.window))


def _smooth_runs(
    scores: np.ndarray, frames: np.ndarray, used: np.ndarray, trial: np.ndarray, sigma: float
) -> None:
    """Smooth in place, within runs of consecutive frames of one trial."""
    position = np.flatnonzero(used)
    ends = (np.diff(frames[position]) != 1) | (np.diff(trial[position]) != 0)
    for run in np.split(position, np.flatnonzero(ends) + 1):
        if len(run):
            scores[run] = gaussian_filter1d(scores[run], sigma, axis=0, mode="nearest")
