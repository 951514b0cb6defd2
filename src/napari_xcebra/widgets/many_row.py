"""Many cells at once: drawn around in the image, or above the threshold."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_xcebra.widgets.area import Form
from napari_xcebra.widgets.curation_keys import Keys, readable

HINTS: dict[Form | None, str] = {
    None: "Shift+click adds a cell",
    "lasso": "now draw around cells",
    "rectangle": "now draw over cells",
}


class ManyRow(QWidget):
    """Buttons for lasso, rectangle and threshold."""

    armed = Signal(object)
    """What the next drag draws, or None."""
    above = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.lasso = QPushButton("Lasso")
        self.rectangle = QPushButton("Rectangle")
        self.hint = QLabel()
        self.hint.setToolTip("What you decide or tag is done to all cells that are selected.")
        self.accept_above = QPushButton()
        row = QHBoxLayout()
        row.setSpacing(4)
        for form, button in self._forms.items():
            button.setCheckable(True)
            button.setStyleSheet("QPushButton { padding: 3px 7px; }")
            button.clicked.connect(
                lambda on=False, form=form: self.armed.emit(form if on else None)
            )
            row.addWidget(button)
        row.addWidget(self.hint, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.accept_above)
        self.accept_above.clicked.connect(lambda _=False: self.above.emit())

    @property
    def _forms(self) -> dict[Form, QPushButton]:
        return {"lasso": self.lasso, "rectangle": self.rectangle}

    def show_keys(self, keys: Keys) -> None:
        """Say the keys in the tooltips."""
        self.lasso.setToolTip(
            "Then draw around cells in the image to select them; with Shift they come to those "
            f"that are selected. Key: {readable(keys['lasso'])}; Esc puts it down."
        )
        self.rectangle.setToolTip(
            "Then draw a rectangle over cells in the image to select them. "
            f"Key: {readable(keys['rectangle'])}; Esc puts it down."
        )

    def show_state(self, form: Form | None, selected: int) -> None:
        """Show what the next drag draws, and how many cells are selected."""
        for name, button in self._forms.items():
            button.setChecked(name == form)
        many = f"{selected} cells selected" if selected > 1 and form is None else HINTS[form]
        self.hint.setText(many)

    def show_threshold(self, factor: str, threshold: float, above: int | None) -> None:
        """Show what accepting all above the threshold would do; `above` is None without scores."""
        self.accept_above.setEnabled(above is not None)
        z = f"{threshold:g}".replace("-", "−")
        known: Any = f"Accept all {above} with {factor} above z {z}"
        self.accept_above.setText("Accept all above the threshold" if above is None else known)
        self.accept_above.setToolTip(
            "There are no scores to go by: train a run first, or reveal them."
            if above is None
            else "Cells on which somebody decided by hand stay as they are. After moving the "
            "threshold (Attribution dock), press again: this then takes the place of what the "
            "threshold decided before."
        )
