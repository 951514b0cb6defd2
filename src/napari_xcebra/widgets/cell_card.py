"""The cell that is up: what is known of it, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.widgets.curation_keys import MOST_TAGS, Keys, readable
from napari_xcebra.widgets.decision_painter import ACCEPTED, REJECTED

COLORS = {"accepted": ACCEPTED, "rejected": REJECTED, "undecided": "#909090"}
MARKS = {"accepted": "✓", "rejected": "✗", "undecided": "○"}
"""Beside the colour, a sign."""
ACROSS = 3
"""Tags beside each other."""


@dataclass(frozen=True)
class CellFacts:
    """What the card says of a cell.

    Parameters
    ----------
    title : str
    scores : str
        Empty where there are none, or nobody is to see them.
    extractor : str
        What the program that found the cell says of it.
    status : str
        One of "accepted", "rejected" and "undecided".
    by : str
        Who decided: "threshold", or the name of a curator.
    tags : frozenset of str
    note : str
    """

    title: str
    scores: str
    extractor: str
    status: str
    by: str
    tags: frozenset[str]
    note: str


class CellCard(QFrame):
    """Facts, tags and note of one cell."""

    tag_toggled = Signal(str)
    noted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self.title = QLabel()
        self.title.setStyleSheet("font-weight: bold;")
        self.status = QLabel()
        self.status.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.status.setToolTip("What was decided, and by whom.")
        self.scores = QLabel()
        self.scores.setToolTip("Score of the factor that is chosen below.")
        self.extractor = QLabel()
        self.extractor.setToolTip("What the program that found the cell says of it.")
        for label in (self.scores, self.extractor):
            label.setWordWrap(True)
        self.note = QLineEdit()
        self.note.setPlaceholderText("Note on this cell")
        self.note.setToolTip("Kept with the decision; Enter ends it.")
        self._tags: list[QPushButton] = []
        self._names: tuple[str, ...] = ()
        self._lay_out()
        self.note.editingFinished.connect(self._tell_note)
        self.note.returnPressed.connect(self.note.clearFocus)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.title, 1)
        top.addWidget(self.status)
        grid = QGridLayout()
        grid.setSpacing(3)
        for i in range(MOST_TAGS):
            button = QPushButton()
            button.setCheckable(True)
            button.setStyleSheet("QPushButton { padding: 2px 4px; }")
            button.clicked.connect(lambda _=False, i=i: self._tell_tag(i))
            grid.addWidget(button, i // ACROSS, i % ACROSS)
            self._tags.append(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.setSpacing(4)
        layout.addLayout(top)
        for part in (self.scores, self.extractor):
            layout.addWidget(part)
        layout.addLayout(grid)
        layout.addWidget(self.note)

    def show_tags(self, names: tuple[str, ...], keys: Keys) -> None:
        """Offer tags, with their keys."""
        self._names = names
        for i, button in enumerate(self._tags):
            button.setVisible(i < len(names))
            if i < len(names):
                key = readable(keys[f"tag {i + 1}"])
                button.setText(f"{key}  {names[i]}")
                button.setToolTip(f"Give the tag “{names[i]}” or take it away (key {key}).")

    def show_cell(self, facts: CellFacts | None) -> None:
        """Show another cell; None if none is up."""
        self.setEnabled(facts is not None)
        status = facts.status if facts else "undecided"
        style = f"#card {{ border-left: 3px solid {COLORS[status]}; }}"
        if style != self.styleSheet():  # which takes Qt milliseconds
            self.setStyleSheet(style)
        same = self.title.text() == (facts.title if facts else "No cell is up")
        self.title.setText(facts.title if facts else "No cell is up")
        by = f" · {facts.by}" if facts and facts.by else ""
        self.status.setText(f"{MARKS[status]} {status}{by}" if facts else "")
        for label, text in (
            (self.scores, facts.scores if facts else ""),
            (self.extractor, facts.extractor if facts else ""),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        for i, name in enumerate(self._names[:MOST_TAGS]):
            self._tags[i].setChecked(facts is not None and name in facts.tags)
        if not (same and self.note.hasFocus()):  # it is being written
            self.note.setText(facts.note if facts else "")

    def _tell_tag(self, number: int) -> None:
        if number < len(self._names):
            self.tag_toggled.emit(self._names[number])

    def _tell_note(self) -> None:
        self.noted.emit(self.note.text())


class DecisionRow(QWidget):
    """Three buttons with their keys, and a row to walk and to undo."""

    asked = Signal(str)
    """Name of an action of the table of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, QPushButton] = {}
        self.place = QLabel()
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.place.setToolTip("Place of the cell in the queue.")
        first = self._row(("accept", "reject", "undecided"))
        second = self._row(("previous",))
        second.addWidget(self.place, 1)
        for button in ("next", "undo", "redo"):
            second.addWidget(self._button(button))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(first)
        layout.addLayout(second)

    def _row(self, names: tuple[str, ...]) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        for name in names:
            row.addWidget(self._button(name))
        return row

    def _button(self, name: str) -> QPushButton:
        button = QPushButton()
        button.setStyleSheet("QPushButton { padding: 4px 5px; }")
        button.clicked.connect(lambda _=False: self.asked.emit(name))
        self.buttons[name] = button
        return button

    def show_keys(self, keys: Keys) -> None:
        """Write the keys on the buttons."""
        for name, text, help in (
            ("accept", "✓ Accept", "This is a cell that belongs: accept it and go on."),
            ("reject", "✗ Reject", "Reject it and go on."),
            ("undecided", "○ Undecided", "Leave it undecided, or take a decision back, and go on."),
            ("previous", "◀", "Go to the cell before, without deciding."),
            ("next", "▶", "Go to the next cell, without deciding."),
            ("undo", "Undo", "Take the last step back, as often as you like."),
            ("redo", "Redo", "Take the step again that was undone."),
        ):
            key = readable(keys[name])
            short = name in ("previous", "next", "undo", "redo")
            self.buttons[name].setText(text if short else f"{text}  {key}")
            self.buttons[name].setToolTip(f"{help} Key: {key}")

    def show_place(self, number: int, total: int) -> None:
        """Show which cell of the queue is up, counted from 1; 0 if it is not in the queue."""
        self.place.setText(f"{number or '–'} of {total}")

    def allow(self, *, deciding: bool, undo: bool, redo: bool) -> None:
        """Let the buttons be pressed, or not."""
        for name in ("accept", "reject", "undecided"):
            self.buttons[name].setEnabled(deciding)
        self.buttons["undo"].setEnabled(undo)
        self.buttons["redo"].setEnabled(redo)
