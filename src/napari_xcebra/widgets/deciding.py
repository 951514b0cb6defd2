"""What the user does to cells: decide, tag, note, accept by threshold, undo and redo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from psygnal import Signal

from napari_xcebra.curation import Curation, Status
from napari_xcebra.widgets.curations import curations_of
from napari_xcebra.widgets.per_session import OfSession, one_per_session
from napari_xcebra.widgets.score_map import shown_map
from napari_xcebra.widgets.walk import walk_of

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session


class Deciding(OfSession):
    """Acts on the cell that is up, or on all that are selected.

    Parameters
    ----------
    session : Session
    """

    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.curations = curations_of(session)
        self.walk = walk_of(session)

    def decide(self, status: Status) -> None:
        """Decide, and go on to the next cell."""
        cells = self.walk.meant
        if not len(cells):
            self.walk.step_on()
            return
        change = self.curations.act(lambda curation: curation.decide(cells, status))
        if self.curations.refused:
            return
        if len(cells) > 1 and change is not None:
            self.said.emit(change.sentence, "good", "")
        self.walk.step_on()

    def tag(self, name: str) -> None:
        """Give a tag, or take it away."""
        cells = self.walk.meant
        if len(cells):
            self.curations.act(lambda curation: curation.tag(cells, name))

    def write_note(self, text: str) -> None:
        """Put a note on the cell that is up."""
        cell, curation = self.walk.cell, self.curations.current
        if cell is not None and curation is not None and text != curation.note(cell):
            self.curations.act(lambda curation: curation.write_note(cell, text))

    def accept_above(self) -> None:
        """Accept all cells above the threshold on which nobody decided by hand."""
        painted, shown = shown_map(self.session), self.session.shown
        if painted is None:
            return
        selected = painted.selected(shown.threshold)
        change = self.curations.act(
            lambda curation: curation.decide_above(selected, shown.factor, shown.threshold)
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
        self.said.emit(f"Undone: {done}." if way == "undo" else f"{done}, again.", "plain", "")
        if len(change.cells) == 1:
            self.walk.go_to(int(change.cells[0]))


deciding_of = one_per_session(Deciding)
"""What is done to the cells of a session."""
