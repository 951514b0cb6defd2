"""Draws what a plot shows as a figure for a paper: vectors, text as text, white background.

The items in the plots' scenes are drawn again by matplotlib, at the places they have on screen, so
that a figure shows what the window does. pyqtgraph's own export writes every piece of a curve as a
path of its own, leaves out PDF, and keeps the colours of a dark window.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyqtgraph
from napari.utils.notifications import show_error, show_info
from qtpy.QtCore import QByteArray, QEvent, QMimeData, QObject, QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QCursor, QImage
from qtpy.QtWidgets import (
    QApplication,
    QFileDialog,
    QGraphicsSimpleTextItem,
    QGraphicsView,
    QMenu,
    QWidget,
)

from napari_xcebra.errors import InputError
from napari_xcebra.report.figures.paper import (
    COLUMN,
    FORMATS,
    PAGE,
    draw_key,
    figure_bytes,
    paper_style,
    save_figure,
)
from napari_xcebra.widgets.controls.boxes import menu_of
from napari_xcebra.widgets.plots.plot_style import ColorKey

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PIXELS = 96
"""Pixels of the screen for an inch of paper."""
TALLEST = 9.0
"""Inches."""


def _figure_of(widget: QWidget) -> Figure:
    """What a widget with plots shows; as wide as a column, or as a page if it is wide.

    Its `key`, if it has one, explains the colours below it.
    """
    # only when there is a figure to draw: it takes as long as opening a dock
    from matplotlib.figure import Figure

    views = [widget] if isinstance(widget, QGraphicsView) else widget.findChildren(QGraphicsView)
    wide = widget.width() / PIXELS
    width = PAGE if wide > 1.6 * COLUMN else COLUMN
    height = min(TALLEST, widget.height() / PIXELS * max(1.0, width / wide))
    with paper_style():
        figure = Figure(figsize=(width, height))
        for view in views:
            if view.isVisible() or len(views) == 1:
                _Page(figure, widget, view).draw()
        if isinstance(key := getattr(widget, "key", None), ColorKey):
            # inches below the plot; what is written is cut to what is drawn
            strip = (0.3, -0.35 / height, 0.4, 0.07 / height)
            draw_key(figure.add_axes(strip), key.key)
    return figure


class _Page:
    """Draws one view of a widget into a figure."""

    def __init__(self, figure: Figure, widget: QWidget, view: QGraphicsView) -> None:
        self._figure, self._widget, self._view = figure, widget, view
        self._axes: dict[Any, Axes] = {}

    def draw(self) -> None:
        items = [item for item in self._view.scene().items() if _is_shown(item)]
        inside = {id(i.vb) for i in items if isinstance(i, pyqtgraph.PlotItem)}
        for item in items:
            if isinstance(item, pyqtgraph.PlotItem):
                self._draw_plot(item)
            elif isinstance(item, pyqtgraph.ViewBox) and id(item) not in inside:
                ax = self._add(item)
                ax.set(xticks=[], yticks=[])
                ax.spines[:].set_visible(False)
        for item in items:
            own = isinstance(item, pyqtgraph.AxisItem)
            if own and not isinstance(item.parentItem(), pyqtgraph.PlotItem):
                self._draw_axis(item, item.linkedView())  # of a colour bar
            if isinstance(item, QGraphicsSimpleTextItem) and item.text():
                self._write(item)

    def _place(self, rectangle: QRectF) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a rectangle of the scene, as shares of the figure."""
        corner = self._view.mapFromScene(rectangle.topLeft())
        if self._view is not self._widget:
            corner = self._view.mapTo(self._widget, corner)
        across, down = self._widget.width(), self._widget.height()
        wide, high = rectangle.width() / across, rectangle.height() / down
        return corner.x() / across, 1 - corner.y() / down - high, wide, high

    def _add(self, view: pyqtgraph.ViewBox) -> Axes:
        """Axes for a view, with all that is in it."""
        ax = self._axes[view] = self._figure.add_axes(self._place(view.sceneBoundingRect()))
        ax.patch.set_visible(False)
        (left, right), (low, high) = view.viewRange()
        ax.set_xlim(*((right, left) if view.xInverted() else (left, right)))
        ax.set_ylim(*((high, low) if view.yInverted() else (low, high)))
        for item in sorted(view.childGroup.childItems(), key=lambda item: item.zValue()):
            if _is_shown(item):
                _draw_item(ax, item)
        ax.set_autoscale_on(False)
        return ax

    def _draw_plot(self, plot: pyqtgraph.PlotItem) -> None:
        ax = self._add(plot.vb)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        for side in ("left", "right", "top", "bottom"):
            if plot.getAxis(side).isVisible():
                self._draw_axis(plot.getAxis(side), plot.vb)
        if plot.titleLabel.isVisible() and plot.titleLabel.text:
            text = plot.titleLabel.item.toPlainText()
            ax.set_title(text, color=_paper_color(plot.titleLabel.opts["color"] or "k"))
        named = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
        if named:
            ax.legend(handles=named, frameon=False, loc="lower left", ncols=4, borderpad=0,
                      bbox_to_anchor=(0, 1.02), handlelength=1.2, columnspacing=1)  # fmt: skip

    def _draw_axis(self, axis: pyqtgraph.AxisItem, view: pyqtgraph.ViewBox) -> None:
        """Ticks and label of an axis at its side of the axes."""
        ax, side = self._axes.get(view), axis.orientation
        if ax is None:
            return
        upright = side in ("left", "right")
        low, high = axis.range
        ends = ax.get_ylim() if upright else ax.get_xlim()
        at, texts = _ticks(axis)
        # an axis may count in another unit than its view, or downwards
        first, last = sorted(ends, reverse=bool(low > high))
        at = first + (np.array(at) - low) / ((high - low) or 1.0) * (last - first)
        if side in ("right", "top"):
            ax = ax.twinx() if upright else ax.twiny()
            ax.patch.set_visible(False)
            ax.spines[:].set_visible(False)
            (ax.set_ylim if upright else ax.set_xlim)(*ends)
        (ax.set_yticks if upright else ax.set_xticks)(at, texts)
        colors = getattr(axis, "_colors", [])
        bare = bool(colors) or axis.style["tickLength"] == 0
        bars = getattr(axis, "_bars", ())
        pad = 5 if bars else 2
        ax.tick_params(axis="y" if upright else "x", length=0 if bare else 2.5, pad=pad)
        ax.spines[side].set_visible(not bare and isinstance(axis.parentItem(), pyqtgraph.PlotItem))
        labels = ax.get_yticklabels() if upright else ax.get_xticklabels()
        for label, color in zip(labels, colors, strict=False):
            label.set_color(_paper_color(color))
        for start, stop, color in bars:
            ax.plot([1.005, 1.005], [start, stop], color=_paper_color(color), lw=1.5, clip_on=False,
                    transform=ax.get_yaxis_transform(), solid_capstyle="butt")  # fmt: skip
        if axis.label.isVisible() and (text := axis.label.toPlainText().strip()):
            (ax.set_ylabel if upright else ax.set_xlabel)(text)

    def _write(self, item: QGraphicsSimpleTextItem) -> None:
        rectangle = item.mapRectToScene(item.boundingRect())
        left, bottom, _, high = self._place(rectangle)
        self._figure.text(left, bottom + high, item.text(), va="top",
                          color=_paper_color(item.brush().color()))  # fmt: skip


