"""Plots signals over time in lanes below each other, thinned to what a screen can show.

Drawing 100,000 frames must not take longer than drawing 1,000. Buckets have a power of two of
frames and lie at multiples of it, so that a signal does not flicker when it is scrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QPointF, QRectF, Qt, Signal
from qtpy.QtGui import QFont, QPainter, QWheelEvent

from napari_xcebra.attribution.single_cell.tuning import Column
from napari_xcebra.recording import Kind
from napari_xcebra.recording.overview import Raster, z_of
from napari_xcebra.widgets.plots.plot_style import PlotStyle, sequential_map
from napari_xcebra.widgets.plots.time_plot import LONG_GAP, TimePlot

TEXT = 13
"""Pixels that a line of text needs."""
SMALLEST = 9
"""Pixels of the smallest text that can be read."""
EDGE = 0.06
"""Room above and below the lanes, in lanes."""


class TracePlot(TimePlot):
    """Lanes over one axis of time: names at the left, numbers and scale bars at the right."""

    def __init__(self) -> None:
        self._names = LaneAxis("left")
        self._numbers = LaneAxis("right")
        self._lanes: list[_PlacedLane] = []
        self._curves: list[pyqtgraph.PlotCurveItem] = []
        super().__init__(left=self._names, right=self._numbers)
        self.showAxis("right")
        self.figure_menu.offer_values(self.values_in_view)
        self.getViewBox().sigResized.connect(self._on_size)

    def show_lanes(self, lanes: Sequence[Lane]) -> None:
        """Replace the lanes; the stretch in view stays."""
        self._lanes = _stack_lanes(lanes)
        for curve in self._curves:
            self.removeItem(curve)
        self._curves = []
        for lane in lanes:
            for line in lane.lines:
                curve = pyqtgraph.PlotCurveItem(pen=line.pen, skipFiniteCheck=True)
                curve.setSegmentedLineMode("off")
                self.addItem(curve, ignoreBounds=True)
                self._curves.append(curve)
        self._on_size()

    def values_in_view(self) -> str:
        """The lanes in view as a table: a row for each frame, a column for each line."""
        first, last = self.frames
        frames = np.arange(first, last)
        columns = {
            "frame": frames.astype(str),
            "time (s)": [f"{t:.4f}" for t in self._times[frames]],
        }
        for place in self._lanes:
            for number, line in enumerate(place.lane.lines):
                title = place.lane.title.replace("\n", ", ")
                columns[title if number == 0 else f"{title} {number + 1}"] = line.texts(frames)
        rows = zip(*columns.values(), strict=True)
        return "\n".join(["\t".join(columns), *map("\t".join, rows)])

    @property
    def _lowest(self) -> float:
        """Where the lowest lane ends."""
        return self._lanes[-1].bottom if self._lanes else -1.0

    def _on_size(self) -> None:
        low, pixels = self._lowest, self.getViewBox().height()
        self.setYRange(low - EDGE, EDGE, padding=0)
        unit = (2 * EDGE - low) / max(pixels, 1)
        lowest = min((p.top - p.bottom for p in self._lanes), default=1.0) / unit
        for axis in (self._names, self._numbers):
            axis.write_small(int(np.clip(lowest, SMALLEST, TEXT - 1)))
        self._write(unit)
        self._draw()

    def _write(self, unit: float) -> None:
        """Name the lanes, and put numbers beside those that are tall enough.

        `unit` is the height of a pixel in the plot.
        """
        self._names.write(self._named(unit))
        half = unit * TEXT / 2
        texts, bars = {}, []
        for place in self._lanes:
            lane, height = place.lane, place.top - place.bottom
            if lane.bar is not None and height >= SMALLEST * unit:
                ends = place.height_of([lane.low, lane.low + lane.bar[0]])
                bars.append((*ends.tolist(), lane.color))
                at = place.middle if height < 4 * half else ends.mean()
                texts[float(at)] = (f" {lane.bar[1]}", lane.color)
            if height < 4 * half:
                continue
            for value, text in lane.ticks.items():
                # inside the lane, not half in the next one
                at = np.clip(place.height_of(value), place.bottom + half, place.top - half)
                texts[float(at)] = (text, lane.color)
        self._numbers.write(texts, bars)

    def _named(self, unit: float) -> dict[float, tuple[str, str]]:
        """What is written at the left, with its colour, by height."""
        return {p.middle: (p.lane.title, p.lane.color) for p in self._lanes}

    def _draw(self) -> None:
        first, last = self.frames
        points = max(50, int(self.getViewBox().width() / 2))
        curves = iter(self._curves)
        for place in self._lanes:
            for line in place.lane.lines:
                times, values, lines = line.visible(first, last, points, self._times, self._part)
                heights = place.height_of(values)
                next(curves).setData(times, heights, connect=lines, skipFiniteCheck=True)


class LaneAxis(pyqtgraph.AxisItem):
    """Names, numbers or scale bars of the lanes, each in the colour of its lane."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self._colors: list[str] = []
        self._bars: Sequence[tuple[float, float, str]] = ()
        self.setStyle(tickLength=0, autoExpandTextSpace=True, hideOverlappingLabels=False)

    def write(
        self,
        texts: dict[float, tuple[str, str]],
        bars: Sequence[tuple[float, float, str]] = (),
    ) -> None:
        """Write texts in their colours at some heights, and draw bars from one to another."""
        self._colors, self._bars = [color for _, color in texts.values()], bars
        self.setTicks([[(height, text) for height, (text, _) in texts.items()]])

    def write_small(self, pixels: int) -> None:
        """Write in a size that fits."""
        font = QFont()
        font.setPixelSize(pixels)
        self.setTickFont(font)

    def drawPicture(self, p: QPainter, axis: Any, ticks: Any, texts: Any) -> None:
        """Draw the axis; pyqtgraph has one colour for all texts."""
        super().drawPicture(p, axis, ticks, [])
        # all texts are in view, in the order they were given in
        for (rectangle, flags, text), color in zip(texts, self._colors, strict=False):
            p.setPen(pyqtgraph.mkPen(color))
            p.drawText(rectangle, int(flags), text)
        view = self.linkedView()
        for low, high, color in self._bars:
            p.setPen(pyqtgraph.mkPen(color, width=3))
            ends = [self.mapFromScene(view.mapViewToScene(QPointF(0, end))) for end in (low, high)]
            p.drawLine(*(QPointF(2, end.y()) for end in ends))


