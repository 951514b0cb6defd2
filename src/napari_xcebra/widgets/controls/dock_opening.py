"""Opens the docks of a window by name."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, ref

from qtpy.compat import isalive
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QMainWindow

from napari_xcebra.widgets.controls.lifetime import when_docked
from napari_xcebra.widgets.controls.napari_window import real_viewer

if TYPE_CHECKING:
    import napari

PLUGIN = "napari-xcebra"
_SETTLED = "xcebra_settled"


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
KNOWN = DOCKS | ON_DEMAND


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


def keep_places(window: QMainWindow) -> None:
    """Let docks of ours that are opened again, from any menu, return to where they were."""
    if window not in _PLACES:
        _PLACES[window] = {}
        when_docked(window, _settle_soon)


_PLACES: WeakKeyDictionary[QMainWindow, dict[str, Qt.DockWidgetArea]] = WeakKeyDictionary()
"""Side of each window at which a dock was last."""


def _add(viewer: napari.Viewer, name: str) -> QDockWidget:
    module, cls = KNOWN[name].home.split(":")
    widget = getattr(import_module(module), cls)(viewer)
    dock = viewer.window.add_dock_widget(widget, name=full_name(name), area=KNOWN[name].area)
    _settle(dock)
    return dock


def _settle_soon(dock: QDockWidget) -> None:
    """Settle a dock of ours once napari has placed it."""
    if _name_of(dock):
        QTimer.singleShot(0, partial(_settle_if_there, ref(dock)))


def _settle_if_there(dock: ref[QDockWidget]) -> None:
    there = dock()
    if there is not None and isalive(there):
        _settle(there)


def _settle(dock: QDockWidget) -> None:
    """Put a dock where it was, as a tab between its neighbours in the order of work."""
    window, name = dock.parent(), _name_of(dock)
    if dock.property(_SETTLED) or not name or not isinstance(window, QMainWindow):
        return
    dock.setProperty(_SETTLED, True)
    # tabs fit side by side without the name of the plugin in each
    dock.setWindowTitle(name)
    places = _PLACES.setdefault(window, {})
    area = places.get(name, AREAS[KNOWN[name].area])
    if window.dockWidgetArea(dock) != area:
        window.addDockWidget(area, dock)
    neighbours = [d for d in _docks_at(window, area, but=dock) if KNOWN[_name_of(d)].tabbed]
    if neighbours and KNOWN[name].tabbed:
        window.tabifyDockWidget(neighbours[-1], dock)
        # Qt does not count the new one among them yet
        beside = {neighbours[-1], *window.tabifiedDockWidgets(neighbours[-1]), dock}
        tabs = sorted(filter(_name_of, beside), key=lambda each: list(KNOWN).index(_name_of(each)))
        for before, after in pairwise(tabs if tabs[-1] is not dock else ()):
            window.tabifyDockWidget(before, after)
        dock.raise_()
    dock.dockLocationChanged.connect(partial(places.__setitem__, name))


def _name_of(dock: QDockWidget) -> str:
    """Name of one of our docks, by what is inside it; empty for others."""
    inside = type(dock.widget())
    home = f"{inside.__module__}:{inside.__name__}"
    return next((name for name, each in KNOWN.items() if each.home == home), "")


def _docks_at(window: QMainWindow, area: Qt.DockWidgetArea, but: QDockWidget) -> list[QDockWidget]:
    """Our other docks that are open at a side of the window."""
    return [
        dock
        for dock in window.findChildren(QDockWidget)
        if dock is not but
        and _name_of(dock)
        and not dock.isFloating()
        and window.dockWidgetArea(dock) == area
    ]
