"""Chooses how scores are painted: their colours, and whether they follow the time slider."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from napari.utils.colormaps import ensure_colormap
from qtpy.QtCore import Signal
from qtpy.QtGui import QImage, QPixmap
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_xcebra.widgets.controls.boxes import NumberBox, PlainLabel, small_button
from napari_xcebra.widgets.controls.forms import in_dock
from napari_xcebra.widgets.controls.layouts import in_column, in_row
from napari_xcebra.widgets.state.shown import COLORMAPS

STRIP = 14
"""Height of the colour bar in pixels."""


class ColorRow(QWidget):
    """Colour map, colour bar, and the scores at its two ends."""

    colormap_changed = Signal(str)
    limits_changed = Signal(object)
    """(low, high), or None for those made from the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.colormap = QComboBox()
        self.colormap.addItems(list(COLORMAPS))
        self.colormap.setToolTip("Colour map of the scores.")
        self.automatic = QPushButton("Auto limits")
        self.automatic.setToolTip(
            "From the lowest score to the 99th percentile, so that one outlier does not darken "
            "all other cells."
        )
        self.low = NumberBox("Score at the lower end of the colours.")
        self.high = NumberBox("Score at the upper end of the colours.")
        self.bar = QLabel()
        self.bar.setToolTip("Colours from low to high scores.")
        self.bar.setScaledContents(True)
        self.bar.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.bar.setFixedHeight(STRIP)
        self.bar.setMinimumWidth(60)
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(QLabel("Colours"), 0, 0)
        layout.addWidget(self.colormap, 0, 1)
        layout.addWidget(self.automatic, 0, 2)
        layout.addWidget(self.low, 1, 0)
        layout.addWidget(self.bar, 1, 1)
        layout.addWidget(self.high, 1, 2)
        layout.setColumnStretch(1, 1)
        self.colormap.currentTextChanged.connect(self.colormap_changed)
        self.automatic.clicked.connect(lambda _=False: self.limits_changed.emit(None))
        self.low.valueChanged.connect(self._tell)
        self.high.valueChanged.connect(self._tell)

    def show_colors(self, colormap: str, limits: tuple[float, float], *, chosen: bool) -> None:
        """Show a colour map and limits, which the user may have chosen."""
        with signals_blocked(self.colormap):
            self.colormap.setCurrentText(colormap)
        self.bar.setPixmap(_strip(colormap))
        for box, limit in ((self.low, limits[0]), (self.high, limits[1])):
            box.suit(*limits)
            box.show_number(limit)
        self.automatic.setEnabled(chosen)

    def _tell(self) -> None:
        low, high = self.low.value(), self.high.value()
        if high > low:
            self.limits_changed.emit((low, high))


AROUND = (
    "Score the painted factor by the time from an event: when does it appear, in which cells? Then "
    "move or play the time slider."
)
MOST_SECONDS = 60.0
FOLLOW = "Paint the scores at the current frame instead of their mean over frames."


def _strip(colormap: str) -> QPixmap:
    """Colours from low to high scores; in several rows, as Qt cannot stretch a single one."""
    row = ensure_colormap(colormap).map(np.linspace(0, 1, 256))
    pixels = np.tile(255 * row, (STRIP, 1)).astype(np.uint8)
    image = QImage(pixels.tobytes(), 256, STRIP, 4 * 256, QImage.Format.Format_RGBA8888)
    return QPixmap.fromImage(image)


class OverTimeRow(QWidget):
    """A tick, a number of seconds, and what is being computed."""

    toggled = Signal(bool)
    smoothing_changed = Signal(float)
    event_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.follow = QCheckBox("Follow the time slider")
        self.follow.setToolTip(FOLLOW)
        self.seconds = NumberBox("Seconds over which the scores are averaged.")
        self.seconds.setRange(0, MOST_SECONDS)
        self.seconds.setSingleStep(0.5)
        self.seconds.setDecimals(1)
        self.seconds.setSuffix(" s")
        self.status = PlainLabel(wrap=True)
        self._averaged = QLabel("mean over")
        self.events = QMenu(self)
        self.around = small_button("Around an event", AROUND, self.events)
        choices = in_row(self.follow, 1, self._averaged, self.seconds, spacing=3)
        in_column(choices, in_row(self.around, 1), self.status, of=self)
        self.show_status("")
        self.follow.toggled.connect(self.toggled)
        self.seconds.valueChanged.connect(self.smoothing_changed)

    def show_state(
        self, *, following: bool, smoothing: float, why_not: str, note: str = ""
    ) -> None:
        """Show the choice, or why this map cannot follow; `note` is added where it can."""
        with signals_blocked(self.follow):
            self.follow.setChecked(following and not why_not)
        self.follow.setEnabled(not why_not)
        self.follow.setToolTip(why_not or f"{FOLLOW} {note}".strip())
        self.seconds.show_number(smoothing)
        self.seconds.setEnabled(following and not why_not)
        self._averaged.setEnabled(following and not why_not)

    def offer_events(self, events: Sequence[tuple[str, str]], why_not: str) -> None:
        """Offer events by title and name, or say why they cannot be used."""
        self.around.setVisible(bool(events))
        self.around.setEnabled(not why_not)
        self.around.setToolTip(why_not or AROUND)
        self.events.clear()
        for title, name in events:
            # an ampersand would underline what follows
            action = self.events.addAction(title.replace("&", "&&"))
            action.triggered.connect(lambda _=False, name=name: self.event_chosen.emit(name))

    def show_status(self, sentence: str) -> None:
        """Say what is being computed."""
        self.status.setText(in_dock(sentence))
        self.status.setVisible(bool(sentence))
