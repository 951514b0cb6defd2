"""Has the controls to decide: on one cell, on many, on the next, in words; and who agrees."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QShortcut,
    QSizePolicy,
    QWidget,
)

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.curation import (
    ORDERS,
    UNDECIDED,
    Agreement,
    Curation,
    between,
    read_curation,
    with_model,
)
from napari_xcebra.errors import InputError
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import (
    SMALL,
    PlainLabel,
    fill,
    in_markup,
    plain,
    small_box,
)
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.napari_window import follow, main_window
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.docks.curate.keys import MOST_TAGS, Keys, readable
from napari_xcebra.widgets.layers.layers import ACCEPTED, REJECTED
from napari_xcebra.widgets.layers.mouse import Form, Lasso
from napari_xcebra.widgets.state.cell_queue import Deciding, QueueChoice
from napari_xcebra.widgets.state.shown import Shown, shown_map
from napari_xcebra.widgets.state.state import State

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.cell_queue import CellQueue


class Tally(QWidget):
    """A line, and a thin bar below it."""

    def __init__(self, saved: QWidget) -> None:
        super().__init__()
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.counts = QLabel()
        self.counts.setToolTip(
            "Counts over all cells, in the colours of the outlines in the image."
        )
        in_column(in_row((self.counts, 1), saved), self.progress, of=self, spacing=3)

    def show_decisions(self, queue: CellQueue) -> None:
        """Count the decisions on the current recording."""
        done, of = queue.progress
        self.progress.setRange(0, max(of, 1))
        self.progress.setValue(done)
        self.progress.setToolTip(f"{done} of {of} cells of the queue are decided.")
        undecided, accepted, rejected = np.bincount(queue.status, minlength=3)
        self.counts.setText(_in_words(accepted, rejected, undecided))


def _in_words(accepted: int, rejected: int, undecided: int) -> str:
    """How many there are of each, in the colours of the image."""
    counts = {"accepted": accepted, "rejected": rejected, "undecided": undecided}
    return "&nbsp;&nbsp; ".join(
        f"<span style='color: {COLORS[status]}'><b>{MARKS[status]}</b></span> {count} {status}"
        for status, count in counts.items()
    )


COLORS = {"accepted": ACCEPTED, "rejected": REJECTED, "undecided": "#909090", "": "#909090"}
MARKS = {"accepted": "✓", "rejected": "✗", "undecided": "○", "": ""}
"""A sign in addition to the colour."""


LARGE = (
    "QPushButton {{ background-color: {0}; color: white; font-weight: bold; font-size: 15px;"
    " padding: 9px 4px; }} QPushButton:hover {{ background-color: {1}; }}"
    "QPushButton:disabled {{ background-color: rgba(128, 128, 128, 50); color: #909090; }}"
)
ACCEPT, REJECT = LARGE.format("#1F6FB2", "#2A80C7"), LARGE.format("#A84300", "#C05000")
"""Darker than the outlines, so that white text is read on them."""


class DecisionRow(QWidget):
    """Two large buttons to decide, and a row to step through cells and undo."""

    asked = Signal(str)
    """Name of an action of the table of keys."""

    def __init__(self) -> None:
        super().__init__()
        self.buttons: dict[str, QPushButton] = {}
        self._keys: Keys = {}
        self.place = PlainLabel()
        self.place.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.place.setToolTip("Position of the cell in the queue.")
        large = {"accept": ACCEPT, "reject": REJECT}
        first = in_row(*((self._button(name, style), 1) for name, style in large.items()))
        steps = in_row(self._button("previous"), (self.place, 1), self._button("next"), spacing=4)
        after = [self._button(name) for name in ("undecided", "undo", "redo", "close up")]
        self.buttons["close up"].setCheckable(True)
        in_column(first, in_row((steps, 1), *after, spacing=4), of=self, spacing=5)

    def _button(self, name: str, style: str = SMALL) -> QPushButton:
        button = QPushButton()
        button.setStyleSheet(style)
        # after a click, keys still decide: Space flips, and does not press it again
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if style != SMALL:
            button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
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
            ("close up", "Close-up", "Show the cell close up, or the whole field with its map."),
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
            ("undecided", "○", f"Withdraw decisions on {these} and go to the next one."),
        ):
            key = readable(self._keys[name])
            self.buttons[name].setText(text if name == "undecided" else f"{text}   {key}")
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


HINTS: dict[Form | None, str] = {
    None: "Shift+click adds a cell",
    "lasso": "now draw around cells",
    "rectangle": "now draw a box over cells",
}


class SelectionRow(QWidget):
    """Buttons for lasso, rectangle and threshold."""

    drawing = Signal()
    """Cells are about to be drawn around, which needs all of the field."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State, area: Lasso, deciding: Deciding) -> None:
        super().__init__()
        self._state = state
        self._deciding = deciding
        self.area = area
        self.lasso = QPushButton("Lasso")
        self.rectangle = QPushButton("Rectangle")
        self.hint = PlainLabel()
        self.hint.setToolTip("Decisions and tags apply to all selected cells.")
        self.accept_above = QPushButton()
        self.merge = QPushButton()
        self.sum = QCheckBox("sum")
        self.sum.setToolTip("Sum the traces of merged cells, instead of averaging them by size.")
        self._key = ""
        for form, button in self._forms.items():
            button.setCheckable(True)
            button.setStyleSheet("QPushButton { padding: 3px 7px; }")
            button.clicked.connect(lambda on=False, form=form: self.arm(form if on else None))
        shapes = in_row(self.lasso, self.rectangle, (self.hint, 1), spacing=4)
        merging = in_row((self.merge, 1), self.sum, spacing=4)
        in_column(shapes, self.accept_above, merging, of=self, spacing=4)
        self.merge.clicked.connect(lambda _=False: self.join())
        self.accept_above.clicked.connect(lambda _=False: deciding.accept_above())
        self._follow_area()

    def _follow_area(self) -> None:
        area = self.area
        follow(self, area.changed, self._show_form)
        follow(self, area.drawn, self._select)
        self.destroyed.connect(lambda *_: area.put_down())
        # of the window: it works wherever the focus is
        self._escape = QShortcut(main_window(self._state.viewer))
        self._escape.setKey(QKeySequence("Esc"))
        self._escape.setEnabled(False)
        self._escape.activated.connect(area.put_down)
        self.destroyed.connect(self._escape.deleteLater)

    @property
    def _forms(self) -> dict[Form, QPushButton]:
        return {"lasso": self.lasso, "rectangle": self.rectangle}

    def arm(self, form: Form | None) -> None:
        """Let the next drag draw this shape around cells; None cancels."""
        if form is not None and self._state.viewer.dims.ndisplay == 3:
            self.said.emit("Lasso and rectangle work in the 2-D view only.", "warning", "")
            form = None
        if form is not None:
            self.drawing.emit()
        self.area.arm(form)
        self._show_form()

    def join(self) -> None:
        """Merge the cells, or take a merged one apart."""
        self._deciding.merge("sum" if self.sum.isChecked() else "mean")

    def toggle(self, form: Form) -> None:
        """Arm the shape, or cancel it if it is armed."""
        self.arm(None if self.area.form == form else form)

    def _select(self, cells: np.ndarray, add: bool) -> None:
        before = self._state.selection.tolist() if add else []
        self._state.select([*before, *cells.tolist()])
        if not len(cells):
            self.said.emit("No cell centre lies inside the shape you drew.", "plain", "")

    def show_keys(self, keys: Keys) -> None:
        """Put the keys into the tooltips."""
        self._key = readable(keys["merge"])
        self.lasso.setToolTip(
            "Draw around cells in the image to select them; hold Shift to add to the "
            f"selection. Key: {readable(keys['lasso'])}; Esc cancels."
        )
        self.rectangle.setToolTip(
            "Draw a rectangle over cells in the image to select them; hold Shift to add to the "
            f"selection. Key: {readable(keys['rectangle'])}; Esc cancels."
        )

    def show_state(self) -> None:
        """Show what the next drag draws, how many cells are selected, and the threshold."""
        self._show_form()
        self._show_threshold()
        self._show_merge()

    def _show_merge(self) -> None:
        """Say what would be merged."""
        cells, recording = self._deciding.to_merge, self._state.recording
        apart = self._deciding.is_merged
        what = f"Merge {len(cells)} cells" if len(cells) else "Merge selected cells"
        if len(cells) and len(self._state.selection) == 1 and recording is not None:
            what = f"Merge with cell {np.asarray(recording.cell_ids)[cells[1]]}"
        self.merge.setText(f"{'Take the merged cell apart' if apart else what}   {self._key}")
        self.merge.setEnabled(apart or len(cells) > 1)
        self.merge.setToolTip(
            "One cell of several: it keeps the id of the largest, has the pixels of all, and the "
            "mean of their traces by size. The others are rejected. Undo or take it apart any time."
        )

    def _show_form(self) -> None:
        form, selected = self.area.form, len(self._state.selection)
        self._escape.setEnabled(form is not None)
        for name, button in self._forms.items():
            button.setChecked(name == form)
        many = f"{selected} cells selected" if selected > 1 and form is None else HINTS[form]
        self.hint.setText(many)

    def _show_threshold(self) -> None:
        """Say which cells would be accepted by their score, or why none."""
        painted, threshold = shown_map(self._state), self._state.shown.threshold
        count = int(self._deciding.to_accept.sum())
        if painted is None:
            text, help = "Accept all above threshold", "There are no scores, or they are hidden."
        elif painted.at_chance:
            text = f"{painted.factor} is at chance: its scores accept no cell"
            help = "Choose a factor above chance."
        else:
            scored = f"{_titled(painted)} above z {threshold:g}".replace("-", "−")
            all_cells = f"all {count} cells" if count > 1 else "the one cell"
            none = f"No undecided cell has {scored}"
            text = f"Accept {all_cells} with {scored}" if count else none
            help = "Undecided cells above the threshold of the Attribution dock."
        self.accept_above.setText(text)
        self.accept_above.setToolTip(help)
        self.accept_above.setEnabled(count > 0)


