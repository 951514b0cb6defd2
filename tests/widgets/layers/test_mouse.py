"""A click selects the cell under it, whatever layer is active, and is told from a drag."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mouse import activate, click_image, drag_image, event
from napari.utils.colormaps.standardize_color import transform_color
from napari.utils.interactions import (
    mouse_move_callbacks,
    mouse_press_callbacks,
    mouse_release_callbacks,
)
from qtpy.compat import isalive
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QApplication, QMenu

from napari_xcebra.runs import Run, now
from napari_xcebra.simulate import field
from napari_xcebra.widgets.controls.napari_window import docked_widget
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.layers.scores import score_layer
from napari_xcebra.widgets.plots.plot_style import style_of
from napari_xcebra.widgets.state.shown import Shown
from napari_xcebra.widgets.state.state import KEY, role_of
from napari_xcebra.widgets.window import services_of

pytestmark = pytest.mark.gui


@pytest.fixture
def opened(state, small_field):
    return state.show(small_field)


def inside(opened, cell):
    """Place of a pixel of a cell, with a frame before it."""
    places = np.argwhere(opened.labels == cell + 1)
    return (0.0, *places[len(places) // 2].astype(float))


def background(opened):
    return (0.0, *np.argwhere(opened.labels == 0)[0].astype(float))


def press_and_release(viewer, position, *, moved=0, modifiers=(), button=1):
    """What napari does between pressing and letting go of the mouse over the canvas."""
    mouse_press_callbacks(viewer, event("mouse_press", position, (50, 50), modifiers, button))
    if moved:
        where = (50 + moved, 50)
        mouse_move_callbacks(viewer, event("mouse_move", position, where, modifiers, button))
    end = event("mouse_release", position, (50 + moved, 50), modifiers, button)
    mouse_release_callbacks(viewer, end)


def outlined(state, opened):
    (layer,) = (x for x in state.layers.of(opened) if role_of(x) == "selection")
    assert len(layer.data) > 0 or not layer.metadata[KEY]["cells"]
    return {cell + 1 for cell in layer.metadata[KEY]["cells"]}


def on_canvas(viewer, place):
    """Point of the canvas at which a place in the world is seen."""
    camera = getattr(viewer, "scene", viewer).camera  # napari 0.9 moved it
    from_middle = (np.array(place[-2:]) - camera.center[-2:]) * camera.zoom
    canvas = viewer.window._qt_viewer.canvas.native
    down, right = from_middle + np.array([canvas.height(), canvas.width()]) / 2
    return QPoint(round(right), round(down))


def test_real_clicks_of_the_mouse_arrive(make_napari_viewer, small_field, qtbot):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    opened = state.show(small_field)
    viewer.layers.selection.active = viewer.layers["mean image"]
    activate(viewer)
    canvas = viewer.window._qt_viewer.canvas.native
    left, shift = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier
    qtbot.mouseClick(canvas, left, pos=on_canvas(viewer, inside(opened, 4)))
    assert state.selection.tolist() == [4]
    qtbot.mouseClick(canvas, left, shift, pos=on_canvas(viewer, inside(opened, 7)))
    assert state.selection.tolist() == [4, 7]
    qtbot.mouseClick(canvas, left, pos=on_canvas(viewer, background(opened)))
    assert state.selection.tolist() == []


@pytest.mark.parametrize("active", ["mean image", "cells", "activity"])
def test_a_click_selects_whatever_layer_is_active(state, opened, active):
    viewer = state.viewer
    viewer.layers.selection.active = viewer.layers[active]
    press_and_release(viewer, inside(opened, 4))
    assert state.selection.tolist() == [4]
    assert viewer.layers.selection.active.name == active
    assert outlined(state, opened) == {5}


def test_clicks_with_shift_or_control_add_and_take_away_and_the_background_clears(state, opened):
    viewer = state.viewer
    press_and_release(viewer, inside(opened, 4))
    press_and_release(viewer, inside(opened, 7), modifiers=("Shift",))
    press_and_release(viewer, inside(opened, 9), modifiers=("Control",))
    assert state.selection.tolist() == [4, 7, 9]
    press_and_release(viewer, inside(opened, 7), modifiers=("Control",))
    assert state.selection.tolist() == [4, 9]
    assert outlined(state, opened) == {5, 10}
    press_and_release(viewer, background(opened), modifiers=("Shift",))
    assert state.selection.tolist() == [4, 9]
    press_and_release(viewer, background(opened))
    assert state.selection.tolist() == []
    assert outlined(state, opened) == set()


def test_a_drag_and_a_stroke_of_the_brush_select_nothing(state, opened):
    viewer = state.viewer
    press_and_release(viewer, inside(opened, 4), moved=30)
    cells = viewer.layers["cells"]
    viewer.layers.selection.active = cells
    cells.mode = "paint"
    press_and_release(viewer, inside(opened, 4))
    assert state.selection.tolist() == []
    cells.mode = "pan_zoom"
    press_and_release(viewer, inside(opened, 4), moved=2)
    assert state.selection.tolist() == [4]


def test_the_outline_lies_around_the_cell_and_on_top_of_everything(state, opened):
    state.select([4])
    state.viewer.add_image(np.zeros((96, 96)))
    (layer,) = (x for x in state.layers.of(opened) if role_of(x) == "selection")
    assert state.viewer.layers[-1] is layer
    around, pixels = layer.data[:, 0, -2:], np.argwhere(opened.labels == 5)
    assert (around.min(0) < pixels.min(0)).all() and (around.max(0) > pixels.max(0)).all()


def test_outlines_have_the_colours_of_the_traces(state, opened):
    state.select([4, 7])
    (layer,) = (x for x in state.layers.of(opened) if role_of(x) == "selection")
    wanted = [transform_color(color)[0] for color in style_of(state.viewer.theme).lines[:2]]
    for cell, color in zip((4, 7), wanted, strict=True):
        own = np.linalg.norm(layer.data[:, 0, -2:] - opened.centers[cell], axis=1) < 12
        np.testing.assert_allclose(layer.edge_color[own], np.tile(color, (own.sum(), 1)), atol=0.01)
    state.viewer.theme = "light"
    first = transform_color(style_of("light").lines[0])[0]
    np.testing.assert_allclose(layer.edge_color[0], first, atol=0.01)


def test_cells_are_found_where_the_user_moved_them_and_when_they_are_hidden(state, opened):
    cells = state.viewer.layers["cells"]
    cells.visible = False
    for layer in state.layers.of(opened):
        layer.scale = [1.0] * (layer.ndim - 2) + [2.0, 2.0]
    frame, row, column = inside(opened, 4)
    press_and_release(state.viewer, (frame, 2 * row, 2 * column))
    assert state.selection.tolist() == [4]
    for layer in state.layers.of(opened):
        layer.visible = False
    press_and_release(state.viewer, (frame, 2 * row, 2 * column))
    assert state.selection.tolist() == []


def test_selecting_elsewhere_outlines_too_and_another_recording_begins_afresh(state, opened):
    state.select([1, 2])
    assert outlined(state, opened) == {2, 3}
    other = state.show(field(cells=12, frames=300, shape=(96, 96), seed=1).recording)
    assert state.selection.tolist() == []
    assert not any(role_of(layer) == "selection" for layer in state.viewer.layers)
    press_and_release(state.viewer, inside(other, 3))
    assert state.selection.tolist() == [3]
    assert outlined(state, other) == {4}
    state.current = opened
    assert outlined(state, opened) == {2, 3}


def status_at(state, position):
    viewer = state.viewer
    viewer.mouse_over_canvas = True
    viewer.cursor.position = position
    # as napari's own thread does after the pointer moved
    viewer.status = viewer._calc_status_from_cursor()[0]
    return viewer.status["coordinates"]


def test_the_status_bar_names_the_cell_and_its_score_on_any_layer(
    state, opened, small_field, made_up_scores
):
    viewer = state.viewer
    viewer.layers.selection.active = viewer.layers["mean image"]
    assert "cell 4, accepted" in status_at(state, inside(opened, 4))
    assert "cell 31, not accepted" in status_at(state, inside(opened, 31))
    assert "cell" not in status_at(state, background(opened))
    attribution = made_up_scores(small_field)
    opened.runs.append(Run("run 1", now(), {}, None, {attribution.method: attribution}))
    state.shown = Shown(run="run 1", factor="place")
    assert "cell 4, accepted, place 0.125 (z -1.2)" in status_at(state, inside(opened, 4))
    viewer.layers.selection.active = viewer.layers["cells"]
    text = status_at(state, inside(opened, 4))
    assert "cell: 4" in text
    assert "place 0.125" in text
    layer = viewer.add_layer(score_layer(small_field, attribution, "place", token=opened.token))
    viewer.layers.selection.active = layer
    text = status_at(state, inside(opened, 4))
    assert "score: 0.125" in text
    assert text.count("0.125") == 1


def test_the_tooltip_names_the_cell_too(state, opened):
    viewer = state.viewer
    viewer.layers.selection.active = viewer.layers["mean image"]
    viewer.mouse_over_canvas = True
    viewer.tooltip.visible = True
    viewer.cursor.position = inside(opened, 4)
    viewer.tooltip.text = " "
    assert "cell 4, accepted" in viewer.tooltip.text


RIGHT = Qt.MouseButton.RightButton


def test_a_right_click_acts_on_the_cell_and_a_right_drag_zooms(
    make_napari_viewer, small_field, tmp_path, qtbot
):
    viewer = make_napari_viewer(show=True)
    services = services_of(viewer)
    state = services.state
    traces = np.array(small_field.traces)
    traces[:, :10] += np.random.default_rng(0).normal(0, 3 * traces.std(), (len(traces), 1))
    opened = state.show(replace(small_field, traces=traces))
    QApplication.processEvents()
    menu = services.cell_menu
    at_center = opened.labels[tuple(np.round(opened.centers).astype(int).T)]
    cell = int(np.flatnonzero(at_center == np.arange(len(at_center)) + 1)[0])
    place = opened.centers[cell]
    zoom = camera_of(viewer).zoom
    drag_image(viewer, [place, place + 8, place + 16], RIGHT)
    assert menu.menu is None and camera_of(viewer).zoom != zoom
    click_image(viewer, place, RIGHT)
    assert state.selection.tolist() == [cell]
    number = small_field.cell_ids[cell]
    entries = {action.text(): action for action in menu.menu.actions() if action.text()}
    assert [f"Accept cell {number}", f"Reject cell {number}"] == list(entries)[:2]
    entries[f"Reject cell {number}"].trigger()
    assert services.curations.current.status_of(cell) == "rejected"
    assert state.selection.tolist() == [cell]
    entries["Copy"].trigger()
    rows = [line.split("\t") for line in QApplication.clipboard().text().splitlines()]
    assert rows[1][:2] == [str(number), "rejected"] and len(rows[0]) == len(rows[1])
    entries["Undo"].trigger()
    assert services.curations.current.status_of(cell) == "undecided"
    entries["Show trace"].trigger()
    assert docked_widget(viewer, "Cells") is not None
    (similar,) = (each for each in menu.menu.findChildren(QMenu) if "similar" in each.title())
    r = np.corrcoef(traces.T)[cell]
    assert [action.text() for action in similar.actions()] == ["r ≥ 0.3", "r ≥ 0.5", "r ≥ 0.7"]
    assert (r >= 0.3).sum() > 1, "another cell is similar"
    similar.actions()[0].trigger()
    qtbot.waitUntil(lambda: len(state.selection) > 1, timeout=10_000)
    assert state.selection.tolist() == np.argsort(-r)[: (r >= 0.3).sum()].tolist()
    state.select([cell])
    if isalive(menu.menu):
        menu.menu.close()
    menu.export(str(tmp_path / "trace.csv"))
    qtbot.waitUntil((tmp_path / "trace.csv").exists, timeout=10_000)
    table = pd.read_csv(tmp_path / "trace.csv")
    np.testing.assert_allclose(table[f"cell_{number}"], traces[:, cell], rtol=1e-5)
    services.close()
