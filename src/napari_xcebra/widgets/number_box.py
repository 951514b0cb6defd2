"""A box for a number of any size."""

from __future__ import annotations

import math

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QAbstractSpinBox, QDoubleSpinBox

LARGE = 1e12
WIDTH = 56
"""In pixels; room for seven digits."""


class NumberBox(QDoubleSpinBox):
    """Shows as many decimals, and steps as far, as suits the numbers it is for.

    Parameters
    ----------
    tooltip : str
    """

    def __init__(self, tooltip: str) -> None:
        super().__init__()
        self.setToolTip(tooltip)
        self.setRange(-LARGE, LARGE)
        # half a number that is being typed is not yet meant
        self.setKeyboardTracking(False)
        slim(self, WIDTH)

    def suit(self, low: float, high: float) -> None:
        """Adapt to numbers between two, without saying that the number changed."""
        step = step_for(low, high)
        self.blockSignals(True)  # fewer decimals round the number that is still there
        self.setDecimals(max(0, -math.floor(math.log10(step) + 1e-9)) + 1)
        self.blockSignals(False)
        self.setSingleStep(step)

    def show_number(self, number: float) -> None:
        """Show a number without saying that it changed."""
        self.blockSignals(True)
        self.setValue(number)
        self.blockSignals(False)


def slim(box: QAbstractSpinBox, width: int) -> None:
    """Leave out the buttons, which are wider than the number; arrow keys step, too.

    Parameters
    ----------
    box : QAbstractSpinBox
    width : int
        In pixels: Qt would make room for the largest number, and napari's theme for buttons.
    """
    box.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
    box.setAlignment(Qt.AlignmentFlag.AlignRight)
    box.setStyleSheet(f"min-width: {width}px; max-width: {width}px; padding: 1px 3px;")


def step_for(low: float, high: float) -> float:
    """A round hundredth or so of an interval.

    >>> step_for(0, 1), step_for(0.002, 0.0047)
    (0.01, 1e-05)
    """
    width = abs(high - low) or abs(high) or 1.0
    return float(f"1e{math.floor(math.log10(width)) - 2}")
