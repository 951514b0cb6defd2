"""All docks at once, where they belong: tabs on the right, the cells at the bottom."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from qtpy.QtCore import QRect, Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QMainWindow, QTabWidget, QVBoxLayout, QWidget

from napari_xcebra.widgets.garbage import collect_while_waiting

if TYPE_CHECKING:
    import napari

PLUGIN = "napari-xcebra"


class Dock(NamedTuple):
    """Where a dock is found and where it goes."""

    home: str
    area: Literal["right", "bottom"]


DOCKS = {
    "Recording": Dock("recording_dock:RecordingDock", "right"),
    "Train": Dock("train_dock:TrainDock", "right"),
    "Attribution": Dock("attribution_dock:AttributionDock", "right"),
    "Curate": Dock("curate_dock:CurateDock", "right"),
    "Cells": Dock("cells_dock:CellsDock", "bottom"),
}
"""By the name in menus and tabs, in the order of work."""
AREAS = {
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
CELLS_HEIGHT = 230


def is_there(name: str) -> bool:
    """Whether this version has such a dock."""
    if name not in DOCKS:
        return False
    module = DOCKS[name].home.split(":")[0]
    return find_spec(f"napari_xcebra.widgets.{module}") is not None


def open_dock(viewer: napari.Viewer, name: str) -> QDockWidget:
    """Open a dock, or bring the one that is open to the front."""
    # napari hands plugins a proxy, which lets no widget through as it is
    viewer = getattr(viewer, "__wrapped__", viewer)
    docked = docked_widget(viewer, name)
    if docked is None:
        docked = _add(viewer, name)
    docked.show()
    docked.raise_()
    return docked


def open_workspace(viewer: napari.Viewer) -> None:
    """Open all docks, arranged, with the first step in front."""
    docks = {name: open_dock(viewer, name) for name in DOCKS if is_there(name)}
    window = docks["Recording"].parent()
    assert isinstance(window, QMainWindow)
    # at the top, where one looks for them
    window.setTabPosition(AREAS["right"], QTabWidget.TabPosition.North)
    if "Cells" in docks:
        vertical = Qt.Orientation.Vertical
        window.resizeDocks([docks["Cells"]], [CELLS_HEIGHT], vertical)
    docks["Recording"].raise_()
    # where napari fades a control, Qt lays out all that is hidden: here, where one waits anyway
    window.grab(QRect(0, 0, 1, 1))
    collect_while_waiting()


def docked_widget(viewer: napari.Viewer, name: str) -> QDockWidget | None:
    """The dock of that name in this viewer, if it is open."""
    widget = viewer.window.dock_widgets.get(full_name(name))
    return None if widget is None else _dock_around(widget)


def full_name(name: str) -> str:
    """What napari calls a dock that is opened from its Plugins menu."""
    return f"{name} ({PLUGIN})"


class Workspace(QWidget):
    """Entry of the Plugins menu: opens the docks and goes."""

    def __init__(self, napari_viewer: napari.viewer.Viewer) -> None:
        super().__init__()
        QVBoxLayout(self)
        self._viewer = napari_viewer
        # once napari has put this widget into a dock of its own
        QTimer.singleShot(0, self._make_way)

    def _make_way(self) -> None:
        viewer = self._viewer
        viewer = getattr(viewer, "__wrapped__", viewer)
        viewer.window.remove_dock_widget(self)
        self.deleteLater()
        open_workspace(viewer)


def _add(viewer: napari.Viewer, name: str) -> QDockWidget:
    module, cls = DOCKS[name].home.split(":")
    widget = getattr(import_module(f"napari_xcebra.widgets.{module}"), cls)(viewer)
    area = DOCKS[name].area
    neighbours = _docks_at(viewer, area)
    dock = viewer.window.add_dock_widget(widget, name=full_name(name), area=area)
    window = dock.parent()
    assert isinstance(window, QMainWindow)
    if neighbours:
        window.tabifyDockWidget(neighbours[-1], dock)
    # four tabs fit side by side without the name of the plugin in each
    dock.setWindowTitle(name)
    return dock


def _docks_at(viewer: napari.Viewer, area: str) -> list[QDockWidget]:
    """Our docks that are open at a side of the window, in the order of work."""
    docks = [docked_widget(viewer, name) for name in DOCKS]
    return [
        dock
        for dock in docks
        if dock is not None
        and not dock.isFloating()
        and isinstance(window := dock.parent(), QMainWindow)
        and window.dockWidgetArea(dock) == AREAS[area]
    ]


def _dock_around(widget: Any) -> QDockWidget | None:
    dock = widget.parent()
    return dock if isinstance(dock, QDockWidget) else None
