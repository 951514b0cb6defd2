"""Computes scores over time in the background, and paints those at the time slider."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from napari.layers import Image
from psygnal import Signal

from napari_xcebra.attribution.methods import method_named, title_of_method
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.jobs import OverTimeTask
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.cell_movie import CellMovie
from napari_xcebra.widgets.layers.score_layers import place_below
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, metadata
from napari_xcebra.widgets.state.score_cache import Question, ScoresOverTime
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.state import State
from napari_xcebra.widgets.work.job_queue import JobQueue, Processes, Work

GRACE = 30.0
"""Seconds to wait for an unwanted stretch: restarting the process would take longer."""
SLIDER = "slider"
"""What the feed knows the painter by."""
TOP = 99.5
"""Percentile of the scores at all frames that has the top colour."""
NAME = "scores over time"
KEPT = 2
"""Questions whose scores are kept."""
Next = Callable[[ScoresOverTime], slice | None]
"""Returns the frames that are wanted next, given the scores so far."""


class ScoreFeed:
    """Computes the stretches that the docks want, one after the other, and keeps them."""

    changed = Signal()
    """A stretch was begun, arrived or failed."""
    arrived = Signal(object, object)
    """Scores over time, and the frames (slice) that were added."""

    def __init__(self, processes: Processes) -> None:
        self._jobs = JobQueue(processes, latest=True)
        self._wants: dict[str, tuple[Question, Next]] = {}
        self._kept: OrderedDict[tuple, tuple[Question, ScoresOverTime]] = OrderedDict()
        self._failed: dict[tuple, str] = {}
        self._jobs.changed.connect(self._follow)

    @property
    def started(self) -> bool:
        """Whether the process has begun with a stretch; it may be busy with something else."""
        return self._jobs.started

    def scores(self, question: Question) -> ScoresOverTime:
        """Scores, as far as they are computed."""
        _, found = self._kept.setdefault(
            question.key, (question, ScoresOverTime.answering(question))
        )
        self._kept.move_to_end(question.key)
        if len(self._kept) > KEPT:
            gone, _ = self._kept.popitem(last=False)
            self._failed.pop(gone, None)
        return found

    def problem(self, question: Question) -> str:
        """Why there are no scores, in a sentence; empty if nothing went wrong."""
        return self._failed.get(question.key, "")

    def want(self, who: str, question: Question | None, frames: Next | None = None) -> None:
        """Compute what `frames` asks for; replaces the earlier wish of the same dock."""
        self._wants.pop(who, None)
        if question is not None and frames is not None:
            self._wants[who] = question, frames
        wanted = {wanted.key for wanted, _ in self._wants.values()}
        if self._jobs.current is not None and self._jobs.current.key not in wanted:
            self._jobs.cancel()
        self.go_on()

    def go_on(self) -> None:
        """Compute the next stretch, unless one is under way or none is wanted."""
        if self._jobs.busy:
            return
        # the image, at which the user looks, comes before the plot
        for who in sorted(self._wants, key=lambda who: who != SLIDER):
            question, frames = self._wants[who]
            scores = self.scores(question)
            wanted = None if self.problem(question) else frames(scores)
            if wanted is not None:
                self._compute(question, scores, wanted)
                return

    def _compute(self, question: Question, scores: ScoresOverTime, frames: slice) -> None:
        def keep(result: np.ndarray) -> None:
            scores.put(frames, result)
            self.arrived.emit(scores, frames)

        def say(sentence: str, *_: str) -> None:
            if question.key in self._kept:  # which holds what the key is made of
                self._failed[question.key] = sentence

        task = OverTimeTask(
            question.fit,
            question.recording,
            question.factor,
            np.arange(frames.start, frames.stop, frames.step),
            question.method,
            question.latent,
        )
        work = Work("scores over time", task, keep, key=question.key, say=say, grace=GRACE)
        self._jobs.ask(work)

    def _follow(self) -> None:
        self.go_on()
        self.changed.emit()


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
        at = place_below(state, "scores", "decisions", "selection")
        state.viewer.layers.insert(at, layer)
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


def set_contrast(layer: Image, limits: tuple[float, float], most: float) -> tuple[float, float]:
    """Set the ends of the colours, with sliders that reach to `most`; returns them as set."""
    low, high = limits if limits[1] > limits[0] else (limits[0], limits[0] + 1.0)
    layer.contrast_limits_range = (min(0.0, low), max(most, high))
    layer.contrast_limits = (low, high)
    low, high = layer.contrast_limits
    return float(low), float(high)
