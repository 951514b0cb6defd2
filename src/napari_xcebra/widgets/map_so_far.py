"""The map so far of the run that is being trained: painted while no other map is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qtpy.QtCore import QTimer

from napari_xcebra.widgets.background import BREATH
from napari_xcebra.widgets.live_run import Asked, LiveRun
from napari_xcebra.widgets.per_session import OfSession
from napari_xcebra.widgets.score_layers import TRAINING
from napari_xcebra.widgets.score_painter import painter_of

if TYPE_CHECKING:
    from napari_xcebra.jobs import Sketched
    from napari_xcebra.widgets.session import Opened, Session


class MapSoFar(OfSession):
    """Shows what is learned so far, and leaves nothing of it in the end.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._live: LiveRun | None = None

    def prepare(self, asked: Asked, method: str) -> None:
        """Have the layer of the first map in the window before the map is."""
        if self.session_open and self._will_be_seen(asked.opened):
            layers = painter_of(self.session).layers
            layers.prepare(asked, next(iter(asked.factors)), method, TRAINING)

    def show(self, sketched: Sketched, asked: Asked) -> None:
        """Paint the map so far, unless a map of another run is being looked at."""
        session, attribution = self.session, sketched.attribution
        self._live = live = LiveRun(
            asked.opened, asked.name, asked.created, attribution, sketched.done, sketched.total
        )
        session.show_live(live)
        if self._will_be_seen(asked.opened) and session.painted_live is None:
            factor = next(iter(asked.factors), attribution.factors[0])
            painter_of(session).layers.prepare(live, factor, attribution.method, TRAINING)
            # a turn of the window for the new layer, another one for all that shows the map
            QTimer.singleShot(BREATH, lambda: self._turn_to(live, factor))

    def give_up(self, asked: Asked) -> None:
        """Leave nothing of a run that did not come to be."""
        session, painted = self.session, self.session.painted_live
        self.end()
        painter_of(session).layers.discard(asked.opened, asked)
        if painted is not None and session.shown_run is None:
            session.shown = replace(session.shown, run="", factor="", latent=None)
            session.runs_changed.emit()  # another run may be shown instead

    def end(self) -> None:
        """Leave its place to the run, which is there now."""
        if self._live is not None:
            self._live = None
            self.session.show_live(None)

    def _will_be_seen(self, opened: Opened) -> bool:
        """Whether a map so far is shown, as no other map is being looked at."""
        return self.session.current is opened and self.session.shown_run is None

    def _turn_to(self, live: LiveRun, factor: str) -> None:
        if not self.session_open or self._live is None or self.session.live is not self._live:
            return
        session = self.session
        session.shown = replace(
            session.shown,
            run=live.name,
            factor=factor,
            latent=None,
            method=live.attribution.method,
        )
