"""Computes scores and embedding frame by frame, and keeps them on disk within a budget.

The key of a file is made from everything that its scores depend on: the encoder, the traces of the
stretch and around it, the method. What is not found or cannot be read is computed again, so the
folder may be deleted at any time. Files unused for longest are removed first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution.methods import OVER_TIME, local_scores, method_named
from napari_xcebra.attribution.stream import FrameChoice, make_stream, resolve_frames, spread_out
from napari_xcebra.attribution.watching import Watch, watched
from napari_xcebra.files import whole
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.result import Fit
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
        One of `METHODS` that scores single frames.
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


FOLDER = "NAPARI_XCEBRA_CACHE"
"""Environment variable that names another folder; if it is empty, nothing is kept."""
BUDGET = 2**30
"""Bytes that all files may take together."""
ABANDONED = 3600
"""Seconds after which no one can be writing a file any more."""
MOST = 64 * 2**20
"""Bytes of traces around a stretch, at most: reading more would take too long."""


@dataclass(frozen=True)
class KeptScores:
    """Files of scores in a folder.

    Parameters
    ----------
    folder : Path or None
        None: nothing is kept.
    budget : int
        Bytes that all files may take together.
    """

    folder: Path | None
    budget: int = BUDGET

    def get(self, key: str, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """Scores under that key, computed and kept if there are none; never kept without a key."""
        if self.folder is None or not key:
            return compute()
        path = self.folder / f"{key}.npy"
        found = _read(path)
        if found is None:
            found = compute()
            with contextlib.suppress(OSError):  # a full disk is no reason to show nothing
                self._keep(path, found)
        return found

    def _keep(self, path: Path, scores: np.ndarray) -> None:
        if scores.nbytes > self.budget // 4:
            return
        with whole(path) as temporary, temporary.open("wb") as file:
            np.save(file, scores, allow_pickle=False)
        files = sorted(path.parent.glob("*.npy"), key=_used, reverse=True)
        taken, now = 0, time.time()
        for file_ in files:
            with contextlib.suppress(FileNotFoundError):  # another window may have been quicker
                taken += file_.stat().st_size
                # a hidden file is being written, unless whoever wrote it was killed
                unfinished = file_.name.startswith(".") and now - _used(file_) > ABANDONED
                if (taken > self.budget and file_ != path) or unfinished:
                    file_.unlink()


def kept_scores() -> KeptScores:
    """Files in the cache folder of the user."""
    told = os.environ.get(FOLDER)
    if told is not None:
        return KeptScores(Path(told) if told else None)
    import platformdirs

    cache = platformdirs.user_cache_dir("napari-xcebra", appauthor=False)
    return KeptScores(Path(cache) / "scores")


def key_of(
    fit: Fit, recording: Recording, latents: slice, method: str, frames: np.ndarray, smooth: float
) -> str:
    """Key of the scores at some frames; empty if they lie in too long a stretch.

    Parameters
    ----------
    latents : slice
        Dimensions of the embedding.
    frames : (n,) int64
        Ascending.
    smooth : float
        As of `scores_by_frame`.
    """
    margin = fit.inputs.radius + 1 + fit.settings.window
    if len(frames) == 0:
        return ""
    first, last = max(0, int(frames[0]) - margin), int(frames[-1]) + margin + 1
    behavior: list[np.ndarray] = []
    if method_named(method).fitted:  # to the whole recording
        first, last = 0, recording.n_frames
        behavior = [np.asarray(recording.behavior[n].values) for n in sorted(recording.behavior)]
    if (min(last, recording.n_frames) - first) * recording.n_cells * 4 > MOST:
        return ""
    about = {
        "version": metadata.version("napari-xcebra"),
        "settings": fit.settings.as_dict(),
        "kernel": fit.inputs.kernel.tolist(),
        "method": method,
        "latents": [latents.start, latents.stop],
        "smooth": smooth,
        "first": first,
    }
    digest = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for array in (
        *(fit.weights[name] for name in sorted(fit.weights)),
        fit.scale,
        fit.inputs.cell_ids,
        fit.inputs.mean,
        fit.inputs.scale,
        frames,
        np.asarray(recording.traces[first:last]),
        np.asarray(recording.segment[first:last]),
        np.asarray(recording.excluded)[first:last],
        np.asarray(recording.cell_ids),
        *behavior,
    ):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read(path: Path) -> np.ndarray | None:
    """Scores in a file, which is marked as used; None if it cannot be read."""
    try:
        found = np.load(path, allow_pickle=False)
        os.utime(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    return np.asarray(found)


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
