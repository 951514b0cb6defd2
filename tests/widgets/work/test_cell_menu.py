"""A right click on a cell opens its menu; a right drag zooms."""

import numpy as np
import pandas as pd
import pytest
from mouse import click_image, drag_image
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication

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
    opened = state.show(small_field)
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
    menu.menu.close()
    menu.export(str(tmp_path / "trace.csv"))
    qtbot.waitUntil((tmp_path / "trace.csv").exists, timeout=10_000)
    table = pd.read_csv(tmp_path / "trace.csv")
    np.testing.assert_allclose(table[f"cell_{number}"], small_field.traces[:, cell], rtol=1e-5)
    services.close()
