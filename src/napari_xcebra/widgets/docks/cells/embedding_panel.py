"""Shows the embedding of the painted run, coloured by behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QWidget

from napari_xcebra.attribution.single_cell.tuning import Column, columns_of
from napari_xcebra.jobs import tasks
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import small_box
from napari_xcebra.widgets.controls.layouts import in_row
from napari_xcebra.widgets.docks.cells.panel import LookedAt, Panel
from napari_xcebra.widgets.plots.embedding_plot import EmbeddingPlot, fitted, principal
from napari_xcebra.widgets.plots.plot_style import ColorKey, levels_of, limits_of, palette
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit

MOST_POINTS = 20_000
"""Frames to embed at most; a longer recording is sampled evenly."""
COMPONENTS = 3
NONE = -1
TIME, ACTIVITY, OF_FACTOR = "time", "activity", "factor"


@dataclass(frozen=True, eq=False)
class _Embedded:
    """A run's embedding of a recording: (n, latents) float32 at n frames."""

    fit: Fit
    recording: Recording
    frames: np.ndarray
    latents: np.ndarray

    def nearest(self, frame: int) -> int:
        """Index of the frame nearest in time."""
        after = int(np.clip(np.searchsorted(self.frames, frame), 0, len(self.frames) - 1))
        before = max(0, after - 1)
        closer = frame - self.frames[before] < self.frames[after] - frame
        return before if closer else after