def _titled(painted: ScoreMap) -> str:
    """Factor of a map, with the latent or the lag that it shows."""
    if painted.latent is None:
        return painted.factor
    what = painted.latent if isinstance(painted.latent, str) else f"latent {painted.latent + 1}"
    return f"{painted.factor}, {what},"


TITLES = {
    "doubt": "doubtful ones only, most doubtful first",
    "property": "by the property below",
    "score": "by score, highest first",
    "q-value": "by q-value, lowest first",
    "instability": "by instability over seeds",
    "disagreement": "where score and extractor disagree",
    "position": "by position in the field",
    "random": "at random",
    "id": "by id",
}
HELP = {
    "doubt": (
        "ROIs on which the extractor was unsure, which look like those it decided otherwise, which "
        "may be one cell twice, or whose maps disagree."
    ),
    "property": "Highest first. Available once a property is chosen below.",
    "q-value": (
        "q is the expected share of false discoveries at this score. Available once scores are "
        "tested against chance."
    ),
    "instability": (
        "Cells whose rank varies most with the seed come first. Available once training is "
        "repeated with other seeds."
    ),
    "disagreement": "Cells on which the score and the extractor disagree most come first.",
    "position": "Neighbours follow each other.",
}


class QueueBox(QWidget):
    """Boxes for order, factor and filter."""

    chosen = Signal(object)
    """A QueueChoice."""
    factor_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._choice = QueueChoice()
        self.order = small_box("Order in which cells are shown.")
        self.factor = small_box("Factor whose scores are painted, listed and used for the order.")
        self.status = small_box("Show only undecided, accepted or rejected cells.")
        self.above = small_box("Show only cells above the threshold, or only the others.")
        self.tag = small_box("Show only cells with this tag.")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(4)
        grid.addWidget(QLabel("Order"), 0, 0)
        grid.addWidget(self.order, 0, 1, 1, 2)
        grid.addWidget(self.factor, 0, 3)
        grid.addWidget(QLabel("Show"), 1, 0)
        for column, box in enumerate((self.status, self.above, self.tag), start=1):
            grid.addWidget(box, 1, column)
            grid.setColumnStretch(column, 1)
        self.order.activated.connect(lambda i: self._change(order=self.order.itemData(i)))
        self.status.activated.connect(lambda i: self._change(status=self.status.itemData(i)))
        self.above.activated.connect(lambda i: self._change(above=self.above.itemData(i)))
        self.tag.activated.connect(lambda i: self._change(tag=self.tag.itemData(i)))
        self.factor.activated.connect(lambda i: self.factor_chosen.emit(self.factor.itemData(i)))

    def show_choice(
        self,
        choice: QueueChoice,
        orders: tuple[str, ...],
        factors: tuple[str, ...],
        factor: str,
        tags: tuple[str, ...],
        threshold: float | None,
    ) -> None:
        """Show what is chosen and what there is to choose from.

        `threshold` is None without scores, or while they are hidden.
        """
        self._choice = choice
        fill(self.order, [(TITLES[order], order) for order in ORDERS], choice.order)
        for row, order in enumerate(ORDERS):
            item = self.order.model().item(row)
            item.setEnabled(order in orders)
            item.setData(_order_help(order, order in orders), Qt.ItemDataRole.ToolTipRole)
        fill(self.factor, [(name, name) for name in factors], factor)
        self.factor.setEnabled(bool(factors))
        fill(
            self.status,
            [("all", "any"), ("undecided", "undecided"), ("accepted", "accepted"),
             ("rejected", "rejected")],
            choice.status,
        )  # fmt: skip
        above = "" if threshold is None else f" z {threshold:g}".replace("-", "−")
        fill(
            self.above,
            [("any z", None), (f"above{above}", True), (f"not above{above}", False)],
            choice.above,
        )
        self.above.setEnabled(threshold is not None)
        fill(self.tag, [("any tag", ""), *((tag, tag) for tag in tags)], choice.tag)
        self.tag.setEnabled(bool(tags))

    def _change(self, **what: Any) -> None:
        self.chosen.emit(replace(self._choice, **what))


