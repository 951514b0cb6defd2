"""Opens the docks of a window by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow

from napari_xcebra.widgets.controls.napari_window import real_viewer

if TYPE_CHECKING:
    import napari

PLUGIN = "napari-xcebra"


class Dock(NamedTuple):
    """Where a dock is found and where it goes."""

    home: str
    area: Literal["right", "bottom"]
    tabbed: bool = True
    """Whether it shares its place with others, rather than standing beside them."""


DOCKS = {
    "Recording": Dock("napari_xcebra.widgets.docks.recording.dock:RecordingDock", "right"),
    "Train": Dock("napari_xcebra.widgets.docks.train.dock:TrainDock", "right"),
    "Attribution": Dock("napari_xcebra.widgets.docks.attribution.dock:AttributionDock", "right"),
    "Curate": Dock("napari_xcebra.widgets.docks.curate.dock:CurateDock", "right"),
    "Cells": Dock("napari_xcebra.widgets.docks.cells.dock:CellsDock", "bottom"),
}
"""By the name in menus and tabs, in the order of work."""
ON_DEMAND = {
    "Video": Dock("napari_xcebra.widgets.docks.video.dock:VideoDock", "bottom", tabbed=False),
}
"""Docks that open where there is something to show."""


AREAS = {
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}


def open_dock(viewer: napari.Viewer, name: str) -> QDockWidget:
    """Open a dock, or bring the one that is open to the front."""
    viewer = real_viewer(viewer)
    docked = docked_widget(viewer, name)
    if docked is None:
        docked = _add(viewer, name)
    docked.show()
    docked.raise_()
    return docked


def docked_widget(viewer: napari.Viewer, name: str) -> QDockWidget | None:
    """The dock of that name in this viewer, if it is open."""
    widget: Any = viewer.window.dock_widgets.get(full_name(name))
    dock = None if widget is None else widget.parent()
    return dock if isinstance(dock, QDockWidget) else None


def full_name(name: str) -> str:
    """What napari calls a dock that is opened from its Plugins menu."""
    return f"{name} ({PLUGIN})"


def _add(viewer: napari.Viewer, name: str) -> QDockWidget:
    home, area, tabbed = (DOCKS | ON_DEMAND)[name]
    module, cls = home.split(":")
    widget = getattr(import_module(module), cls)(viewer)
    neighbours = _docks_at(viewer, area)
    dock = viewer.window.add_dock_widget(widget, name=full_name(name), area=area)
    window = dock.parent()
    assert isinstance(window, QMainWindow)
    if neighbours and tabbed:
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
