"""Lays out controls in rows and columns that fold and scroll, and orders tab stops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from qtpy.QtCore import QEvent, QObject, QSize, Qt
from qtpy.QtWidgets import (
    QAbstractSpinBox,
    QBoxLayout,
    QComboBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

Part: TypeAlias = "QWidget | QLayout | int | tuple[QWidget | QLayout, int]"
"""A widget or layout, alone or with its stretch; a number is empty space of that stretch."""
Box = TypeVar("Box", bound=QBoxLayout)


def in_row(*parts: Part, of: QWidget | None = None, spacing: int | None = None) -> QHBoxLayout:
    """Parts side by side; the layout of a widget, if one is given."""
    return fill_layout(QHBoxLayout() if of is None else QHBoxLayout(of), parts, spacing)


def in_column(*parts: Part, of: QWidget | None = None, spacing: int | None = None) -> QVBoxLayout:
    """Parts below each other; the layout of a widget, if one is given."""
    return fill_layout(QVBoxLayout() if of is None else QVBoxLayout(of), parts, spacing)


def fill_layout(layout: Box, parts: tuple[Part, ...], spacing: int | None = None) -> Box:
    """Put parts into a layout without margins, one after the other."""
    layout.setContentsMargins(0, 0, 0, 0)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if isinstance(part, int):
            layout.addStretch(part)
            continue
        inside, stretch = part if isinstance(part, tuple) else (part, 0)
        if isinstance(inside, QLayout):
            layout.addLayout(inside, stretch)
        else:
            layout.addWidget(inside, stretch)
    return layout


def in_form(*rows: tuple[str, QWidget]) -> QFormLayout:
    """Titles beside their fields, which are as wide as there is room."""
    form = QFormLayout()
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for title, field in rows:
        form.addRow(title, field)
    return form


class Fold(QWidget):
    """A title to click, and the widgets it shows or hides."""

    def __init__(self, title: str, help: str, *inside: QWidget, unfolded: bool = False) -> None:
        super().__init__()
        self._title = title
        self.button = QPushButton()
        # a long title is cut off rather than making the dock wide
        self.button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.button.setStyleSheet("text-align: left; padding: 3px 4px;")
        self.button.setToolTip(help)
        self._inside = QWidget()
        self._column = in_column(*inside, of=self._inside)
        in_column(self.button, self._inside, of=self)
        self.button.clicked.connect(self._turn)
        self.unfolded = unfolded

    def addWidget(self, widget: QWidget) -> None:
        """Add a widget at the bottom."""
        self._column.addWidget(widget)

    @property
    def title(self) -> str:
        """What the button says."""
        return self._title

    @title.setter
    def title(self, title: str) -> None:
        self._title = title
        self.unfolded = self.unfolded

    @property
    def unfolded(self) -> bool:
        """Whether the inside is shown."""
        return not self._inside.isHidden()

    @unfolded.setter
    def unfolded(self, unfolded: bool) -> None:
        # arrows as text have the colour of the theme
        self.button.setText(f"{'▾' if unfolded else '▸'} {self._title}")
        self._inside.setVisible(unfolded)

    def _turn(self) -> None:
        self.unfolded = not self.unfolded


TWO_LINES = 34
"""Pixels that two lines of text need."""


def keep_room(widget: QWidget) -> None:
    """Let a widget keep its place while it is hidden, so that others do not move."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def give_room(widget: QWidget) -> None:
    """Let a widget leave its place to others while it is hidden."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(False)
    widget.setSizePolicy(policy)


def spare_from_wheel(widget: QWidget) -> None:
    """Let the wheel scroll the dock, not change boxes of this widget, unless one has the focus."""
    boxes = [*widget.findChildren(QComboBox), *widget.findChildren(QAbstractSpinBox)]
    if isinstance(widget, QComboBox | QAbstractSpinBox):
        boxes.append(widget)
    for box in boxes:
        # without this, Qt gives a box the focus as soon as the wheel turns over it
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.installEventFilter(_Guard(box))


class _Guard(QObject):
    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is None or event.type() != QEvent.Type.Wheel:
            return False
        if not isinstance(watched, QWidget) or watched.hasFocus():
            return False
        event.ignore()
        return True


class VerticalScroll(QScrollArea):
    """At least as wide as its content needs, in any theme and font, and `least` pixels wide."""

    def __init__(self, inside: QWidget, least: int = 0) -> None:
        super().__init__()
        self._least = least
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inside)
        inside.installEventFilter(self)

    def minimumSizeHint(self) -> QSize:
        """Width of the content with a scroll bar; little height."""
        inside, bar = self.widget(), self.verticalScrollBar()
        assert inside is not None and bar is not None
        needed = inside.minimumSizeHint().width() + bar.sizeHint().width()
        return QSize(max(needed, self._least), 120)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Notice when the content needs another width."""
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


def reach_after(table: QWidget, controls: Iterable[QWidget]) -> None:
    """Let the tab key go from a table to the controls inside it, which were made later.

    Qt would put them after all existing controls.
    """
    before = table
    while not before.focusPolicy() & Qt.FocusPolicy.TabFocus:
        # a table that takes no focus itself: from what lies before it
        before = before.previousInFocusChain()
        if before is table:
            return
    for control in controls:
        QWidget.setTabOrder(before, control)
        before = control
