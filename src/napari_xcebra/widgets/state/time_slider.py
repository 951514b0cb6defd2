"""Follows and moves napari's time slider in frames of the current recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.widgets.state.of_state import OfState

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State


class TimeSlider(OfState):
    """Follows the slider and moves it; keeps the frame itself where no layer has frames.

    Emits `frame_changed` of the state.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.frame = 0
        state.viewer.dims.events.current_step.connect(self._follow)

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
        self._take(self.there)

    def _take(self, frame: int) -> None:
        if frame != self.frame:
            self.frame = frame
            self.state.frame_changed.emit(frame)
