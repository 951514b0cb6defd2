"""Offers a plot as a figure, by a right click: to copy, or to save as PDF, SVG or PNG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from napari.utils.notifications import show_error, show_info
from qtpy.QtCore import QByteArray, QEvent, QMimeData, QObject, QPointF, Qt
from qtpy.QtGui import QCursor, QImage
from qtpy.QtWidgets import QApplication, QFileDialog, QGraphicsView, QMenu, QWidget

from napari_xcebra.errors import InputError
from napari_xcebra.widgets.controls.boxes import menu_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        self._draw = draw or self._drawn_again
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

    # matplotlib is imported when there is a figure to draw: it takes as long as opening a dock

    def _drawn_again(self) -> Figure:
        from napari_xcebra.widgets.plots.paper import figure_of

        return figure_of(self._widget)

    def copy(self) -> None:
        """Put the figure on the clipboard, as an image and as vectors."""
        from napari_xcebra.report.figures.paper import figure_bytes

        figure, contents = self._draw(), QMimeData()
        for format, kind in KINDS.items():
            contents.setData(kind, QByteArray(figure_bytes(figure, format)))
        contents.setImageData(QImage.fromData(QByteArray(figure_bytes(figure, "png"))))
        QApplication.clipboard().setMimeData(contents)

    def save(self, path: str | Path | None = None) -> None:
        """Write the figure; asks where if no path is given."""
        from napari_xcebra.report.figures.paper import FORMATS, save_figure

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
