"""The frame of the current recording that napari's time slider stands at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_xcebra.widgets.per_session import OfSession

if TYPE_CHECKING:
    from napari_xcebra.widgets.session import Session


class TimeSlider(OfSession):
    """Follows the slider and moves it; counts by itself where no layer has frames.

    Parameters
    ----------
    session : Session
        Its `frame_changed` is emitted.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.frame = 0
        session.viewer.dims.events.current_step.connect(self._follow)

    def go_to(self, frame: int) -> None:
        """Move to a frame, or to the first or last where there is no such frame."""
        recording = self.session.recording
        if recording is None:
            return
        frame = int(np.clip(frame, 0, recording.n_frames - 1))
        axis = self._axis
        if axis is not None:
            self.session.viewer.dims.set_current_step(axis, frame)
        else:
            self._take(frame)

    @property
    def _axis(self) -> int | None:
        """Axis of the viewer that counts the frames; None if no layer with frames is there."""
        session = self.session
        if session.current is None:
            return None
        axis = session.viewer.dims.ndim - session.current.labels.ndim - 1
        return axis if axis >= 0 else None

    @property
    def there(self) -> int:
        """Where the slider is in the current recording, which may be shorter than another one."""
        axis, recording = self._axis, self.session.recording
        if recording is None:
            return self.frame
        at = self.frame if axis is None else int(self.session.viewer.dims.current_step[axis])
        return min(at, recording.n_frames - 1)

    def _follow(self) -> None:
        self._take(self.there)

    def _take(self, frame: int) -> None:
        if frame != self.frame:
            self.frame = frame
            self.session.frame_changed.emit(frame)
