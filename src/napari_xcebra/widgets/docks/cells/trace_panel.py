"""Shows traces, behaviour and scores of the selected cells over time, with a cursor."""

from __future__ import annotations

import numpy as np
import pyqtgraph
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QCheckBox, QMenu, QSizePolicy
from superqt.utils import qdebounced

from napari_xcebra.attribution.score_map import never_over_time, note_over_time
from napari_xcebra.attribution.single_cell.tuning import columns_of
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import small_button
from napari_xcebra.widgets.controls.lifetime import follow
from napari_xcebra.widgets.controls.plain_text import PlainLabel, plain
from napari_xcebra.widgets.docks.cells.panel import LookedAt, Panel
from napari_xcebra.widgets.plots.trace_lanes import Lane, behavior_lane, cell_lane, score_lane
from napari_xcebra.widgets.plots.trace_plot import TracePlot
from napari_xcebra.widgets.state.score_cache import Question, ScoresOverTime, step_in_view
from napari_xcebra.widgets.work.scores_over_time import ScoreFeed

TRACES = "traces"
"""What the feed of scores knows this panel by."""
PATIENCE_MS = 300
"""How long the view must stay the same before its scores are computed."""
MOMENTS = "Show below the traces how much each cell carries the painted factor at each moment."
CLICK = "Click a cell in the image to see its trace."


