"""Chooses the behaviour variables that are shown over time."""

from __future__ import annotations

import numpy as np
import pyqtgraph
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QMenu, QPushButton, QWidget

from napari_xcebra.attribution.single_cell.tuning import columns_of
from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import small_button
from napari_xcebra.widgets.docks.cells.panel import LookedAt
from napari_xcebra.widgets.plots.trace_plot import Lane, behavior_lane

HELP = "Choose the behaviour variables to show."
NONE = "This recording has no behaviour variables."


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
        button = small_button("Behaviour", HELP, self.menu)
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
            button.setToolTip(HELP if some else NONE)

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
