"""Shows traces, tuning, responses to events and embedding of the selected cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import (
    QCheckBox,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)
from superqt.utils import qdebounced

from napari_xcebra.attribution.score_map import never_over_time, note_over_time
from napari_xcebra.attribution.single_cell.tuning import columns_of, preferred_values
from napari_xcebra.jobs import tasks
from napari_xcebra.recording import Recording
from napari_xcebra.recording.events import moments_in
from napari_xcebra.recording.overview import (
    INSTALL,
    Raster,
    by_correlation,
    has_rastermap,
    raster_of,
)
from napari_xcebra.widgets.controls.boxes import PlainLabel, fill, plain, small_box
from napari_xcebra.widgets.controls.napari_window import end_with_dock, follow
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.cells.panel import (
    MOST_CELLS,
    BehaviorChoice,
    EmbeddingPanel,
    LookedAt,
    Panel,
    TimeRow,
    factors_of,
    selected_cells,
)
from napari_xcebra.widgets.docks.cells.tuning import PeriEventPanel, TuningPanel
from napari_xcebra.widgets.plots.plot_style import ColorKey, sequential_map, style_of
from napari_xcebra.widgets.plots.time_plot import TimePlot
from napari_xcebra.widgets.plots.trace_plot import (
    Lane,
    RasterPlot,
    TracePlot,
    cell_lane,
    score_lane,
    z_limits,
)
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work
from napari_xcebra.widgets.services.reading import ColumnReader
from napari_xcebra.widgets.services.scores_over_time import (
    Question,
    ScoreFeed,
    ScoresOverTime,
    step_in_view,
)
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari


TRACES = "traces"
"""What the feed of scores knows this panel by."""
PATIENCE_MS = 300
"""How long the view must stay the same before its scores are computed."""
MOMENTS = "Show below the traces how much each cell carries the painted factor at each moment."
TRACES_HELP = (
    "Click, or drag the line, to go to a moment. Wheel: zoom. Drag: scroll.\nBars on the right: "
    "scale of each trace. Grey shading: every other trial. Coloured shading: excluded frames."
)
CLICK = "Click a cell to see its trace."


class _TracePanel(Panel):
    """The widest panel of the Cells dock."""

    def __init__(self, feed: ScoreFeed, behavior: BehaviorChoice) -> None:
        self.plot = TracePlot()
        super().__init__(self.plot)
        self.plot.setToolTip(TRACES_HELP)
        self.plot.setAccessibleName("Traces of the selected cells")
        self.title = PlainLabel()
        self.score_box = QCheckBox("Score over time")
        for wide in (self.title, self.score_box):
            wide.setMinimumWidth(20)  # else their text would decide how narrow the dock can be
        self.time = TimeRow(self.plot)
        self.behavior = behavior
        self.behavior_button = behavior.button()
        self.controls.addWidget(self.title)
        self.controls.addWidget(self.behavior_button)
        self.controls.addWidget(self.score_box)
        self.controls.addWidget(self.time, 1)
        self._lanes: list[Lane] = []
        self._feed = feed
        follow(self, feed.changed, self._show_scores)
        self._ask_later = qdebounced(self._ask_for_scores, timeout=PATIENCE_MS, parent=self)
        self.score_box.toggled.connect(self._toggle_scores)
        behavior.changed.connect(self._lay_lanes)
        self.plot.frame_chosen.connect(self.frame_chosen)
        self.plot.view_changed.connect(self._on_view)

    @property
    def lanes(self) -> list[Lane]:
        """What is drawn, from top to bottom."""
        return self._lanes

    def _refresh(self) -> None:
        looked = self._looked
        self.offer_controls(looked is not None)
        self.title.setText(_title(looked) if looked else "")
        self._offer_scores()
        if looked is None:
            self.say("Open a recording in the Recording dock to see its cells.")
            return
        self.plot.follow_style(looked.style)
        self._lay_lanes()
        if self.score_box.isChecked():
            self._ask_later()

    def show_frame(self, frame: int) -> None:
        """Put the cursor on a frame."""
        if self._looked is not None:
            self.plot.move_cursor(frame)
            self.time.tell(self._looked.recording, frame)

    def close_feed(self) -> None:
        """Stop computing."""
        super().close_feed()
        self._feed.want(TRACES, None)

    # ------------------------------------------------------------ lanes

    def _lay_lanes(self) -> None:
        looked = self._looked
        if looked is None:
            return
        style = looked.style
        colors = {cell: style.line(i) for i, cell in enumerate(looked.cells)}
        # lines wider than 1 are drawn many times slower
        pens = {cell: pyqtgraph.mkPen(color, width=1) for cell, color in colors.items()}
        height = 2.0 if len(looked.cells) < 3 else 1.0
        unit, activity = looked.recording.origin.unit, looked.activity
        self._lanes = [
            cell_lane(looked.name(cell), activity[cell], unit, pens[cell], colors[cell], height)
            for cell in looked.cells
            if cell in activity
        ]
        self._lanes += self._score_lanes(looked, list(pens.values()))
        self._lanes += self.behavior.lanes
        # without lanes, the message says it
        self.title.setVisible(bool(self.title.text() and self._lanes))
        if self._lanes:
            self.show_view()
            self.plot.show_lanes(self._lanes)
        else:
            self.say(_why_nothing(looked))
        self._tell_scores(looked)

    def _score_lanes(self, looked: LookedAt, pens: list) -> list[Lane]:
        if not self.score_box.isChecked() or not looked.cells or looked.run is None:
            return []
        first, last = self.plot.frames
        step, ink = step_in_view(first, last, looked.recording.n_cells), looked.style.ink
        scores = self._scores(looked)
        drawn = scores.drawn(first, last, step, looked.cells) if scores else None
        title = f"score {looked.factor}"
        if drawn is None:
            return [Lane(title, [], 0.0, 1.0, ink, 1.5)]
        if drawn.step > 1:
            title = f"{title}\nevery {drawn.step} frames"
        return [score_lane(title, drawn.scores, drawn.frames, pens, ink)]

    # ------------------------------------------------------------ scores and view

    def _offer_scores(self) -> None:
        looked = self._looked
        run = looked.run if looked else None
        self.score_box.setEnabled(run is not None)
        self.score_box.setVisible(bool(looked and run and looked.cells))
        self.score_box.setToolTip(
            f"{MOMENTS} {note_over_time(looked.shown.method)}".strip()
            if looked and run
            else "Train a run first to see scores over time."
        )

    def _tell_scores(self, looked: LookedAt) -> None:
        """Show the progress of the scores next to the check box."""
        wanted = self.score_box.isChecked() and looked.run is not None and bool(looked.cells)
        state = self._how_far(looked) if wanted else ""
        self.score_box.setText(f"Score over time {state}".strip())
        if problem := self._problem(looked):
            self.score_box.setToolTip(plain(problem))

    def _toggle_scores(self, on: bool) -> None:
        self._lay_lanes()
        if on:
            self._ask_for_scores()
        else:
            self._feed.want(TRACES, None)

    def _ask_for_scores(self) -> None:
        looked = self._looked
        if looked is None or not looked.cells or not self.score_box.isChecked():
            return
        question = None if self._problem(looked) else _question(looked)
        self._feed.want(TRACES, question, self._missing)
        self._lay_lanes()

    def _missing(self, scores: ScoresOverTime) -> slice | None:
        first, last = self.plot.frames
        return scores.wanted_between(first, last, step_in_view(first, last, scores.shape[1]))

    def _scores(self, looked: LookedAt) -> ScoresOverTime | None:
        """Scores of what is looked at, as far as they are there."""
        question = _question(looked)
        if question is None:
            return None
        scores = self._feed.scores(question)
        scores.smooth(looked.shown.smoothing)
        return scores

    def _how_far(self, looked: LookedAt) -> str:
        """How far the scores are, in a few words; empty if they are there."""
        if self._problem(looked):
            return "(failed)"
        scores = self._scores(looked)
        if scores is None or self._missing(scores) is None:
            return ""
        return "(computing …)" if self._feed.started else "(waiting for its turn …)"

    def _problem(self, looked: LookedAt) -> str:
        """Why there are no scores, in a sentence; empty if nothing went wrong."""
        question = _question(looked)
        failed = self._feed.problem(question) if question is not None else ""
        return never_over_time(looked.shown.method) or failed

    def _show_scores(self) -> None:
        if self.score_box.isChecked():
            self._lay_lanes()

    def _on_view(self) -> None:
        if self.score_box.isChecked():
            self._ask_later()


def _question(looked: LookedAt) -> Question | None:
    """Which scores over time are drawn; None without a run."""
    if looked.run is None:
        return None
    shown, fit = looked.shown, looked.run.fit
    return Question.of(fit, looked.recording, looked.factor, shown.latent, shown.method)


def _title(looked: LookedAt) -> str:
    """What the lanes do not say by their names."""
    if not looked.cells:
        return CLICK
    cut = len(looked.cells) < looked.selected
    return f"{len(looked.cells)} of {looked.selected} cells" if cut else ""


def _why_nothing(looked: LookedAt) -> str:
    if not looked.cells:
        return CLICK
    # the dock says what is wrong
    return "" if looked.problem else "Reading the traces …"


MOST_VALUES = 8_000_000
"""Values of the traces by which cells are sorted: enough to tell them apart."""
FILE, SCORE, PEAK, CORRELATION, RASTERMAP = "file", "score", "peak", "correlation", "rastermap"
HELP = (
    "Each row is an accepted cell, in standard deviations from its mean (z).\nClick: select the "
    "cell and go to that moment; with Ctrl, add it. Wheel: zoom time. Ctrl + wheel: zoom cells. "
    "Shift + wheel: scroll cells."
)
SORT_HELP = "How the cells are sorted, from top to bottom."


class _RasterPanel(Panel):
    """The panel of the Cells dock behind the tab All cells."""

    def __init__(self, processes: Processes, behavior: BehaviorChoice) -> None:
        self.plot = RasterPlot()
        super().__init__(self.plot)
        self.plot.setToolTip(HELP)
        self.plot.setAccessibleName("Traces of all cells")
        self.sort = small_box(SORT_HELP)
        self.sort.setAccessibleName("Sort cells by")
        self.key = self.plot.key = ColorKey()
        self.time = TimeRow(self.plot)
        self.behavior = behavior
        self.time.readout.hide()  # the canvas tells it, and the axis
        self.controls.addWidget(self.sort, 3)
        self.controls.addWidget(behavior.button())
        self.controls.addWidget(self.key, 2)
        self.controls.addWidget(self.time)
        self._own_order = False
        self._of: tuple[Recording, Raster, tuple[float, float]] | None = None
        self._orders: dict[str, np.ndarray] = {}
        self._jobs = JobQueue(processes, latest=True)
        self.sort.activated.connect(lambda _: self._choose_order())
        behavior.changed.connect(self._show_lanes)
        self.plot.frame_chosen.connect(self.frame_chosen)
        self.plot.cell_chosen.connect(self.cell_chosen)

    def show_frame(self, frame: int) -> None:
        """Put the cursor on a frame."""
        if self._looked is not None:
            self.plot.move_cursor(frame)

    def close_feed(self) -> None:
        """Stop computing."""
        super().close_feed()
        self._of = None
        self._jobs.close()

    def _refresh(self) -> None:
        looked = self._looked
        self.offer_controls(looked is not None)
        if looked is None:
            self.say("Open a recording in the Recording dock to see its cells.")
            return
        self.plot.follow_style(looked.style)
        self._fill_orders(looked)
        self._show_lanes()
        self._show_raster(looked)

    def _show_lanes(self) -> None:
        if not self._stale:
            self.plot.show_lanes(self.behavior.lanes)

    # ------------------------------------------------------------ reading

    def _raster(self, looked: LookedAt) -> Raster | None:
        """All traces of the recording, if they have been averaged."""
        if self._of is None or self._of[0].traces is not looked.recording.traces:
            return None
        before, raster, limits = self._of
        if not _same_behavior(before, looked.recording):
            self._orders = {by: o for by, o in self._orders.items() if not by.startswith(PEAK)}
        self._of = looked.recording, raster, limits
        return raster

    def _show_raster(self, looked: LookedAt) -> None:
        if self._raster(looked) is not None:
            self._show_order()
            return
        recording, self._of, self._orders = looked.recording, None, {}
        self.say(f"Averaging the traces of {recording.n_cells:,} cells …")

        def work(stop: Callable[[], bool]) -> tuple[Recording, Raster, tuple[float, float]]:
            raster = raster_of(recording, stop=stop)
            return recording, raster, z_limits(raster)

        def done(found: tuple[Recording, Raster, tuple[float, float]]) -> None:
            self._of = found
            self._show_order()

        self._compute(work, done)

    # ------------------------------------------------------------ sorting

    def _fill_orders(self, looked: LookedAt) -> None:
        """Offer what the cells can be sorted by; by score as soon as there are scores."""
        orders = []
        if looked.scores is not None:
            orders.append((f"{looked.factor} score", SCORE))
        for column in columns_of(looked.recording, looked.variables):
            orders.append((f"tuning peak: {column.name}", f"{PEAK} {column.name}"))
        orders.append(("correlation", CORRELATION))
        if has_rastermap():
            orders.append((RASTERMAP, RASTERMAP))
        orders.append(("number", FILE))
        values = [value for _, value in orders]
        chosen = self.sort.currentData()
        if not self._own_order or chosen not in values:
            chosen = SCORE if SCORE in values else CORRELATION
        fill(self.sort, [(f"by {name}", value) for name, value in orders], chosen)
        more = "" if has_rastermap() else f"\nFor rastermap: {INSTALL}"
        self.sort.setToolTip(SORT_HELP + more)

    def _choose_order(self) -> None:
        self._own_order = True
        if self._looked is not None and self._raster(self._looked) is not None:
            self._show_order()

    def _show_order(self) -> None:
        """Draw the cells in the order that is chosen, once it is known."""
        looked = self._looked
        raster = self._raster(looked) if looked else None
        if looked is None or raster is None:
            return
        by = self.sort.currentData()
        if by == FILE:
            self._draw(looked, raster, np.arange(looked.recording.n_cells))
        elif by == SCORE and looked.scores is not None:
            self._draw(looked, raster, np.argsort(-np.asarray(looked.scores), kind="stable"))
        elif by in self._orders:
            self._draw(looked, raster, self._orders[by])
        else:
            self._find_order(looked, raster, by)

    def _find_order(self, looked: LookedAt, raster: Raster, by: str) -> None:
        recording = looked.recording
        self.say("Sorting the cells …")

        def done(order: np.ndarray) -> None:
            self._orders[by] = order
            self._show_order()

        if by == RASTERMAP:
            wanted = self._ask()
            self._jobs.ask(
                Work(
                    "rastermap",
                    tasks.RASTERMAP(raster.means(MOST_VALUES)),
                    lambda order: done(order) if wanted() else None,
                    say=lambda said, *_: self.say(said) if wanted() else None,
                )
            )
        elif by == CORRELATION:
            self._compute(lambda _: by_correlation(raster.means(MOST_VALUES)), done)
        else:
            name = by.removeprefix(f"{PEAK} ")
            column = next(c for c in columns_of(recording, looked.variables) if c.name == name)
            self._compute(
                lambda stop: np.argsort(preferred_values(recording, column, stop), kind="stable"),
                done,
            )

    def _draw(self, looked: LookedAt, raster: Raster, order: np.ndarray) -> None:
        accepted = np.asarray(looked.recording.accepted)
        order = order[accepted[order]] if accepted.any() else order
        assert self._of is not None
        limits, style = self._of[2], looked.style
        ids = np.asarray(looked.recording.cell_ids)
        marks = {cell: (str(ids[cell]), style.line(i)) for i, cell in enumerate(looked.cells)}
        self.show_view()
        self.plot.show_raster(raster, order, looked.recording.rate, limits, marks, style)
        low, high = limits
        self.key.show_key("z", sequential_map(), [f"{low:g}", "z", f"{high:g}"], style)


def _same_behavior(one: Recording, other: Recording) -> bool:
    """Whether cells have the same tuning in both."""
    return one is other or (
        one.behavior.keys() == other.behavior.keys()
        and all(one.behavior[name] is other.behavior[name] for name in one.behavior)
        and np.array_equal(np.asarray(one.excluded), np.asarray(other.excluded))
    )


NARROW = 700
"""Pixels of width below which three panels do not fit side by side."""


class CellsDock(QWidget):
    """Panels side by side, for the bottom of the window; tuning and events share a place."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        services = services_of(napari_viewer)
        self.state = services.state
        self.notice = Notice()
        self.behavior = BehaviorChoice(self)
        self.traces = _TracePanel(services.scores_over_time, self.behavior)
        self.raster = _RasterPanel(services.processes, self.behavior)
        self.tuning = TuningPanel()
        self.events = PeriEventPanel()
        self.embedding = EmbeddingPanel(services.processes)
        self._reader = ColumnReader(self._later)
        self._factors: tuple[Any, dict[str, tuple[str, ...]]] = (None, {})
        self._in_task = False
        self._stale = True
        self._soon = qdebounced(self._refresh, timeout=0, parent=self)
        self._lay_out()
        for panel in self._panels:
            panel.frame_chosen.connect(self._go_to)
            panel.cell_chosen.connect(lambda cell, more: self.state.select([cell], toggle=more))
        self._share_time(self.traces.plot, self.raster.plot)
        self._share_time(self.raster.plot, self.traces.plot)
        self._connect()
        end_with_dock(self)
        self._later()

    def _lay_out(self) -> None:
        self.over_time = _tabs({"Traces": self.traces, "All cells": self.raster})
        self.tabs = _tabs({"Tuning": self.tuning, "Events": self.events})
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        for panel in (self.over_time, self.tabs, self.embedding):
            self.splitter.addWidget(panel)
        self.splitter.setStretchFactor(0, 4)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setStretchFactor(2, 2)
        self.splitter.setSizes([520, 350, 300])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2, 2, 2, 2)
        layout.setSpacing(2)
        layout.addWidget(self.notice)
        layout.addWidget(self.splitter, 1)
        self.setMinimumHeight(180)

    def sizeHint(self) -> QSize:
        """Low enough to leave room for the image."""
        return QSize(900, 260)

    def resizeEvent(self, event: Any) -> None:
        """Put the panels below each other where the dock is narrow, as at the side of a window."""
        super().resizeEvent(event)
        narrow = self.width() < NARROW and self.height() > self.width()
        wanted = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if self.splitter.orientation() != wanted:
            self.splitter.setOrientation(wanted)

    # ------------------------------------------------------------ listening

    def _connect(self) -> None:
        state, viewer = self.state, self.state.viewer
        for signal, method in (
            (state.recording_changed, self._later),
            (state.runs_changed, self._later),
            (state.shown_changed, self._later),
            (state.selection_changed, self._later),
            (state.frame_changed, self._show_frame),
            (viewer.events.theme, self._later),
        ):
            follow(self, signal, method)
        closing = [self._reader.close, *(panel.close_feed for panel in self._panels)]
        self.destroyed.connect(lambda *_: [close() for close in closing])

    @property
    def _panels(self) -> tuple[Panel, ...]:
        return self.traces, self.raster, self.tuning, self.events, self.embedding

    def _later(self, *_: Any) -> None:
        """Refresh once, however many signals arrive together, and only while visible."""
        self._stale = True
        if self.isVisible():
            self._soon()

    def showEvent(self, event: Any) -> None:
        """Show what changed while the dock was hidden."""
        super().showEvent(event)
        if self._stale:
            self._soon()

    # ------------------------------------------------------------ showing

    def _refresh(self) -> None:
        self._stale = False
        looked = self._look()
        self._offer_events(looked)
        self.notice.say(looked.problem if looked else "", "problem")
        self.behavior.look_at(looked)
        # without a run there is nothing to embed, and the traces get the room
        self.embedding.setVisible(bool(self.state.runs))
        if looked is not None:  # also to the hidden one of the two, which follows in time
            for plot in (self.traces.plot, self.raster.plot):
                plot.show_recording(looked.recording)
        for panel in self._panels:
            panel.show_cells(looked)
        self._show_frame(self.state.frame)

    def _offer_events(self, looked: LookedAt | None) -> None:
        """Bring the events to the front once a recording of a task is there, and tuning after it.

        What the user chose in between stays.
        """
        in_task = looked is not None and bool(moments_in(looked.recording))
        if in_task != self._in_task:
            self._in_task = in_task
            self.tabs.setCurrentWidget(self.events if in_task else self.tuning)

    def _look(self) -> LookedAt | None:
        state, recording = self.state, self.state.recording
        if recording is None:
            return None
        cells = selected_cells(state, recording)
        drawn = tuple(cells[:MOST_CELLS])
        # a trace or an embedding coloured by a run would tell of its scores
        run = None if state.shown.blind else state.shown_run
        return LookedAt(
            recording=recording,
            cells=drawn,
            selected=len(cells),
            activity=self._reader.columns(recording, drawn),
            problem=self._reader.problem(drawn),
            run=run,
            shown=state.shown,
            scores=state.scores,
            factors=self._factors_of(recording),
            style=style_of(state.viewer.theme),
        )

    def _factors_of(self, recording: Recording) -> dict[str, tuple[str, ...]]:
        run = self.state.shown_run
        about = (recording, run.fit if run else None)
        known = self._factors[0]
        if known is None or any(a is not b for a, b in zip(known, about, strict=True)):
            self._factors = about, factors_of(recording, run)
        return self._factors[1]

    def _show_frame(self, frame: int) -> None:
        # what is drawn may still be of another recording, until the refresh that is on its way
        if self.isVisible() and not self._stale:
            for panel in self._panels:
                panel.show_frame(frame)

    def _go_to(self, frame: int) -> None:
        self.state.frame = frame

    def _share_time(self, one: TimePlot, other: TimePlot) -> None:
        """Let a plot follow when another stretch of time comes into view in the visible one."""
        one.view_changed.connect(
            lambda: other.show_seconds(*one.seconds) if one.isVisible() else None
        )


def _tabs(panels: dict[str, QWidget]) -> QTabWidget:
    """Panels behind each other, by title."""
    tabs = QTabWidget()
    # at the side, where they take no height: plots of all panels line up
    tabs.setTabPosition(QTabWidget.TabPosition.West)
    tabs.setDocumentMode(True)
    tabs.setAccessibleName(" or ".join(panels))
    for title, panel in panels.items():
        tabs.addTab(panel, title)
    return tabs
