"""Blind judging, and how far curator and model, or two curators, agree."""

from __future__ import annotations

from html import escape

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.curation import Agreement, Curation, between, read_curation
from napari_xcebra.errors import InputError
from napari_xcebra.widgets.notice import Notice


class AgreementPanel(QWidget):
    """A button to hide and reveal the scores, and tables of agreement."""

    blind = Signal(bool)
    compared = Signal(str)
    """Path of another curator's journal."""

    def __init__(self) -> None:
        super().__init__()
        self.hide_scores = QPushButton()
        self.hide_scores.setCheckable(True)
        self.sentence = QLabel()
        self.table = QLabel()
        self.table.setTextFormat(Qt.TextFormat.RichText)
        self.compare = QPushButton("Compare with another curator …")
        self.compare.setToolTip(
            "Open the journal (.jsonl) of somebody else who judged the same cells."
        )
        self.other = Notice()
        self.other_table = QLabel()
        self.other_table.setTextFormat(Qt.TextFormat.RichText)
        self.sentence.setWordWrap(True)
        for label in (self.sentence, self.table, self.other_table):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row = QHBoxLayout()
        row.addWidget(self.hide_scores)
        row.addWidget(self.compare)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(row)
        for part in (self.sentence, self.table, self.other, self.other_table):
            layout.addWidget(part)
        self.hide_scores.clicked.connect(lambda on=False: self.blind.emit(on))
        self.compare.clicked.connect(lambda _=False: self._ask())
        self.show_model(None, blind=False, decided=0)
        self.other_table.hide()

    def show_model(self, agreement: Agreement | None, *, blind: bool, decided: int) -> None:
        """Show how far curator and model agree, unless scores are hidden."""
        self.hide_scores.setChecked(blind)
        self.hide_scores.setText("Reveal scores" if blind else "Judge blind")
        self.hide_scores.setToolTip(
            "Show scores again, and how far your decisions agree with them."
            if blind
            else "Hide all scores while you decide, in the image, tables and plots; cells then "
            "come up at random or by position."
        )
        if blind:
            said = f"Scores are hidden. {decided} cells decided by hand so far."
        else:
            said = agreement.sentence if agreement else "Decide on cells to see how far you agree."
        self.sentence.setText(said)
        shown = agreement is not None and agreement.n_cells > 0 and not blind
        self.table.setVisible(shown)
        self.table.setText(as_html(agreement) if agreement is not None else "")

    def compare_with(self, path: str, curation: Curation) -> None:
        """Show how far the journal of another curator agrees with these decisions."""
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

    def forget_other(self) -> None:
        """Show no other curator: the recording is another."""
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
    heads = "".join(f"<td align='right'>{column}</td>" for column in table.columns)
    rows = "".join(
        f"<tr><td>{first}: {index}</td>"
        + "".join(f"<td align='right'><b>{int(count)}</b></td>" for count in row)
        + "</tr>"
        for index, row in zip(table.index, table.to_numpy(), strict=True)
    )
    return (
        f"<table cellspacing='0' cellpadding='3'><tr><td></td><td colspan='2'>{second}</td></tr>"
        f"<tr><td></td>{heads}</tr>{rows}</table>"
    )
