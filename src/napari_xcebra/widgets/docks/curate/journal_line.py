"""Asks who decides, and offers to continue earlier decisions."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QLabel, QLineEdit, QWidget

from napari_xcebra.widgets.controls.boxes import PlainLabel, choice_box, fill, small_button
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import Notice
from napari_xcebra.widgets.state.curations import Curations
from napari_xcebra.widgets.state.deciding import earlier_table, take_over


class JournalLine(QWidget):
    """A choice where there are earlier decisions or another window.

    The line with the curator's name, and that which says that all is saved, stand elsewhere.
    """

    named = Signal(str)

    def __init__(self, curations: Curations) -> None:
        super().__init__()
        self._curations = curations
        self.name = QLineEdit(curations.curator)
        self.name.setToolTip("Your name, saved with each decision.")
        self.place = PlainLabel()
        self.offer = Notice()
        self.journals: QComboBox = choice_box("Earlier decisions on this recording.")
        self.go_on = small_button("Continue", "Continue from these decisions.")
        self.anew = small_button(
            "Start over", "Start without any decisions; earlier ones stay on disk."
        )
        self.look = small_button(
            "View only", "See the decisions of the other window without changing them."
        )
        self.own = small_button(
            "Keep my own", "Decide here as well; saved in a second file under your name."
        )
        self.recall = small_button(
            "Apply to these cells",
            "Cells of the two extractions are matched by position; your decisions by hand take "
            "precedence.",
        )
        self._lay_out()
        for choice in (self.journals, self.go_on, self.anew, self.look, self.own, self.recall):
            choice.hide()  # all of them side by side would make the dock wide
        self.recall.clicked.connect(lambda _=False: self._recall())
        self.name.editingFinished.connect(lambda: self.named.emit(self.name.text()))
        self.name.returnPressed.connect(self.name.clearFocus)
        self.go_on.clicked.connect(lambda _=False: curations.go_on(self.journals.currentData()))
        self.anew.clicked.connect(lambda _=False: curations.begin_anew())
        self.look.clicked.connect(lambda _=False: curations.look())
        self.own.clicked.connect(lambda _=False: curations.keep_own())

    def _lay_out(self) -> None:
        self.curator = QWidget()
        in_row(QLabel("Curator"), (self.name, 1), of=self.curator)
        buttons = in_row(self.go_on, self.anew, self.look, self.own, self.recall, 1)
        in_column(self.offer, self.journals, buttons, of=self, spacing=4)

    def show_state(self) -> None:
        """Show where decisions are kept, or what there is to choose."""
        curations = self._curations
        offers, in_use = curations.offers, curations.in_use
        table = earlier_table(curations)
        if not self.name.hasFocus():
            self.name.setText(curations.curator)
        self._show_place()
        if in_use:
            self.offer.say(in_use, "warning")
        elif len(offers) == 1:
            self.offer.say(f"Decided earlier: {offers[0].sentence}.", "plain")
        elif offers:
            self.offer.say(f"This recording was curated {len(offers)} times:", "plain")
        elif table is not None:
            self.offer.say(f"{table.name} has decisions from an earlier extraction.")
        else:
            self.offer.clear()
        self.recall.setVisible(not in_use and table is not None)
        fill(
            self.journals,
            [(f"{summary.path.name}: {summary.sentence}", summary.path) for summary in offers],
            offers[0].path if offers else None,
        )
        self.journals.setVisible(len(offers) > 1 and not in_use)
        for button in (self.go_on, self.anew):
            button.setVisible(bool(offers) and not in_use)
        for button in (self.look, self.own):
            button.setVisible(bool(in_use))

    def _recall(self) -> None:
        table = earlier_table(self._curations)
        if table is not None:
            take_over(self._curations, table)

    def _show_place(self) -> None:
        curation = self._curations.current
        journal = curation.journal if curation else None
        if journal is None:
            self.place.clear()
        elif journal.read_only:
            self.place.setText("view only")
            self.place.setToolTip(f"{journal.path} is being written in another window.")
        else:
            self.place.setText("✓ saved")
            self.place.setToolTip(f"Each decision is saved at once to {journal.path}.")
