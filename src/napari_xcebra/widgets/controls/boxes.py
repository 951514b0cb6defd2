"""Labels, buttons, lists of choices and number fields that fit into narrow rows.

Texts are shown as they are: names come from files, and Qt guesses whether a text is markup. One
such as `<img src="file://server/x">` as the name of a variable would have it open that file, over
the network too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from qtpy.QtCore import QLocale, QPoint, Qt
from qtpy.QtGui import QPaintEvent, QValidator
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolTip,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.errors import InputError
from napari_xcebra.text import parse_number


class PlainLabel(QLabel):
    """A label that takes nothing for markup, and wraps if `wrap`."""

    def __init__(self, text: str = "", *, wrap: bool = False) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        self.setText(text)


def plain(text: str) -> str:
    """Text for a tooltip or a message, for which Qt can only be told in markup that it is none."""
    if not Qt.mightBeRichText(text):
        return text
    return f"<span>{in_markup(text)}</span>"


def in_markup(text: str) -> str:
    """Text for a place that takes markup, such as the axis of a plot."""
    return escape(text, quote=False).replace("\n", "<br>")


LARGE = 1e12
WIDTH = 56
"""In pixels; room for seven digits."""
PRIMARY = (
    "QPushButton { background-color: #1F6FB2; color: white; font-weight: bold; padding: 6px 14px; }"
    "QPushButton:hover { background-color: #2A80C7; } QPushButton:pressed { background: #185A92; }"
    "QPushButton:disabled { background-color: rgba(128, 128, 128, 50); color: #909090; }"
)
"""The one thing to do in a dock; in the same colours on napari's dark and light background."""
SMALL = "QPushButton { padding: 2px 7px; } QPushButton::menu-indicator { width: 0; }"


class WindowButton(QPushButton):
    """Opens a window of its own, which is made when it is first opened.

    `make` is called with the widget that the window closes with.
    """

    def __init__(self, title: str, help: str, make: Callable[[QWidget], QDialog]) -> None:
        super().__init__(title)
        self.setToolTip(help)
        self._make = make
        self.opened: Any = None
        self.clicked.connect(lambda _=False: self.open())

    def open(self) -> Any:
        """Open the window, or bring it to the front; returns it."""
        if self.opened is None:
            self.opened = self._make(self)
        self.opened.show()
        self.opened.raise_()
        return self.opened


def primary_button(text: str) -> QPushButton:
    """Button of the one thing to do in a dock."""
    button = QPushButton(text)
    button.setStyleSheet(PRIMARY)
    return button


def small_button(text: str, help: str, menu: QMenu | None = None) -> QPushButton:
    """Button for a row of controls, as wide as its text."""
    button = QPushButton(f"{text} ▾" if menu else text)
    button.setToolTip(help)
    button.setStyleSheet(SMALL)
    button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    if menu is not None:
        button.setMenu(menu)
    return button


def menu_of(parent: QWidget, entries: Iterable[tuple[str, str, Callable[[], object]]]) -> QMenu:
    """Menu of entries, each with its title, its help and what it calls."""
    menu = QMenu(parent)
    menu.setToolTipsVisible(True)
    for title, help, called in entries:
        action = menu.addAction(title)
        action.setToolTip(help)
        action.triggered.connect(lambda _=False, call=called: call())
    return menu


