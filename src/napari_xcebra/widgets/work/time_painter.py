"""Paints the scores at the frame of the time slider."""

from __future__ import annotations

import numpy as np
from napari.layers import Image

from napari_xcebra.attribution.methods import method_named, title_of_method
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.cell_movie import CellMovie
from napari_xcebra.widgets.layers.painting import set_contrast
from napari_xcebra.widgets.layers.score_layers import place_below
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, metadata
from napari_xcebra.widgets.state.score_cache import Question, ScoresOverTime
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.signals import Signal
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.work.score_feed import SLIDER, ScoreFeed

TOP = 99.5
"""Percentile of the scores at all frames that has the top colour."""
NAME = "scores over time"


class TimePainter(OfState):
    """Keeps one Image layer per recording, with the scores at the frame of the time slider."""

    status_changed = Signal()

    def __init__(self, state: State, feed: ScoreFeed) -> None:
        super().__init__(state)
        self._feed = feed
        self._question: Question | None = None
        self._scores: ScoresOverTime | None = None
        self._painted: tuple[ScoresOverTime, int] | None = None
        self._scaled = False
        self._automatic = (0.0, 1.0)
        state.shown_changed.connect(self.update)
        state.runs_changed.connect(self.update)
        state.recording_changed.connect(self.update)
        state.frame_changed.connect(self._go_on)
        feed.arrived.connect(self._receive)
        feed.changed.connect(self._tell)
        self.update()

    @property
    def layer(self) -> Image | None:
        """The layer of the current recording, if it has been made."""
        return self.state.layers.one(self.state.current, "scores over time")

    @property
    def limits(self) -> tuple[float, float] | None:
        """Scores at the ends of the colours; None while nothing follows the slider."""
        layer = self.layer
        if self._scores is None or layer is None:
            return None
        low, high = layer.contrast_limits
        return float(low), float(high)

    @property
    def limits_chosen(self) -> bool:
        """Whether the user chose the limits, in the dock or with napari's slider."""
        return self.limits is not None and self.limits != self._automatic

    def set_limits(self, limits: tuple[float, float] | None) -> None:
        """Choose the ends of the colours; None for those made from the scores."""
        layer, scores = self.layer, self._scores
        if layer is None or scores is None:
            return
        sample = scores.sample()
        most = float(sample.max(initial=0.0))
        top = float(np.percentile(sample, TOP)) if len(sample) else 1.0
        if limits is None:
            self._automatic = set_contrast(layer, (0.0, top), most)
        else:
            set_contrast(layer, limits, most)
        self.status_changed.emit()

    @property
    def status(self) -> str:
        """What the user should know, in a sentence; empty if nothing."""
        if self._scores is None or self._question is None:
            return ""
        if problem := self._feed.problem(self._question):
            return problem
        frame = self.state.frame
        missing = self._scores.wanted(frame)
        if missing is None or not missing.start <= frame < missing.stop:
            return ""
        if not self._feed.started:
            return "Waiting for the background process …"
        return f"Computing frames {missing.start} to {missing.stop - 1} …"

    def update(self) -> None:
        """Follow what is shown."""
        state, shown = self.state, self.state.shown
        painted = shown_map(state) if shown.over_time else None
        run, recording = state.shown_run, state.recording
        if painted is None or painted.why_not_over_time or run is None or recording is None:
            self._rest()
            return
        self._question = Question.of(
            run.fit, recording, painted.factor, painted.latent, painted.attribution.method
        )
        scores = self._feed.scores(self._question)
        scores.smooth(shown.smoothing)
        layer = self.layer or self._make(scores)
        if layer.colormap.name != shown.colormap:
            layer.colormap = shown.colormap
        if scores is not self._scores:
            self._begin(scores, layer, painted)
        _entitle(layer, painted, run.name)
        if self._painted != (scores, scores.window) or layer.data.values is not scores:
            self._painted = scores, scores.window
            layer.data.values = scores
            layer.refresh(extent=False)
        layer.visible = True
        self._feed.want(SLIDER, self._question, self._next)
        self.status_changed.emit()

    def _begin(self, scores: ScoresOverTime, layer: Image, painted: ScoreMap) -> None:
        """Switch to the scores of another map."""
        self._scores = scores
        layer.data.values = scores
        self._scaled = scores.nbytes > 0
        if self._scaled:
            self.set_limits(None)
        else:
            # until a stretch is there; scores at a frame vary more than their mean
            high = painted.limits[1]
            self._automatic = set_contrast(layer, (0.0, 2 * high), 4 * high)

    def _rest(self) -> None:
        self._feed.want(SLIDER, None)
        self._question = self._scores = self._painted = None
        if (layer := self.layer) is not None:
            layer.visible = False
        self.status_changed.emit()

    def _make(self, scores: ScoresOverTime) -> Image:
        state, opened = self.state, self.state.current
        assert opened is not None
        layer = Image(
            CellMovie(scores, opened.labels),
            name=NAME,
            colormap=state.shown.colormap,
            contrast_limits=(0, 1),
            rgb=False,
            metadata=metadata("scores over time", opened.recording, opened.token, named=NAME),
        )
        state.layers.put(layer, place_below(state, "scores", "decisions", "selection"))
        return layer

    # ------------------------------------------------------------ computing

    def _next(self, scores: ScoresOverTime) -> slice | None:
        return scores.wanted(self.state.frame) if self.state_open else None

    def _go_on(self) -> None:
        if self._scores is not None:
            self._feed.go_on()

    def _tell(self) -> None:
        if self._scores is not None:
            self.status_changed.emit()

    def _receive(self, scores: ScoresOverTime, frames: slice) -> None:
        layer = self.layer
        # the user may have deleted it: made again when it is next asked for
        if scores is not self._scores or layer is None:
            return
        if not self._scaled:
            # fixed from here on, so that a colour means the same at all frames
            if not self.limits_chosen:
                self.set_limits(None)
            self._scaled = True
        if frames.start - scores.window <= self.state.frame < frames.stop + scores.window:
            layer.refresh(extent=False)


def _entitle(layer: Image, painted: ScoreMap, run: str) -> None:
    """Name a layer by factor, method and run, unless the user renamed it."""
    entry = layer.metadata[KEY]
    method = title_of_method(method_named(painted.attribution.method).over_time)
    title = unmarked(f"{painted.title} over time · {method} · {run}")
    if layer.name == entry["named"] != title:
        layer.name = title
        entry["named"] = layer.name  # napari numbers a name that another layer has
