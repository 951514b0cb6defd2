"""Applies the user's actions: decide, tag, note, accept by threshold, undo, redo, recall."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from napari_xcebra.curation import UNDECIDED, Curation, Status
from napari_xcebra.errors import InputError
from napari_xcebra.io.decisions.recalling import recall
from napari_xcebra.io.formats.suite2p.decisions import table_beside
from napari_xcebra.text import counted
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.signals import Signal

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.cell_queue import CellQueue
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.state import State


class Deciding(OfState):
    """Acts on the selected cells, which are outlined in the image."""

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State, curations: Curations, queue: CellQueue) -> None:
        super().__init__(state)
        self.curations = curations
        self.queue = queue

    def decide(self, status: Status, *, step_on: bool = True) -> None:
        """Decide on the selected cells, and go on to the next one unless told not to.

        Where none is selected, nothing is decided and the next one comes up.
        """
        cells = self.state.selection
        if not len(cells):
            self.said.emit("No cell was selected. Decide on this one.", "plain", "")
            self.queue.step_on()
            return
        change = self.curations.act(lambda curation: curation.decide(cells, status))
        if self.curations.refused:
            return
        if len(cells) > 1 and change is not None:
            self.said.emit(change.sentence, "good", "")
        if step_on:
            self.queue.step_on()

    def tag(self, name: str) -> None:
        """Add a tag, or remove it."""
        cells = self.state.selection
        if len(cells):
            self.curations.act(lambda curation: curation.tag(cells, name))

    def write_note(self, text: str) -> None:
        """Put a note on the selected cell."""
        cells, curation = self.state.selection, self.curations.current
        if len(cells) == 1 and curation is not None and text != curation.note(cells[0]):
            self.curations.act(lambda curation: curation.write_note(int(cells[0]), text))

    @property
    def to_accept(self) -> np.ndarray:
        """(cells,) bool, undecided cells above the threshold; none without a map to trust."""
        painted, curation = shown_map(self.state), self.curations.current
        if painted is None or curation is None or painted.at_chance:
            return np.zeros(0 if curation is None else curation.n_cells, bool)
        return painted.above(self.state.shown.threshold) & (curation.status == UNDECIDED)

    def accept_above(self) -> None:
        """Accept all undecided cells above the threshold."""
        above, shown = self.to_accept, self.state.shown
        if not above.any():
            return
        change = self.curations.act(
            lambda curation: curation.decide_above(above, shown.factor, shown.threshold)
        )
        if change is not None:
            self.said.emit(change.sentence, "good", "")

    def step_in_time(self, way: Literal["undo", "redo"]) -> None:
        """Undo or redo a step, and go to its cell."""
        if not self.curations.is_open:
            return
        change = self.curations.act(Curation.undo if way == "undo" else Curation.redo)
        if change is None:
            if not self.curations.refused:
                self.said.emit(f"There is nothing to {way}.", "plain", "")
            return
        done = change.sentence.rstrip(".")
        self.said.emit(f"{'Undone' if way == 'undo' else 'Redone'}: {done}.", "plain", "")
        if len(change.cells) == 1:
            self.queue.go_to(int(change.cells[0]))


def earlier_table(curations: Curations) -> Path | None:
    """Table of decisions beside the recording, where there are none on these cells yet.

    suite2p, run again, has other ROIs, to which no journal belongs.
    """
    opened, curation = curations.state.current, curations.current
    if opened is None or opened.path is None or curation is None:
        return None
    decided = bool(curations.offers) or (curation.status != 0).any()
    return None if decided else table_beside(opened.path)


def take_over(curations: Curations, table: Path) -> None:
    """Apply decisions from a table to cells that nobody has decided on by hand."""
    opened = curations.state.current
    if opened is None:
        return
    try:
        found = recall(table, opened.recording)
    except InputError as error:
        curations.said.emit(str(error), "problem", "")
        return
    taken: list[int] = []

    def step(curation: Curation) -> None:
        taken.append(found.onto(curation))

    curations.act(step)
    if taken:
        sentence = f"Carried over {counted(taken[0], 'decision')}. {found.summary()}"
        curations.said.emit(sentence, "good", "")