def _is_shown(item: Any) -> bool:
    return bool(item.isVisible()) and getattr(item, "on_paper", True)


def _ticks(axis: pyqtgraph.AxisItem) -> tuple[list[float], list[str]]:
    """Where an axis has numbers or names, and what they say."""
    low, high = sorted(axis.range)
    if axis._tickLevels is not None:
        marks = [mark for mark in (axis._tickLevels or [[]])[0] if low <= mark[0] <= high]
        return [value for value, _ in marks], [text for _, text in marks]
    size = axis.geometry()
    length = size.height() if axis.orientation in ("left", "right") else size.width()
    levels = axis.tickValues(low, high, max(length, 1))
    if not levels:
        return [], []
    spacing, values = levels[0]
    scale = axis.autoSIPrefixScale * axis.scale
    return list(values), [str(text).strip() for text in axis.tickStrings(values, scale, spacing)]


POINT = 0.75
"""Points of a pixel."""
MOST_POINTS = 3000
"""Points above which they are drawn as an image: a drawing program should open the file."""
ON_PAPER = {
    "#ffffff": "#000000",
    "#d4d5d8": "#000000",
    "#80858f": "#707070",
    "#f0e442": "#000000",
}
"""Colours on a dark window that white paper would swallow, and what stands for them there."""
_STYLES = {
    Qt.PenStyle.SolidLine: "-",
    Qt.PenStyle.DashLine: "--",
    Qt.PenStyle.DotLine: ":",
    Qt.PenStyle.DashDotLine: "-.",
}
_SYMBOLS = {"t": "v", "t1": "^", "t2": ">", "t3": "<", "s": "s", "d": "D", "+": "P", "x": "X"}
"""matplotlib's names for pyqtgraph's symbols; others are dots."""
Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, 0 to 1."""


def _paper_color(color: Any) -> Color:
    """A colour of the window as it is on paper."""
    color = pyqtgraph.mkColor(color)
    paper = QColor(ON_PAPER.get(color.name().lower(), color.name()))
    return paper.redF(), paper.greenF(), paper.blueF(), color.alphaF()


def _draw_item(ax: Axes, item: Any) -> None:
    """Draw an item of a plot; what is none of these is left out."""
    for kind, draw in _DRAWN.items():
        if isinstance(item, kind):
            draw(ax, item)
            return
    if hasattr(item, "bands"):
        for start, stop in item.bands():
            ax.axvspan(start, stop, color=(0.93, 0.93, 0.93), lw=0, zorder=-10)


def _pen(pen: Any) -> dict[str, Any]:
    pen = pyqtgraph.mkPen(pen)
    if pen.style() == Qt.PenStyle.NoPen:
        return {"linestyle": ""}
    style = _STYLES.get(pen.style(), "-")
    return {
        "color": _paper_color(pen.color()),
        "linewidth": max(0.5, POINT * pen.widthF() * 0.7),
        "linestyle": style,
    }


def _draw_curve(ax: Axes, item: pyqtgraph.PlotCurveItem) -> None:
    x, y = item.getData()
    if x is None or not len(x) or item.opts["pen"] is None:
        return
    connect = item.opts.get("connect")
    if isinstance(connect, np.ndarray) and len(connect) == len(x):
        ends = np.flatnonzero(~connect.astype(bool)[:-1]) + 1
        x, y = (np.insert(np.asarray(v, float), ends, np.nan) for v in (x, y))
    ax.plot(x, y, solid_joinstyle="round", zorder=2 + item.zValue(), **_pen(item.opts["pen"]))


def _draw_data(ax: Axes, item: pyqtgraph.PlotDataItem) -> None:
    before = len(ax.get_lines())
    if item.curve.isVisible():
        _draw_curve(ax, item.curve)
    if item.scatter.isVisible():
        _draw_points(ax, item.scatter)
    if item.opts.get("name") and len(ax.get_lines()) > before:
        ax.get_lines()[before].set_label(item.opts["name"])


def _draw_points(ax: Axes, item: pyqtgraph.ScatterPlotItem) -> None:
    x, y = item.getData()
    if x is None or not len(x):
        return
    known = np.isfinite(np.asarray(x, float) + np.asarray(y, float))
    points = [point for point, there in zip(item.points(), known, strict=True) if there]
    x, y = np.asarray(x)[known], np.asarray(y)[known]
    brushes, pens = [p.brush() for p in points], [p.pen() for p in points]
    ax.scatter(
        x, y,
        s=[(POINT * p.size()) ** 2 for p in points],
        c=[_fill(b) for b in brushes],
        edgecolors=["none" if p.style() == Qt.PenStyle.NoPen else _paper_color(p.color())
                    for p in pens],
        linewidths=[POINT * p.widthF() for p in pens],
        marker=_SYMBOLS.get(item.opts["symbol"], "o"), zorder=3, rasterized=len(x) > MOST_POINTS,
    )  # fmt: skip


def _fill(brush: Any) -> Color | str:
    brush = pyqtgraph.mkBrush(brush)
    return "none" if brush.style() == Qt.BrushStyle.NoBrush else _paper_color(brush.color())


def _draw_bars(ax: Axes, item: pyqtgraph.BarGraphItem) -> None:
    opts = item.opts
    brushes = opts["brushes"] if opts.get("brushes") is not None else opts["brush"]
    colors = [_fill(b) for b in brushes] if isinstance(brushes, list) else _fill(brushes)
    ax.bar(opts["x"], opts["height"], opts["width"], color=colors, zorder=1)


def _draw_errors(ax: Axes, item: pyqtgraph.ErrorBarItem) -> None:
    opts = item.opts
    half = np.asarray(opts["height"], float) / 2
    pen = _pen(opts["pen"] or "k")
    ax.errorbar(opts["x"], opts["y"], half, fmt="none", ecolor=pen["color"], elinewidth=0.7)


def _draw_area(ax: Axes, item: pyqtgraph.FillBetweenItem) -> None:
    edges = [curve.getData() for curve in item.curves]
    if any(x is None or not len(x) for x, _ in edges):
        return
    (x, y), (back_x, back_y) = edges
    ax.fill(np.r_[x, back_x[::-1]], np.r_[y, back_y[::-1]], color=_fill(item.brush()), lw=0)


def _draw_image(ax: Axes, item: pyqtgraph.ImageItem) -> None:
    pixels = item.image
    if pixels is None:
        return
    area = item.mapRectToView(item.boundingRect()) if item.getViewBox() else item.boundingRect()
    if pixels.ndim == 2 and isinstance(item.lut, np.ndarray):
        low, high = item.levels if item.levels is not None else (0, len(item.lut) - 1)
        share = np.clip((pixels - low) / ((high - low) or 1), 0, 1)
        pixels = item.lut[(share * (len(item.lut) - 1)).astype(int)]
    if item.axisOrder == "col-major":
        pixels = np.swapaxes(pixels, 0, 1)
    ends = ax.get_xlim(), ax.get_ylim()
    ax.imshow(pixels, extent=(area.left(), area.right(), area.top(), area.bottom()),
              origin="lower", aspect="auto", interpolation="nearest", zorder=0)  # fmt: skip
    ax.set(xlim=ends[0], ylim=ends[1])


def _draw_line(ax: Axes, item: pyqtgraph.InfiniteLine) -> None:
    draw = ax.axvline if item.angle % 180 else ax.axhline
    draw(item.value(), zorder=2, label=item.name(), **_pen(item.pen))


def _draw_region(ax: Axes, item: pyqtgraph.LinearRegionItem) -> None:
    ax.axvspan(*item.getRegion(), color=(0.2, 0.2, 0.2, 0.12), lw=0)


def _draw_text(ax: Axes, item: pyqtgraph.TextItem) -> None:
    across, down = item.anchor
    ax.text(item.pos().x(), item.pos().y(), item.textItem.toPlainText(),
            ha=("left", "center", "right")[round(2 * across)],
            va=("top", "center", "bottom")[round(2 * down)],
            color=_paper_color(item.color))  # fmt: skip


_DRAWN: dict[type, Callable[[Axes, Any], None]] = {
    pyqtgraph.PlotDataItem: _draw_data,
    pyqtgraph.PlotCurveItem: _draw_curve,
    pyqtgraph.ScatterPlotItem: _draw_points,
    pyqtgraph.BarGraphItem: _draw_bars,
    pyqtgraph.ErrorBarItem: _draw_errors,
    pyqtgraph.FillBetweenItem: _draw_area,
    pyqtgraph.ImageItem: _draw_image,
    pyqtgraph.LinearRegionItem: _draw_region,
    pyqtgraph.InfiniteLine: _draw_line,
    pyqtgraph.TextItem: _draw_text,
}


KINDS = {"svg": "image/svg+xml", "pdf": "application/pdf"}
"""Vector formats, as other programs ask the clipboard for them."""


class FigureMenu(QObject):
    """The menu of a plot, which opens where it is right-clicked.

    Parameters
    ----------
    widget : QWidget
        Shows the plot, or several.
    name : str
        What the plot is, for the name of a file.
    draw : callable, optional
        Gives the figure; what is drawn in the widget's scenes if not given.
    """

    folder = Path.home()
    """Where a figure was saved last."""

    def __init__(
        self, widget: QWidget, name: str, draw: Callable[[], Figure] | None = None
    ) -> None:
        super().__init__(widget)
        self._widget, self._name = widget, name
        self._draw = draw or partial(_figure_of, widget)
        self._pressed: QPointF | None = None
        self.menu: QMenu = menu_of(
            widget,
            (
                ("Copy as figure", "To paste into a text, slides or a drawing.", self.copy),
                ("Save figure …", "As PDF, SVG or PNG, on white, with text as text.", self.save),
            ),
        )
        views = [widget] if isinstance(widget, QGraphicsView) else []
        for view in (*views, *widget.findChildren(QGraphicsView)):
            view.viewport().installEventFilter(self)
        if not views:
            widget.installEventFilter(self)

    def offer_values(self, table: Callable[[], str]) -> None:
        """Offer to copy what is drawn as a table, its columns divided by tabs."""
        action = self.menu.addAction("Copy values")
        action.setToolTip("To paste into a spreadsheet.")
        action.triggered.connect(lambda _=False: QApplication.clipboard().setText(table()))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the menu at a right click; a drag with the right button moves or zooms a plot."""
        if event.type() == QEvent.Type.MouseButtonPress:
            right = event.button() == Qt.MouseButton.RightButton
            self._pressed = event.globalPosition() if right else None
        elif event.type() == QEvent.Type.MouseButtonRelease and self._pressed is not None:
            moved = (event.globalPosition() - self._pressed).manhattanLength()
            self._pressed = None
            if moved < QApplication.startDragDistance():
                self.menu.popup(QCursor.pos())
        return False

    def copy(self) -> None:
        """Put the figure on the clipboard, as an image and as vectors."""
        figure, contents = self._draw(), QMimeData()
        for format, kind in KINDS.items():
            contents.setData(kind, QByteArray(figure_bytes(figure, format)))
        contents.setImageData(QImage.fromData(QByteArray(figure_bytes(figure, "png"))))
        QApplication.clipboard().setMimeData(contents)

    def save(self, path: str | Path | None = None) -> None:
        """Write the figure; asks where if no path is given."""
        if path is None:
            start = str(FigureMenu.folder / f"{self._name}.{FORMATS[0]}")
            kinds = ";;".join(f"{each.upper()} (*.{each})" for each in FORMATS)
            named, kind = QFileDialog.getSaveFileName(self._widget, "Save figure", start, kinds)
            if not named:
                return
            path = Path(named if Path(named).suffix else f"{named}.{kind.split(' ')[0].lower()}")
        try:
            written = save_figure(self._draw(), Path(path))
        except InputError as error:
            show_error(str(error))
            return
        FigureMenu.folder = written.parent
        show_info(f"Wrote {written}.")
