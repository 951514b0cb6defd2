"""Holds what all panels of the Cells dock share: what is looked at, time, and behaviour to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyqtgraph
from qtpy.QtCore import Qt, QTimer, Signal
from qtpy.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from superqt import QElidingLabel

from napari_xcebra.attribution.single_cell.tuning import Column, columns_of
from napari_xcebra.jobs import tasks
from napari_xcebra.learn.data.factors import suggested_factors
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.widgets.controls.boxes import PlainLabel, small_box, small_button
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.controls.layouts import in_row
from napari_xcebra.widgets.plots.embedding_plot import EmbeddingPlot, fit_to_view, principal
from napari_xcebra.widgets.plots.plot_style import (
    ColorKey,
    PlotStyle,
    levels_of,
    limits_of,
    palette,
)
from napari_xcebra.widgets.plots.time_plot import TimePlot
from napari_xcebra.widgets.plots.trace_plot import Lane, behavior_lane
from napari_xcebra.widgets.services.jobs import JobQueue, Processes, Work, in_background
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.state.state import State

if TYPE_CHECKING:
    from napari_xcebra.learn.result import Fit


Found = TypeVar("Found")

ROW_HEIGHT = 26
MOST_CELLS = 10
"""Cells to draw at most: as many as there are colours for traces and outlines."""


@dataclass(frozen=True, eq=False)
class LookedAt:
    """A recording, and the cells and the run to show of it.

    Parameters
    ----------
    recording : Recording
    cells : tuple of int
        Positions of the selected cells, as many as are drawn.
    selected : int
        How many are selected in all.
    activity : mapping of int to (frames,) float32
        Traces of those cells that have been read.
    problem : str
        Why others cannot be read; empty if they can.
    run : Run or None
        The run that is painted.
    shown : Shown
    scores : (cells,) float or None
        Scores that are painted; None if there are none, or cells are judged blind.
    factors : mapping of str to tuple of str
        Variables of each factor of the run; without a run, of those the recording suggests.
    style : PlotStyle
    """

    recording: Recording
    cells: tuple[int, ...]
    selected: int
    activity: Mapping[int, np.ndarray]
    problem: str
    run: Run | None
    shown: Shown
    scores: np.ndarray | None
    factors: Mapping[str, tuple[str, ...]]
    style: PlotStyle

    @property
    def factor(self) -> str:
        """The factor that is painted, else the first."""
        if self.shown.factor in self.factors:
            return self.shown.factor
        return next(iter(self.factors), "")

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables of that factor; of the time factor, those of the first one."""
        return self.factors.get(self.factor) or next(iter(self.factors.values()), ())

    def name(self, cell: int) -> str:
        """Name of a cell, by its id in the source."""
        return f"cell {np.asarray(self.recording.cell_ids)[cell]}"


def factors_of(recording: Recording, run: Run | None) -> dict[str, tuple[str, ...]]:
    """Variables of each factor, those that the recording (still) has."""
    if run is None:
        suggested = suggested_factors(recording)
        return {name: tuple(factor.variables) for name, factor in suggested.items()}
    return {
        part.name: tuple(name for name in part.variables if name in recording.behavior)
        for part in run.fit.parts
    }


def selected_cells(state: State, recording: Recording) -> list[int]:
    """Selected cells that the recording has."""
    return [int(cell) for cell in state.selection if 0 <= cell < recording.n_cells]


