"""Shows the current cell, its decision, and how many cells are decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QWidget,
)

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation import STATUSES
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.plain_text import PlainLabel, plain
from napari_xcebra.widgets.docks.curate.curation_keys import MOST_TAGS, Keys, readable
from napari_xcebra.widgets.layers.decision_painter import ACCEPTED, REJECTED
from napari_xcebra.widgets.state.shown import shown_map

if TYPE_CHECKING:
    from napari_xcebra.recording import Recording
    from napari_xcebra.widgets.state.cell_queue import CellQueue
    from napari_xcebra.widgets.state.curations import Curations
    from napari_xcebra.widgets.state.shown import Shown
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened


def facts_of(state: State, curations: Curations, cells: np.ndarray) -> CellFacts:
    """What to show of the selected cells, given by their positions."""
    opened = state.current
    if opened is None or not len(cells):
        return NO_CELL
    if len(cells) > 1:
        return _facts_of_many(opened, curations, cells)
    cell = int(cells[0])
    recording, curation = opened.recording, curations.of(opened)
    title = f"Cell {np.asarray(recording.cell_ids)[cell]}"
    if "name" in recording.cells:
        title += f" · {recording.cells['name'][cell]}"
    status = STATUSES[curations.status(opened)[cell]]
    by_threshold = bool(curation.by_threshold[cell]) and status != "undecided"
    return CellFacts(
        title=title,
        scores=_scores(shown_map(state), cell, state.shown),
        extractor=_extractor(recording, cell, accepted=bool(curations.extractor(opened)[cell])),
        status=status,
        by="by threshold" if by_threshold else "",
        tags=curation.tags(cell),
        note=curation.note(cell),
    )


def _facts_of_many(opened: Opened, curations: Curations, cells: np.ndarray) -> CellFacts:
    ids = [str(number) for number in np.asarray(opened.recording.cell_ids)[cells]]
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    counts = np.bincount(curations.status(opened)[cells], minlength=len(STATUSES))
    said = [f"{count} {status}" for status, count in zip(STATUSES, counts, strict=True) if count]
    curation = curations.of(opened)
    return CellFacts(
        title=f"{len(cells)} cells",
        scores=f"Cells {', '.join(ids[:MOST_NAMED])}{more}",
        extractor=", ".join(said),
        status=STATUSES[int(counts.argmax())] if len(said) == 1 else "",
        tags=frozenset.intersection(*(curation.tags(int(cell)) for cell in cells)),
        count=len(cells),
    )


def _scores(painted: ScoreMap | None, cell: int, shown: Shown) -> str:
    if painted is None:
        return "Scores are hidden" if shown.blind else "No scores yet"
    if painted.at_chance:
        return f"{painted.factor} is at chance: its scores mean nothing"
    if not painted.known[cell]:
        return f"{painted.factor}: no score (this cell was not in the run)"
    words = [f"{painted.factor} {painted.scores[cell]:.3g}", f"z {painted.z[cell]:.1f}"]
    if painted.q is not None and np.isfinite(painted.q[cell]):
        words.append(f"q {painted.q[cell]:.2g}")
    words.append(f"rank {painted.ranks[cell]} of {int(painted.known.sum())}")
    if painted.over_seeds is not None and painted.places is not None:
        best, worst = painted.places[:, cell]
        stable = "stable" if painted.stable(shown.threshold)[cell] else "not stable"
        words.append(f"{best}–{worst} over {len(painted.over_seeds.seeds)} seeds: {stable}")
    return " · ".join(words).replace("-", "−")


def _extractor(recording: Recording, cell: int, *, accepted: bool) -> str:
    said = "a cell" if accepted else "not a cell"
    probability = recording.cells.get("probability")
    if probability is None or not np.isfinite(float(probability[cell])):
        return f"Extractor: {said}"
    return f"Extractor: {said}, probability {float(probability[cell]):.2f}"


class Tally(QWidget):
    """A bar, and a line below it."""

    def __init__(self) -> None:
        super().__init__()
        self.progress = QProgressBar()
        self.progress.setToolTip("Decided cells in the queue.")
        self.counts = QLabel()
        self.counts.setToolTip(
            "Counts over all cells, in the colours of the outlines in the image."
        )
        in_column(self.progress, self.counts, of=self, spacing=6)

    def show_decisions(self, queue: CellQueue) -> None:
        """Count the decisions on the current recording."""
        done, of = queue.progress
        self.progress.setRange(0, max(of, 1))
        self.progress.setValue(done)
        self.progress.setFormat(f"{done} of {of} decided")
        undecided, accepted, rejected = np.bincount(queue.status, minlength=3)
        self.counts.setText(in_words(accepted, rejected, undecided))


def in_words(accepted: int, rejected: int, undecided: int) -> str:
    """How many there are of each, in the colours of the image."""
    counts = {"accepted": accepted, "rejected": rejected, "undecided": undecided}
    return "&nbsp;&nbsp; ".join(
        f"<span style='color: {COLORS[status]}'><b>{MARKS[status]}</b></span> {count} {status}"
        for status, count in counts.items()
    )


COLORS = {"accepted": ACCEPTED, "rejected": REJECTED, "undecided": "#909090", "": "#909090"}
MARKS = {"accepted": "✓", "rejected": "✗", "undecided": "○", "": ""}
"""A sign in addition to the colour."""
MOST_NAMED = 12
"""Cells that are named where several are selected."""
ACROSS = 3
"""Tags in a row."""


@dataclass(frozen=True)
class CellFacts:
    """What the card says of a cell; `by` is "by threshold", or empty for a decision by hand."""

    title: str
    scores: str = ""
    extractor: str = ""
    status: str = ""
    by: str = ""
    tags: frozenset[str] = frozenset()
    note: str = ""
    count: int = 1


NO_CELL = CellFacts(
    "No cell selected", "Click a cell in the image, or go to the next one.", count=0
)


class CellCard(QFrame):
    """Facts, tags and note of one cell."""

    tag_toggled = Signal(str)
    noted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("card")
        self.title = PlainLabel()
        self.title.setStyleSheet("font-weight: bold;")
        self.status = QLabel()
        self.status.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.status.setToolTip("The decision on this cell, made by hand unless it says otherwise.")
        self.scores = PlainLabel()
        self.scores.setToolTip("Score for the factor chosen below.")
        self.extractor = PlainLabel()
        self.extractor.setToolTip("Verdict of the program that extracted the cell.")
        for label in (self.scores, self.extractor):
            label.setWordWrap(True)
        self.note = QLineEdit()
        self.note.setPlaceholderText("Note on this cell")
        self.note.setToolTip("Saved with the decision; press Enter when done.")
        self._tags: list[QPushButton] = []
        self._names: tuple[str, ...] = ()
        self._lay_out()
        self.note.editingFinished.connect(self._tell_note)
        self.note.returnPressed.connect(self.note.clearFocus)

    def _lay_out(self) -> None:
        top = in_row((self.title, 1), self.status)
        grid = QGridLayout()
        grid.setSpacing(3)
        for i in range(MOST_TAGS):
            button = QPushButton()
            button.setCheckable(True)
            button.setStyleSheet("QPushButton { padding: 2px 4px; }")
            button.clicked.connect(lambda _=False, i=i: self._tell_tag(i))
            grid.addWidget(button, i // ACROSS, i % ACROSS)
            self._tags.append(button)
        parts = (top, self.scores, self.extractor, grid, self.note)
        in_column(*parts, of=self, spacing=4).setContentsMargins(8, 6, 8, 6)

    def show_tags(self, names: tuple[str, ...], keys: Keys) -> None:
        """Offer tags, with their keys."""
        self._names = names
        for i, button in enumerate(self._tags):
            button.setVisible(i < len(names))
            if i < len(names):
                key = readable(keys[f"tag {i + 1}"])
                button.setText(f"{key}  {names[i]}")
                button.setToolTip(plain(f"Add or remove the tag “{names[i]}” (key {key})."))

    def show_cell(self, facts: CellFacts) -> None:
        """Show another cell, or what several have in common."""
        self.setEnabled(facts.count > 0)
        self.note.setEnabled(facts.count == 1)
        style = f"#card {{ border-left: 3px solid {COLORS[facts.status]}; }}"
        if style != self.styleSheet():  # which takes Qt milliseconds
            self.setStyleSheet(style)
        same = self.title.text() == facts.title
        self.title.setText(facts.title)
        by = f" · {facts.by}" if facts.by else ""
        decided = f"{MARKS[facts.status]} {facts.status}{by}"
        self.status.setText(decided)
        for label, text in ((self.scores, facts.scores), (self.extractor, facts.extractor)):
            label.setText(text)
            label.setVisible(bool(text))
        for button, name in zip(self._tags, self._names, strict=False):
            button.setChecked(name in facts.tags)
        if not (same and self.note.hasFocus()):  # it is being written
            self.note.setText(facts.note)

    def _tell_tag(self, number: int) -> None:
        if number < len(self._names):
            self.tag_toggled.emit(self._names[number])

    def _tell_note(self) -> None:
        self.noted.emit(self.note.text())


class DecisionRow(QWidget):
    """Three buttons with their keys, and a row to step through cells and undo."""

    asked = Signal(str)
    """Name of an action of the table of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, QPushButton] = {}
        self._keys: Keys = {}
        self.place = PlainLabel()
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.place.setToolTip("Position of the cell in the queue.")
        first = in_row(*map(self._button, ("accept", "reject", "undecided")), spacing=4)
        after = map(self._button, ("next", "undo", "redo"))
        second = in_row(self._button("previous"), (self.place, 1), *after, spacing=4)
        in_column(first, second, of=self, spacing=4)

    def _button(self, name: str) -> QPushButton:
        button = QPushButton()
        button.setStyleSheet("QPushButton { padding: 4px 5px; }")
        button.clicked.connect(lambda _=False: self.asked.emit(name))
        self.buttons[name] = button
        return button

    def show_keys(self, keys: Keys) -> None:
        """Write the keys on the buttons."""
        self._keys = keys
        for name, text, help in (
            ("previous", "◀", "Go to the previous cell without deciding."),
            ("next", "▶", "Go to the next cell without deciding."),
            ("undo", "Undo", "Undo the last step; repeat to go further back."),
            ("redo", "Redo", "Redo the step that was undone."),
        ):
            self.buttons[name].setText(text)
            self.buttons[name].setToolTip(f"{help} Key: {readable(keys[name])}")
        self.show_meant(1)

    def show_meant(self, cells: int) -> None:
        """Say how many cells would be decided on."""
        many, these = (f" {cells} cells", "these cells") if cells > 1 else ("", "this cell")
        for name, text, help in (
            ("accept", f"✓ Accept{many}", f"Accept {these} and go to the next one."),
            ("reject", f"✗ Reject{many}", f"Reject {these} and go to the next one."),
            ("undecided", "○ Undecided", f"Withdraw decisions on {these} and go to the next one."),
        ):
            key = readable(self._keys[name])
            self.buttons[name].setText(f"{text}  {key}")
            self.buttons[name].setToolTip(f"{help} Key: {key}")

    def show_place(self, number: int, total: int) -> None:
        """Show the position in the queue, counted from 1; 0 if the cell is not in the queue."""
        self.place.setText(f"{number or '–'} of {total}")

    def allow(self, *, deciding: bool, undo: bool, redo: bool) -> None:
        """Enable or disable the buttons."""
        for name in ("accept", "reject", "undecided"):
            self.buttons[name].setEnabled(deciding)
        self.buttons["undo"].setEnabled(undo)
        self.buttons["redo"].setEnabled(redo)
