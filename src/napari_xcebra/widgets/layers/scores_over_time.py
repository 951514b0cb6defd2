"""Paints the scores at the time slider: those at its frame, and those by the time from an event."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from napari.layers import Image

from napari_xcebra.attribution.methods import method_named, title_of_method
from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.jobs import tasks
from napari_xcebra.recording import Recording
from napari_xcebra.recording.events import window_of
from napari_xcebra.text import unmarked
from napari_xcebra.widgets.layers.movie import CellMovie
from napari_xcebra.widgets.layers.scores import place_below, set_contrast
from napari_xcebra.widgets.services.jobs import JobQueue, Work
from napari_xcebra.widgets.services.scores_over_time import (
    SLIDER,
    Question,
    ScoreFeed,
    ScoresOverTime,
)
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.signals import OfState, Signal
from napari_xcebra.widgets.state.state import KEY, State, metadata

if TYPE_CHECKING:
    from napari_xcebra.workspace_file import Opened


TOP = 99.5
"""Percentile of the scores that has the top colour."""
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


BEFORE = 1.0
"""Seconds before an event that are scored at least: cells may prepare it."""


def _events_to_score(recording: Recording) -> list[tuple[str, str]]:
    """Title and name of what scores can be counted from: events, and variables of trials."""
    events = [n for n, v in recording.behavior.items() if v.kind == "event"]
    columns = () if recording.trials is None else recording.trials.columns
    known = [(f"when {n} is known", n) for n in columns if n in recording.behavior]
    return [*((name, name) for name in events), *known]


class _ByMoment:
    """Stands for (frames, cells) scores: at each frame those of its time from the event.

    Parameters
    ----------
    seconds : (bins,) float64
    scores : (bins, cells) float32
    place : (frames,) int
        Bin of each frame, −1 where there is none.
    """

    def __init__(self, seconds: np.ndarray, scores: np.ndarray, place: np.ndarray) -> None:
        self.seconds, self.place = seconds, place
        # the last row is that of bin −1
        self._rows = np.vstack([scores, np.full_like(scores[:1], np.nan)])

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and cells."""
        return len(self.place), self._rows.shape[1]

    def __getitem__(self, frame: int) -> np.ndarray:
        found: np.ndarray = self._rows[self.place[frame]]
        return found

    @cached_property
    def top(self) -> float:
        """A score that few are above."""
        known = self._rows[np.isfinite(self._rows)]
        return max(float(np.percentile(known, TOP)), 1e-6) if len(known) else 1.0


class AroundPainter(OfState):
    """Keeps one Image layer per recording; between events it is clear.

    Parameters
    ----------
    state : State
    jobs : JobQueue
    """

    def __init__(self, state: State, jobs: JobQueue) -> None:
        super().__init__(state)
        self._jobs = jobs
        state.frame_changed.connect(self._rename)
        state.shown_changed.connect(self._hide_if_unwanted)

    @property
    def layer(self) -> Image | None:
        """The layer of the current recording, if it has been made."""
        return self.state.layers.one(self.state.current, "scores around an event")

    @property
    def events(self) -> list[tuple[str, str]]:
        """What `ask` can be asked for, as of `_events_to_score`."""
        recording = self.state.recording
        return _events_to_score(recording) if recording is not None else []

    @property
    def limits_chosen(self) -> bool:
        """Whether the user chose the ends of the colours."""
        layer = self.layer
        return layer is not None and tuple(layer.contrast_limits) != (0.0, layer.data.values.top)

    def set_limits(self, limits: tuple[float, float] | None) -> None:
        """Choose the ends of the colours; None for those made from the scores."""
        if (layer := self.layer) is not None:
            top = layer.data.values.top
            set_contrast(layer, limits or (0.0, top), top)

    def ask(self, event: str) -> None:
        """Score the painted factor by the time from an event, then paint it."""
        opened, run, factor = self.state.current, self.state.shown_run, self.state.shown.factor
        if opened is None or run is None:
            return
        before, after = window_of(opened.recording, event)
        window = max(before, BEFORE), after
        call = tasks.AROUND(run.fit, opened.recording, event, factor, window=window)

        def keep(found: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
            if self.state_open and opened is self.state.current and not self.state.shown.blind:
                of = run.name, factor
                self._paint(opened, f"{factor} from {event}", of, _ByMoment(*found))

        work = Work(f"{factor} around {event}", call, keep, ("around", id(run.fit)))
        self._jobs.ask(work)

    def _paint(self, opened: Opened, title: str, of: tuple[str, str], scores: _ByMoment) -> None:
        state, layer = self.state, self.layer
        if layer is not None:
            state.viewer.layers.remove(layer)
        layer = Image(
            CellMovie(scores, opened.labels),
            name=title,
            colormap=state.shown.colormap,
            contrast_limits=(0, scores.top),
            rgb=False,
            metadata=metadata("scores around an event", opened.recording, opened.token,
                              title=title, of=of),
        )  # fmt: skip
        state.layers.put(layer, place_below(state, "decisions", "selection"))
        begins = np.flatnonzero(scores.place == 0)
        if len(begins):
            state.frame = int(begins[0])
        self._rename()

    def _rename(self, *_: object) -> None:
        """Say in the layer's name how far from the event the slider is."""
        layer = self.layer
        if layer is None:
            return
        scores, title = layer.data.values, layer.metadata[KEY]["title"]
        place = scores.place[min(self.state.frame, len(scores.place) - 1)]
        at = "none near" if place < 0 else f"{scores.seconds[place]:+.2f} s"
        if layer.name != (name := f"{title}: {at}"):
            layer.name = name

    def _hide_if_unwanted(self) -> None:
        """Hide it while scores are hidden, and when another map is chosen."""
        layer, shown = self.layer, self.state.shown
        if layer is None:
            return
        if shown.blind or (shown.run, shown.factor) != layer.metadata[KEY]["of"]:
            layer.visible = False
