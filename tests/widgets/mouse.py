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
ASKED_EVERY, MOVED_EVERY = 1000, 30
"""Milliseconds after which the keyboard is asked for, or the mouse moved, once more."""
PATIENCE = 60_000
"""Milliseconds in which an effect that is waited for comes about on the busiest computer."""


def activate(viewer):
    """Give the keyboard to the window of a viewer."""
    _give_keyboard(main_window(viewer))


def press_key(widget, key, modifiers=NO_KEY):
    """Press a key in a window that has the keyboard; one sent before that is lost."""
    _give_keyboard(widget.window())
    QTest.keyClick(widget, key, modifiers)


def type_text(widget, text):
    """Type into a field of a window that has the keyboard."""
    _give_keyboard(widget.window())
    QTest.keyClicks(widget, text)


def _give_keyboard(window):
    """Ask for it until it is given, with a window manager and without."""
    for _ in range(0, PATIENCE, ASKED_EVERY):
        if QApplication.activeWindow() is window:
            return
        window.show()  # napari's moves the focus, too
        window.raise_()
        window.activateWindow()
        QTest.qWaitForWindowActive(window, ASKED_EVERY)
    pytest.fail("The window of this test was not given the keyboard.")


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
    canvas, point = canvas_of(viewer), on_canvas(viewer, places[0])
    QTest.mouseMove(canvas, point)
    QTest.mousePress(canvas, button, modifiers, point)
    for place in places[1:]:
        point = _drag_on(viewer, place, button, modifiers)
    QTest.mouseRelease(canvas, button, modifiers, point)
    QApplication.processEvents()


def _drag_on(viewer, place, button, modifiers):
    """Move on until napari has seen it: of moves in quick succession, some are left out."""
    for _ in range(0, PATIENCE, MOVED_EVERY):
        point = on_canvas(viewer, place)
        drag(canvas_of(viewer), point, button, modifiers)
        QTest.qWait(MOVED_EVERY)
        off = np.abs(np.asarray(viewer.cursor.position[-2:]) - place) * camera_of(viewer).zoom
        if off.max() <= 1:
            return point
    pytest.fail(f"The mouse did not arrive at {place}.")


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
