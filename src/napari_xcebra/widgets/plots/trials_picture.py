"""Draws trials and events of a recording as they were understood, small and without controls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter, QPaintEvent
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.recording import Recording
from napari_xcebra.recording.summary import GLANCE
from napari_xcebra.text import listed
from napari_xcebra.widgets.controls.plain_text import plain

TICKS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#0072B2")
SHADES = ("#3C8FD0", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442")
"""Okabe and Ito, so that ticks of one colour do not vanish on the shade of another."""
MOST_ROWS = 24
HEIGHT, TEXT, MARGIN = 114, 15, 3


@dataclass(frozen=True)
class Row:
    """A trial, or an event where there are no trials.

    Parameters
    ----------
    length : float
        Seconds that are shaded from 0 on; 0 without a trial.
    value : int
        Number of the value that colours the shade, −1 if it is not known.
    ticks : tuple of (int, (n,) float64)
        Number of an event, and seconds at which it happens.
    """

    length: float
    value: int
    ticks: tuple[tuple[int, np.ndarray], ...]


@dataclass(frozen=True)
class Course:
    """What is drawn.

    Parameters
    ----------
    rows : tuple of Row
    seconds : float
        From the left to the right edge.
    events, values : tuple of str
        Names of the events, and of the values that colour trials.
    column : str
        What these values are of; empty if nothing colours them.
    trials : int
        Of the recording; 0 if it has none.
    """

    rows: tuple[Row, ...]
    seconds: float
    events: tuple[str, ...]
    values: tuple[str, ...] = ()
    column: str = ""
    trials: int = 0

    @property
    def told(self) -> str:
        """The picture in words."""
        ticks = f"ticks are {listed(self.events)}" if self.events else "no events are known"
        if not self.trials:
            return f"A minute of the recording, from the first event on: {ticks}, a row each."
        drawn = "Each row is a trial"
        if len(self.rows) < self.trials:
            drawn = f"Each row is one of {len(self.rows)} of the {self.trials} trials"
        shade = f", coloured by {self.column} ({listed(self.values)})" if self.values else ""
        return f"{drawn}, shaded from its start to its end{shade}; {ticks}."


def course_of(recording: Recording) -> Course | None:
    """What to draw of a recording; None if it has neither trials nor events."""
    found = {n: np.flatnonzero(np.nan_to_num(v.values[:, 0]) > 0)
             for n, v in recording.behavior.items() if v.kind == "event"}  # fmt: skip
    events = {name: frames for name, frames in found.items() if len(frames)}
    if recording.trials is None:
        return _minute(events, recording.rate) if events else None
    trials, rate = recording.trials, recording.rate
    # the first that is a condition, rather than a number such as a reaction time
    few = (name for name, v in trials.columns.items() if len(_different(v)) <= len(SHADES))
    column = next(few, "")
    values = trials.columns.get(column, np.full(len(trials), np.nan))
    different = _different(values)
    some = np.unique(np.linspace(0, len(trials) - 1, MOST_ROWS).astype(int))
    rows = []
    for trial in some:
        first, stop = trials.first[trial], trials.stop[trial]
        value = -1 if np.isnan(values[trial]) else int(np.searchsorted(different, values[trial]))
        inside = [(i, (f[(f >= first) & (f < stop)] - first) / rate)
                  for i, f in enumerate(events.values())]  # fmt: skip
        rows.append(Row((stop - first) / rate, value, tuple(inside)))
    names = tuple(trials.label(column, value) for value in different)
    longest = max(row.length for row in rows)
    return Course(tuple(rows), longest, tuple(events), names, column, len(trials))


def _different(values: np.ndarray) -> np.ndarray:
    return np.unique(values[~np.isnan(values)])


def _minute(events: dict[str, np.ndarray], rate: float) -> Course:
    first = min(frames[0] for frames in events.values())
    seconds = {name: (frames - first) / rate for name, frames in events.items()}
    rows = tuple(Row(0.0, -1, ((i, s[s <= GLANCE]),)) for i, s in enumerate(seconds.values()))
    return Course(rows, GLANCE, tuple(events))


class TrialsPicture(QWidget):
    """Rows of trials with their events, names of which stand below; hidden without any."""

    def __init__(self) -> None:
        super().__init__()
        self.course: Course | None = None
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()

    def sizeHint(self) -> QSize:
        """Low."""
        return QSize(200, HEIGHT)

    def show_recording(self, recording: Recording) -> None:
        """Draw the trials and events of a recording."""
        self.course = course_of(recording)
        self.setVisible(self.course is not None)
        self.setToolTip(plain(self.course.told) if self.course else "")
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Rows, then the names."""
        if self.course is None:
            return
        p = QPainter(self)
        self._draw_rows(p, self.course)
        self._write(p, self.course)
        p.end()

    def _draw_rows(self, p: QPainter, course: Course) -> None:
        high = (self.height() - 2 * TEXT - MARGIN) / len(course.rows)
        scale = (self.width() - 2 * MARGIN) / course.seconds
        for place, row in enumerate(course.rows):
            top = MARGIN + place * high
            if row.length:
                shade = QColor(SHADES[row.value] if row.value >= 0 else "#808080")
                shade.setAlpha(110)
                p.fillRect(QRectF(MARGIN, top, row.length * scale, max(high - 0.4, 0.6)), shade)
            for number, seconds in row.ticks:
                color = QColor(TICKS[number % len(TICKS)])
                for second in seconds:
                    p.fillRect(QRectF(MARGIN + second * scale - 1, top, 2, max(high, 1.0)), color)

    def _write(self, p: QPainter, course: Course) -> None:
        """Ends of the axis, then events and values in their colours, as far as there is room."""
        top = self.height() - 2 * TEXT
        line = QRectF(MARGIN, top, self.width() - 2 * MARGIN, TEXT)
        ink = self.palette().color(self.foregroundRole())
        p.setPen(ink)
        p.drawText(line, int(Qt.AlignmentFlag.AlignLeft), "0")
        unit = "s from trial start" if course.trials else "s"
        p.drawText(line, int(Qt.AlignmentFlag.AlignRight), f"{course.seconds:.3g} {unit}")
        names = [(f"❙ {n}", QColor(TICKS[i % len(TICKS)])) for i, n in enumerate(course.events)]
        names += [(f"{course.column}:", ink)] if course.values else []
        names += [(f"■ {name}", QColor(SHADES[i])) for i, name in enumerate(course.values)]
        left = float(MARGIN)
        for name, color in names:
            p.setPen(color)
            shown = p.fontMetrics().elidedText(
                name, Qt.TextElideMode.ElideRight, max(0, int(self.width() - left - MARGIN))
            )
            p.drawText(QRectF(left, top + TEXT, self.width(), TEXT), 0, shown)
            left += p.fontMetrics().horizontalAdvance(name) + 10
