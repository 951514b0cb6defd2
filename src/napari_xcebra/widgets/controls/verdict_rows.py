"""Shows how well each factor is found in the cells: a coloured row a factor."""

from __future__ import annotations

from collections.abc import Iterable

from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtWidgets import QLabel, QPushButton, QSizePolicy, QWidget
from superqt import QElidingLabel

from napari_xcebra.learn.quality.verdict import NOTHING, Goodness, decoded_of
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.notice import EDGES, VERDICT_HELP
from napari_xcebra.widgets.controls.plain_text import PlainLabel, plain

MARKS = {
    "clear": ("●", EDGES["good"], "clearly"),
    "weak": ("◐", EDGES["good"], "weakly"),
    "at chance": ("○", EDGES["warning"], "at chance"),
    "not tested": ("◌", EDGES["plain"], "not tested"),
}
"""Mark, its colour and a word for each `Goodness.strength`; marks also differ without colour."""


class VerdictRows(QWidget):
    """A row a factor, which unfolds into sentences on a click; hidden while there is none."""

    unfolded = Signal(str)
    """Name of a factor whose sentences were unfolded."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[Goodness, ...] = ()
        self.rows: dict[str, VerdictRow] = {}
        self._column = in_column(of=self, spacing=1)
        self.hide()

    def show_verdicts(self, goodness: Iterable[Goodness]) -> None:
        """Show these and no others; rows that stay as they are stay unfolded."""
        goodness = tuple(goodness)
        if repr(goodness) != repr(self._shown):  # NaN is not equal to itself
            self._shown = goodness
            self._fill(goodness)
        self.setVisible(bool(goodness))

    def clear(self) -> None:
        """Show nothing."""
        self.show_verdicts(())

    @property
    def text(self) -> str:
        """The sentences, a line each factor, shown or not."""
        return "\n".join(one.verdict for one in self._shown)

    def _fill(self, goodness: tuple[Goodness, ...]) -> None:
        open_ones = {name for name, row in self.rows.items() if row.head.isChecked()}
        for row in self.rows.values():
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = {one.factor: VerdictRow(one) for one in goodness}
        for name, row in self.rows.items():
            self._column.addWidget(row)
            row.head.setChecked(name in open_ones)
            row.head.toggled.connect(lambda on, name=name: on and self.unfolded.emit(name))
        for label in ("word", "measure"):  # which stand below each other
            labels = [getattr(row.head, label) for row in self.rows.values()]
            width = max((each.sizeHint().width() for each in labels), default=0)
            for each in labels:
                each.setMinimumWidth(width)


class VerdictRow(QWidget):
    """The verdict on a factor: a line to click, and the sentences below it."""

    def __init__(self, goodness: Goodness) -> None:
        super().__init__()
        self.head = _Head(goodness)
        self.sentences = PlainLabel(goodness.verdict, wrap=True)
        self.sentences.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.sentences.setToolTip(VERDICT_HELP)
        self.sentences.setContentsMargins(24, 0, 4, 4)
        self.sentences.hide()
        self.head.toggled.connect(self.sentences.setVisible)
        in_column(self.head, self.sentences, of=self, spacing=0)


class _Head(QPushButton):
    """Mark, factor, a word, and how well it is decoded."""

    def __init__(self, goodness: Goodness) -> None:
        super().__init__()
        mark, color, word = MARKS[goodness.strength]
        own, ridge = decoded_of(goodness)
        self.mark = QLabel(mark)
        self.mark.setStyleSheet(f"color: {color}; font-size: 15px; padding: 0;")
        self.mark.setFixedWidth(18)
        self.factor = QElidingLabel()
        self.factor.setTextFormat(Qt.TextFormat.PlainText)
        self.factor.setText(goodness.factor)
        # a long name is cut off rather than making the dock wide
        self.factor.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.factor.setMinimumWidth(50)
        self.word = QLabel(word)
        self.word.setStyleSheet(f"color: {color}; font-weight: bold;")
        known = [own if own != NOTHING else "", f"ridge {ridge}" if ridge != NOTHING else ""]
        self.measure = QLabel(" · ".join(filter(None, known)))
        self.measure.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        labels = (self.mark, (self.factor, 1), self.word, self.measure)
        self._row = in_row(*labels, of=self, spacing=8)
        self._row.setContentsMargins(6, 2, 6, 2)
        for label in (self.mark, self.factor, self.word, self.measure):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setCheckable(True)
        self.setFlat(True)
        self.setObjectName("verdict")
        self.setStyleSheet(
            f"#verdict {{ border: none; border-left: 3px solid {color}; padding: 0; }}"
            "#verdict:checked { background-color: rgba(128, 128, 128, 60); }"
        )
        self.setToolTip(plain(goodness.verdict))
        self.setAccessibleName(f"{goodness.factor}: {word}, {self.measure.text()}")

    def sizeHint(self) -> QSize:
        """As its labels need; a button without text would be smaller."""
        return self._row.sizeHint()

    def minimumSizeHint(self) -> QSize:
        """As narrow as its labels may become."""
        return self._row.minimumSize()