def _order_help(order: str, possible: bool) -> str:
    help = HELP.get(order, "")
    return help if possible else f"Not available for the current scores. {help}".strip()


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


class AgreementPanel(QWidget):
    """A button to hide and reveal the scores, and tables of agreement."""

    blind = Signal(bool)
    compared = Signal(str)
    """Path of another curator's journal."""

    def __init__(self) -> None:
        super().__init__()
        self.hide_scores = QPushButton()
        self.hide_scores.setCheckable(True)
        self.sentence = PlainLabel()
        self.table = QLabel()
        self.table.setTextFormat(Qt.TextFormat.RichText)
        self.compare = QPushButton("Compare with another curator …")
        self.compare.setToolTip(
            "Open the journal (.jsonl) of someone else who judged the same cells."
        )
        self.other = Notice()
        self.other_table = QLabel()
        self.other_table.setTextFormat(Qt.TextFormat.RichText)
        self.sentence.setWordWrap(True)
        for label in (self.sentence, self.table, self.other_table):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        buttons = in_row(self.hide_scores, self.compare)
        in_column(buttons, self.sentence, self.table, self.other, self.other_table, of=self)
        self.hide_scores.clicked.connect(lambda on=False: self.blind.emit(on))
        self.compare.clicked.connect(lambda _=False: self._ask())
        self.show_model(None, blind=False, decided=0)
        self.other_table.hide()

    def show_curation(self, curation: Curation, painted: ScoreMap | None, shown: Shown) -> None:
        """Show how far decisions by hand agree with a map, if there is one to compare with."""
        by_hand = int((curation.by_hand & (curation.status != UNDECIDED)).sum())
        found = None
        if painted is not None and not shown.blind and by_hand:
            selected = np.where(painted.known, painted.above(shown.threshold), np.nan)
            found = with_model(curation, selected, shown.factor)
        self.show_model(found, blind=shown.blind, decided=by_hand)

    def show_model(self, agreement: Agreement | None, *, blind: bool, decided: int) -> None:
        """Show how well curator and model agree, unless scores are hidden."""
        self.hide_scores.setChecked(blind)
        self.hide_scores.setText("Reveal scores" if blind else "Judge blind")
        self.hide_scores.setToolTip(
            "Show the scores again, and how well your decisions agree with them."
            if blind
            else (
                "Hide all scores in the image, tables and plots while you decide; cells are then "
                "shown at random or by position."
            )
        )
        if blind:
            said = f"Scores are hidden. {counted(decided, 'cell')} decided by hand."
        else:
            said = (
                agreement.sentence
                if agreement
                else "Decide on some cells to see how well you agree with the model."
            )
        self.sentence.setText(said)
        shown = agreement is not None and agreement.n_cells > 0 and not blind
        self.table.setVisible(shown)
        self.table.setText(_as_html(agreement) if agreement is not None else "")

    def compare_with(self, path: str, curation: Curation) -> None:
        """Show how well the journal of another curator agrees with these decisions."""
        try:
            with read_curation(path) as other:
                found = between(curation, other)
        except InputError as error:
            self.other.say(str(error), "problem")
            self.other_table.hide()
            return
        self.other.say(found.sentence, "plain")
        self.other_table.setText(_as_html(found))
        self.other_table.setVisible(found.n_cells > 0)

    def forget_recording(self) -> None:
        """Forget the other curator, who judged another recording."""
        self.other.clear()
        self.other_table.hide()

    def _ask(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, "Decisions of another curator", "", "Journals (*.jsonl)"
        )
        if path:
            self.compared.emit(path)


def _as_html(agreement: Agreement) -> str:
    """Confusion table."""
    first, second = map(escape, agreement.names)
    table = agreement.table
    heads = "".join(f"<td align='right'>{name}</td>" for name in table.columns)
    rows = "".join(
        f"<tr><td>{in_markup(first)}: {index}</td>"
        + "".join(f"<td align='right'><b>{int(count)}</b></td>" for count in counts)
        + "</tr>"
        for index, counts in zip(table.index, table.to_numpy(), strict=True)
    )
    return (
        "<table cellspacing='0' cellpadding='3'>"
        f"<tr><td></td><td colspan='2'>{in_markup(second)}</td></tr>"
        f"<tr><td></td>{heads}</tr>{rows}</table>"
    )