class EmbeddingPanel(Panel):
    """The panel at the right of the Cells dock."""

    def __init__(self, processes: Processes) -> None:
        self.plot = EmbeddingPlot()
        super().__init__(self.plot)
        self.plot.setToolTip(
            "Each point is a frame: click one to go there. Wheel: zoom. Drag: pan, or rotate "
            "if there are three axes (then the right button pans). Double-click: show all."
        )
        self.axes = [
            small_box("Latent on the horizontal axis, or principal component (PC) of them all."),
            small_box("Latent on the vertical axis, or principal component (PC) of them all."),
            small_box("Third axis: drag the cloud to rotate it."),
        ]
        for box, room in zip(self.axes, (3, 3, 2), strict=True):
            box.dots = Qt.TextElideMode.ElideMiddle  # the number comes last
            self.controls.addWidget(box, room)
            box.activated.connect(lambda _: self._axes_chosen())
        self.color = small_box("What the points are coloured by.")
        self.key = self.plot.key = ColorKey()
        self._bottom = QWidget()
        in_row((self.color, 4), (self.key, 5), of=self._bottom)
        self.layout().addWidget(self._bottom)
        self.color.activated.connect(lambda _: self._draw_colors())
        self._axes_of: tuple[Fit | None, str] = (None, "")
        self._embedded: _Embedded | None = None
        self._problem: tuple[object, str] | None = None
        self._own_axes = False
        self._frame = 0
        self._jobs = JobQueue(processes, latest=True)
        self._jobs.changed.connect(self._tell)
        self.plot.point_chosen.connect(self._choose)

    def _refresh(self) -> None:
        looked = self._looked
        some = looked is not None and looked.run is not None
        self.offer_controls(some)
        self._bottom.setVisible(some)
        if looked is None or looked.run is None:
            self._embedded, self._axes_of = None, (None, "")
            self._tell()
            return
        (fit, factor), self._axes_of = self._axes_of, (looked.run.fit, looked.factor)
        factor_changed = factor != looked.factor
        anew = fit is not looked.run.fit or (factor_changed and not self._own_axes)
        self._fill_axes(looked, anew)
        self._fill_colors(looked)
        self.plot.follow_style(looked.style)
        if self._fresh():
            self._draw()
        else:
            self._embed(looked)
        self._tell()

    def show_frame(self, frame: int) -> None:
        """Mark the current frame with a ring."""
        self._frame = frame
        fresh = self._fresh()
        self.plot.mark(fresh.nearest(frame) if fresh else None)

    def close_feed(self) -> None:
        """Stop computing."""
        super().close_feed()
        self._jobs.close()

    # ------------------------------------------------------------ embedding

    def _fresh(self) -> _Embedded | None:
        """The embedding, if it belongs to the run and recording shown."""
        looked, embedded = self._looked, self._embedded
        if looked is None or looked.run is None or embedded is None:
            return None
        same = embedded.fit is looked.run.fit and embedded.recording is looked.recording
        return embedded if same else None

    def _embed(self, looked: LookedAt) -> None:
        assert looked.run is not None
        fit, recording = looked.run.fit, looked.recording
        if self._problem and self._problem[0] is fit:
            return
        step = -(-recording.n_frames // MOST_POINTS)
        frames = np.arange(0, recording.n_frames, step)

        def done(latents: np.ndarray) -> None:
            self._embedded = _Embedded(fit, recording, frames, latents)
            self._draw()

        def failed(sentence: str, *_: str) -> None:
            self._problem = (fit, sentence)

        call = tasks.EMBED(fit, recording, frames)
        self._jobs.ask(Work("the embedding", call, done, say=failed))

    def _tell(self) -> None:
        """Show the cloud, or why there is none."""
        looked = self._looked
        if looked is None:
            self.say("")
        elif looked.shown.blind:
            self.say("Hidden while cells are judged blind.")
        elif looked.run is None:
            self.say("Train a run in the Train dock to see its embedding.")
        elif self._fresh():
            self.show_view()
        elif self._problem and self._problem[0] is looked.run.fit:
            self.say(self._problem[1])
        elif self._jobs.started:
            self.say("Computing the embedding …")
        else:
            self.say("Waiting for the background process to compute the embedding …")

    # ------------------------------------------------------------ choices

    def _fill_axes(self, looked: LookedAt, anew: bool) -> None:
        """Offer latents by factor, then principal components; start with the painted factor."""
        assert looked.run is not None
        names = _axis_names(looked)
        chosen = [box.currentData() for box in self.axes]
        first, second = _first_latents(looked)
        for place, box in enumerate(self.axes):
            box.clear()
            if place == 2:
                box.addItem("2-D", NONE)
            for latent, (name, _) in enumerate(names):
                box.addItem(name, latent)
            usual = (first, second, NONE)[place]
            kept = box.findData(chosen[place]) if chosen[place] is not None and not anew else -1
            box.setCurrentIndex(kept if kept >= 0 else box.findData(usual))
        if anew:
            self._own_axes = False

    def _fill_colors(self, looked: LookedAt) -> None:
        chosen = self.color.currentData()
        self.color.clear()
        if looked.variables:
            first = columns_of(looked.recording, looked.variables)[0]
            self.color.addItem(f"{first.name} (shown)", OF_FACTOR)
        self.color.addItem("time", TIME)
        for column in columns_of(looked.recording, list(looked.recording.behavior)):
            self.color.addItem(column.name, f"column {column.name}")
        self.color.addItem("activity of the first selected cell", ACTIVITY)
        self.color.setCurrentIndex(max(0, self.color.findData(chosen)))

    def _axes_chosen(self) -> None:
        self._own_axes = True
        self._draw()

    # ------------------------------------------------------------ drawing

    def _draw(self) -> None:
        embedded, looked = self._fresh(), self._looked
        if embedded is None or looked is None:
            return
        chosen = [box.currentData() for box in self.axes if box.currentData() != NONE]
        names = [_axis_names(looked)[latent][1] for latent in chosen]
        every = np.hstack([embedded.latents, principal(embedded.latents, COMPONENTS)])
        groups = _groups(looked)
        points = fitted(every[:, chosen], [groups[latent] for latent in chosen])
        self.plot.show_points(points, names)
        self._draw_colors()
        self.show_frame(self._frame)

    def _draw_colors(self) -> None:
        embedded, looked = self._fresh(), self._looked
        if embedded is None or looked is None:
            return
        column = self._column(looked)
        table = palette(column, looked.style)
        place = levels_of(column, embedded.frames, len(table))
        grey = np.array([[128, 128, 128]], np.uint8)
        colors = np.concatenate([table, grey])[place]
        self.plot.show_colors(colors)
        self.key.show_key(column.title, table, _labels(column, len(table)), looked.style)

    def _column(self, looked: LookedAt) -> Column:
        """What the points are coloured by."""
        recording, by = looked.recording, self.color.currentData() or TIME
        if by == ACTIVITY and (traces := list(looked.activity.values())):
            return Column(looked.name(next(iter(looked.activity))), traces[0].astype(np.float64))
        if by == OF_FACTOR and looked.variables:
            return columns_of(recording, looked.variables)[0]
        for column in columns_of(recording, list(recording.behavior)):
            if by == f"column {column.name}":
                return column
        return Column("time", np.asarray(recording.times), unit="s")

    def _choose(self, point: int) -> None:
        if embedded := self._fresh():
            self.frame_chosen.emit(int(embedded.frames[point]))


def _axis_names(looked: LookedAt) -> list[tuple[str, str]]:
    """Short and full names of all latents, then of principal components.

    A latent has the name of its factor, and a number where that has several.
    """
    assert looked.run is not None
    names = []
    for part in looked.run.fit.parts:
        count = part.stop - part.start
        numbers = [f" {i + 1}" if count > 1 else "" for i in range(count)]
        names += [(f"{part.name}{n}", f"latent{n} of {part.name}") for n in numbers]
    some = range(1, min(COMPONENTS, len(names)) + 1)
    return [*names, *((f"PC {i}", f"principal component {i} of all latents") for i in some)]


def _first_latents(looked: LookedAt) -> tuple[int, int]:
    """The factor's first two latents; the next one along where it has only one."""
    assert looked.run is not None
    parts = {part.name: part for part in looked.run.fit.parts}
    part = parts.get(looked.factor, looked.run.fit.parts[0])
    count = looked.run.fit.parts[-1].stop
    if part.stop - part.start > 1 or count == 1:
        return part.start, min(part.start + 1, count - 1)
    return part.start, (part.start + 1) % count


def _groups(looked: LookedAt) -> list[str]:
    """Which axes share a scale: latents of a factor, and principal components."""
    assert looked.run is not None
    parts = looked.run.fit.parts
    of_latents = [part.name for part in parts for _ in range(part.stop - part.start)]
    return of_latents + ["\0components"] * COMPONENTS


def _labels(column: Column, levels: int) -> list[str]:
    """Texts below the key."""
    if column.kind == "discrete" and levels <= 8:
        values = np.unique(column.values[~np.isnan(column.values)])
        return [column.called(value) for value in values]
    low, high = limits_of(column)
    if column.kind == "circular" and np.isclose(column.period, 2 * np.pi):
        return ["0°", "180°", "360°"]
    return [f"{low:.3g}", f"{high:.3g}"]
