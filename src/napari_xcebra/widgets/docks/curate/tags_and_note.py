"""Puts tags and a note on the selected cell."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QGridLayout, QLineEdit, QPushButton, QWidget

from napari_xcebra.widgets.controls.boxes import plain
from napari_xcebra.widgets.controls.layouts import in_column
from napari_xcebra.widgets.docks.curate.curation_keys import MOST_TAGS, Keys, readable

ACROSS = 3
"""Tags in a row."""


class TagsAndNote(QWidget):
    """A button for each tag, and a line for the note."""

    tag_toggled = Signal(str)
    noted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.note = QLineEdit()
        self.note.setPlaceholderText("Note on this cell")
        self.note.setToolTip("Saved with the decision; press Enter when done.")
        self._tags: list[QPushButton] = []
        self._names: tuple[str, ...] = ()
        self._title = ""
        grid = QGridLayout()
        grid.setSpacing(3)
        for i in range(MOST_TAGS):
            button = QPushButton()
            button.setCheckable(True)
            button.setStyleSheet("QPushButton { padding: 2px 4px; }")
            button.clicked.connect(lambda _=False, i=i: self._tell_tag(i))
            grid.addWidget(button, i // ACROSS, i % ACROSS)
            self._tags.append(button)
        in_column(grid, self.note, of=self, spacing=4)
        self.note.editingFinished.connect(lambda: self.noted.emit(self.note.text()))
        self.note.returnPressed.connect(self.note.clearFocus)

    def show_tags(self, names: tuple[str, ...], keys: Keys) -> None:
        """Offer tags, with their keys."""
        self._names = names
        for i, button in enumerate(self._tags):
            button.setVisible(i < len(names))
            if i < len(names):
                key = readable(keys[f"tag {i + 1}"])
                button.setText(f"{key}  {names[i]}")
                button.setToolTip(plain(f"Add or remove the tag “{names[i]}” (key {key})."))

    def show_cell(self, title: str, tags: frozenset[str], note: str, count: int) -> None:
        """Show the tags and the note of what is selected; several cells have no note."""
        self.setEnabled(count > 0)
        self.note.setEnabled(count == 1)
        for button, name in zip(self._tags, self._names, strict=False):
            button.setChecked(name in tags)
        if not (title == self._title and self.note.hasFocus()):  # it is being written
            self.note.setText(note)
        self._title = title

    def forget_recording(self) -> None:
        """Forget the note: a cell of another recording may have the same id."""
        self._title = ""
        self.note.clear()

    def _tell_tag(self, number: int) -> None:
        if number < len(self._names):
            self.tag_toggled.emit(self._names[number])
