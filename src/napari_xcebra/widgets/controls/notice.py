"""Tells the user how things stand: a notice, a verdict for each factor, the progress of work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from qtpy.QtCore import QSize, Qt, Signal
from qtpy.QtWidgets import (
    QApplication,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from superqt import QElidingLabel

from napari_xcebra.learn.quality.verdict import NOTHING, Goodness, decoded_of
from napari_xcebra.support.diagnostics import diagnostics
from napari_xcebra.text import about, left
from napari_xcebra.widgets.controls.boxes import PlainLabel, plain
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.controls.layouts import (
    TWO_LINES,
    Part,
    fill_layout,
    in_column,
    in_row,
    keep_room,
)
from napari_xcebra.widgets.controls.napari_window import follow

if TYPE_CHECKING:
    from napari_xcebra.jobs import Advanced
    from napari_xcebra.learn.settings import FitSettings


def copy_diagnostics(error: str = "", settings: FitSettings | None = None) -> str:
    """Copy diagnostics to the clipboard, and return them."""
    told = diagnostics(settings, error)
    clipboard = QApplication.clipboard()
    if clipboard is not None:
        clipboard.setText(told)
    return told


Tone = Literal["plain", "good", "warning", "problem"]

# readable on napari's dark and light background alike
EDGES: dict[Tone, str] = {
    "plain": "#808080",
    "good": "#009E73",
    "warning": "#E69F00",
    "problem": "#D55E00",
}


VERDICT_HELP = (
    "Above chance: how much better pairs of moments with similar values are recognised on "
    "held-out stretches than with labels shifted in time (nats: natural logarithm; 0 is "
    "chance). What is possible: the same measure if the variable itself were the input. R², or "
    "accuracy of a discrete variable: how well it is decoded on held-out stretches; 1 is "
    "perfect. Ridge regression: how well the simplest decoder does from the cells themselves. "
    "p: how likely a variable unrelated to the cells would do as well. λ: how strongly the "
    "model was kept simple."
)
"""What the numbers in a verdict mean."""


class Notice(QFrame):
    """Hidden until something is said, which is forgotten when another recording is in front.

    With `lasting`, it speaks of something else than the recording in front, and stays.
    """

    def __init__(self, *, lasting: bool = False) -> None:
        super().__init__()
        self._lasting = lasting
        self.setObjectName("notice")
        self._text = PlainLabel(wrap=True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._more = QPushButton("Details")
        self._more.setToolTip("Show the full error message, to copy into a report.")
        self._more.setCheckable(True)
        self._copy = QPushButton("Copy diagnostics")
        self._copy.setToolTip(
            "Copy versions, device, settings and this error for a report. It contains no data "
            "and no folders of this computer."
        )
        self._copy.clicked.connect(lambda _=False: self.copy_diagnostics())
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setMaximumHeight(160)
        self._details.setToolTip("The full error message, which you can select and copy.")
        self._more.toggled.connect(self._details.setVisible)
        top = QHBoxLayout()
        top.addWidget(self._text, 1)
        top.addWidget(self._more, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.addLayout(top)
        layout.addWidget(self._details)
        layout.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignLeft)
        self.clear()

    def say(self, sentence: str, tone: Tone = "plain", details: str = "", help: str = "") -> None:
        """Show a sentence; `details` open on a click, `help` is its tooltip."""
        self._text.setText(in_dock(sentence))
        self._text.setToolTip(plain(help))
        self._details.setPlainText(details)
        self._more.setChecked(False)
        self._copy.setText("Copy diagnostics")
        self._more.setVisible(bool(details))
        self._copy.setVisible(bool(details))
        self._details.hide()
        style = f"#notice {{ border-left: 3px solid {EDGES[tone]}; }}"
        if style != self.styleSheet():  # which takes Qt milliseconds
            self.setStyleSheet(style)
        self.setVisible(bool(sentence))

    def clear(self) -> None:
        """Show nothing."""
        self.say("")

    def forget_recording(self) -> None:
        """Show nothing that was said of another recording."""
        if not self._lasting:
            self.clear()

    def copy_diagnostics(self) -> None:
        """Copy what a report of this error needs."""
        copy_diagnostics(f"{self.text}\n{self._details.toPlainText()}")
        self._copy.setText("Copied")

    @property
    def text(self) -> str:
        """The sentence shown."""
        return self._text.text()


class NextStep(QWidget):
    """A sentence and a button; hidden if there is nothing to say, but it keeps its place."""

    asked = Signal(str)
    """Name of the dock to open."""

    def __init__(self) -> None:
        super().__init__()
        self._dock = ""
        self.sentence = PlainLabel(wrap=True)
        self.button = QPushButton()
        row = QHBoxLayout(self)
        row.setContentsMargins(9, 4, 9, 4)
        row.addWidget(self.sentence, 1)
        row.addWidget(self.button)
        self.button.clicked.connect(lambda _=False: self.asked.emit(self._dock))
        # what is above must not move when something is said
        keep_room(self)
        self.sentence.setMinimumHeight(TWO_LINES)

    def say(self, sentence: str, dock: str = "") -> None:
        """Say what to do, and in which dock; without one there is no button."""
        self._dock = dock
        self.sentence.setText(sentence)
        self.button.setText(f"{dock} ▸")
        self.button.setToolTip(f"Open the {dock} dock.")
        self.button.setVisible(bool(dock))
        self.setVisible(bool(sentence))


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
        self.rows: dict[str, _VerdictRow] = {}
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
        self.rows = {one.factor: _VerdictRow(one) for one in goodness}
        for name, row in self.rows.items():
            self._column.addWidget(row)
            row.head.setChecked(name in open_ones)
            row.head.toggled.connect(lambda on, name=name: on and self.unfolded.emit(name))
        for label in ("word", "measure"):  # which stand below each other
            labels = [getattr(row.head, label) for row in self.rows.values()]
            width = max((each.sizeHint().width() for each in labels), default=0)
            for each in labels:
                each.setMinimumWidth(width)


class _VerdictRow(QWidget):
    """The verdict on a factor: a line to click, and the sentences below it."""

    def __init__(self, goodness: Goodness) -> None:
        super().__init__()
        self.head = _Head(goodness)
        measured = goodness.measured if goodness.measured not in goodness.verdict else ""
        said = "\n".join(filter(None, [goodness.verdict, measured and f"({measured})"]))
        self.sentences = PlainLabel(said, wrap=True)
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


class WorkBar(QProgressBar):
    """Progress with the time left."""

    def __init__(self, tooltip: str) -> None:
        super().__init__()
        self.setToolTip(tooltip)

    def show_progress(self, at: Advanced | None, *, counts: bool = False) -> None:
        """Show a percentage, or counts of frames or steps; animated while `at` is None."""
        done = f"{at.unit} {at.done} of {at.total}" if at and counts else "%p %"
        self._show(at, 0, ", ".join(filter(None, [done, time_left(at)])))

    def show_words(self, at: Advanced | None, *words: str) -> None:
        """Show words in place of a percentage; Qt would put none on an animated bar."""
        self._show(at, 1, " · ".join(filter(None, words)))

    def _show(self, at: Advanced | None, total: int, text: str) -> None:
        self.setRange(0, at.total if at else total)
        self.setValue(at.done if at else 0)
        self.setFormat(text)


def time_left(at: Advanced | None) -> str:
    """Such as "2 min left"; empty if unknown."""
    return "" if at is None or math.isnan(at.seconds_left) else f"{left(at.seconds_left)} left"


def takes(seconds: float, *, ready: bool = True) -> str:
    """How long something takes, to append to a button's text; empty if unknown.

    Until it is `ready`, the background process takes some seconds to start.

    >>> takes(2.3), takes(2.3, ready=False), takes(float("nan"))
    (' (about 5 s)', ' (after start-up, about 5 s)', '')
    """
    words = [] if ready else ["after start-up"]
    words += [] if math.isnan(seconds) else [about(seconds)]
    return f" ({', '.join(words)})" if words else ""


class ResultWindow(QDialog):
    """A window that follows the state, and says what went wrong.

    Parameters
    ----------
    title : str
    size : (int, int)
        Pixels.
    parent : QWidget
    lasting : bool
        Whether its notice stays until the next one.
    """

    def __init__(
        self, title: str, size: tuple[int, int], parent: QWidget, *, lasting: bool = False
    ) -> None:
        super().__init__(parent)
        self.notice = Notice(lasting=lasting)
        self.setWindowTitle(title)
        self.resize(*size)

    def lay_out(self, *parts: Part) -> None:
        """Put its parts below each other."""
        layout = QVBoxLayout(self)
        margins = layout.contentsMargins()
        fill_layout(layout, parts)
        layout.setContentsMargins(margins)

    def follow(self, *pairs: tuple[Any, Callable[..., object]]) -> None:
        """Call methods at each emission of their signals, for as long as it exists."""
        for signal, method in pairs:
            follow(self, signal, method)

    def refresh(self) -> None:
        """Show what changed while it was closed."""

    def showEvent(self, event: Any) -> None:
        """Bring it up to date."""
        super().showEvent(event)
        self.refresh()

    def say_problem(self, sentence: str, details: str = "") -> None:
        """Say what went wrong."""
        self.notice.say(sentence, "problem", details)
