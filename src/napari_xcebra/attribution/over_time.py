"""Computes scores over time: frame by frame, kept on disk, and by the time from an event.

The key of a file is made from everything that its scores depend on: the encoder, the traces of the
stretch and around it, the method. What is not found or cannot be read is computed again, so the
folder may be deleted at any time. Files unused for longest are removed first.

By the time from an event, the model of the conditional encoding predicts held-out blocks of time.
The product of a factor's part of the prediction with what all other parts leave of the trace is
averaged by the time from the event.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d

from napari_xcebra.attribution.encoding.model import PASS, Encoding, make_encoding
from napari_xcebra.attribution.encoding.ridge import HeldOut
from napari_xcebra.attribution.maps.conditional import geometric_mean
from napari_xcebra.attribution.methods import OVER_TIME, local_scores, method_named
from napari_xcebra.attribution.stream import FrameChoice, make_stream, resolve_frames, spread_out
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch, watched
from napari_xcebra.errors import InputError
from napari_xcebra.files import whole
from napari_xcebra.learn.data.factors import TIME, part_named
from napari_xcebra.learn.data.labels import Course, Labels, seconds_from_event
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.result import Fit
from napari_xcebra.recording import Recording

if TYPE_CHECKING:
    import pandas as pd

    from napari_xcebra.learn.result import Fit

FEWEST_EVENTS = 8
"""Events below which a bin of time has no score."""


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
class _KeptScores:
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


def kept_scores() -> _KeptScores:
    """Files in the cache folder of the user."""
    told = os.environ.get(FOLDER)
    if told is not None:
        return _KeptScores(Path(told) if told else None)
    import platformdirs

    cache = platformdirs.user_cache_dir("napari-xcebra", appauthor=False)
    return _KeptScores(Path(cache) / "scores")


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


@dataclass(frozen=True, eq=False)
class ScoresAround:
    """Scores of a factor by the time from an event.

    Parameters
    ----------
    factor, event : str
    seconds : (bins,) float64
        Middle of each bin, from the event; negative before it.
    scores : (bins, cells) float32
        Share of variance in held-out data; of the bin, or of the cell on average if that is more.
        NaN for a cell that was not used, and where too few events have frames.
    errors : (bins, cells) float32
        Standard errors over blocks of time.
    events : (bins,) int64
        Events that have frames in each bin.
    cell_ids : (cells,) int64
        Every ROI of the recording.
    place : (frames,) int64
        Bin of each frame, −1 where no event is near.
    """

    factor: str
    event: str
    seconds: np.ndarray
    scores: np.ndarray
    errors: np.ndarray
    events: np.ndarray
    cell_ids: np.ndarray
    place: np.ndarray

    def table(self) -> pd.DataFrame:
        """One row a bin and ROI: seconds, cell, score and error."""
        import pandas as pd

        bins, cells = self.scores.shape
        return pd.DataFrame(
            {
                "seconds": np.repeat(self.seconds, cells),
                "cell": np.tile(self.cell_ids, bins),
                "score": self.scores.ravel(),
                "error": self.errors.ravel(),
            }
        )


def scores_around(
    fit: Fit,
    recording: Recording,
    event: str,
    factor: str,
    *,
    window: tuple[float, float] = (1.0, 2.0),
    bin: float = 0.25,
    on_progress: OnProgress = None,
    stop: Stop = None,
) -> ScoresAround:
    """Conditional encoding of a factor by the time from an event.

    Parameters
    ----------
    fit : Fit
    recording : Recording
    event : str
        An event of the recording, or a variable with one value in each trial, for the time from
        when it is known.
    factor : str
    window : (float, float)
        Seconds before and after the event.
    bin : float
        Seconds.
    on_progress, stop
        As of `attribute`.

    Examples
    --------
    >>> from napari_xcebra.learn import FitSettings, fit
    >>> from napari_xcebra.simulate import task
    >>> recording = task(frames=3000).recording
    >>> trained = fit(recording, {"choice": ["choice"]}, FitSettings(steps=20))
    >>> scores_around(trained, recording, "decision", "choice", bin=0.5).scores.shape
    (6, 110)
    """
    part_named(factor, fit.parts)
    if not bin > 0 or min(window) < 0 or sum(window) < bin:
        raise InputError(
            f"window is {window!r} and bin {bin!r}: seconds before and after the event are needed, "
            "0 or more each, and bins that fit between them."
        )
    since = _seconds_from(recording, event, window)
    edges = np.arange(-window[0], window[1] + bin / 2, bin)
    stream = make_stream(fit, recording)
    watch = Watch(len(stream.frames), on_progress, stop)
    with limited_threads(fit.settings.threads):
        encoding = make_encoding(stream, watch)
        place = np.searchsorted(edges, since + 0.25 / recording.rate, side="right") - 1
        place = np.where(np.isnan(since) | (place >= len(edges) - 1), -1, place)
        scores, errors = _by_bin(encoding, factor, place, len(edges) - 1, watch)
    watch.finish()
    events = _events(place[encoding.stream.frames], len(edges) - 1)
    rare = events < FEWEST_EVENTS
    scores[rare] = errors[rare] = np.nan
    return ScoresAround(
        factor,
        event,
        (edges[1:] + edges[:-1]) / 2,
        spread_out(scores, fit, recording),
        spread_out(errors, fit, recording),
        events,
        np.asarray(recording.cell_ids),
        place,
    )


def _seconds_from(recording: Recording, event: str, window: tuple[float, float]) -> np.ndarray:
    """Seconds from the nearest event, NaN outside the window: (frames,) float64."""
    variable = recording.variable(event)
    if variable.kind == "event":
        return seconds_from_event(recording, replace(variable, window=window))
    course = Course.of(recording, Labels.of(recording, [event], event))
    if course is None:
        raise InputError(
            f"Variable {event!r} is {variable.kind} and changes within trials, or there are no "
            "trials: an event, or a variable with one value in each trial, is needed."
        )
    seconds = course.seconds(recording.rate, window[0])
    return np.where(seconds <= window[1], seconds, np.nan)


def _by_bin(
    encoding: Encoding, factor: str, place: np.ndarray, bins: int, watch: Watch
) -> tuple[np.ndarray, np.ndarray]:
    """Scores by bin, and their standard errors over blocks: (bins, cells in use) each.

    Parameters
    ----------
    place : (frames,) int64
        Bin of each frame, −1 outside.
    """
    blocks, cells = len(encoding.blocks), len(encoding.lags)
    product = np.zeros((2, blocks, bins, cells))
    variance, frames = np.zeros((blocks, bins, cells)), np.zeros((blocks, bins, 1))
    own, models = encoding.columns[factor], encoding.models(watch)
    total = np.zeros(cells)
    for batch, model in zip(encoding.batches, models, strict=True):
        total[batch.cells] = model.observed.variance.sum(0)
    for block, positions, traces in encoding.read():
        at = place[encoding.stream.frames[positions]]
        inside, at = at >= 0, at[at >= 0]
        indicator = np.zeros((bins, len(at)))
        indicator[at, np.arange(len(at))] = 1
        frames[block] += indicator.sum(1, keepdims=True)
        for batch, (alone, with_state), x in zip(
            encoding.batches, models, encoding.rows(positions), strict=True
        ):
            y = traces[inside][:, batch.cells]
            for i, held in enumerate((with_state if factor == TIME else alone, with_state)):
                width = held.weights.shape[1]
                carried = _carried(held, block, x[inside, :width], y, own)
                product[i, block][:, batch.cells] += indicator @ carried
            away = np.square(y - alone.blocks[block].mean_y)
            variance[block][:, batch.cells] += indicator @ away
        watch.advance(PASS * len(positions))
    usual = total / sum(len(block) for block in encoding.blocks)
    return _shares(product, variance, frames, usual)


def _carried(
    model: HeldOut, block: int, x: np.ndarray, y: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """A factor's part of the prediction times what all else leaves of the trace, by frame."""
    weights, about = model.weights[block], model.blocks[block]
    x = x - about.mean_x
    part = x[:, own] @ weights[own]
    found: np.ndarray = part * (y - about.mean_y - x @ weights + part)
    return found


def _shares(
    product: np.ndarray, variance: np.ndarray, frames: np.ndarray, usual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of variance, of the bin or of the cell on average if that is more; and errors."""

    def share(kept: np.ndarray) -> np.ndarray:
        total = np.maximum(variance[kept].sum(0), frames[kept].sum(0) * usual)
        alone, beside = product[:, kept].sum(1) / np.maximum(total, 1e-12)
        return geometric_mean(alone, beside)

    every = np.arange(len(variance))
    # leaving out one block after the other
    without = np.stack([share(every[every != block]) for block in every])
    errors = np.sqrt((len(every) - 1) * without.var(0))
    return share(every), errors


def _events(place: np.ndarray, bins: int) -> np.ndarray:
    """Events that have frames in each bin: (bins,) int64."""
    begins = np.diff(place, prepend=-1) != 0
    return np.bincount(place[begins & (place >= 0)], minlength=bins)
