"""Shows what cells respond to: their tuning to a variable, and their activity around an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast, get_args

import numpy as np
from qtpy.QtWidgets import QButtonGroup, QLabel, QMenu, QStackedWidget, QWidget
from superqt.utils import qdebounced

from napari_xcebra.attribution.single_cell.tuning import Spacing, Tuning, columns_of, tuning_to
from napari_xcebra.recording import Recording
from napari_xcebra.recording.events import (
    START,
    Moments,
    PeriEvent,
    Responses,
    moments_in,
    peri_event,
    responses,
    splits_in,
    usual_view,
    window_of,
)
from napari_xcebra.widgets.controls.boxes import NumberBox, fill, slim, small_box, small_button
from napari_xcebra.widgets.controls.layouts import in_row, spare_from_wheel
from napari_xcebra.widgets.docks.cells.panel import LookedAt, Panel
from napari_xcebra.widgets.plots.peri_event_plot import MOST_PANELS, PeriEventPlot, ResponseMap
from napari_xcebra.widgets.plots.tuning_plot import TuningPlot

SHOWN = ""
"""Entry that follows the factor that is painted."""
SPACINGS: dict[Spacing, str] = {
    "width": "Bins of equal width",
    "occupancy": "Bins visited equally often",
}
RESOLUTIONS = {0.5: "Coarse", 1.0: "Medium", 2.0: "Fine"}


class TuningPanel(Panel):
    """The panel in the middle of the Cells dock."""

    def __init__(self) -> None:
        self.plot = TuningPlot()
        super().__init__(self.plot)
        self.to = small_box("The factor or variable to plot tuning for.")
        self.spacing: Spacing = "width"
        self.resolution = 1.0
        self.bins_button = small_button("Bins", "How the variable is binned.", self._bins_menu())
        self.controls.addWidget(QLabel("Tuning to"))
        self.controls.addWidget(self.to, 1)
        self.controls.addWidget(self.bins_button)
        self.tuning: Tuning | None = None
        self.to.activated.connect(lambda _: self._measure())

    def _refresh(self) -> None:
        looked = self._looked
        self.offer_controls(looked is not None and bool(looked.recording.behavior))
        self._fill_choices()
        self._measure()

    # ------------------------------------------------------------ choices

    def _bins_menu(self) -> QMenu:
        menu = QMenu(self)
        for spacing in get_args(Spacing):
            action = menu.addAction(SPACINGS[spacing])
            action.triggered.connect(lambda _=False, s=spacing: self.cut(spacing=s))
        menu.addSeparator()
        for resolution, title in RESOLUTIONS.items():
            action = menu.addAction(title)
            action.triggered.connect(lambda _=False, r=resolution: self.cut(resolution=r))
        for action in menu.actions():
            action.setCheckable(not action.isSeparator())
        menu.aboutToShow.connect(lambda: self._tick(menu))
        return menu

    def _tick(self, menu: QMenu) -> None:
        now = {SPACINGS[self.spacing], RESOLUTIONS[self.resolution]}
        for action in menu.actions():
            action.setChecked(action.text() in now)

    def cut(self, spacing: Spacing | None = None, resolution: float | None = None) -> None:
        """Cut the variable into other bins."""
        self.spacing = spacing or self.spacing
        self.resolution = resolution or self.resolution
        self._measure()

    def _fill_choices(self) -> None:
        """Factors, then variables; the entry that was chosen stays if it is still there."""
        chosen = self.to.currentData()
        self.to.clear()
        looked = self._looked
        if looked is None:
            return
        why = "shown" if looked.run else "suggested"
        self.to.addItem(f"{looked.factor} ({why})" if looked.factor else "–", SHOWN)
        for name, variables in looked.factors.items():
            if variables:
                self.to.addItem(_described(name, variables), f"factor {name}")
        for name in looked.recording.behavior:
            self.to.addItem(name, f"variable {name}")
        self.to.setCurrentIndex(max(0, self.to.findData(chosen)))

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables whose tuning is wanted."""
        looked = self._looked
        if looked is None:
            return ()
        kind, _, name = cast(str, self.to.currentData() or SHOWN).partition(" ")
        if kind == "variable":
            return (name,)
        return looked.factors.get(name if kind == "factor" else looked.factor, ())

    # ------------------------------------------------------------ measuring and drawing

    def _measure(self) -> None:
        looked, self._asked = self._looked, None
        if looked is None:
            self.say("")
            return
        self.plot.setBackground(looked.style.background)
        if sentence := self._what_to_do(looked):
            self.say(sentence)
            return
        cells = [cell for cell in looked.cells if cell in looked.activity]
        if not cells:
            return  # being read
        activity = [looked.activity[cell] for cell in cells]
        recording, variables = looked.recording, self.variables
        spacing, resolution = self.spacing, self.resolution
        self._compute(
            lambda _: _measured(recording, variables, activity, spacing, resolution),
            lambda tuning: self._draw(tuning, looked, cells),
        )

    def _what_to_do(self, looked: LookedAt) -> str:
        if not looked.recording.behavior:
            return "No behaviour: add a behaviour file in the Recording dock to see tuning."
        if not looked.cells:
            return "Click a cell in the image to see its tuning."
        if not self.variables:
            return f"The {looked.factor} factor has no variable: choose one above."
        return ""

    def _draw(self, tuning: Tuning, looked: LookedAt, cells: list[int]) -> None:
        self.tuning = tuning
        self.show_view()
        names, axis = [looked.name(cell) for cell in cells], looked.recording.origin.axis
        self.plot.show_tuning(tuning, names, looked.style, axis)
        variables = len(columns_of(looked.recording, self.variables))
        more = f"\nOnly the first 2 of its {variables} columns are drawn." if variables > 2 else ""
        self.plot.setToolTip(
            "Mean activity of the selected cells at each value. Shading and bars: standard "
            "error over blocks of time." + more
        )


