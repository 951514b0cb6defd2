"""Mouse and keyboard: as napari hands events to callbacks, and as Qt sends them to a window."""

from types import SimpleNamespace

import numpy as np
import pytest
from napari.utils._proxies import ReadOnlyWrapper
from qtpy.QtCore import QEvent, QPoint, QPointF, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_xcebra.widgets.controls.napari_window import canvas_of, main_window
from napari_xcebra.widgets.layers.camera import camera_of

NO_KEY = Qt.KeyboardModifier.NoModifier


ACTIVE = 20_000
"""Milliseconds within which a window manager makes a window active, however busy it is."""


def activate(viewer):
    """Give the keyboard to the window of a viewer; keys sent before that are lost.

    Where no window manager does so, Qt is told to; if that does not help, the test is skipped.
    """
    window = main_window(viewer)
    window.show()
    window.raise_()
    window.activateWindow()
    if not QTest.qWaitForWindowActive(window, ACTIVE):
        QApplication.setActiveWindow(window)
    if QApplication.activeWindow() is not window:
        pytest.skip("No window manager gives the keyboard to the window of this test.")


def event(kind, position, pos, modifiers, button=1):
    return ReadOnlyWrapper(
        SimpleNamespace(
            type=kind,
            position=position,
            pos=np.array(pos),
            modifiers=modifiers,
            button=button,
            view_direction=None,
            handled=False,
            is_dragging=kind == "mouse_move",
        )
    )


def on_canvas(viewer, place):
    """Point of the canvas at a row and column of the image, in its present view."""
    camera, canvas = camera_of(viewer), canvas_of(viewer)
    down, across = (np.asarray(place, float) - camera.center[-2:]) * camera.zoom
    return QPoint(round(canvas.width() / 2 + across), round(canvas.height() / 2 + down))


def click_image(viewer, place, button=Qt.MouseButton.LeftButton, modifiers=NO_KEY):
    """Click on the image with the real mouse of Qt."""
    drag_image(viewer, [place], button, modifiers)


def drag_image(viewer, places, button=Qt.MouseButton.LeftButton, modifiers=NO_KEY):
    """Drag over the image from place to place, or click if there is only one."""
    canvas, points = canvas_of(viewer), [on_canvas(viewer, place) for place in places]
    QTest.mouseMove(canvas, points[0])
    QTest.mousePress(canvas, button, modifiers, points[0])
    for point in points[1:]:
        QTest.qWait(30)  # vispy leaves out moves in quick succession
        drag(canvas, point, button, modifiers)
    QTest.mouseRelease(canvas, button, modifiers, points[-1])
    QApplication.processEvents()


def drag(widget, point, button=Qt.MouseButton.LeftButton, modifiers=NO_KEY):
    """Move the mouse over a widget with a button held down; QTest.mouseMove tells of none."""
    moved = QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(point),
        QPointF(widget.mapToGlobal(point)),
        Qt.MouseButton.NoButton,
        button,
        modifiers,
    )
    QApplication.sendEvent(widget, moved)
