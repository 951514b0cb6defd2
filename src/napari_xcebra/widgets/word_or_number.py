"""A row of a form for a number that may also be a word, such as auto."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QDoubleSpinBox, QHBoxLayout, QWidget


class WordOrNumber(QWidget):
    """A box to tick for the word; without the tick, the number stands beside it.

    Parameters
    ----------
    word : str
    number : magicgui widget
        Where the number is typed.
    value : str or float
        What it shows at first.
    """

    changed = Signal()

    def __init__(self, word: str, number: Any, value: str | float) -> None:
        super().__init__()
        self.tooltip, self.native = number.tooltip, self
        self.tick = QCheckBox(word)
        self.tick.setToolTip(self.tooltip)
        self.number = number
        # a number that can be found may be of any size
        number.native.setDecimals(4)
        number.native.setStepType(QDoubleSpinBox.StepType.AdaptiveDecimalStepType)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.tick)
        layout.addWidget(number.native, stretch=1)
        self.value = value
        self._follow()
        self.tick.toggled.connect(self._follow)
        self.tick.toggled.connect(self.changed)
        number.changed.connect(lambda *_: self.changed.emit())

    def _follow(self) -> None:
        # a number greyed out would be taken for the one in use
        self.number.native.setHidden(self.tick.isChecked())

    @property
    def value(self) -> str | float:
        """The word, or the number."""
        return self.tick.text() if self.tick.isChecked() else float(self.number.value)

    @value.setter
    def value(self, value: str | float) -> None:
        self.tick.setChecked(value == self.tick.text())
        if not isinstance(value, str):
            self.number.value = value
