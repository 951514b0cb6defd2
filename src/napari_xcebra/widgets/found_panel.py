"""What was found in a recording: facts, variables, and how it was read."""

from __future__ import annotations

from functools import partial
from html import escape

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QLabel, QVBoxLayout, QWidget

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.background import in_background
from napari_xcebra.widgets.fact_list import FactList
from napari_xcebra.widgets.fold import Fold
from napari_xcebra.widgets.overview import Look, facts, look_into
from napari_xcebra.widgets.variables_table import VariablesTable
from napari_xcebra.widgets.wording import in_dock


class FoundPanel(QWidget):
    """Hidden until there is a recording.

    What takes a look at all values is filled in once that was done in the background.
    """

    kind_chosen = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self._recording: Recording | None = None
        self.facts = FactList()
        self.table = VariablesTable()
        self.table.kind_chosen.connect(self.kind_chosen)
        self.notes = QLabel()
        self.notes.setWordWrap(True)
        self.notes.setTextFormat(Qt.TextFormat.RichText)
        self.notes.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._how = Fold("How it was read", "What was done on the way here.", unfolded=True)
        self._how.addWidget(self.notes)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        for part in (self.facts, self.table, self._how):
            column.addWidget(part)

    def show_recording(self, recording: Recording | None) -> None:
        """Show what is known at once, then look at all values."""
        self._recording = recording
        self.setVisible(recording is not None)
        if recording is None:
            return
        self._describe(recording)
        in_background(
            partial(look_into, recording),
            partial(self._describe_if_shown, recording),
            self._cannot_look,
            owner=self,
        )

    def _describe_if_shown(self, recording: Recording, look: Look) -> None:
        if self._recording is recording:
            self._describe(recording, look)

    def _cannot_look(self, sentence: str, details: str) -> None:
        """Traces on disk may have been moved since."""
        self.notes.setText(f"• {escape(in_dock(sentence))}<br>{self.notes.text()}")

    def _describe(self, recording: Recording, look: Look | None = None) -> None:
        self.facts.show_facts(facts(recording, look))
        self.table.setVisible(bool(recording.behavior))
        self.table.show_recording(recording, look)
        self.notes.setText("<br>".join(f"• {escape(in_dock(note))}" for note in recording.notes))
        self._how.setVisible(bool(recording.notes))
