"""Draws small pictures without axes: trials, clips of transients, the course of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from qtpy.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_xcebra.recording import Recording
from napari_xcebra.recording.summary import GLANCE
from napari_xcebra.text import listed
from napari_xcebra.widgets.controls.boxes import plain

if TYPE_CHECKING:
    from napari_xcebra.recording.overview import Clips


TICKS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#0072B2")
SHADES = ("#3C8FD0", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442")
"""Okabe and Ito, so that ticks of one colour do not vanish on the shade of another."""
MOST_ROWS = 24
HEIGHT, TEXT, MARGIN = 114, 15, 3


@dataclass(frozen=True)
class _TrialRow:
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
class _TrialRows:
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

    rows: tuple[_TrialRow, ...]
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


def _course_of(recording: Recording) -> _TrialRows | None:
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
        rows.append(_TrialRow((stop - first) / rate, value, tuple(inside)))
    names = tuple(trials.label(column, value) for value in different)
    longest = max(row.length for row in rows)
    return _TrialRows(tuple(rows), longest, tuple(events), names, column, len(trials))


def _different(values: np.ndarray) -> np.ndarray:
    return np.unique(values[~np.isnan(values)])


def _minute(events: dict[str, np.ndarray], rate: float) -> _TrialRows:
    first = min(frames[0] for frames in events.values())
    seconds = {name: (frames - first) / rate for name, frames in events.items()}
    rows = tuple(_TrialRow(0.0, -1, ((i, s[s <= GLANCE]),)) for i, s in enumerate(seconds.values()))
    return _TrialRows(rows, GLANCE, tuple(events))


class TrialsPicture(QWidget):
    """Rows of trials with their events, names of which stand below; hidden without any."""

    def __init__(self) -> None:
        super().__init__()
        self.course: _TrialRows | None = None
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()

    def sizeHint(self) -> QSize:
        """Low."""
        return QSize(200, HEIGHT)

    def show_recording(self, recording: Recording) -> None:
        """Draw the trials and events of a recording."""
        self.course = _course_of(recording)
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

    def _draw_rows(self, p: QPainter, course: _TrialRows) -> None:
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

    def _write(self, p: QPainter, course: _TrialRows) -> None:
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


TILES = 6
GAP = 3
LEAST, MOST = 52, 230
"""Height in pixels: of one row of small pictures, and of two rows of large ones."""
SHORTEST = 50
"""Milliseconds between two frames at least."""


class ClipStrip(QWidget):
    """Five clips and their average image, each with the outline of the cell."""

    chosen = Signal(int)
    """Frame of the recording at the peak of the clip that was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._clips: Clips | None = None
        self._outline: Sequence[np.ndarray] = ()
        self._words = ""
        self._tick = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._play)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(LEAST)
        self.setMaximumHeight(MOST)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip(
            "The five largest transients of this cell, from 1 s before to 2 s after their peak, "
            "and their average rise. Click one to go to its time."
        )
        self.setAccessibleName("Largest transients of this cell")

    def sizeHint(self) -> QSize:
        """One row of small pictures, which become larger where there is room."""
        return QSize(200, LEAST)

    @property
    def words(self) -> str:
        """What is said instead of clips."""
        return self._words

    @property
    def clips(self) -> Clips | None:
        """What is played."""
        return self._clips

    def show_clips(self, clips: Clips | None, outline: Sequence[np.ndarray], words: str) -> None:
        """Play other clips; where there are none, say why in a few words."""
        if clips is self._clips and words == self._words:
            return
        self._clips, self._outline, self._words, self._tick = clips, outline, words, 0
        if clips is not None:
            corner = np.array(clips.corner)
            self._outline = [line - corner for line in outline]
            self._limits = _limits(np.concatenate([clip.ravel() for clip in clips.clips]))
        self._run()
        self.update()

    def showEvent(self, event: Any) -> None:
        """Play while it can be seen."""
        super().showEvent(event)
        self._run()

    def hideEvent(self, event: Any) -> None:
        """Rest while it cannot be seen."""
        super().hideEvent(event)
        self._timer.stop()

    def _run(self) -> None:
        if self._clips is None or not self.isVisible():
            self._timer.stop()
        else:
            self._timer.start(max(SHORTEST, round(1000 * self._clips.seconds)))

    def _play(self) -> None:
        self._tick += 1
        self.update()

    # ------------------------------------------------------------ drawing

    def paintEvent(self, event: Any) -> None:
        """Draw the frames of this moment."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        clips = self._clips
        if clips is None:
            painter.setPen(self.palette().windowText().color())
            centered = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect(), int(centered), self._words)
            painter.end()
            return
        for place, clip in zip(self._places(), clips.clips, strict=False):
            self._draw(painter, place, clip[self._tick % len(clip)], self._limits)
        last = self._places()[TILES - 1]
        self._draw(painter, last, clips.average, _limits(clips.average))
        for shift, color in ((1, Qt.GlobalColor.black), (0, Qt.GlobalColor.white)):
            painter.setPen(color)
            painter.drawText(last.adjusted(4 + shift, 2 + shift, 0, 0), "mean")
        painter.end()

    def _places(self) -> list[QRectF]:
        """Where each picture is drawn: in one row or two, as large as there is room."""
        width, height = self.width(), self.height()
        side, across = max(
            (min((width - GAP * (n - 1)) / n, (height - GAP * (TILES // n - 1)) * n / TILES), n)
            for n in (TILES // 2, TILES)
        )
        left = (width - across * side - GAP * (across - 1)) / 2
        return [
            QRectF(left + (i % across) * (side + GAP), (i // across) * (side + GAP), side, side)
            for i in range(TILES)
        ]

    def _draw(
        self, painter: QPainter, place: QRectF, frame: np.ndarray, limits: tuple[float, float]
    ) -> None:
        low, high = limits
        gray = np.ascontiguousarray(255 * np.clip((frame - low) / (high - low), 0, 1), np.uint8)
        rows, columns = gray.shape
        image = QImage(gray.tobytes(), columns, rows, columns, QImage.Format.Format_Grayscale8)
        # what is not square is cut off at the edge of the field
        scale = min(place.width() / columns, place.height() / rows)
        shown = QRectF(place.x(), place.y(), columns * scale, rows * scale)
        painter.drawImage(shown, image)
        painter.setPen(QPen(QColor(255, 255, 255, 130), 1))
        for line in self._outline:
            points = (line + 0.5) * scale
            painter.drawPolygon(QPolygonF([shown.topLeft() + QPointF(x, y) for y, x in points]))

    def mousePressEvent(self, event: Any) -> None:
        """Go to the time of the clip."""
        clips = self._clips
        for place, peak in zip(self._places(), clips.peaks if clips else (), strict=False):
            if place.contains(event.position()):
                self.chosen.emit(int(peak))


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Values shown as black and white."""
    low, high = np.percentile(values, (1, 99.7))
    return (float(low), float(high)) if high > low else (float(low), float(low) + 1)


