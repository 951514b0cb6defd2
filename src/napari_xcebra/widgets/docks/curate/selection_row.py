"""Selects many cells at once: drawn around in the image, or above the threshold."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import Signal
from qtpy.QtGui import QKeySequence
from qtpy.QtWidgets import QPushButton, QShortcut, QWidget

from napari_xcebra.attribution.score_map import ScoreMap
from napari_xcebra.widgets.controls.boxes import PlainLabel
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.controls.napari_window import follow, main_window
from napari_xcebra.widgets.docks.curate.curation_keys import Keys, readable
from napari_xcebra.widgets.layers.mouse import Form, Lasso
from napari_xcebra.widgets.state.deciding import Deciding
from napari_xcebra.widgets.state.shown import shown_map
from napari_xcebra.widgets.state.state import State

HINTS: dict[Form | None, str] = {
    None: "Shift+click adds a cell",
    "lasso": "now draw around cells",
    "rectangle": "now draw a box over cells",
}


class SelectionRow(QWidget):
    """Buttons for lasso, rectangle and threshold."""

    drawing = Signal()
    """Cells are about to be drawn around, which needs all of the field."""
    said = Signal(str, str, str)
    """A sentence for a notice, its tone, and details."""

    def __init__(self, state: State, area: Lasso, deciding: Deciding) -> None:
        super().__init__()
        self._state = state
        self._deciding = deciding
        self.area = area
        self.lasso = QPushButton("Lasso")
        self.rectangle = QPushButton("Rectangle")
        self.hint = PlainLabel()
        self.hint.setToolTip("Decisions and tags apply to all selected cells.")
        self.accept_above = QPushButton()
        for form, button in self._forms.items():
            button.setCheckable(True)
            button.setStyleSheet("QPushButton { padding: 3px 7px; }")
            button.clicked.connect(lambda on=False, form=form: self.arm(form if on else None))
        shapes = in_row(self.lasso, self.rectangle, (self.hint, 1), spacing=4)
        in_column(shapes, self.accept_above, of=self, spacing=4)
        self.accept_above.clicked.connect(lambda _=False: deciding.accept_above())
        self._follow_area()

    def _follow_area(self) -> None:
        area = self.area
        follow(self, area.changed, self._show_form)
        follow(self, area.drawn, self._select)
        self.destroyed.connect(lambda *_: area.put_down())
        # of the window: it works wherever the focus is
        self._escape = QShortcut(main_window(self._state.viewer))
        self._escape.setKey(QKeySequence("Esc"))
        self._escape.setEnabled(False)
        self._escape.activated.connect(area.put_down)
        self.destroyed.connect(self._escape.deleteLater)

    @property
    def _forms(self) -> dict[Form, QPushButton]:
        return {"lasso": self.lasso, "rectangle": self.rectangle}

    def arm(self, form: Form | None) -> None:
        """Let the next drag draw this shape around cells; None cancels."""
        if form is not None and self._state.viewer.dims.ndisplay == 3:
            self.said.emit("Lasso and rectangle work in the 2-D view only.", "warning", "")
            form = None
        if form is not None:
            self.drawing.emit()
        self.area.arm(form)
        self._show_form()

    def toggle(self, form: Form) -> None:
        """Arm the shape, or cancel it if it is armed."""
        self.arm(None if self.area.form == form else form)

    def _select(self, cells: np.ndarray, add: bool) -> None:
        before = self._state.selection.tolist() if add else []
        self._state.select([*before, *cells.tolist()])
        if not len(cells):
            self.said.emit("No cell centre lies inside the shape you drew.", "plain", "")

    def show_keys(self, keys: Keys) -> None:
        """Put the keys into the tooltips."""
        self.lasso.setToolTip(
            "Draw around cells in the image to select them; hold Shift to add to the "
            f"selection. Key: {readable(keys['lasso'])}; Esc cancels."
        )
        self.rectangle.setToolTip(
            "Draw a rectangle over cells in the image to select them; hold Shift to add to the "
            f"selection. Key: {readable(keys['rectangle'])}; Esc cancels."
        )

    def show_state(self) -> None:
        """Show what the next drag draws, how many cells are selected, and the threshold."""
        self._show_form()
        self._show_threshold()

    def _show_form(self) -> None:
        form, selected = self.area.form, len(self._state.selection)
        self._escape.setEnabled(form is not None)
        for name, button in self._forms.items():
            button.setChecked(name == form)
        many = f"{selected} cells selected" if selected > 1 and form is None else HINTS[form]
        self.hint.setText(many)

    def _show_threshold(self) -> None:
        """Say which cells would be accepted by their score, or why none."""
        painted, threshold = shown_map(self._state), self._state.shown.threshold
        count = int(self._deciding.to_accept.sum())
        if painted is None:
            text, help = "Accept all above threshold", "There are no scores, or they are hidden."
        elif painted.at_chance:
            text = f"{painted.factor} is at chance: its scores accept no cell"
            help = "Choose a factor above chance."
        else:
            scored = f"{titled(painted)} above z {threshold:g}".replace("-", "−")
            all_cells = f"all {count} cells" if count > 1 else "the one cell"
            none = f"No undecided cell has {scored}"
            text = f"Accept {all_cells} with {scored}" if count else none
            help = "Undecided cells above the threshold of the Attribution dock."
        self.accept_above.setText(text)
        self.accept_above.setToolTip(help)
        self.accept_above.setEnabled(count > 0)


def titled(painted: ScoreMap) -> str:
    """Factor of a map, with the latent or the lag that it shows."""
    if painted.latent is None:
        return painted.factor
    what = painted.latent if isinstance(painted.latent, str) else f"latent {painted.latent + 1}"
    return f"{painted.factor}, {what},"
