"""Draws frames of a movie that come later than they were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from napari.utils.notifications import show_warning
from qtpy.QtCore import QObject, Signal

from napari_xcebra.widgets.layers.movie_layer import MovieOnSlider
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import role_of

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State


class _Arrivals(QObject):
    """Carries the news from the thread that reads to that of the window."""

    came = Signal()


class MoviePlayer(OfState):
    """Lets no movie of the window wait for its files, and draws each frame when it has come."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._arrivals = _Arrivals()
        self._arrivals.came.connect(self._draw)
        self._told: set[str] = set()
        for layer in state.viewer.layers:
            self._listen(layer)
        state.viewer.layers.events.inserted.connect(self._follow)

    def _follow(self, event: Any) -> None:
        self._listen(event.value)

    def _listen(self, layer: Any) -> None:
        if role_of(layer) == "movie":
            layer.data.late = self._arrivals.came.emit

    def _draw(self) -> None:
        if not self.state_open:
            return
        for layer in self.state.viewer.layers:
            if role_of(layer) == "movie" and isinstance(layer.data, MovieOnSlider):
                layer.refresh(extent=False, thumbnail=False)
                if (problem := layer.data.problem) and problem not in self._told:
                    self._told.add(problem)
                    show_warning(problem)
