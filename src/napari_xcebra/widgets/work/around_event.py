"""Paints when a factor appears: its scores by the time from an event, at the time slider."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from napari.layers import Image

from napari_xcebra.jobs import tasks
from napari_xcebra.recording import Recording
from napari_xcebra.recording.moments import window_of
from napari_xcebra.widgets.layers.cell_movie import CellMovie
from napari_xcebra.widgets.layers.painting import set_contrast
from napari_xcebra.widgets.layers.score_layers import place_below
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import KEY, metadata
from napari_xcebra.widgets.work.job_queue import JobQueue, Work

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

TOP = 99.5
"""Percentile of the scores that has the top colour."""
BEFORE = 1.0
"""Seconds before an event that are scored at least: cells may prepare it."""


def events_to_score(recording: Recording) -> list[tuple[str, str]]:
    """Title and name of what scores can be counted from: events, and variables of trials."""
    events = [n for n, v in recording.behavior.items() if v.kind == "event"]
    columns = () if recording.trials is None else recording.trials.columns
    known = [(f"when {n} is known", n) for n in columns if n in recording.behavior]
    return [*((name, name) for name in events), *known]


class ByMoment:
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
        """What `ask` can be asked for, as of `events_to_score`."""
        recording = self.state.recording
        return events_to_score(recording) if recording is not None else []

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
                self._paint(opened, f"{factor} from {event}", of, ByMoment(*found))

        work = Work(f"{factor} around {event}", call, keep, ("around", id(run.fit)))
        self._jobs.ask(work)

    def _paint(self, opened: Opened, title: str, of: tuple[str, str], scores: ByMoment) -> None:
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
