"""Tells the moment of the time slider, and offers how much time is in view."""

from __future__ import annotations

import numpy as np
from qtpy.QtWidgets import QSizePolicy, QWidget
from superqt import QElidingLabel

from napari_xcebra.recording import Recording
from napari_xcebra.widgets.controls.boxes import small_button
from napari_xcebra.widgets.controls.layouts import in_row
from napari_xcebra.widgets.plots.time_plot import TimePlot

SPANS = {"10 s": 10.0, "60 s": 60.0, "All": np.inf}
"""Seconds that a button brings into view."""


class TimeRow(QWidget):
    """Belongs to a plot over time."""

    def __init__(self, plot: TimePlot) -> None:
        super().__init__()
        # where it does not fit it ends in dots: a number that is cut off looks like another number
        self.readout = QElidingLabel()
        # its text must not decide how narrow the dock can be
        self.readout.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.readout.setToolTip("Position of the time slider.")
        self.spans = {}
        for text, seconds in SPANS.items():
            whole = seconds == np.inf
            help = "Show the whole recording." if whole else f"Show {text} around the cursor."
            button = self.spans[text] = small_button(text, help)
            button.setAccessibleName(help[:-1])
            button.clicked.connect(lambda _=False, s=seconds: plot.show_around(s))
        in_row((self.readout, 1), *self.spans.values(), of=self, spacing=3)

    def tell(self, recording: Recording, frame: int) -> None:
        """Tell where the time slider is."""
        self.readout.setText(moment(recording, frame))


def moment(recording: Recording, frame: int) -> str:
    """A frame in words; the nearest one of the recording, whose slider may be another's."""
    frame = int(np.clip(frame, 0, recording.n_frames - 1))
    words = [f"{np.asarray(recording.times)[frame]:.1f} s", f"frame {frame}"]
    words += _part_of(recording, frame)
    if np.asarray(recording.excluded)[frame]:
        words.append("excluded")
    return " · ".join(words)


def _part_of(recording: Recording, frame: int) -> list[str]:
    """Which trial a frame belongs to, or which segment of a recording without trials."""
    trials, starts = recording.trials, np.asarray(recording.starts)
    if trials is not None:
        number = int(np.searchsorted(trials.first, frame, side="right"))
        inside = number > 0 and frame < trials.stop[number - 1]
        return [f"trial {number} of {len(trials)}" if inside else "between trials"]
    if len(starts) > 1:
        number = int(np.searchsorted(starts, frame, side="right"))
        return [f"segment {number} of {len(starts)}"]
    return []
