"""What is decided is what is outlined in the image and named on the card."""

from dataclasses import replace

import numpy as np
import pytest
from mouse import click_image, drag_image, press_key
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.layers.camera import _field_of, _fit_into_view
from napari_xcebra.widgets.state.shown import chosen_map

pytestmark = pytest.mark.gui

UNDECIDED, ACCEPTED, REJECTED = range(3)
CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton


def status(dock):
    return dock.curations.current.status


def text(dock, name):
    return dock.decide.buttons[name].text()


def see_all(state):
    _fit_into_view(state, _field_of(state))


def test_the_card_and_the_buttons_name_the_cells_that_are_outlined(dock_in_front, qtbot):
    dock = dock_in_front
    state, viewer = dock.state, dock.state.viewer
    canvas = canvas_of(viewer)
    first = dock.queue.cell
    assert dock.card.title.text() == f"Cell {state.recording.cell_ids[first]}"
    # a lasso around the upper half
    press_key(canvas, Qt.Key.Key_L)
    see_all(state)
    drag_image(viewer, [(0, 0), (0, 95), (48, 95), (48, 0)])
    upper = np.flatnonzero(state.current.centers[:, 0] < 48)
    assert sorted(state.selection) == upper.tolist()
    named = f"{len(upper)} cells"
    qtbot.waitUntil(lambda: dock.card.title.text() == named, timeout=5_000)
    assert named in text(dock, "accept") and named in text(dock, "reject")
    QTest.mouseClick(dock.decide.buttons["reject"], LEFT)
    assert np.flatnonzero(status(dock) == REJECTED).tolist() == upper.tolist()
    press_key(canvas, Qt.Key.Key_Z, CONTROL)
    assert not status(dock).any()
    press_key(canvas, Qt.Key.Key_Y, CONTROL)
    assert (status(dock) == REJECTED).sum() == len(upper)
    press_key(canvas, Qt.Key.Key_Z, CONTROL)
    # a click on the background: nothing is outlined, and nothing is decided
    see_all(state)
    labels = state.current.labels
    empty = np.argwhere(labels[4:-4, 4:-4] == 0)[0] + 4
    click_image(viewer, empty)
    assert not len(state.selection)
    qtbot.waitUntil(lambda: dock.card.title.text() == "No cell selected", timeout=5_000)
    assert not dock.decide.buttons["accept"].isEnabled()
    press_key(canvas, Qt.Key.Key_A)
    assert not status(dock).any()
    assert len(state.selection) == 1  # the next one came up instead
    # a click on a cell: this one and no other
    see_all(state)
    at_center = labels[tuple(np.round(state.current.centers).astype(int).T)]
    on_top = (at_center == np.arange(len(at_center)) + 1) & np.asarray(state.recording.accepted)
    other = int(upper[on_top[upper]][-1])  # where no other cell lies over it
    click_image(viewer, state.current.centers[other])
    assert state.selection.tolist() == [other]
    press_key(canvas, Qt.Key.Key_A)
    assert np.flatnonzero(status(dock)).tolist() == [other]


def test_accept_all_accepts_as_many_as_it_says_and_undoes_nothing(dock, qtbot):
    state, button = dock.state, dock.selection.accept_above
    z = chosen_map(state).z
    best = int(np.nanargmax(z))
    dock.queue.go_to(best)
    dock.act("reject")
    second = int(np.argsort(-np.nan_to_num(z))[1])
    dock.queue.go_to(second)
    dock.act("accept")
    dock._refresh()
    changing = int((z > 0).sum()) - 2  # the two that were decided by hand
    assert button.text() == f"Accept all {changing} cells with place above z 0"
    QTest.mouseClick(button, LEFT)
    expected = np.where(z > 0, ACCEPTED, UNDECIDED)
    expected[best] = REJECTED
    np.testing.assert_array_equal(status(dock), expected)
    assert f"Accepted {changing} cells" in dock.notice.text
    # a higher threshold has nothing to add, and takes nothing back
    state.shown = replace(state.shown, threshold=1.0)
    dock._refresh()
    assert not button.isEnabled()
    dock.deciding.accept_above()
    np.testing.assert_array_equal(status(dock), expected)
    # scores of a factor at chance accept no cell
    state.shown = replace(state.shown, threshold=0.0, factor="speed")
    dock._refresh()
    assert not button.isEnabled() and "at chance" in button.text()
    dock.deciding.accept_above()
    np.testing.assert_array_equal(status(dock), expected)