class Panel(QWidget):
    """Row of controls, and below it the view or what to do to see one.

    It draws and computes only while it is seen.

    Signals
    -------
    frame_chosen(int)
        The user wants to see this frame.
    cell_chosen(int, bool)
        The user wants to select this cell; the flag says whether beside the others.
    """

    frame_chosen = Signal(int)
    cell_chosen = Signal(int, bool)

    def __init__(self, view: QWidget) -> None:
        super().__init__()
        self._looked: LookedAt | None = None
        self._stale = False
        self._asked: object = None
        self._row = QWidget()
        self._row.setFixedHeight(ROW_HEIGHT)  # the same in all panels, so that plots line up
        self.controls = QHBoxLayout(self._row)
        self.controls.setContentsMargins(0, 0, 0, 0)
        self.controls.setSpacing(4)
        self._message = PlainLabel(wrap=True)
        self._message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._message)
        self._stack.addWidget(view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2, 0, 2, 0)
        layout.setSpacing(2)
        layout.addWidget(self._row)
        layout.addWidget(self._stack, 1)

    # ------------------------------------------------------------ what is looked at

    def show_cells(self, looked: LookedAt | None) -> None:
        """Show what is looked at; later, if the panel is behind another."""
        self._looked = looked
        self._stale = not self.isVisible()
        if not self._stale:
            self._refresh()

    def showEvent(self, event: Any) -> None:
        """Catch up with what changed while the panel was hidden."""
        super().showEvent(event)
        if self._stale:
            self._stale = False
            self._refresh()

    def show_frame(self, frame: int) -> None:
        """Show the frame of the time slider, in panels that know of time."""

    def close_feed(self) -> None:
        """Stop computing."""
        self._looked = self._asked = None

    def _refresh(self) -> None:
        """Draw what is looked at."""
        raise NotImplementedError

    # ------------------------------------------------------------ computing

    def _ask(self) -> Callable[[], bool]:
        """Ask for something new; returns whether it is still wanted, to be asked at any time."""
        asked = self._asked = object()
        return lambda: self._asked is asked

    def _compute(
        self, work: Callable[[Callable[[], bool]], Found], done: Callable[[Found], object]
    ) -> None:
        """Work in the background, unless something else is asked for before it ends.

        `work` is given a function that says whether to stop.
        """
        wanted = self._ask()
        in_background(
            lambda: work(lambda: not wanted()),
            lambda found: done(found) if wanted() else None,
            lambda sentence, _: self.say(sentence) if wanted() else None,
            owner=self,
        )

    # ------------------------------------------------------------ controls and view

    def offer_controls(self, offer: bool) -> None:
        """Show the row of controls, or leave its place empty while there is nothing to choose."""
        # of its own children alone: those of a combobox are windows, its list of entries among them
        directly = Qt.FindChildOption.FindDirectChildrenOnly
        for child in self._row.findChildren(QWidget, options=directly):
            child.setVisible(offer)

    def say(self, sentence: str) -> None:
        """Show a sentence in the place of the view."""
        self._message.setText(in_dock(sentence))
        self._stack.setCurrentIndex(0)

    def show_view(self) -> None:
        """Show the view."""
        self._message.clear()
        self._stack.setCurrentIndex(1)

    @property
    def message(self) -> str:
        """What is said in the place of the view; empty while the view is shown."""
        return self._message.text()


SPANS = {"10 s": 10.0, "60 s": 60.0, "All": np.inf}
"""Seconds that a button brings into view."""


class TimeRow(QWidget):
    """Belongs to a plot over time."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__()
        # where it does not fit it ends in dots: a number that is cut off looks like another number
        self.readout = QElidingLabel()
        # its text must not decide how narrow the dock can be
        self.readout.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.readout.setToolTip("Position of the time slider.")
        self.spans = {}
        for text, seconds in SPANS.items():
            whole = seconds == np.inf
            help = "Show the whole recording." if whole else f"Show {text} around the cursor."
            button = self.spans[text] = small_button(text, help)
            button.setAccessibleName(help[:-1])
            button.clicked.connect(lambda _=False, s=seconds: plot.show_around(s))
        in_row((self.readout, 1), *self.spans.values(), of=self, spacing=3)

    def tell(self, recording: Recording, frame: int) -> None:
        """Tell where the time slider is."""
        self.readout.setText(_moment(recording, frame))


def _moment(recording: Recording, frame: int) -> str:
    """A frame in words; the nearest one of the recording, whose slider may be another's."""
    frame = int(np.clip(frame, 0, recording.n_frames - 1))
    words = [f"{np.asarray(recording.times)[frame]:.1f} s", f"frame {frame}"]
    words += _part_of(recording, frame)
    if np.asarray(recording.excluded)[frame]:
        words.append("excluded")
    return " · ".join(words)