def _measured(
    recording: Recording,
    variables: tuple[str, ...],
    activity: list[np.ndarray],
    spacing: Spacing,
    resolution: float,
) -> Tuning:
    columns = columns_of(recording, variables)[:2]
    used = ~np.asarray(recording.excluded)
    return tuning_to(columns, np.stack(activity, axis=1), used, spacing, resolution)


def _described(name: str, variables: tuple[str, ...]) -> str:
    return name if variables == (name,) else f"{name} ({', '.join(variables)})"


View: TypeAlias = tuple[str, str | None, tuple[float, float], float | None]
NOT_SPLIT = "–"
PEAK, SCORE = "peak", "score"
LONGEST = 600.0
"""Seconds that the window can reach to either side."""
PATIENCE_MS = 200
"""How long the axis must stay still before traces are averaged again."""
NOTHING = (
    "No trials or events: add a table of them as behaviour in the Recording dock to see cells "
    "around them."
)
ONE_HELP = (
    "Mean of the cell around the event, shaded by its standard error, above each single moment. "
    "Click in the image to go there; the ring is where the time slider is. Wheel: zoom the time "
    "axis. Drag: move it."
)
ALL_HELP = (
    "Mean of each accepted cell around the event, in standard deviations of its own trace (z). "
    "Click a row to select the cell, with Ctrl to add it."
)
SPLIT_HELP = " Cells are sorted by every other moment and drawn from the rest: noise stays noise."


