"""Defines what the panels of the Cells dock show, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from napari_xcebra.learn.data.suggestions import suggested_factors
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.plots.plot_style import PlotStyle
from napari_xcebra.widgets.services.jobs import in_background
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.state.state import State

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