class _Extremes:
    """Lowest and highest value of a signal in buckets of 2, 4, 8 … frames.

    Parameters
    ----------
    values : (frames,) float
        NaN where there is none.
    """

    def __init__(self, values: np.ndarray) -> None:
        values = np.asarray(values)
        self._levels = [(values, values)]
        while len(self._levels[-1][0]) > 64:
            low, high = self._levels[-1]
            self._levels.append((_halved(low, np.fmin), _halved(high, np.fmax)))

    def between(self, first: int, last: int, points: int) -> tuple[np.ndarray, np.ndarray]:
        """Frames and values to draw for first ≤ frame < last.

        Where there are more frames than points, between `points` and 4 × `points` come back,
        the lowest and the highest value of each bucket.
        """
        level = min(_level(last - first, points), len(self._levels) - 1)
        low, high = self._levels[level]
        if level == 0:
            return np.arange(first, last), low[first:last]
        bucket = np.arange(first >> level, min(((last - 1) >> level) + 1, len(low)))
        frames = np.repeat((bucket << level) + (1 << (level - 1)), 2)
        values = np.stack([low[bucket], high[bucket]], axis=1).ravel()
        return np.minimum(frames, len(self._levels[0][0]) - 1), values


def _every_nth(
    values: np.ndarray, first: int, last: int, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Frames and values at even distances, for signals whose extremes mean nothing: angles."""
    step = 1 << _level(last - first, points)
    frames = np.arange(-(-first // step) * step, last, step)
    return frames, values[frames]


def _joined(values: np.ndarray, part: np.ndarray, period: float | None = None) -> np.ndarray:
    """Whether a line leads from each point to the next: (points,) bool, the last False.

    Parameters
    ----------
    values : (points,) float
        No line leads to or from NaN.
    part : (points,) int
        No line leads from one part of the recording to another.
    period : float, optional
        No line leads across the wrap of an angle.
    """
    known = np.isfinite(values)
    lines = np.zeros(len(values), bool)
    lines[:-1] = known[1:] & known[:-1] & (part[1:] == part[:-1])
    if period is not None:
        with np.errstate(invalid="ignore"):
            lines[:-1] &= np.abs(np.diff(values)) < period / 2
    return lines


def _steps(
    times: np.ndarray, values: np.ndarray, lines: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same signal as a staircase: each value stays until the next."""
    if len(times) < 2:
        return times, values, lines
    flat = np.repeat(lines, 2)[:-1]
    return np.repeat(times, 2)[1:], np.repeat(values, 2)[:-1], flat


def _level(frames: int, points: int) -> int:
    """Power of two of the frames a bucket has."""
    return max(0, int(np.floor(np.log2(max(frames, 1) / max(points, 1)))))


def _halved(values: np.ndarray, pick: np.ufunc) -> np.ndarray:
    even = values[: len(values) // 2 * 2]
    half = pick(even[::2], even[1::2])
    return half if len(even) == len(values) else np.append(half, values[-1])


GAP = 0.12
"""Share of a lane that is left free between it and the next."""
FEW = 4
"""Words that fit beside a lane."""


@dataclass(frozen=True, eq=False)
class _LaneLine:
    """A signal in a lane.

    Parameters
    ----------
    values : (frames,) float
    pen : any
        What pyqtgraph takes for a pen.
    kind : {"continuous", "circular", "discrete"}
    period : float
        Full turn, if circular.
    frames : (n,) int, optional
        Frames that the values belong to, ascending; all from 0 on if not given.
    """

    values: np.ndarray
    pen: Any
    kind: Kind = "continuous"
    period: float = 2 * np.pi
    frames: np.ndarray | None = None

    @cached_property
    def _extremes(self) -> _Extremes:
        return _Extremes(self.values)

    def visible(
        self, first: int, last: int, points: int, times: np.ndarray, part: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What to draw of the frames from first to last: times, values, lines between them.

        Parameters
        ----------
        first, last : int
            Frames, without the last.
        points : int
            About as many are wanted.
        times : (frames,) float
        part : (frames,) int
            No line leads from one part of the recording to another.
        """
        if self.frames is not None:
            first, last = np.searchsorted(self.frames, (first, last))
        if self.kind == "circular":
            found, values = _every_nth(self.values, first, last, points)
        else:
            found, values = self._extremes.between(first, last, points)
        if self.frames is not None:
            found = self.frames[found]
        period = self.period if self.kind == "circular" else None
        lines = _joined(values, part[found], period)
        at, values = times[found], np.nan_to_num(values)
        return _steps(at, values, lines) if self.kind == "discrete" else (at, values, lines)

    def texts(self, frames: np.ndarray) -> list[str]:
        """Values at some frames, for a table; empty where there is none."""
        at = np.full(int(frames[-1]) + 1, np.nan)
        known = np.arange(len(self.values)) if self.frames is None else self.frames
        inside = known < len(at)
        at[known[inside]] = self.values[inside]
        return ["" if np.isnan(value) else f"{value:.6g}" for value in at[frames]]


@dataclass(frozen=True, eq=False)
class Lane:
    """A strip of the plot.

    Parameters
    ----------
    title : str
    lines : sequence of Line
    low, high : float
        Values at the lower and upper edge.
    color : str
        Of the title.
    height : float
        Relative to the other lanes.
    ticks : mapping of float to str
        What is written at the right, by value.
    bar : (float, str), optional
        Scale bar at the right: how much it stands for, and in words.
    """

    title: str
    lines: Sequence[_LaneLine]
    low: float
    high: float
    color: str
    height: float = 1.0
    ticks: dict[float, str] = field(default_factory=dict)
    bar: tuple[float, str] | None = None


@dataclass(frozen=True)
class _PlacedLane:
    """Where a lane lies in the plot, which counts from 0 at the top downwards."""

    lane: Lane
    bottom: float
    top: float

    def height_of(self, values: Any) -> Any:
        """Position of values in the plot."""
        share = (np.asarray(values) - self.lane.low) / (self.lane.high - self.lane.low)
        return self.bottom + share * (self.top - self.bottom)

    @property
    def middle(self) -> float:
        """Where the title goes."""
        return (self.bottom + self.top) / 2


def _stack_lanes(lanes: Sequence[Lane]) -> list[_PlacedLane]:
    """Lanes from top to bottom: the first begins at 0, below it the values are negative."""
    ends = -np.cumsum([0.0] + [lane.height for lane in lanes])
    return [
        _PlacedLane(lane, end + GAP / 2, start - GAP / 2)
        for lane, start, end in zip(lanes, ends[:-1], ends[1:], strict=True)
    ]


def cell_lane(
    title: str, trace: np.ndarray, unit: str, pen: Any, color: str, height: float = 1.0
) -> Lane:
    """Lane of a trace, from its resting level to its highest peak, with a scale bar."""
    low = np.percentile(trace[:: max(1, len(trace) // 50_000)], 0.5)
    low, high = _widen(low, trace.max())
    size = _round_part(high - low)
    bar = (size, f"{size:g} {unit}".rstrip())
    return Lane(title, [_LaneLine(trace, pen)], low, high, color, height, bar=bar)


def _round_part(whole: float) -> float:
    """A round number, between a fifth and a half of another one.

    >>> _round_part(1.9), _round_part(430.0), _round_part(0.027)
    (0.5, 200.0, 0.01)
    """
    power = 10 ** np.floor(np.log10(whole / 2))
    return float(max(n for n in (1, 2, 5) if n * power <= whole / 2) * power)


def behavior_lane(column: Column, pen: Any, color: str) -> Lane:
    """Lane of a behaviour variable: angles without their wraps, discrete values as steps."""
    values = column.values
    if column.kind == "circular":
        values = values % column.period
        low, high = 0.0, column.period
    else:
        known = values[~np.isnan(values)]
        low, high = _widen(known.min(), known.max()) if len(known) else (0.0, 1.0)
    line = _LaneLine(values, pen, column.kind, column.period)
    ticks = _words(column) or _ends(low, high)
    return Lane(column.title, [line], low, high, color, 1.0, ticks)


def _words(column: Column) -> dict[float, str]:
    """Words of a discrete column by value, if it has few."""
    words = dict(enumerate(column.words)) if column.kind == "discrete" else {}
    return {float(value): word for value, word in words.items()} if len(words) <= FEW else {}


def score_lane(
    title: str, scores: np.ndarray, frames: np.ndarray, pens: Sequence[Any], color: str
) -> Lane:
    """Lane of the scores of several cells over time: (n, cells) float at n frames."""
    known = scores[np.isfinite(scores)]
    low, high = _widen(0.0, np.percentile(known, 99.8)) if len(known) else (0.0, 1.0)
    lines = [
        _LaneLine(values, pen, frames=frames) for values, pen in zip(scores.T, pens, strict=True)
    ]
    return Lane(title, lines, low, high, color, 1.5, _ends(low, high))


def _widen(low: float, high: float) -> tuple[float, float]:
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def _ends(low: float, high: float) -> dict[float, str]:
    return {low: f"{low:.3g}", high: f"{high:.3g}"}


LANE = 24
"""Pixels of a lane above the image."""
FEWEST_ROWS = 5
"""Cells that one can zoom in to."""
MOST_BLOCKS = 99
"""Percentile of z at the end of the colours."""
MARK = "▸"
CURSOR = "#ff3b30"


class RasterPlot(TracePlot):
    """A row of the image for each cell, from top to bottom in a given order."""

    cell_chosen = Signal(int, bool)
    """The user clicked on this cell; the flag says whether to add it to the selection."""

    def __init__(self) -> None:
        self._image = pyqtgraph.ImageItem(axisOrder="row-major")
        self._raster: Raster | None = None
        self._interval = np.inf
        self.order = np.zeros(0, np.int64)
        self.rows = (0, 0)
        self._marks: dict[int, tuple[str, str]] = {}
        self._ink = "#808080"
        super().__init__()
        self._image.setZValue(-5)
        self.addItem(self._image, ignoreBounds=True)

    def show_raster(
        self,
        raster: Raster,
        order: np.ndarray,
        rate: float,
        limits: tuple[float, float],
        marks: dict[int, tuple[str, str]],
        style: PlotStyle,
    ) -> None:
        """Draw cells.

        Parameters
        ----------
        raster : Raster
        order : (n,) int
            Cells to draw, by position, from top to bottom.
        rate : float
            Frames per second.
        limits : (float, float)
            z at the two ends of the colours.
        marks : mapping of int to (str, str)
            Name and colour of the cells to mark beside their rows, by position.
        style : PlotStyle
        """
        same = len(order) == len(self.order)
        self.rows = self.rows if same and self._raster is raster else (0, len(order))
        self._raster, self.order, self._interval = raster, order, 1 / rate
        self._marks, self._ink = marks, style.ink
        low, high = limits
        share = np.clip((z_of(np.arange(256)) - low) / (high - low), 0, 1)
        table = sequential_map()[(share * 255).astype(int)]
        table[0] = pyqtgraph.mkColor(style.background).getRgb()[:3]
        self._image.setLookupTable(table)
        self._on_size()

    def follow_style(self, style: PlotStyle) -> None:
        """Use the colours of a theme."""
        super().follow_style(style)
        # a black cursor would vanish in the image, which is dark on any theme
        self._cursor.setPen(pyqtgraph.mkPen(style.accent if style.dark else CURSOR, width=1))

    def show_rows(self, first: int, last: int) -> None:
        """Bring the cells from first to last (without it) of the order into view."""
        count = int(np.clip(last - first, min(FEWEST_ROWS, len(self.order)), len(self.order)))
        first = int(np.clip(first, 0, len(self.order) - count))
        self.rows = first, first + count
        self._on_size()

    # ------------------------------------------------------------ where things are

    @property
    def _top(self) -> float:
        """Where the image begins, below the lanes."""
        return super()._lowest if self._lanes else 0.0

    @property
    def _lowest(self) -> float:
        lanes = -self._top
        return self._top - max(self.getViewBox().height() / LANE - lanes, lanes, 1.0)

    def _height_of(self, row: float) -> float:
        """Position of a row of the order in the plot."""
        first, last = self.rows
        return self._top + (row - first) / max(last - first, 1) * (self._lowest - self._top)

    def cell_at(self, height: float) -> int | None:
        """Cell at a height of the plot; None above and below the image."""
        first, last = self.rows
        share = (height - self._top) / (self._lowest - self._top)
        row = first + int(np.floor(share * (last - first)))
        return int(self.order[row]) if first <= row < last else None

    # ------------------------------------------------------------ drawing

    def _named(self, unit: float) -> dict[float, tuple[str, str]]:
        """Names of lanes and marked cells; where names would overlap, the mark alone."""
        texts, last = super()._named(unit), np.inf
        first, end = self.rows
        rows = np.flatnonzero(np.isin(self.order[first:end], list(self._marks))) + first
        for row in rows.tolist():
            name, color = self._marks[int(self.order[row])]
            height = self._height_of(row + 0.5)
            room = last - height >= TEXT * unit
            texts[height] = (f"{name} {MARK}" if room else MARK, color)
            last = height if room else last
        if not len(rows) and end:
            whole = f"{end:,} cells" if end - first == len(self.order) else f"{end - first} cells"
            texts[self._height_of((first + end) / 2)] = (whole, self._ink)
        return texts

    def _draw(self) -> None:
        super()._draw()
        raster, (first, last) = self._raster, self.rows
        if raster is None or last == first:
            return
        low, high = self.seconds
        width, pixels = self._pixels()
        times = low + (np.arange(width) + 0.5) * (high - low) / width
        frame = np.clip(np.searchsorted(self._times, times, side="right") - 1, 0, None)
        each = (high - low) / width / self._interval
        codes = _fewer(raster.at(frame, each, self.order[first:last]), pixels)
        codes[:, times - self._times[frame] > LONG_GAP * self._interval] = 0
        self._image.setImage(codes[::-1], autoLevels=False, levels=(0, 255))
        self._image.setRect(QRectF(low, self._lowest, high - low, self._top - self._lowest))

    def _pixels(self) -> tuple[int, int]:
        """Width and height of the image on the screen."""
        view = self.getViewBox()
        low, high = view.viewRange()[1]
        share = (self._top - self._lowest) / max(high - low, 1e-9)
        return max(2, int(view.width())), max(1, int(share * view.height()))

    # ------------------------------------------------------------ mouse

    def _clicked(self, event: Any, at: Any) -> None:
        """Select the cell under the mouse and go to that moment; with Ctrl, add the cell."""
        cell = self.cell_at(at.y())
        more = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if cell is not None:
            self.cell_chosen.emit(cell, more)
        if cell is None or not more:
            super()._clicked(event, at)

    def wheelEvent(self, ev: QWheelEvent) -> None:
        """Zoom time; with Ctrl zoom cells, and with Shift scroll them."""
        held = ev.modifiers()
        turned = ev.angleDelta().y() or ev.angleDelta().x()
        first, last = self.rows
        if held & Qt.KeyboardModifier.ControlModifier:
            at = self.getViewBox().mapSceneToView(self.mapToScene(ev.position().toPoint())).y()
            share = float(np.clip((at - self._top) / (self._lowest - self._top), 0, 1))
            count = round((last - first) * 0.999**turned)
            start = round(first + share * (last - first - count))
            self.show_rows(start, start + count)
        elif held & Qt.KeyboardModifier.ShiftModifier:
            step = round(-turned / 120 * max(1, (last - first) / 10))
            self.show_rows(first + step, last + step)
        else:
            super().wheelEvent(ev)


def _fewer(codes: np.ndarray, rows: int) -> np.ndarray:
    """Means over neighbouring cells, if there are more of them than rows: (≤ rows, n) uint8."""
    if len(codes) <= rows:
        return codes
    starts = np.arange(rows) * len(codes) // rows
    sums = np.add.reduceat(codes, starts, axis=0, dtype=np.uint32)
    counts = np.diff(np.append(starts, len(codes)))
    found: np.ndarray = (sums // counts[:, None]).astype(np.uint8)
    return found


def z_limits(raster: Raster) -> tuple[float, float]:
    """Values of z at the ends of the colours: 0, and a round one that few blocks exceed."""
    codes = raster.levels[0]
    some = codes[:, :: max(1, codes.size // 1_000_000)]
    return 0.0, float(max(1.0, np.ceil(z_of(np.percentile(some, MOST_BLOCKS)))))