# Okabe and Ito; visible on napari's dark and light background alike
COLORS = ("#3C8FD0", "#D55E00", "#009E73")


class Sparkline(QWidget):
    """Lines without axes.

    Parameters
    ----------
    lines : sequence of (points, 2) float
        Both axes from 0 to 1; a line is broken where it is NaN.
    dots : bool
        Draw the points alone, for values that have no order or wrap around.
    """

    def __init__(self, lines: Sequence[np.ndarray], dots: bool = False) -> None:
        super().__init__()
        self._lines = lines
        self._dots = dots
        self.setMinimumSize(48, 18)

    def sizeHint(self) -> QSize:
        """Small."""
        return QSize(70, 22)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        """Draw."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for line, color in zip(self._lines, COLORS, strict=False):
            painter.setPen(QPen(QColor(color), 2.0 if self._dots else 1.2))
            for piece in _pieces(self._scaled(line)):
                points = QPolygonF([QPointF(x, y) for x, y in piece.tolist()])
                if self._dots or len(piece) == 1:
                    painter.drawPoints(points)
                else:
                    painter.drawPolyline(points)
        painter.end()

    def _scaled(self, line: np.ndarray) -> np.ndarray:
        size = np.array([self.width(), self.height()]) - 2 * MARGIN
        return MARGIN + np.abs([0, 1] - line) * size


def _pieces(line: np.ndarray) -> list[np.ndarray]:
    """Parts of a line between gaps."""
    known = np.isfinite(line).all(axis=1)
    edges = np.flatnonzero(np.diff(known)) + 1
    return [piece for piece in np.split(line, edges) if len(piece) and np.isfinite(piece).all()]
