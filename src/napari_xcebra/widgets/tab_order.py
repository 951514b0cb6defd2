"""The order in which the tab key reaches controls."""

from __future__ import annotations

from collections.abc import Iterable

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QWidget


def reach_after(table: QWidget, controls: Iterable[QWidget]) -> None:
    """Let the tab key come from a table to the controls inside it, which were made later.

    Qt would put them behind everything that is there already.
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
