"""Hides scores for blind judging, and shows how well two judges agree."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFileDialog, QLabel, QPushButton, QWidget

from napari_xcebra.curation import (
    UNDECIDED,
    Agreement,
    Curation,
    between,
    read_curation,
    with_model,
)
from napari_xcebra.errors import InputError
from napari_xcebra.text import counted
from napari_xcebra.widgets.controls.boxes import PlainLabel, in_markup
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import Notice

if TYPE_CHECKING:
    from napari_xcebra.attribution.score_map import ScoreMap
    from napari_xcebra.widgets.state.shown import Shown


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
        self.table.setText(as_html(agreement) if agreement is not None else "")

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
        self.other_table.setText(as_html(found))
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


def as_html(agreement: Agreement) -> str:
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
