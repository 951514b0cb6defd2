"""Many cells at once: drawn around in the image, or above the threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QShortcut, QVBoxLayout, QWidget

from napari_xcebra.widgets.area import Form, area_of
from napari_xcebra.widgets.curation_keys import Keys, readable
from napari_xcebra.widgets.lifetime import follow
from napari_xcebra.widgets.score_map import shown_map
from napari_xcebra.widgets.session import Session

HINTS: dict[Form | None, str] = {
    None: "Shift+click adds a cell",
    "lasso": "now draw around cells",
    "rectangle": "now draw over cells",
}


class ManyRow(QWidget):
    """Buttons for lasso, rectangle and threshold.

    Parameters
    ----------
    session : Session
    """

    above = Signal()
    """Accept all cells above the threshold."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.area = area_of(session)
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
            button.clicked.connect(lambda on=False, form=form: self.arm(form if on else None))
            row.addWidget(button)
        row.addWidget(self.hint, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.accept_above)
        self.accept_above.clicked.connect(lambda _=False: self.above.emit())
        self._follow_area()

    def _follow_area(self) -> None:
        area = self.area
        follow(self, area.changed, self._show_form)
        follow(self, area.drawn, self._select)
        self.destroyed.connect(lambda *_: area.put_down())
        # of the window: it works wherever the focus is
        self._escape = QShortcut(self._session.viewer.window._qt_window)
        self._escape.setKey(QKeySequence("Esc"))
        self._escape.setEnabled(False)
        self._escape.activated.connect(area.put_down)
        self.destroyed.connect(self._escape.deleteLater)

    @property
    def _forms(self) -> dict[Form, QPushButton]:
        return {"lasso": self.lasso, "rectangle": self.rectangle}

    def arm(self, form: Form | None) -> None:
        """Let the next drag draw this around cells; None puts it down."""
        if form is not None and self._session.viewer.dims.ndisplay == 3:
            self.said.emit("Cells can be drawn around in the 2-D view only.", "warning", "")
            form = None
        self.area.arm(form)
        self._show_form()

    def toggle(self, form: Form) -> None:
        """Arm it, or put it down if it is armed."""
        self.arm(None if self.area.form == form else form)

    def _select(self, cells: np.ndarray, add: bool) -> None:
        before = self._session.selection.tolist() if add else []
        self._session.select([*before, *cells.tolist()])
        if not len(cells):
            self.said.emit("No cell has its middle inside what you drew.", "plain", "")

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

    def show_state(self) -> None:
        """Show what the next drag draws, how many cells are selected, and the threshold."""
        self._show_form()
        painted, shown = shown_map(self._session), self._session.shown
        above = None if painted is None else int(painted.selected(shown.threshold).sum())
        self._show_threshold(shown.factor, shown.threshold, above)

    def _show_form(self) -> None:
        form, selected = self.area.form, len(self._session.selection)
        self._escape.setEnabled(form is not None)
        for name, button in self._forms.items():
            button.setChecked(name == form)
        many = f"{selected} cells selected" if selected > 1 and form is None else HINTS[form]
        self.hint.setText(many)

    def _show_threshold(self, factor: str, threshold: float, above: int | None) -> None:
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
