"""Writes the time of the recording in front on the canvas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import QTimer

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.state.of_state import OfState

if TYPE_CHECKING:
    from napari_xcebra.widgets.state.state import State

PAUSE = 0.25
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
        self._written = False
        self._last = 0.0
        self._at_rest = QTimer()
        self._at_rest.setSingleShot(True)
        self._at_rest.setInterval(int(1000 * PAUSE))
        self._at_rest.timeout.connect(self._write_late)
        state.recording_changed.connect(self._write)
        state.frame_changed.connect(self._write_soon)
        self._write()

    def _write_soon(self) -> None:
        """Write with a frame, where the last text is old enough, and when the slider rests."""
        if time.monotonic() - self._last < PAUSE:
            self._at_rest.start()
        else:
            self._at_rest.stop()
            self._write()

    def _write_late(self) -> None:
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
