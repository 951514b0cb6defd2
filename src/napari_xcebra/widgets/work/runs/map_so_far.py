"""Paints the map of a run while it is trained."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qtpy.QtCore import QTimer

from napari_xcebra.widgets.layers.score_layers import TRAINING
from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.shown import Asked, LiveRun

if TYPE_CHECKING:
    from napari_xcebra.jobs import Sketched
    from napari_xcebra.widgets.layers.score_layers import ScoreLayers
    from napari_xcebra.widgets.state.state import State
    from napari_xcebra.workspace_file import Opened

BREATH = 20
"""Milliseconds that let the window handle waiting events between two steps."""


class MapSoFar(OfState):
    """Paints the map of a run in training, and removes it in the end."""

    def __init__(self, state: State, layers: ScoreLayers) -> None:
        super().__init__(state)
        self._layers = layers
        self._live: LiveRun | None = None

    def prepare(self, asked: Asked, method: str) -> None:
        """Add the layer of the first map before the map is computed."""
        if self.state_open and self._will_be_seen(asked.opened):
            self._layers.prepare(asked, next(iter(asked.factors)), method, TRAINING)

    def show(self, sketched: Sketched, asked: Asked) -> None:
        """Paint the map so far, unless a map of another run is being looked at."""
        state, attribution = self.state, sketched.attribution
        self._live = live = LiveRun(
            asked.opened, asked.name, asked.created, attribution, sketched.done, sketched.total
        )
        state.show_live(live)
        if self._will_be_seen(asked.opened) and state.painted_live is None:
            factor = next(iter(asked.factors), attribution.factors[0])
            self._layers.prepare(live, factor, attribution.method, TRAINING)
            # the new layer is drawn first, then all that shows the map
            QTimer.singleShot(BREATH, lambda: self._turn_to(live, factor))

    def give_up(self, asked: Asked) -> None:
        """Remove all traces of a run that failed or was stopped."""
        state, painted = self.state, self.state.painted_live
        self.end()
        self._layers.discard(asked.opened, asked)
        if painted is not None and state.shown_run is None:
            state.shown = replace(state.shown, run="", factor="", latent=None)
            state.runs_changed.emit()  # another run may be shown instead

    def end(self) -> None:
        """Make way for the finished run."""
        if self._live is not None:
            self._live = None
            self.state.show_live(None)

    def _will_be_seen(self, opened: Opened) -> bool:
        """Whether a provisional map would be shown, as no other map is."""
        return self.state.current is opened and self.state.shown_run is None

    def _turn_to(self, live: LiveRun, factor: str) -> None:
        if not self.state_open or self._live is None or self.state.live is not self._live:
            return
        state = self.state
        state.shown = replace(
            state.shown,
            run=live.name,
            factor=factor,
            latent=None,
            method=live.attribution.method,
        )
