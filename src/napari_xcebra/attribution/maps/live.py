"""Makes provisional maps of an encoder between the steps of its training.

They use a few frames, and are made only as often as costs training little. They change nothing in
the run.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from napari_xcebra.attribution.encoding.model import Effort, make_encoding
from napari_xcebra.attribution.maps.conditional import shares
from napari_xcebra.attribution.maps.from_encoder import EncoderMap
from napari_xcebra.attribution.methods import (
    OVER_TIME,
    check_method,
    local_scores,
    method_named,
)
from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.stream import Stream, spread_out
from napari_xcebra.attribution.watching import AttributionStopped, Stop, Watch
from napari_xcebra.errors import InputError
from napari_xcebra.learn.data.split import usable_frames
from napari_xcebra.learn.fitting import snapshot
from napari_xcebra.learn.training.training import Training
from napari_xcebra.recording import Recording

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
