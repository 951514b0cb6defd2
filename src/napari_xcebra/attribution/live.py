"""Provisional maps of an encoder that is still learning, made between the steps of its training.

They take a few of the frames, and are made only as often as costs training little. Nothing of the
run is changed by them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from napari_xcebra.attribution.encoding.conditional import shares
from napari_xcebra.attribution.encoding.generative import Generative
from napari_xcebra.attribution.encoding.model import Effort, make_encoding
from napari_xcebra.attribution.method_notes import DEFAULT, OVER_TIME
from napari_xcebra.attribution.methods import check_method, local_scores
from napari_xcebra.attribution.result import Attribution
from napari_xcebra.attribution.stream import Stream, spread_out
from napari_xcebra.attribution.watching import AttributionStopped, Stop, Watch
from napari_xcebra.learn.fitting import snapshot
from napari_xcebra.learn.split import usable_frames
from napari_xcebra.learn.training import Training
from napari_xcebra.recording import InputError, Recording

FRAMES = 1000
"""Frames that a provisional map is taken over, evenly spaced."""
VALUES = 4_000_000
"""Frames × cells, at most."""
EVERY = 2.0
"""Seconds between two maps, at least."""
SHARE = 0.08
"""Of the time of training that may be spent on them."""
BLOCKS, GROUPS = 5, 2
"""Of conditional encoding; fewer than those of the final map, each of which costs a regression."""
NO_VERDICT = "No verdict yet: the run is being trained, and this map is provisional."


class LiveMap:
    """Makes a map of a training run whenever it is time for a new one.

    Parameters
    ----------
    recording : Recording
    method : str
        One of the gradients, or conditional encoding; others take too long.
    stop : callable, optional
        Asked while a map is made; when it returns True, the map is given up.
    """

    def __init__(self, recording: Recording, method: str, stop: Stop = None) -> None:
        check_method(method)
        self._recording, self._method, self._stop = recording, method, stop
        self._effort = Effort(BLOCKS, GROUPS, lags=False)
        self._next = 0.0

    def look(self, training: Training) -> Attribution | None:
        """Map of what was learned so far; None if the last one is still recent enough."""
        began = time.perf_counter()
        if began < self._next:
            return None
        try:
            found = self.map(training)
        except AttributionStopped:
            return None
        except (InputError, np.linalg.LinAlgError):
            # what cannot be computed will be said once the run is trained: it goes on
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
        if self._method == DEFAULT:
            scores = self._conditional(stream)
            own = {"latent_scores": None, "factor_scores": spread_out(scores, fit, recording)}
        else:
            with torch.no_grad():
                chunks = [chunk.abs().sum(0) for chunk in self._local(stream)]
            scores = torch.stack(chunks).sum(0).cpu().numpy() / len(stream.frames)
            own = {"latent_scores": spread_out(scores, fit, recording)}
        return Attribution(
            method=self._method,
            aggregate="mean",
            parts=fit.parts,
            cell_ids=np.asarray(recording.cell_ids),
            n_frames=len(stream.frames),
            above_chance=dict.fromkeys(fit.factors, True),
            verdicts=dict.fromkeys(fit.factors, NO_VERDICT),
            notes=(NO_VERDICT,),
            source=recording.source,
            **own,  # type: ignore[arg-type]
        )

    def _local(self, stream: Stream) -> Iterator[Tensor]:
        if self._method != OVER_TIME:
            return local_scores(self._method, stream)
        return Generative.of(stream, self._watch(stream), self._effort).local(stream)

    def _watch(self, stream: Stream) -> Watch:
        # never done, so that it goes on asking whether to stop
        return Watch(len(stream.frames), None, self._stop, share=0.9)

    def _conditional(self, stream: Stream) -> np.ndarray:
        watch = self._watch(stream)
        encoding = make_encoding(stream, watch, self._effort)
        # observed variables do not change from map to map
        self._effort = Effort(BLOCKS, GROUPS, lags=False, predictors=encoding.predictors)
        return shares(encoding, encoding.models(watch), watch, thorough=False).scores()

    def _frames(self, training: Training) -> np.ndarray:
        usable = usable_frames(self._recording, training.settings.window)
        most = min(FRAMES, VALUES // len(training.inputs.cell_ids), len(usable))
        return usable[np.linspace(0, len(usable) - 1, most).astype(np.int64)]
