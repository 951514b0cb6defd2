"""Scores every cell for every factor: of a trained fit, and between the steps of a training.

Local attribution is summarised over frames without keeping it. Maps of a training are provisional:
they use a few frames, are made only as often as costs training little, and change nothing in the
run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch

from napari_xcebra.attribution.encoding.model import Effort, make_encoding
from napari_xcebra.attribution.maps.conditional import shares
from napari_xcebra.attribution.maps.from_encoder import EncoderMap
from napari_xcebra.attribution.methods import (
    DEFAULT,
    OVER_TIME,
    Method,
    check_method,
    local_scores,
    method_named,
)
from napari_xcebra.attribution.result import NOT_LEARNED, Attribution
from napari_xcebra.attribution.stream import FrameChoice, Stream, make_stream, spread_out
from napari_xcebra.attribution.watching import AttributionStopped, OnProgress, Stop, Watch, watched
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.device import limited_threads
from napari_xcebra.learn.fitting import snapshot
from napari_xcebra.learn.quality.verdict import Goodness
from napari_xcebra.learn.result import Fit
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording
from napari_xcebra.recording.fingerprint import confirmed_fingerprint, note_on_another

Aggregate = Literal["mean", "median", "max"]

MEDIAN_BYTES = 256 * 2**20
"""Local scores that a median keeps in memory, at most."""
FRAMES = 1000
"""Evenly spaced frames of a provisional map."""
VALUES = 4_000_000
"""Frames × cells, at most."""
EVERY = 2.0
"""Seconds between two maps, at least."""
SHARE = 0.08
"""Share of the training time that maps may take."""
BLOCKS, GROUPS = 5, 2
"""Fewer than in the final map, since each costs a regression."""
NO_VERDICT = "No verdict yet: the run is still training, and this map is provisional."


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
        stream, notes = _limit_frames(stream, aggregate)
        watch = Watch(len(stream.frames), on_progress, stop)
        with limited_threads(fit.settings.threads), torch.no_grad():
            chunks = watched(local_scores(method, stream, watch), watch)
            scores = _AGGREGATES[aggregate](chunks)
        watch.finish()
        own = {"latent_scores": spread_out(scores, fit, recording)}
    scored = confirmed_fingerprint(recording)
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
        notes=tuple(filter(None, (*notes, note_on_another(fit.fingerprint, recording)))),
        source=recording.source,
        fingerprint=scored,
        fit=fit,
        recording=recording,
        **own,
    )


def _strength(goodness: Goodness, method: Method) -> str:
    """Strength of a factor; "not learned" for a map from an encoder that did not learn it."""
    if goodness.learned or method.from_variables or goodness.strength == "at chance":
        return goodness.strength
    return NOT_LEARNED


def _limit_frames(stream: Stream, aggregate: Aggregate) -> tuple[Stream, tuple[str, ...]]:
    """Stream with no more frames than a median can keep, and a note if frames were dropped."""
    if aggregate != "median":
        return stream, ()
    fit = stream.fit
    return stream.thin(max(1, MEDIAN_BYTES // (4 * len(fit.scale) * len(fit.inputs.cell_ids))))


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


class LiveMap:
    """Makes a map of a training run whenever a new one is due.

    Parameters
    ----------
    recording : Recording
    method : str
        One of the gradients, or one of both routes; others take too long.
    stop : callable, optional
        Asked while a map is made; when it returns True, the map is abandoned.
    """

    def __init__(self, recording: Recording, method: str, stop: Stop = None) -> None:
        check_method(method)
        self._recording, self._method, self._stop = recording, method, stop
        self._effort = Effort(BLOCKS, GROUPS, lags=False)
        self._next = 0.0

    def look(self, training: Training) -> Attribution | None:
        """Map of what was learned so far; None if none is due."""
        began = time.perf_counter()
        if began < self._next:
            return None
        try:
            found = self.map(training)
        except AttributionStopped:
            return None
        except (InputError, np.linalg.LinAlgError):
            # training goes on; the error is raised again with the final map
            self._next = np.inf
            return None
        now = time.perf_counter()
        # the first map takes twice as long as those to come
        cost = (now - began) / (1 if self._next else 2)
        self._next = now + max(EVERY, cost / SHARE)
        return found

    def map(self, training: Training) -> Attribution:
        """Map of what was learned so far."""
        fit, recording = snapshot(training, self._recording.source), self._recording
        stream = Stream(
            fit, recording, self._frames(training), fit.settings.seed, training.device,
            data=training.data,
        )  # fmt: skip
        own: dict[str, np.ndarray | None]
        if method_named(self._method).latents:
            with torch.no_grad():
                chunks = [chunk.sum(0) for chunk in local_scores(self._method, stream)]
            scores = torch.stack(chunks).sum(0).cpu().numpy() / len(stream.frames)
            own = {"latent_scores": spread_out(scores, fit, recording)}
        else:
            scores = self._whole(stream)
            own = {"latent_scores": None, "factor_scores": spread_out(scores, fit, recording)}
        return Attribution(
            method=self._method,
            aggregate="mean",
            parts=fit.parts,
            cell_ids=np.asarray(recording.cell_ids),
            n_frames=len(stream.frames),
            strengths=dict.fromkeys(fit.factors, "weak"),
            verdicts=dict.fromkeys(fit.factors, NO_VERDICT),
            notes=(NO_VERDICT,),
            source=recording.source,
            **own,  # type: ignore[arg-type]
        )

    def _watch(self, stream: Stream) -> Watch:
        # a share below 1 is never done, so it keeps asking whether to stop
        return Watch(len(stream.frames), None, self._stop, share=0.9)

    def _whole(self, stream: Stream) -> np.ndarray:
        """Scores of a method that scores whole factors; of both routes, those of the variables."""
        watch = self._watch(stream)
        if self._method == OVER_TIME:
            fitted = EncoderMap.of(stream, watch, groups=GROUPS, blocks=BLOCKS)
            return fitted.shares.scores()
        encoding = make_encoding(stream, watch, self._effort)
        # observed variables do not change from map to map
        self._effort = Effort(BLOCKS, GROUPS, lags=False, predictors=encoding.predictors)
        return shares(encoding, encoding.models(watch), watch, thorough=False).scores()

    def _frames(self, training: Training) -> np.ndarray:
        usable = usable_frames(self._recording, training.settings.window)
        most = min(FRAMES, VALUES // len(training.inputs.cell_ids), len(usable))
        return usable[np.linspace(0, len(usable) - 1, most).astype(np.int64)]