class PeriEventPanel(Panel):
    """The panel of the Cells dock behind the tab Events."""

    def __init__(self) -> None:
        self.plot, self.map = PeriEventPlot(), ResponseMap()
        self.views = QStackedWidget()
        for view in (self.plot, self.map):
            self.views.addWidget(view)
        super().__init__(self.views)
        self.plot.setToolTip(ONE_HELP)
        self.map.setToolTip(ALL_HELP)
        self._recording: Recording | None = None
        self._own_view = False
        self._windows: dict[str, tuple[float, float]] = {}
        self._found: tuple[Recording, View, Responses] | None = None
        self._make_controls()
        self._drag_later = qdebounced(self._take_range, timeout=PATIENCE_MS, parent=self)
        self.plot.frame_chosen.connect(self.frame_chosen)
        self.plot.window_dragged.connect(self._drag_later)
        self.map.cell_chosen.connect(self.cell_chosen)

    def _make_controls(self) -> None:
        # not `event`, by which PySide would find it in place of the handler of events
        self.event_box = small_box("The event that time is counted from.")
        self.by = small_box("Split the trials or events by this variable.")
        self.sort = small_box("How the cells are sorted.")
        for part, stretch in ((QLabel("around"), 0), (self.event_box, 3), (QLabel("by"), 0),
                              (self.by, 3), (self.sort, 3)):  # fmt: skip
            self.controls.addWidget(part, stretch)
        self.one = small_button("This cell", "Show the selected cell, moment by moment.")
        self.all = small_button("All cells", "Show the mean response of every cell.")
        self.which = QButtonGroup(self)
        for button in (self.one, self.all):
            button.setCheckable(True)
            self.which.addButton(button)
        self.one.setChecked(True)
        self.before = NumberBox("Seconds to show before the event.")
        self.after = NumberBox("Seconds to show after the event.")
        self.bin = NumberBox("Seconds to average over; one frame where it is 0.")
        for box in (self.before, self.after, self.bin):
            slim(box, 34)
            box.setRange(0, LONGEST)
            box.setSingleStep(0.5)
            box.setDecimals(1)
            box.valueChanged.connect(self._type_window)
        self.bin.setDecimals(2)
        self.bin.setSingleStep(0.05)
        self.bin.setSpecialValueText("1 frame")
        slim(self.bin, 54)
        self._bottom = QWidget()
        in_row(self.one, self.all, 1, QLabel("−"), self.before, QLabel("to"), self.after,
               QLabel("s, bin"), self.bin, of=self._bottom, spacing=3)  # fmt: skip
        self.layout().addWidget(self._bottom)
        spare_from_wheel(self)
        for choice in (self.event_box, self.by):
            choice.activated.connect(lambda _: self._choose_view())
        self.sort.activated.connect(lambda _: self._measure())
        self.which.buttonClicked.connect(lambda _: self._switch())

    # ------------------------------------------------------------ what is looked at

    def show_frame(self, frame: int) -> None:
        """Mark the frame of the time slider."""
        self.plot.mark_frame(frame)

    def close_feed(self) -> None:
        """Stop computing."""
        super().close_feed()
        self._found = None

    def _refresh(self) -> None:
        looked = self._looked
        some = looked is not None and bool(moments_in(looked.recording))
        self.offer_controls(some)
        self._bottom.setVisible(some)
        if looked is not None and some:
            if looked.recording is not self._recording:
                self._recording, self._own_view = looked.recording, False
            self._fill(looked)
        self._measure()

    # ------------------------------------------------------------ choices

    def _fill(self, looked: LookedAt) -> None:
        recording = looked.recording
        event, by = self.event_box.currentData(), self.by.currentData()
        if not self._own_view:
            event, by = usual_view(recording, looked.variables) or (event, by)
        events = moments_in(recording)
        splits = splits_in(recording)
        fill(
            self.event_box,
            [(name, name) for name in events],
            event if event in events else events[0],
        )
        fill(self.by, [(NOT_SPLIT, None), *((name, name) for name in splits)],
             by if by in splits else None)  # fmt: skip
        orders = [("sort by peak", PEAK)]
        if looked.scores is not None:
            orders.append((f"sort by {looked.factor} score", SCORE))
        chosen = self.sort.currentData()
        fill(self.sort, orders, chosen if chosen in dict(orders).values() else PEAK)
        self.sort.setVisible(self.all.isChecked())
        self._show_window(recording)

    def _choose_view(self) -> None:
        self._own_view = True
        if self._looked is not None:
            self._show_window(self._looked.recording)
        self._measure()

    def _switch(self) -> None:
        self.sort.setVisible(self.all.isChecked())
        self._measure()

    def choose(self, event: str, by: str | None = None, *, all_cells: bool = False) -> None:
        """Align to an event and split by a variable, as if chosen in the boxes."""
        self.event_box.setCurrentIndex(self.event_box.findData(event))
        self.by.setCurrentIndex(self.by.findData(by) if by else 0)
        (self.all if all_cells else self.one).setChecked(True)
        self.sort.setVisible(all_cells)
        self._choose_view()

    @property
    def window(self) -> tuple[float, float]:
        """Seconds before and after the event."""
        return self.before.value(), self.after.value()

    def _show_window(self, recording: Recording) -> None:
        event = self.event_box.currentData() or START
        before, after = self._windows.get(event) or window_of(recording, event)
        self.before.show_number(before)
        self.after.show_number(after)

    def _type_window(self) -> None:
        self._windows[self.event_box.currentData()] = self.window
        self._measure()

    def _take_range(self, low: float, high: float) -> None:
        """Average what the user has dragged into view; the event itself always stays in it."""
        self.before.show_number(max(0.0, -low))
        self.after.show_number(max(0.0, high))
        self._type_window()

    # ------------------------------------------------------------ averaging and drawing

    def _measure(self) -> None:
        looked, self._asked = self._looked, None
        if looked is None or self._what_to_do(looked):
            self.say(self._what_to_do(looked) if looked else "")
        elif self.one.isChecked():
            self._measure_one(looked)
        else:
            self._measure_all(looked)

    @property
    def _view(self) -> View:
        """What is averaged: event, variable to split by, window and bin in seconds."""
        event, by = self.event_box.currentData(), self.by.currentData()
        return event, by, self.window, self.bin.value() or None

    def _measure_one(self, looked: LookedAt) -> None:
        recording, (event, by, window, bin) = looked.recording, self._view
        cell = int(np.asarray(recording.cell_ids)[looked.cells[0]])
        self._compute(
            lambda _: peri_event(recording, event, by=by, window=window, bin=bin, cells=[cell]),
            lambda found: self._draw_one(found, looked),
        )

    def _measure_all(self, looked: LookedAt) -> None:
        recording, view, before = looked.recording, self._view, self._found
        if before is not None and before[0] is recording and before[1] == view:
            self._draw_all(before[2], looked)
            return
        event, by, window, bin = view
        self.say("Averaging all cells …")

        def work(stop: Callable[[], bool]) -> Responses:
            return responses(recording, Moments.of(recording, event, by), window, bin, stop)

        def done(found: Responses) -> None:
            self._found = recording, view, found
            self._draw_all(found, looked)

        self._compute(work, done)

    def _what_to_do(self, looked: LookedAt) -> str:
        if not moments_in(looked.recording):
            return NOTHING
        if sum(self.window) <= 0:
            return "Give the seconds to show before and after the event."
        if self.one.isChecked() and not looked.cells:
            return "Click a cell in the image to see it around the event."
        return ""

    def _draw_one(self, around: PeriEvent, looked: LookedAt) -> None:
        title = looked.name(looked.cells[0])
        if looked.selected > 1:
            title += f", 1st of {looked.selected} selected"
        self.show_view()
        self.views.setCurrentWidget(self.plot)
        recording = looked.recording
        self.plot.show_around(around, title, recording.origin.axis, recording.rate, looked.style)

    def _draw_all(self, found: Responses, looked: LookedAt) -> None:
        cells = np.flatnonzero(np.asarray(looked.recording.accepted))
        by_peak = self.sort.currentData() != SCORE or looked.scores is None
        value = found.peak() if by_peak else -np.asarray(looked.scores, float)
        order = cells[np.argsort(value[cells], kind="stable")]
        self.show_view()
        self.views.setCurrentWidget(self.map)
        drawn = found.halves[1] if by_peak else found.mean()
        self.map.show_responses(found, drawn, order, looked.style)
        ids = np.asarray(looked.recording.cell_ids)
        self.map.mark_cells(looked.cells, [str(ids[cell]) for cell in looked.cells], looked.style)
        groups = len(found.moments.groups)
        more = f" The first {MOST_PANELS} of {groups} groups." if groups > MOST_PANELS else ""
        self.map.setToolTip(ALL_HELP + (SPLIT_HELP if by_peak else "") + more)
