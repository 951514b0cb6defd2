"""The cell that is judged is seen: close up, outlined, with its transients and its neighbours."""

from dataclasses import replace

import numpy as np
import pytest
from mouse import press_key
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

from napari_xcebra.widgets.controls.napari_window import canvas_of, open_dock
from napari_xcebra.widgets.layers.camera import ACROSS, camera_of
from napari_xcebra.widgets.services.reading import NO_MOVIE
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui

LEFT = Qt.MouseButton.LeftButton


def layer_of(state, role):
    return next(layer for layer in state.layers.of(state.current) if role_of(layer) == role)


def seen(viewer):
    """First and last row and column in view."""
    camera, canvas = camera_of(viewer), canvas_of(viewer)
    half = np.array([canvas.height(), canvas.width()]) / (2 * camera.zoom)
    return camera.center[-2:] - half, camera.center[-2:] + half


def test_a_cell_is_seen_close_up_with_nothing_over_it_until_the_dock_goes(dock_in_front, qtbot):
    dock = dock_in_front
    state, viewer = dock.state, dock.state.viewer
    canvas, scores = canvas_of(viewer), layer_of(state, "scores")
    before = camera_of(viewer).zoom
    assert not scores.visible
    side = ACROSS * state.current.shapes.diameter
    assert min(canvas.width(), canvas.height()) / before == pytest.approx(side, rel=0.02)
    qtbot.waitUntil(lambda: layer_of(state, "close-up").visible, timeout=5_000)
    for _ in range(12):  # wherever the cell lies, the view stays within the field
        press_key(canvas, Qt.Key.Key_Right)
        low, high = seen(viewer)
        size = np.array(state.current.labels.shape)
        assert ((low >= -1) & (high <= size)).all() or (high - low > size).any()
        center = state.current.centers[dock.queue.cell]
        assert ((low < center) & (center < high)).all()
    QApplication.processEvents()
    lines = layer_of(state, "close-up")
    world = np.asarray(lines.extent.world)[:, -2:]
    assert ((world[0] < center) & (center < world[1])).all()
    # another factor is painted, and the first again: still nothing lies over the cell
    for factor in ("speed", "place"):
        state.shown = replace(state.shown, factor=factor)
        maps = [x for x in state.layers.of(state.current) if role_of(x) == "scores"]
        assert not any(layer.visible for layer in maps)
    # the whole field with its map, and back
    press_key(canvas, Qt.Key.Key_C)
    assert [layer for layer in maps if layer.visible] == [scores] and not lines.visible
    assert camera_of(viewer).zoom < before
    press_key(canvas, Qt.Key.Key_C)
    assert not scores.visible and camera_of(viewer).zoom == pytest.approx(before)
    open_dock(viewer, "Recording")
    qtbot.waitUntil(lambda: scores.visible, timeout=5_000)
    assert layer_of(state, "selection").visible and not lines.visible


def test_transients_and_neighbours_of_the_cell_come_up_and_lead_to_theirs(dock_in_front, qtbot):
    dock = dock_in_front
    state, card = dock.state, dock.card
    assert state.recording.movie is not None
    dock.queue.go_to(int(np.argmax(state.recording.traces.max(axis=0))))
    qtbot.waitUntil(lambda: card.clips.clips is not None, timeout=10_000)
    cell = dock.queue.cell
    study = services_of(state.viewer).studies.of(cell)
    assert card.clips.clips is study.clips and len(study.clips.clips) > 0
    nearest, r = study.neighbors[0]
    expected = np.corrcoef(state.recording.traces[:, [cell, nearest.cell]].T)[0, 1]
    assert r == pytest.approx(expected, abs=1e-3)
    assert f"cell {state.recording.cell_ids[nearest.cell]}" in card.neighbors[0].text()
    assert f"r {r:.2f}".replace("-", "−") in card.neighbors[0].text()
    # they play
    tick = card.clips._tick
    qtbot.waitUntil(lambda: card.clips._tick > tick + 1, timeout=5_000)
    QTest.mouseClick(card.clips, LEFT, pos=card.clips._places()[0].center().toPoint())
    assert state.frame == study.clips.peaks[0]
    QTest.mouseClick(card.neighbors[0], LEFT, pos=QPoint(10, 5))
    assert state.selection.tolist() == [nearest.cell]
    # those of another cell take their place
    other = services_of(state.viewer).studies
    qtbot.waitUntil(lambda: other.of(nearest.cell) is not None, timeout=10_000)
    assert card.clips.clips is other.of(nearest.cell).clips


def test_without_a_movie_one_line_says_so_and_buttons_stay_where_they_are(
    make_napari_viewer, scored, small_field, curate_dock, qtbot
):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    scored(state, replace(small_field, movie=None))
    dock = curate_dock(viewer)
    qtbot.waitUntil(lambda: dock.card.neighbors[0].text() != "", timeout=10_000)
    assert dock.card.clips.words == NO_MOVIE and dock.card.clips.height() < 30
    accept = dock.decide.buttons["accept"]
    place = accept.mapTo(dock, QPoint(0, 0))
    for name in ("reject", "next", "undo", "undo"):  # with a notice and without
        dock.act(name)
        QApplication.processEvents()
        assert accept.mapTo(dock, QPoint(0, 0)) == place
    state.select([])
    QApplication.processEvents()
    assert accept.mapTo(dock, QPoint(0, 0)) == place
    state.select(range(12))
    QApplication.processEvents()
    assert accept.mapTo(dock, QPoint(0, 0)) == place
    services_of(viewer).close()
