"""Cells: traces, tuning and embedding of the selected cells, below the image."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtWidgets import QSplitter, QVBoxLayout, QWidget

from napari_xcebra.jobs import Job, Task
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.column_reader import ColumnReader
from napari_xcebra.widgets.embedding_panel import EmbeddingPanel
from napari_xcebra.widgets.looked_at import MOST_CELLS, LookedAt, factors_of, selected_cells
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.plot_style import style_of
from napari_xcebra.widgets.session import session_of
from napari_xcebra.widgets.trace_panel import TracePanel
from napari_xcebra.widgets.tuning_panel import TuningPanel

if TYPE_CHECKING:
    import napari

NARROW = 700
"""Pixels of width below which three panels do not fit side by side."""


class CellsDock(QWidget):
    """Three panels side by side; meant for the bottom of the window."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        self.session = session_of(napari_viewer)
        self.notice = Notice()
        self.traces = TracePanel(self._submit)
        self.tuning = TuningPanel()
        self.embedding = EmbeddingPanel(self._submit)
        self._reader = ColumnReader(self._later)
        self._factors: tuple[Any, dict[str, tuple[str, ...]]] = (None, {})
        self._stale = True
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._refresh)
        self._lay_out()
        self.traces.frame_chosen.connect(self._go_to)
        self.embedding.frame_chosen.connect(self._go_to)
        self._connect()
        self._later()

    def _lay_out(self) -> None:
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        for panel in (self.traces, self.tuning, self.embedding):
            self.splitter.addWidget(panel)
        self.splitter.setStretchFactor(0, 4)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setStretchFactor(2, 2)
        self.splitter.setSizes([560, 270, 300])
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
        session, viewer = self.session, self.session.viewer
        heard = [
            (session.recording_changed, self._later),
            (session.runs_changed, self._later),
            (session.shown_changed, self._later),
            (session.selection_changed, self._later),
            (session.frame_changed, self._show_frame),
            (viewer.events.theme, self._later),
        ]
        for signal, slot in heard:
            signal.connect(slot)
        feeds = [self._reader.close, *(p.close_feed for p in self._panels)]
        # nothing here may be called once Qt has taken the widget down
        self.destroyed.connect(partial(_let_go, heard, feeds))

    @property
    def _panels(self) -> tuple[TracePanel, TuningPanel, EmbeddingPanel]:
        return self.traces, self.tuning, self.embedding

    def _submit(self, task: Task) -> Job:
        return self.session.worker.submit(task)

    def _later(self, *_: Any) -> None:
        """Refresh once, however many signals come together, and only what can be seen."""
        self._stale = True
        if self.isVisible():
            self._soon.start()

    def showEvent(self, event: Any) -> None:
        """Catch up with what changed while the dock was hidden."""
        super().showEvent(event)
        if self._stale:
            self._soon.start()

    # ------------------------------------------------------------ showing

    def _refresh(self) -> None:
        self._stale = False
        looked = self._look()
        self.notice.say(looked.problem if looked else "", "problem")
        for panel in self._panels:
            panel.show_cells(looked)
        self._show_frame(self.session.frame)

    def _look(self) -> LookedAt | None:
        session, recording = self.session, self.session.recording
        if recording is None:
            return None
        cells = selected_cells(session, recording)
        drawn = tuple(cells[:MOST_CELLS])
        # a trace or an embedding coloured by a run would tell of its scores
        run = None if session.shown.blind else session.shown_run
        return LookedAt(
            recording=recording,
            cells=drawn,
            selected=len(cells),
            activity=self._reader.columns(recording, drawn),
            problem=self._reader.problem(drawn),
            run=run,
            shown=session.shown,
            factors=self._factors_of(recording),
            style=style_of(session.viewer.theme),
        )

    def _factors_of(self, recording: Recording) -> dict[str, tuple[str, ...]]:
        run = self.session.shown_run
        about = (recording, run.fit if run else None)
        known = self._factors[0]
        if known is None or any(a is not b for a, b in zip(known, about, strict=True)):
            self._factors = about, factors_of(recording, run)
        return self._factors[1]

    def _show_frame(self, frame: int) -> None:
        if self.isVisible() and self.session.recording is not None:
            frame = int(np.clip(frame, 0, self.session.recording.n_frames - 1))
            self.traces.show_frame(frame)
            self.embedding.show_frame(frame)

    def _go_to(self, frame: int) -> None:
        self.session.frame = frame


def _let_go(heard: list[tuple[Any, Any]], feeds: list[Any], *_: Any) -> None:
    for signal, slot in heard:
        # a viewer that is being collected has taken its emitters apart already
        with suppress(AttributeError):
            signal.disconnect(slot)
    for close in feeds:
        close()
