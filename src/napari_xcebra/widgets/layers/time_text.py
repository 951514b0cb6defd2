"""Writes the time of the recording in front on the canvas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QTimer

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.state.of_state import OfState

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State

PAUSE = 0.12
"""Seconds between two texts: each takes 7 ms to draw, as long as the rest of the window."""


def time_text(recording: Recording, frame: int) -> str:
    """Time of a frame, in seconds, and its number as the slider has it.

    >>> time_text(Recording.from_arrays([[0.0]] * 200, rate=10.0), 123)
    '12.3 s · frame 123'
    """
    decimals = 1 if recording.rate <= 10 else 2
    return f"{recording.times[frame]:,.{decimals}f} s · frame {frame:,}"  # type: ignore[index]


class TimeText(OfState):
    """Keeps napari's text on the canvas at the time of the slider."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._written = self._waiting = False
        self._last = 0.0
        state.recording_changed.connect(self._write)
        state.frame_changed.connect(self._write_soon)
        self._write()

    def _write_soon(self) -> None:
        """Write at once, or, where the slider moves fast, after a pause."""
        if self._waiting:
            return
        left = self._last + PAUSE - time.monotonic()
        if left <= 0:
            self._write()
        else:
            self._waiting = True
            QTimer.singleShot(int(1000 * left) + 1, self._write_late)

    def _write_late(self) -> None:
        self._waiting = False
        if self.state_open:
            self._write()

    def _write(self) -> None:
        state, self._last = self.state, time.monotonic()
        overlay, recording = overlay_of(state.viewer), state.recording
        if recording is not None:
            overlay.text = time_text(recording, min(state.frame, recording.n_frames - 1))
        # a text of the user's own is left alone
        if (recording is not None) != self._written:
            self._written = overlay.visible = recording is not None
            overlay.position = "top_left"


def overlay_of(viewer: Any) -> Any:
    """The text on the canvas, wherever this version of napari has it."""
    canvas = getattr(viewer, "canvas", None)
    return viewer.text_overlay if canvas is None else canvas.overlays.text  # napari < 0.9
