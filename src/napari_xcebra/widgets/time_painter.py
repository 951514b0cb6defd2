"""Scores that follow the time slider: computed in the background, a stretch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Image
from psygnal import Signal

from napari_xcebra.attribution.method_notes import is_slow, method_over_time
from napari_xcebra.jobs import Failed, Finished, Job, OverTimeTask
from napari_xcebra.jobs.events import Event, Outcome
from napari_xcebra.widgets.background import listen
from napari_xcebra.widgets.layers import metadata, role_of
from napari_xcebra.widgets.movie import CellMovie
from napari_xcebra.widgets.per_session import OfSession, one_per_session
from napari_xcebra.widgets.score_map import ScoreMap, shown_map
from napari_xcebra.widgets.stretches import ScoresOverTime, stretch_length

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session

TOP = 99.5
"""Percentile of the scores at all frames at the upper end of the colours."""
GRACE = 30.0
"""Seconds for a stretch nobody wants any longer: ending the process costs more than waiting."""


class TimePainter(OfSession):
    """Keeps one Image layer a recording, with the scores at the frame of the time slider.

    Parameters
    ----------
    session : Session
    """

    status_changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._key: tuple[Any, ...] = ()
        self._scores: ScoresOverTime | None = None
        self._fresh: ScoreMap | None = None
        self.limits_chosen = False
        self._job: Job | None = None
        self._running = False
        self._failure = ""
        session.shown_changed.connect(self.update)
        session.runs_changed.connect(self.update)
        session.recording_changed.connect(self.update)
        session.frame_changed.connect(self._compute)
        self.update()

    @property
    def layer(self) -> Image | None:
        """The layer of the current recording, if it has been made."""
        opened = self.session.current
        for layer in self.session.layers_of(opened) if opened else ():
            if role_of(layer) == "scores over time":
                return layer
        return None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Scores at the ends of the colours; None while nothing follows the slider."""
        layer = self.layer
        if self._scores is None or layer is None:
            return None
        low, high = layer.contrast_limits
        return float(low), float(high)

    def set_limits(self, limits: tuple[float, float] | None) -> None:
        """Choose the ends of the colours; None for those made from the scores."""
        layer, scores = self.layer, self._scores
        if layer is None or scores is None:
            return
        self.limits_chosen = limits is not None
        sample = scores.sample()
        most = float(sample.max(initial=0.0))
        top = float(np.percentile(sample, TOP)) if len(sample) else 1.0
        _set_limits(layer, limits or (0.0, top), most)
        self.status_changed.emit()

    @property
    def status(self) -> str:
        """What the user should know, in a sentence; empty if nothing."""
        if self._failure or self._scores is None:
            return self._failure
        frame = self.session.frame
        missing = self._scores.wanted(frame)
        if missing is None or not missing.start <= frame < missing.stop:
            return ""
        if not self._running:
            return "Waiting for the background process …"
        return f"Computing frames {missing.start} to {missing.stop - 1} …"

    def update(self) -> None:
        """Follow what is shown."""
        session, shown = self.session, self.session.shown
        painted = shown_map(session) if shown.over_time else None
        if painted is None or painted.why_not_over_time:
            self._rest()
            return
        key = (painted.attribution, painted.factor, painted.latent)
        if key != self._key:
            self._begin(painted, key)
        scores, layer = self._scores, self.layer
        assert scores is not None and session.recording is not None
        window = max(1, round(shown.smoothing * session.recording.rate))
        if layer is None:
            layer = self._make(scores)
        changed = layer.data.values is not scores or window != scores.window
        scores.window = window
        layer.data.values = scores
        if layer.colormap.name != shown.colormap:
            layer.colormap = shown.colormap
        if self._fresh is not None:
            # until a stretch is there; scores at a frame vary more than their mean
            high, self._fresh = self._fresh.limits[1], None
            _set_limits(layer, (0.0, 2 * high), 4 * high)
        if changed:
            layer.refresh(extent=False)
        layer.visible = True
        self._compute()
        self.status_changed.emit()

    def _begin(self, painted: ScoreMap, key: tuple[Any, ...]) -> None:
        """Forget the scores of another map."""
        recording = self.session.recording
        assert recording is not None
        self._stop()
        self._key, self._failure = key, ""
        length = stretch_length(recording.n_cells, slow=is_slow(painted.attribution.method))
        self._scores = ScoresOverTime(recording, length)
        self._fresh, self.limits_chosen = painted, False

    def _rest(self) -> None:
        self._stop()
        self._key, self._scores, self._failure = (), None, ""
        if (layer := self.layer) is not None:
            layer.visible = False
        self.status_changed.emit()

    def _stop(self) -> None:
        if self._job is not None:
            self._job.cancel(GRACE)
            self._job, self._running = None, False

    def _make(self, scores: ScoresOverTime) -> Image:
        session, opened = self.session, self.session.current
        assert opened is not None
        layer = Image(
            CellMovie(scores, opened.labels),
            name="scores over time",
            colormap=session.shown.colormap,
            contrast_limits=(0, 1),
            rgb=False,
            metadata=metadata("scores over time", opened.recording, opened.token),
        )
        if hasattr(layer, "colorbar"):  # napari 0.6.5 and later
            layer.colorbar.visible = True
        layers = session.viewer.layers
        over = ("scores", "decisions", "selection")
        above = [i for i, other in enumerate(layers) if role_of(other) in over]
        layers.insert(above[0] if above else len(layers), layer)
        return layer

    # ------------------------------------------------------------ computing

    def _compute(self) -> None:
        """Ask for the next stretch, unless one is under way or none is wanted."""
        scores, session = self._scores, self.session
        if scores is None or self._job is not None or self._failure:
            return
        frames, run, recording = scores.wanted(session.frame), session.shown_run, session.recording
        if frames is None or run is None or recording is None:
            return
        shown = session.shown
        task = OverTimeTask(
            run.fit,
            recording,
            shown.factor,
            np.arange(frames.start, frames.stop),
            method_over_time(shown.method),
            self._key[2],
        )
        self._job = job = session.worker.submit(task)
        listen(job.events(), lambda event: self._on(event, job, scores, frames))
        self.status_changed.emit()

    def _on(self, event: Event, job: Job, scores: ScoresOverTime, frames: slice) -> None:
        if self._job is not job:
            return
        if not isinstance(event, Outcome):
            if not self._running:
                self._running = True
                self.status_changed.emit()
            return
        self._job, self._running = None, False
        if isinstance(event, Finished):
            self._receive(scores, frames, event.result)
            self._compute()
        elif isinstance(event, Failed):
            self._failure = event.sentence
        self.status_changed.emit()

    def _receive(self, scores: ScoresOverTime, frames: slice, result: np.ndarray) -> None:
        first = scores.nbytes == 0
        scores.put(frames, result)
        layer = self.layer
        if layer is None:  # the user deleted it: made again when it is next asked for
            return
        if first:
            # fixed from here on, so that a colour means the same at all frames
            self.set_limits(None)
        if frames.start - scores.window <= self.session.frame < frames.stop + scores.window:
            layer.refresh(extent=False)


def _set_limits(layer: Image, limits: tuple[float, float], most: float) -> None:
    """Set the ends of the colours, with sliders that reach to `most`."""
    low, high = limits if limits[1] > limits[0] else (limits[0], limits[0] + 1.0)
    layer.contrast_limits_range = (min(0.0, low), max(most, high))
    layer.contrast_limits = (low, high)


time_painter_of = one_per_session(TimePainter)
"""The time painter of a session; made when first asked for."""
