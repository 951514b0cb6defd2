"""Reaches the parts of a napari window that its public interface does not give.

The only place that touches private attributes of napari; each has a fallback if it is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

if TYPE_CHECKING:
    from qtpy.QtCore import QObject
    from qtpy.QtWidgets import QMainWindow, QWidget


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
    from qtpy.QtWidgets import QApplication, QMainWindow

    around = [widget.window() for widget in window.dock_widgets.values()]
    found = (each for each in (*around, *QApplication.topLevelWidgets()))
    return next((each for each in found if isinstance(each, QMainWindow)), None)
