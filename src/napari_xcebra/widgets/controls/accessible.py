"""Names controls for screen readers, marks the one that the keyboard is on, and wraps tooltips."""

from __future__ import annotations

import textwrap
from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, QRect, Qt
from qtpy.QtGui import QHelpEvent
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QDockWidget,
    QFocusFrame,
    QGraphicsView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QToolTip,
    QWidget,
)

from napari_xcebra.widgets.controls.napari_window import when_docked

CHARACTERS = 60
"""In a line of a tooltip."""
FOCUS = "#3C8FD0"
"""Visible on napari's dark and light background alike."""
CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QGraphicsView,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
)
BY_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)
PACKAGE = __name__.partition(".")[0]
_ATTENDED, _NAMED = "xcebra_attended", "xcebra_named"


def attend_to_docks(window: QWidget) -> None:
    """Make all docks of this plugin accessible that are put into a main window from now on."""
    when_docked(window, _attend_to)


def _attend_to(dock: QDockWidget) -> None:
    inside = dock.widget()
    if inside is not None and type(inside).__module__.startswith(PACKAGE):
        _make_accessible(inside)


def _make_accessible(root: QWidget) -> None:
    """Give every control in a widget a name, short lines in its tooltip, and a frame on its turn.

    Also those that are made later.
    """
    if not root.property(_ATTENDED):
        _Attendant(root)


def _is_control(widget: QWidget) -> bool:
    """Whether the user can act on a widget, or read a value off it; parts of one are not."""
    if not isinstance(widget, CONTROLS) or isinstance(widget, QScrollBar | QHeaderView):
        return False
    if widget.objectName().startswith("qt_") or widget.inherits("QTableCornerButton"):
        return False
    parent = widget.parentWidget()
    while parent is not None and not parent.isWindow():
        if isinstance(parent, QComboBox | QAbstractSpinBox | QLineEdit):
            return False
        parent = parent.parentWidget()
    # lists that open from a box, and menus of plots, are windows of their own
    return parent is None or parent.windowType() != Qt.WindowType.Popup


