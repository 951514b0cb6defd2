"""A panel of the Cells dock: a row of controls above a plot, or above a sentence."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from napari_xcebra.widgets.wording import in_dock

ROW_HEIGHT = 26
SMALL = "QPushButton { padding: 2px 7px; } QPushButton::menu-indicator { width: 0; }"


class Panel(QWidget):
    """Row of controls, and below it the view or what to do to see one.

    Parameters
    ----------
    view : QWidget
    """

    def __init__(self, view: QWidget) -> None:
        super().__init__()
        self._row = QWidget()
        self._row.setFixedHeight(ROW_HEIGHT)  # the same in all panels, so that plots line up
        self.controls = QHBoxLayout(self._row)
        self.controls.setContentsMargins(0, 0, 0, 0)
        self.controls.setSpacing(4)
        self._message = QLabel()
        self._message.setWordWrap(True)
        self._message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._message)
        self._stack.addWidget(view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2, 0, 2, 0)
        layout.setSpacing(2)
        layout.addWidget(self._row)
        layout.addWidget(self._stack, 1)

    def offer_controls(self, offer: bool) -> None:
        """Show the row of controls, or leave its place empty while there is nothing to choose."""
        # of its own children alone: those of a combobox are windows, its list of entries among them
        directly = Qt.FindChildOption.FindDirectChildrenOnly
        for child in self._row.findChildren(QWidget, options=directly):
            child.setVisible(offer)

    def say(self, sentence: str) -> None:
        """Show a sentence in the place of the view."""
        self._message.setText(in_dock(sentence))
        self._stack.setCurrentIndex(0)

    def show_view(self) -> None:
        """Show the view."""
        self._message.clear()
        self._stack.setCurrentIndex(1)

    @property
    def message(self) -> str:
        """What is said in the place of the view; empty while the view is shown."""
        return self._message.text()


def small_button(text: str, help: str, menu: QMenu | None = None) -> QPushButton:
    """Button for a row of controls, as wide as its text."""
    button = QPushButton(f"{text} ▾" if menu else text)
    button.setToolTip(help)
    button.setStyleSheet(SMALL)
    button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    if menu is not None:
        button.setMenu(menu)
    return button


def small_box(help: str) -> QComboBox:
    """Combobox for a row of controls, which may become narrower than its entries."""
    box = QComboBox()
    box.setToolTip(help)
    box.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    box.setMinimumContentsLength(3)
    # the list shows entries in full all the same
    box.view().setTextElideMode(Qt.TextElideMode.ElideNone)
    return box
