"""Follows and moves napari's time slider in frames of the current recording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_xcebra.widgets.state.of_state import OfState
from napari_xcebra.widgets.state.own_layers import role_of

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State

IN_TIME = ("movie", "activity", "scores over time", "scores around an event")
"""Roles of layers that change with the slider."""


class TimeSlider(OfState):
    """Follows the slider and moves it; keeps the frame itself where no layer has frames.

    Emits `frame_changed` of the state.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.frame = 0
        self._held = False
        state.viewer.dims.events.current_step.connect(self._follow)
        state.viewer.layers.events.inserted.connect(_keep_thumbnail)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Follow nothing while layers come and go, at which napari moves the slider."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    def begin_at(self, frame: int) -> bool:
        """Put the slider of a recording that came to the front on a frame; whether it changed."""
        before = self.frame
        with self.held():
            self.go_to(frame)
        self.frame = self.there
        return self.frame != before

    def go_to(self, frame: int) -> None:
        """Move to a frame, or to the first or last where there is no such frame."""
        recording = self.state.recording
        if recording is None:
            return
        frame = int(np.clip(frame, 0, recording.n_frames - 1))
        axis = self._axis
        if axis is not None:
            self.state.viewer.dims.set_current_step(axis, frame)
        else:
            self._take(frame)

    @property
    def _axis(self) -> int | None:
        """Axis of the viewer that counts the frames; None if no layer with frames is there."""
        state = self.state
        if state.current is None:
            return None
        axis = state.viewer.dims.ndim - state.current.labels.ndim - 1
        return axis if axis >= 0 else None

    @property
    def there(self) -> int:
        """Where the slider is in the current recording, which may be shorter than another one."""
        axis, recording = self._axis, self.state.recording
        if recording is None:
            return self.frame
        at = self.frame if axis is None else int(self.state.viewer.dims.current_step[axis])
        return min(at, recording.n_frames - 1)

    def _follow(self) -> None:
        if not self._held:
            self._take(self.there)

    def _take(self, frame: int) -> None:
        if frame != self.frame:
            self.frame = frame
            self.state.frame_changed.emit(frame)


def _keep_thumbnail(inserted: Any) -> None:
    """Let a layer change without a word to napari's list of layers.

    For every new thumbnail napari paints the whole list, which takes a third of each frame.
    """
    layer = inserted.value
    if role_of(layer) in IN_TIME and not layer.events.thumbnail.blocked():
        layer.events.thumbnail.block()