class TracePanel(Panel):
    """The widest panel of the Cells dock."""

    frame_chosen = Signal(int)

    def __init__(self, feed: ScoreFeed) -> None:
        self.plot = TracePlot()
        super().__init__(self.plot)
        self.plot.setToolTip(
            "Click, or drag the line, to go to a moment. Wheel: zoom. Drag: scroll.\nNumbers "
            "on the right: lowest and highest value of each lane.\nGrey shading: every other "
            "trial. Coloured shading: excluded frames."
        )
        self.title = PlainLabel()
        self.readout = PlainLabel()
        self.readout.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.readout.setToolTip("Position of the time slider.")
        self.behavior_menu = QMenu(self)
        self.behavior_button = small_button(
            "Behaviour", "Choose the variables to show below the traces.", self.behavior_menu
        )
        self.score_box = QCheckBox("Score over time")
        for wide in (self.title, self.score_box):
            wide.setMinimumWidth(20)  # else their text would decide how narrow the dock can be
        self.closer = small_button("+", "Zoom in around the cursor (or use the mouse wheel).")
        self.wider = small_button("−", "Zoom out (or use the mouse wheel).")
        self.whole = small_button("All", "Show the whole recording.")
        self.controls.addWidget(self.title)
        self.controls.addWidget(self.behavior_button)
        self.controls.addWidget(self.score_box)
        self.controls.addWidget(self.readout, 1)
        for button in (self.closer, self.wider, self.whole):
            self.controls.addWidget(button)
        self._looked: LookedAt | None = None
        self._recording: Recording | None = None
        self._chosen: set[str] | None = None
        self._lanes: list[Lane] = []
        self._feed = feed
        follow(self, feed.changed, self._show_scores)
        self._ask_later = qdebounced(self._ask_for_scores, timeout=PATIENCE_MS, parent=self)
        self.score_box.toggled.connect(self._toggle_scores)
        self.plot.frame_chosen.connect(self.frame_chosen)
        self.plot.view_changed.connect(self._on_view)
        self.closer.clicked.connect(lambda _=False: self._zoom(0.5))
        self.wider.clicked.connect(lambda _=False: self._zoom(2.0))
        self.whole.clicked.connect(lambda _=False: self.plot.show_whole())

    @property
    def lanes(self) -> list[Lane]:
        """What is drawn, from top to bottom."""
        return self._lanes

    def show_cells(self, looked: LookedAt | None) -> None:
        """Show what is looked at."""
        self._looked = looked
        self.offer_controls(looked is not None)
        if looked is None:
            self._recording = None
            self.title.setText("")
            self.readout.setText("")
            self.say("Open a recording in the Recording dock to see its cells.")
            self._offer_scores()
            return
        self.plot.follow_style(looked.style)
        if looked.recording is not self._recording:
            self._take(looked.recording)
        self._fill_menu(looked)
        self.title.setText(_title(looked))
        self.readout.setVisible(bool(looked.cells))
        self._offer_scores()
        self._lay_lanes()
        if self.score_box.isChecked():
            self._ask_later()

    def show_frame(self, frame: int) -> None:
        """Put the cursor on a frame."""
        if self._looked is None:
            return
        self.plot.move_cursor(frame)
        self.readout.setText(_moment(self._looked.recording, frame))

    def close_feed(self) -> None:
        """Stop computing."""
        self._feed.want(TRACES, None)

    def _take(self, recording: Recording) -> None:
        before, self._recording = self._recording, recording
        if before is None or not np.array_equal(
            np.asarray(before.times), np.asarray(recording.times)
        ):
            self._chosen = None
        self.plot.show_recording(recording)

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
        self._lanes = [
            cell_lane(looked.name(cell), looked.activity[cell], pens[cell], colors[cell], height)
            for cell in looked.cells
            if cell in looked.activity
        ]
        self._lanes += self._score_lanes(looked, list(pens.values()))
        ink = pyqtgraph.mkPen(style.ink, width=1)
        for column in columns_of(looked.recording, self._variables(looked)):
            self._lanes.append(behavior_lane(column, ink, style.ink))
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

    # ------------------------------------------------------------ behaviour

    def _variables(self, looked: LookedAt) -> list[str]:
        """Variables to show, in the order of the recording."""
        wanted = set(looked.variables) if self._chosen is None else self._chosen
        return [name for name in looked.recording.behavior if name in wanted]

    def _fill_menu(self, looked: LookedAt) -> None:
        self.behavior_menu.clear()
        shown = self._variables(looked)
        for name in looked.recording.behavior:
            action = self.behavior_menu.addAction(name)
            action.setCheckable(True)
            action.setChecked(name in shown)
            action.toggled.connect(lambda on, name=name: self._choose(name, on))
        self.behavior_menu.addSeparator()
        follow = self.behavior_menu.addAction("Variables of the painted factor")
        follow.setCheckable(True)
        follow.setChecked(self._chosen is None)
        follow.toggled.connect(lambda on: self._follow_factor() if on else None)
        some = bool(looked.recording.behavior)
        self.behavior_button.setEnabled(some)
        self.behavior_button.setToolTip(
            "Choose the variables to show below the traces."
            if some
            else "This recording has no behaviour variables."
        )

    def _choose(self, name: str, on: bool) -> None:
        assert self._looked is not None
        chosen = set(self._variables(self._looked))
        self._chosen = chosen | {name} if on else chosen - {name}
        QTimer.singleShot(0, self._refill)

    def _follow_factor(self) -> None:
        self._chosen = None
        QTimer.singleShot(0, self._refill)

    def _refill(self) -> None:
        # after the menu's own signal, as the menu is filled again
        if self._looked is not None:
            self._fill_menu(self._looked)
            self._lay_lanes()

    # ------------------------------------------------------------ scores and view

    def _offer_scores(self) -> None:
        looked = self._looked
        run = looked.run if looked else None
        self.score_box.setEnabled(run is not None)
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

    def _zoom(self, factor: float) -> None:
        first, last = self.plot.frames
        half = max(5, int((last - first) * factor / 2))
        middle = self.plot.frame if first <= self.plot.frame < last else (first + last) // 2
        start = int(np.clip(middle - half, 0, max(0, self._n_frames - 2 * half)))
        self.plot.show_stretch(start, start + 2 * half)

    @property
    def _n_frames(self) -> int:
        return self._recording.n_frames if self._recording else 0


def _question(looked: LookedAt) -> Question | None:
    """Which scores over time are drawn; None without a run."""
    if looked.run is None:
        return None
    shown, fit = looked.shown, looked.run.fit
    return Question.of(fit, looked.recording, looked.factor, shown.latent, shown.method)


def _title(looked: LookedAt) -> str:
    if not looked.cells:
        return CLICK
    if len(looked.cells) < looked.selected:
        return f"First {len(looked.cells)} of {looked.selected} cells"
    name = looked.name(looked.cells[0])
    return name[:1].upper() + name[1:] if looked.selected == 1 else f"{looked.selected} cells"


def _why_nothing(looked: LookedAt) -> str:
    if not looked.cells:
        return CLICK
    # the dock says what is wrong
    return "" if looked.problem else "Reading the traces …"


def _moment(recording: Recording, frame: int) -> str:
    """Where the time slider stands, in words."""
    words = [f"{np.asarray(recording.times)[frame]:.1f} s", f"frame {frame}"]
    starts = np.asarray(recording.starts)
    if len(starts) > 1:
        trial = int(np.searchsorted(starts, frame, side="right"))
        words.append(f"trial {trial} of {len(starts)}")
    if np.asarray(recording.excluded)[frame]:
        words.append("excluded")
    return " · ".join(words)
