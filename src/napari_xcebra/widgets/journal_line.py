"""Who decides, and where decisions are kept: offers to go on with earlier ones."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from napari_xcebra.widgets.curations import Curations
from napari_xcebra.widgets.notice import Notice
from napari_xcebra.widgets.panel import small_button
from napari_xcebra.widgets.recalling import earlier_table, take_over
from napari_xcebra.widgets.shown_choice import choice_box, fill


class JournalLine(QWidget):
    """The curator's name, and a choice where there are earlier decisions or another window."""

    named = Signal(str)

    def __init__(self, curations: Curations) -> None:
        super().__init__()
        self._curations = curations
        self.name = QLineEdit(curations.curator)
        self.name.setToolTip("Your name: each decision is kept with it.")
        self.place = QLabel()
        self.offer = Notice()
        self.journals: QComboBox = choice_box("Decisions on this recording that are kept.")
        self.go_on = small_button("Continue", "Go on with these decisions.")
        self.anew = small_button(
            "Start a new one", "Begin without any decision; what was decided before stays kept."
        )
        self.look = small_button("Look only", "See the decisions of the other window as they are.")
        self.own = small_button(
            "Keep my own", "Decide here as well; kept in a second file, under your name."
        )
        self.recall = small_button(
            "Put them onto these cells",
            "Cells of both extractions are known again by their place; what you decide by hand "
            "comes first.",
        )
        self._lay_out()
        self.recall.clicked.connect(lambda _=False: self._recall())
        self.name.editingFinished.connect(lambda: self.named.emit(self.name.text()))
        self.name.returnPressed.connect(self.name.clearFocus)
        self.go_on.clicked.connect(lambda _=False: curations.go_on(self.journals.currentData()))
        self.anew.clicked.connect(lambda _=False: curations.begin_anew())
        self.look.clicked.connect(lambda _=False: curations.look())
        self.own.clicked.connect(lambda _=False: curations.keep_own())

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.addWidget(QLabel("Curator"))
        top.addWidget(self.name, 1)
        top.addWidget(self.place)
        buttons = QHBoxLayout()
        for button in (self.go_on, self.anew, self.look, self.own, self.recall):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(top)
        layout.addWidget(self.offer)
        layout.addWidget(self.journals)
        layout.addLayout(buttons)

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
            self.offer.say(f"Decisions of an earlier extraction are in {table.name}.")
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
            self.place.setText("only looking")
            self.place.setToolTip(f"{journal.path} is being written in another window.")
        else:
            self.place.setText("✓ kept")
            self.place.setToolTip(f"Each decision is on disk at once, in {journal.path}.")
