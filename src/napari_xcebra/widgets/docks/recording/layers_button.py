"""Offers to add back layers of a recording that the user has removed."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QPushButton

from napari_xcebra.widgets.controls.lifetime import follow
from napari_xcebra.widgets.state.state import State


class LayersButton(QPushButton):
    """Hidden while the recording in front has all its layers."""

    def __init__(self, state: State) -> None:
        super().__init__("Show layers again")
        self.setToolTip("Add back the image and cell layers that were removed.")
        self._state = state
        self.clicked.connect(self._add)
        follow(self, state.viewer.layers.events.inserted, self.mark)
        follow(self, state.viewer.layers.events.removed, self.mark)
        self.hide()

    def mark(self, event: Any = None) -> None:
        """Show the button if layers are missing."""
        opened = self._state.current
        self.setVisible(bool(opened and self._state.lacks_layers(opened)))

    def _add(self) -> None:
        if self._state.current is not None:
            self._state.add_layers(self._state.current)
            self.mark()
