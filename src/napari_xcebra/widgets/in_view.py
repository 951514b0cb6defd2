"""Of several recordings in a viewer, the layers of one are in view."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from napari_xcebra.widgets.camera import field_of, fit_into_view

if TYPE_CHECKING:
    from napari.layers import Layer

    from napari_xcebra.widgets.session import Session


class OneInView:
    """Hides the layers of other recordings, which would lie on top of each other.

    Those that were in view come back with their recording. The camera stays where it is as long as
    the field of view is the same, as it is from one day to the next; else it shows all of the new.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._hidden: WeakSet[Layer] = WeakSet()
        self._field: np.ndarray | None = None
        session.recording_changed.connect(self._turn_to_current)
        self._turn_to_current()

    def _turn_to_current(self) -> None:
        session = self._session
        for opened in session.opened:
            for layer in session.layers_of(opened):
                if opened is session.current:
                    layer.visible = layer.visible or layer in self._hidden
                    self._hidden.discard(layer)
                elif layer.visible:
                    layer.visible = False
                    self._hidden.add(layer)
        self._follow_with_camera()

    def _follow_with_camera(self) -> None:
        before, field = self._field, field_of(self._session)
        if field is None:
            return
        self._field = field
        if before is not None and not np.allclose(before, field):
            fit_into_view(self._session, field)
