"""A right click on a cell opens its menu; a right drag zooms."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mouse import click_image, drag_image
from qtpy.compat import isalive
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication, QMenu

from napari_xcebra.widgets.controls.dock_opening import docked_widget
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.work.services import services_of

pytestmark = pytest.mark.gui

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