def _part_of(recording: Recording, frame: int) -> list[str]:
    """Which trial a frame belongs to, or which segment of a recording without trials."""
    trials, starts = recording.trials, np.asarray(recording.starts)
    if trials is not None:
        number = int(np.searchsorted(trials.first, frame, side="right"))
        inside = number > 0 and frame < trials.stop[number - 1]
        return [f"trial {number} of {len(trials)}" if inside else "between trials"]
    if len(starts) > 1:
        number = int(np.searchsorted(starts, frame, side="right"))
        return [f"segment {number} of {len(starts)}"]
    return []


BEHAVIOR_HELP = "Choose the behaviour variables to show."


NO_BEHAVIOR = "This recording has no behaviour variables."


class BehaviorChoice(QWidget):
    """Holds a menu of variables, for the buttons of all panels over time.

    Signals
    -------
    changed
        The user wants to see other variables.
    """

    changed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.hide()
        self.menu = QMenu(self)
        self._buttons: list[QPushButton] = []
        self._looked: LookedAt | None = None
        self._recording: Recording | None = None
        self._chosen: set[str] | None = None

    def button(self) -> QPushButton:
        """A button that opens the menu."""
        button = small_button("Behaviour", BEHAVIOR_HELP, self.menu)
        self._buttons.append(button)
        return button

    def look_at(self, looked: LookedAt | None) -> None:
        """Offer the variables of a recording; those that were chosen stay for the same clock."""
        self._looked = looked
        if looked is None:
            self._recording = None
            return
        before, self._recording = self._recording, looked.recording
        if before is None or not np.array_equal(
            np.asarray(before.times), np.asarray(looked.recording.times)
        ):
            self._chosen = None
        self._fill(looked)

    @property
    def lanes(self) -> list[Lane]:
        """A lane for each column of the variables to show, in the order of the recording."""
        looked = self._looked
        if looked is None:
            return []
        ink = looked.style.ink
        pen = pyqtgraph.mkPen(ink, width=1)
        columns = columns_of(looked.recording, self._variables(looked))
        return [behavior_lane(column, pen, ink) for column in columns]

    def _variables(self, looked: LookedAt) -> list[str]:
        wanted = set(looked.variables) if self._chosen is None else self._chosen
        return [name for name in looked.recording.behavior if name in wanted]

    def _fill(self, looked: LookedAt) -> None:
        self.menu.clear()
        shown = self._variables(looked)
        for name in looked.recording.behavior:
            action = self.menu.addAction(name)
            action.setCheckable(True)
            action.setChecked(name in shown)
            action.toggled.connect(lambda on, name=name: self._choose(name, on))
        self.menu.addSeparator()
        follow = self.menu.addAction("Variables of the painted factor")
        follow.setCheckable(True)
        follow.setChecked(self._chosen is None)
        follow.toggled.connect(lambda on: self._show_chosen(None) if on else None)
        some = bool(looked.recording.behavior)
        for button in self._buttons:
            button.setEnabled(some)
            button.setToolTip(BEHAVIOR_HELP if some else NO_BEHAVIOR)

    def _choose(self, name: str, on: bool) -> None:
        assert self._looked is not None
        chosen = set(self._variables(self._looked))
        self._show_chosen(chosen | {name} if on else chosen - {name})

    def _show_chosen(self, chosen: set[str] | None) -> None:
        self._chosen = chosen
        # after the menu's own signal, as the menu is filled again
        QTimer.singleShot(0, self._refill)

    def _refill(self) -> None:
        if self._looked is not None:
            self._fill(self._looked)
            self.changed.emit()


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
        points = fit_to_view(every[:, chosen], [groups[latent] for latent in chosen])
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
