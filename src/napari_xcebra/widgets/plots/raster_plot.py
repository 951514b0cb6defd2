"""Draws the traces of all cells as an image over time, below lanes of behaviour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph
from qtpy.QtCore import QRectF, Qt, Signal
from qtpy.QtGui import QWheelEvent

from napari_xcebra.recording.overview import Raster, z_of
from napari_xcebra.widgets.plots.plot_style import PlotStyle, sequential_map
from napari_xcebra.widgets.plots.time_plot import LONG_GAP
from napari_xcebra.widgets.plots.trace_plot import TEXT, TracePlot

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