class _ChoiceBox(QComboBox):
    """Puts dots where its text has no room."""

    dots = Qt.TextElideMode.ElideRight

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw the box, then as much of its text as fits."""
        painter, option, kind = QStylePainter(self), QStyleOptionComboBox(), QStyle.ComplexControl
        self.initStyleOption(option)
        painter.drawComplexControl(kind.CC_ComboBox, option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(kind.CC_ComboBox, option, field, self).width()
        option.currentText = self.fontMetrics().elidedText(option.currentText, self.dots, room - 2)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()


def small_box(help: str) -> _ChoiceBox:
    """Combobox for a row of controls, which may become narrower than its entries."""
    box = _ChoiceBox()
    box.setToolTip(help)
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setMinimumContentsLength(3)
    # the list shows entries in full all the same
    box.view().setTextElideMode(Qt.TextElideMode.ElideNone)
    return box


def choice_box(tooltip: str) -> QComboBox:
    """Box whose width does not depend on what is in it."""
    box = _ChoiceBox()
    box.setToolTip(tooltip)
    # a long verdict must not widen the dock
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(12)
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return box


def fill(box: QComboBox, choices: list[tuple[str, Any]], chosen: Any) -> None:
    """Put (text, value) pairs into a box and mark one value, without saying that it changed."""
    box.blockSignals(True)
    if [(box.itemText(i), box.itemData(i)) for i in range(box.count())] != choices:
        box.clear()
        for text, value in choices:
            box.addItem(text, value)
            box.setItemData(box.count() - 1, plain(text.strip()), Qt.ItemDataRole.ToolTipRole)
    values = [value for _, value in choices]
    box.setCurrentIndex(values.index(chosen) if chosen in values else -1)
    box.blockSignals(False)


class _TypedNumber:
    """Reads what is typed into a spin box as `parse_number` does.

    Qt's own boxes take a comma for a mark between thousands and drop it: 7,5 becomes 75.
    """

    def __init__(self) -> None:
        super().__init__()
        box: Any = self
        box.setLocale(QLocale.c())  # shows a point everywhere
        self._keep()
        box.editingFinished.connect(self._keep)

    def _keep(self) -> None:
        """Remember the number that is there before another is typed."""
        box: Any = self
        self._before = box.value()

    def setValue(self, value: Any) -> None:
        """Show a number."""
        super().setValue(value)  # type: ignore[misc]
        self._keep()

    def stepBy(self, steps: int) -> None:
        """Go up or down."""
        super().stepBy(steps)  # type: ignore[misc]
        self._keep()

    def _number(self, text: str) -> float:
        box: Any = self
        bare = text.removeprefix(box.prefix()).removesuffix(box.suffix()).strip()
        if box.specialValueText() and bare in ("", box.specialValueText()):
            return float(box.minimum())
        number = parse_number(bare)
        if isinstance(self, QSpinBox) and not number.is_integer():
            raise InputError(f"{bare!r} is not a whole number.")
        if not box.minimum() <= number <= box.maximum():
            raise InputError(f"{bare}: {box.minimum():g} to {box.maximum():g} is needed.")
        return number

    def validate(self, text: str | None, place: int) -> tuple[QValidator.State, str, int]:
        """Whether it is a number, or may become one."""
        try:
            self._number(text or "")
        except InputError:
            return QValidator.State.Intermediate, text or "", place
        return QValidator.State.Acceptable, text or "", place

    def fixup(self, text: str | None) -> str:
        """Go back to the number before, and say what is wrong with the one typed."""
        try:
            self._number(text or "")
        except InputError as error:
            box: Any = self
            QToolTip.showText(box.mapToGlobal(QPoint(0, box.height())), plain(str(error)), box)
            number: str = box.textFromValue(max(self._before, box.minimum()))
            return number
        return text or ""


class DecimalBox(_TypedNumber, QDoubleSpinBox):
    """Number field that takes a decimal comma as well as a point."""

    def valueFromText(self, text: str | None) -> float:
        """The number typed."""
        return self._number(text or "")


class WholeBox(_TypedNumber, QSpinBox):
    """Field of whole numbers, which refuses a fraction instead of dropping its comma."""

    def valueFromText(self, text: str | None) -> int:
        """The number typed."""
        return int(self._number(text or ""))


class NumberBox(DecimalBox):
    """Adapts its decimals and steps to the size of the numbers."""

    def __init__(self, tooltip: str) -> None:
        super().__init__()
        self.setToolTip(tooltip)
        self.setRange(-LARGE, LARGE)
        # a half-typed number must not take effect
        self.setKeyboardTracking(False)
        slim(self, WIDTH)

    def suit(self, low: float, high: float) -> None:
        """Adapt to numbers between two limits, without a change signal."""
        step = _step_for(low, high)
        with signals_blocked(self):  # fewer decimals would round the current number
            self.setDecimals(max(0, -math.floor(math.log10(step) + 1e-9)) + 1)
        self.setSingleStep(step)

    def show_number(self, number: float) -> None:
        """Show a number without a change signal."""
        with signals_blocked(self):
            self.setValue(number)


def slim(box: QAbstractSpinBox, width: int) -> None:
    """Leave out the buttons, which are wider than the number; arrow keys still step.

    The width in pixels is given: Qt would make room for the largest number, napari for buttons.
    """
    box.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
    box.setAlignment(Qt.AlignmentFlag.AlignRight)
    box.setStyleSheet(f"min-width: {width}px; max-width: {width}px; padding: 1px 3px;")


def _step_for(low: float, high: float) -> float:
    """A round hundredth or so of an interval.

    >>> _step_for(0, 1), _step_for(0.002, 0.0047)
    (0.01, 1e-05)
    """
    width = abs(high - low) or abs(high) or 1.0
    return float(f"1e{math.floor(math.log10(width)) - 2}")