def _wrapped(text: str, characters: int = CHARACTERS) -> str:
    r"""Text in lines that are not longer; markup is left to Qt, which wraps it.

    >>> _wrapped("Cells that are left out.", 12)
    'Cells that\nare left\nout.'
    """
    if Qt.mightBeRichText(text):
        return text
    lines = (textwrap.wrap(line, characters, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join("\n".join(line) for line in lines)


class _Attendant(QObject):
    """Watches the widgets of a dock."""

    def __init__(self, root: QWidget) -> None:
        super().__init__(root)
        self._root = root
        self._frame: QFocusFrame | None = None
        self._attend(root)

    def _attend(self, widget: QWidget) -> None:
        labels = _labels_in(self._root)
        for each in (widget, *widget.findChildren(QWidget)):
            # what is drawn on gets an event at each move of the mouse, and has no parts
            drawn_on = isinstance(each.parent(), QGraphicsView)
            if not drawn_on and not each.property(_ATTENDED):
                each.setProperty(_ATTENDED, True)
                each.installEventFilter(self)
            _give_name(each, labels)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Attend to what is new, and show a tooltip in short lines."""
        if event is None or not isinstance(watched, QWidget):
            return False
        kind = event.type()
        if kind == QEvent.Type.ToolTip:
            return _show_tip(watched, event)
        if kind == QEvent.Type.ChildPolished:
            child = event.child()
            if isinstance(child, QWidget):
                self._attend(child)
        elif kind == QEvent.Type.ToolTipChange:
            if not _text_on(watched):
                _give_name(watched, _labels_in(self._root))
        elif kind == QEvent.Type.FocusIn:
            self._mark(watched, event.reason() in BY_KEYBOARD)
        elif kind == QEvent.Type.FocusOut and (frame := self._living_frame) is not None:
            frame.setWidget(None)
        return False

    @property
    def _living_frame(self) -> QFocusFrame | None:
        # Qt moves it to the window of the widget it is around, a dialog perhaps, which takes it
        return self._frame if self._frame is not None and isalive(self._frame) else None

    def _mark(self, widget: QWidget, by_keyboard: bool) -> None:
        if by_keyboard:
            frame = self._frame = self._living_frame or QFocusFrame(self._root)
            frame.setStyleSheet(f"QFocusFrame {{ border: 2px solid {FOCUS}; border-radius: 3px; }}")
            frame.setWidget(widget)


def _labels_in(root: QWidget) -> dict[QWidget, str]:
    """Texts of labels, by the control or row of controls that each is of."""
    labels = ((label.buddy(), label.text()) for label in root.findChildren(QLabel))
    return {buddy: text.strip(" :") for buddy, text in labels if buddy is not None}


def _give_name(widget: QWidget, labels: dict[QWidget, str]) -> None:
    """Name a control by its label, else by its tooltip, unless it was named by hand."""
    if not _is_control(widget) or (widget.accessibleName() and not widget.property(_NAMED)):
        return
    label, text = _label_of(widget, labels), _text_on(widget)
    if text:
        # Qt says this text by itself; "auto" alone would not say of what
        name = f"{label}: {text}" if label else ""
    else:
        name = label or _first_sentence(_tip_around(widget)) or _hint_in(widget)
    if name != widget.accessibleName():
        widget.setProperty(_NAMED, True)
        widget.setAccessibleName(name)


def _label_of(widget: QWidget, labels: dict[QWidget, str]) -> str:
    around: QWidget | None = widget
    while around is not None and around not in labels:
        around = around.parentWidget()
    return "" if around is None else labels[around]


def _text_on(widget: QWidget) -> str:
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    # a sign such as ▸ says nothing
    return text.strip() if any(each.isalpha() for each in text) else ""


def _tip_around(widget: QWidget) -> str:
    """Tooltip of a control, or of the panel it is in."""
    around: QWidget | None = widget
    while around is not None and not around.toolTip() and not around.isWindow():
        around = around.parentWidget()
    return "" if around is None else around.toolTip()


def _hint_in(widget: QWidget) -> str:
    return widget.placeholderText() if isinstance(widget, QLineEdit | QPlainTextEdit) else ""


def _first_sentence(text: str) -> str:
    if Qt.mightBeRichText(text):
        return ""
    return text.split(". ")[0].split("\n")[0].rstrip(".")


def _show_tip(widget: QWidget, event: Any) -> bool:
    text, place = _tip_at(widget, event)
    if not text:
        return False
    QToolTip.showText(event.globalPos(), _wrapped(text), widget, place)
    return True


def _tip_at(widget: QWidget, event: QHelpEvent) -> tuple[str, QRect]:
    """Tooltip at a place of a widget, and the rectangle that it is of."""
    everywhere = widget.toolTip(), widget.rect()
    if isinstance(widget, QMenu):
        action = widget.actionAt(event.pos())
        shown = action is not None and widget.toolTipsVisible()
        return (action.toolTip(), widget.actionGeometry(action)) if shown else everywhere
    view = widget.parent()
    if isinstance(view, QAbstractItemView) and view.viewport() is widget:
        return _tip_of_item(view, event)
    return everywhere


def _tip_of_item(view: QAbstractItemView, event: QHelpEvent) -> tuple[str, QRect]:
    role, model = Qt.ItemDataRole.ToolTipRole, view.model()
    if isinstance(view, QHeaderView) and model is not None:
        section = view.logicalIndexAt(event.pos())
        known = model.headerData(section, view.orientation(), role)
        return str(known or ""), QRect()
    index = view.indexAt(event.pos())
    known = index.data(role) if index.isValid() else None
    return (str(known), view.visualRect(index)) if known else (view.toolTip(), QRect())
