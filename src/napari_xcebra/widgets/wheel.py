"""Scrolling a dock must not change a setting that happens to lie under the pointer."""

from __future__ import annotations

from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QAbstractSpinBox, QComboBox, QWidget


def spare_from_wheel(widget: QWidget) -> None:
    """Let the wheel scroll the dock, not turn boxes of this widget, until one has the focus."""
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
