"""Shows traces, tuning, responses to events and embedding of the selected cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import (
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)
from superqt.utils import qdebounced

from napari_xcebra.recording import Recording
from napari_xcebra.recording.moments import moments_in
from napari_xcebra.widgets.controls.napari_window import end_with_dock, follow
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.cells.panel import (
    MOST_CELLS,
    BehaviorChoice,
    EmbeddingPanel,
    LookedAt,
    Panel,
    factors_of,
    selected_cells,
)
from napari_xcebra.widgets.docks.cells.traces import RasterPanel, TracePanel
from napari_xcebra.widgets.docks.cells.tuning import PeriEventPanel, TuningPanel
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.plots.time_plot import TimePlot
from napari_xcebra.widgets.services.reading import ColumnReader
from napari_xcebra.widgets.window import services_of

if TYPE_CHECKING:
    import napari


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
        self.traces = TracePanel(services.scores_over_time, self.behavior)
        self.raster = RasterPanel(services.processes, self.behavior)
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
