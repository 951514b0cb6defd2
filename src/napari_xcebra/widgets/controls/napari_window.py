"""Reaches the parts of a napari window that its public interface does not give.

The only place that touches private attributes of napari; each has a fallback if it is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def canvas_of(viewer: Any) -> QWidget | None:
    """The widget that the image is drawn on; None for a viewer without a window."""
    window = main_window(viewer)
    if window is None:
        return None
    part = viewer_part(window)
    return getattr(getattr(part, "canvas", None), "native", part)


def _window_with_docks(window: Any) -> QMainWindow | None:
    from qtpy.QtWidgets import QApplication, QMainWindow

    around = [widget.window() for widget in window.dock_widgets.values()]
    found = (each for each in (*around, *QApplication.topLevelWidgets()))
    return next((each for each in found if isinstance(each, QMainWindow)), None)
