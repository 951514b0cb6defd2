"""Summarises local attribution over frames, without keeping it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch

from napari_xcebra.attribution.methods import (
    DEFAULT,
    Method,
    check_method,
    local_scores,
    method_named,
)
from napari_xcebra.attribution.result import NOT_LEARNED, Attribution
from napari_xcebra.attribution.stream import FrameChoice, Stream, make_stream, spread_out
from napari_xcebra.attribution.watching import OnProgress, Stop, Watch, watched
from napari_xcebra.errors import InputError
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.training.device import limited_threads
from napari_xcebra.recording import Recording

Aggregate = Literal["mean", "median", "max"]

MEDIAN_BYTES = 256 * 2**20
"""Local scores that a median keeps in memory, at most."""


def attribute(
    fit: Fit,
    recording: Recording,
    method: str = DEFAULT,
    *,
    frames: FrameChoice = None,
    aggregate: Aggregate = "mean",
    on_progress: OnProgress = None,
    stop: Stop = None,
    seed: int | None = None,
    device: str | None = None,
    workers: int | None = None,
) -> Attribution:
    """Score of every cell for every factor: |A| at each frame, summarised over frames.

    Parameters
    ----------
    fit : Fit
    recording : Recording
        The one the fit was trained on, or another of the same cells.
    method : str
        One of `METHODS`. Both routes and the gradients take seconds; the others pass through
        the encoder many times a frame: give them ``frames=slice(None, None, 10)``.
    frames : slice, (n,) int or (frames,) bool, optional
        Such as a trial or a condition; all frames if not given. Frames that are excluded, or
        whose window leaves its trial, are not used.
    aggregate : {"mean", "median", "max"}
        Over frames, for the gradients: both routes score whole traces. The median is exact if
        the local scores fit into 256 MB; else it is taken over evenly spaced frames, and `notes`
        says so.
    on_progress : callable, optional
        Called with the number of frames done and in all.
    stop : callable, optional
        Asked after every chunk of frames; when it returns True, `AttributionStopped` is raised.
    seed : int, optional
        For the methods that draw at random; the fit's if not given.
    device : str, optional
        The fit's if not given.
    workers : int, optional
        Chunks of frames that the gradient methods explain at a time; one on each core if not
        given. The scores are the same.

    Returns
    -------
    Attribution

    Examples
    --------
    >>> from napari_xcebra.learn import FitSettings, fit
    >>> from napari_xcebra.simulate import box
    >>> simulation = box(frames=3000)
    >>> trained = fit(simulation.recording, simulation.factors, FitSettings(steps=20))
    >>> attribute(trained, simulation.recording).table("z2").shape
    (50, 16)
    """
    if aggregate not in get_args(Aggregate):
        raise InputError(
            f"aggregate is {aggregate!r}: one of {', '.join(get_args(Aggregate))} is needed."
        )
    check_method(method)
    about = method_named(method)
    stream = make_stream(fit, recording, frames, seed, device, workers)
    own: dict[str, Any]
    if not about.latents:
        watch = Watch(len(stream.frames), on_progress, stop)
        with limited_threads(fit.settings.threads):
            found = about.compute(stream, watch)
        watch.finish()
        notes = found.notes
        own = {
            "factor_scores": spread_out(found.scores, fit, recording),
            "latent_scores": None
            if found.latents is None
            else spread_out(found.latents, fit, recording),
            "details": {n: spread_out(d, fit, recording) for n, d in found.details.items()},
        }
        aggregate = "mean"
    else:
        stream, notes = _thinned(stream, aggregate)
        watch = Watch(len(stream.frames), on_progress, stop)
        with limited_threads(fit.settings.threads), torch.no_grad():
            chunks = watched(local_scores(method, stream, watch), watch)
            scores = _AGGREGATES[aggregate](chunks)
        watch.finish()
        own = {"latent_scores": spread_out(scores, fit, recording)}
    strengths = {name: _strength(g, about) for name, g in fit.goodness.items()}
    verdicts = {name: g.verdict for name, g in fit.goodness.items()}
    for name in (n for n, strength in strengths.items() if strength == NOT_LEARNED):
        meaningless = f"The encoder did not learn {name}: this map of it means nothing."
        notes, verdicts[name] = (*notes, meaningless), f"{verdicts[name]} {meaningless}"
    return Attribution(
        method=method,
        aggregate=aggregate,
        parts=fit.parts,
        cell_ids=np.asarray(recording.cell_ids),
        n_frames=len(stream.frames),
        strengths=strengths,
        verdicts=verdicts,
        seed=stream.seed,
        notes=notes,
        source=recording.source,
        fit=fit,
        recording=recording,
        **own,
    )


def _strength(goodness: Goodness, method: Method) -> str:
    """Strength of a factor; "not learned" for a map from an encoder that did not learn it."""
    if goodness.learned or method.from_variables or goodness.strength == "at chance":
        return goodness.strength
    return NOT_LEARNED


def _thinned(stream: Stream, aggregate: Aggregate) -> tuple[Stream, tuple[str, ...]]:
    """Stream with no more frames than a median can keep, and a note if frames were dropped."""
    if aggregate != "median":
        return stream, ()
    fit = stream.fit
    return stream.thinned(max(1, MEDIAN_BYTES // (4 * len(fit.scale) * len(fit.inputs.cell_ids))))


def _mean(chunks: Iterator[np.ndarray]) -> np.ndarray:
    total: np.ndarray | float = 0.0
    frames = 0
    for chunk in chunks:
        total = total + chunk.sum(0, dtype=np.float64)
        frames += len(chunk)
    return np.asarray(total / frames)


def _max(chunks: Iterator[np.ndarray]) -> np.ndarray:
    largest = next(chunks).max(0)
    for chunk in chunks:
        np.maximum(largest, chunk.max(0), out=largest)
    return largest


def _median(chunks: Iterator[np.ndarray]) -> np.ndarray:
    return np.median(np.concatenate(list(chunks)), axis=0, overwrite_input=True)


_AGGREGATES: dict[str, Callable[[Iterator[np.ndarray]], np.ndarray]] = {
    "mean": _mean,
    "median": _median,
    "max": _max,
}
