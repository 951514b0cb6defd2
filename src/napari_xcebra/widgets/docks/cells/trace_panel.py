"""Shows traces, behaviour and scores of the selected cells over time, with a cursor."""

from __future__ import annotations

import pyqtgraph
from qtpy.QtWidgets import QCheckBox
from superqt.utils import qdebounced

from napari_xcebra.attribution.score_map import never_over_time, note_over_time
from napari_xcebra.widgets.controls.boxes import PlainLabel, plain
from napari_xcebra.widgets.controls.napari_window import follow
from napari_xcebra.widgets.docks.cells.behavior_choice import BehaviorChoice
from napari_xcebra.widgets.docks.cells.panel import LookedAt, Panel
from napari_xcebra.widgets.docks.cells.time_row import TimeRow
from napari_xcebra.widgets.plots.trace_plot import Lane, TracePlot, cell_lane, score_lane
from napari_xcebra.widgets.services.scores_over_time import (
    Question,
    ScoreFeed,
    ScoresOverTime,
    step_in_view,
)

TRACES = "traces"
"""What the feed of scores knows this panel by."""
PATIENCE_MS = 300
"""How long the view must stay the same before its scores are computed."""
MOMENTS = "Show below the traces how much each cell carries the painted factor at each moment."
HELP = (
    "Click, or drag the line, to go to a moment. Wheel: zoom. Drag: scroll.\nBars on the right: "
    "scale of each trace. Grey shading: every other trial. Coloured shading: excluded frames."
)
CLICK = "Click a cell to see its trace."


class TracePanel(Panel):
    """The widest panel of the Cells dock."""

    def __init__(self, feed: ScoreFeed, behavior: BehaviorChoice) -> None:
        self.plot = TracePlot()
        super().__init__(self.plot)
        self.plot.setToolTip(HELP)
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
