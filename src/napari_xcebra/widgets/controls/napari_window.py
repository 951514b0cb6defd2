"""Reaches the parts of a napari window, opens its docks by name, and sees them come and go.

The only place that touches private attributes of napari; each has a fallback if it is missing.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, WeakMethod, ref

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, Qt, QTimer, Signal
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

if TYPE_CHECKING:
    import napari


def real_viewer(viewer: Any) -> Any:
    """The viewer behind the proxy that napari hands to plugins, which blocks access to widgets."""
    return getattr(viewer, "__wrapped__", viewer)


def main_window(viewer: Any) -> QMainWindow | None:
    """The main window of a viewer; None for a viewer without a window."""
    window = getattr(real_viewer(viewer), "window", None)
    if window is None:
        return None
    found = getattr(window, "_qt_window", None)
    return _window_with_docks(window) if found is None else found


def viewer_part(window: Any) -> QWidget:
    """The part of a main window with the image, its sliders and controls."""
    found = getattr(window, "_qt_viewer", None)
    return window.centralWidget() if found is None else found


def parts_that_take_drops(window: Any) -> list[QWidget]:
    """The image, and the page that napari shows in its place while there are no layers."""
    inside = viewer_part(window)
    welcome = getattr(inside, "_welcome_widget", None)
    return [inside] if welcome is None else [inside, welcome]


def view_direction(viewer: Any) -> Any:
    """Where the pointer looks along, as mouse events say it; None in a flat view."""
    return getattr(viewer.cursor, "_view_direction", None)


def canvas_of(viewer: Any) -> QWidget | None:
    """The widget that the image is drawn on; None for a viewer without a window."""
    window = main_window(viewer)
    if window is None:
        return None
    part = viewer_part(window)
    return getattr(getattr(part, "canvas", None), "native", part)


def scene_of(viewer: Any) -> Any:
    """The vispy view that covers the canvas, in its pixels; None for a viewer without one."""
    window = main_window(viewer)
    canvas = None if window is None else getattr(viewer_part(window), "canvas", None)
    return getattr(canvas, "view", None)


def before_opening(viewer: Any, take: Callable[[list[str]], bool], owner: QObject) -> None:
    """Offer the files of File ▸ Open to `take` first, which says whether it takes them.

    Where the user names a reader or makes a stack, napari opens them as ever. It ends with its
    owner, of which `take` is a method; in a version of napari that opens files elsewhere, nothing
    is offered.
    """
    window = main_window(viewer)
    part: Any = None if window is None else viewer_part(window)
    if not hasattr(part, "_qt_open"):
        return
    # neither the window nor the owner may be kept alive by this
    where, taking = ref(part), WeakMethod(take)

    def offer_first(filenames: list[str], *given: Any, **named: Any) -> Any:
        stack = given[0] if given else named.get("stack", False)
        plain = not stack and not named.get("choose_plugin") and not named.get("plugin")
        take, part = taking(), where()
        if plain and take is not None and take([str(name) for name in filenames]):
            return None
        return None if part is None else type(part)._qt_open(part, filenames, *given, **named)

    def as_before(*_: object) -> None:
        part = where()
        # unless another dock came in between
        if part is not None and part.__dict__.get("_qt_open") is offer_first:
            del part._qt_open

    part._qt_open = offer_first
    owner.destroyed.connect(as_before)


def _window_with_docks(window: Any) -> QMainWindow | None:
    from qtpy.QtWidgets import QApplication

    around = [widget.window() for widget in window.dock_widgets.values()]
    found = (each for each in (*around, *QApplication.topLevelWidgets()))
    return next((each for each in found if isinstance(each, QMainWindow)), None)


# At its exit PyQt walks over all objects and deletes those that are left, and crashes where one
# takes others with it, as plots of a closed window do. What is garbage by then is collected first.
atexit.register(gc.collect)


def follow(owner: QWidget, signal: Any, method: Callable[..., object]) -> None:
    """Call a method at each emission of a signal, for as long as its widget exists.

    Signals of psygnal and napari know nothing of Qt: they would keep calling a widget whose window
    is gone.
    """
    signal.connect(method)
    weak = WeakMethod(method)

    def let_go(*_: object) -> None:
        alive = weak()
        # a viewer that is being collected has taken its emitters apart already
        with suppress(AttributeError):
            if alive is not None:
                signal.disconnect(alive)

    owner.destroyed.connect(let_go)


def when_docked(window: QWidget, tell: Callable[[QDockWidget], object]) -> None:
    """Call `tell` with each dock that is shown in a main window for the first time."""
    _Arrival(window, tell)


class _Arrival(QObject):
    """Watches a main window for new docks."""

    def __init__(self, window: QWidget, tell: Callable[[QDockWidget], object]) -> None:
        super().__init__(window)
        self._tell = tell
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Tell of a dock that Qt is about to show."""
        if event is not None and event.type() == QEvent.Type.ChildPolished:
            dock = event.child()
            if isinstance(dock, QDockWidget):
                self._tell(dock)
        return False


def end_with_dock(widget: QWidget) -> None:
    """Delete a widget once napari has taken it out of its dock.

    napari only detaches it: it would live on unseen, and listen.
    """
    _Departure(widget)


class _Departure(QObject):
    """Watches for a widget losing the parent it had."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._docked = False
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Note docking; delete when undocked."""
        if event is not None and event.type() == QEvent.Type.ParentChange and watched is not None:
            if watched.parent() is not None:
                self._docked = True
            elif self._docked:
                watched.deleteLater()
        return False


class Presence(QObject):
    """Whether the dock around a widget can be seen: neither closed nor behind another tab.

    Qt says of a widget behind a tab that it is visible.
    """

    changed = Signal(bool)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.now = True
        self._dock: QDockWidget | None = None
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Listen to the dock into which the widget is put."""
        if event is not None and event.type() == QEvent.Type.ParentChange and watched is not None:
            dock = watched.parent()
            if isinstance(dock, QDockWidget) and dock is not self._dock:
                self._dock = dock
                dock.visibilityChanged.connect(self._hear)
        return False

    def _hear(self, visible: bool) -> None:
        if visible != self.now:
            self.now = visible
            self.changed.emit(visible)


PLUGIN = "napari-xcebra"
_SETTLED = "xcebra_settled"


class _Dock(NamedTuple):
    """Where a dock is found and where it goes."""

    home: str
    area: Literal["right", "bottom"]
    tabbed: bool = True
    """Whether it shares its place with others, rather than standing beside them."""


DOCKS = {
    "Recording": _Dock("napari_xcebra.widgets.docks.recording.dock:RecordingDock", "right"),
    "Train": _Dock("napari_xcebra.widgets.docks.train.dock:TrainDock", "right"),
    "Attribution": _Dock("napari_xcebra.widgets.docks.attribution.dock:AttributionDock", "right"),
    "Curate": _Dock("napari_xcebra.widgets.docks.curate.dock:CurateDock", "right"),
    "Cells": _Dock("napari_xcebra.widgets.docks.cells.dock:CellsDock", "bottom"),
}
"""By the name in menus and tabs, in the order of work."""
ON_DEMAND = {
    "Video": _Dock("napari_xcebra.widgets.docks.video.dock:VideoDock", "bottom", tabbed=False),
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
