"""One entry of the menu opens all docks where they belong."""

from dataclasses import replace

import numpy as np
import pytest
from mouse import NO_KEY
from napari.utils import progress
from qtpy.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from qtpy.QtGui import QDragEnterEvent, QDropEvent
from qtpy.QtWidgets import QApplication, QFileDialog, QMainWindow, QTabBar
from scored import scored_recording, scored_run

from napari_xcebra.widgets.app.workspace import (
    Workspace,
    open_saved_workspace,
    open_workspace,
    save_workspace,
)
from napari_xcebra.widgets.controls import napari_window
from napari_xcebra.widgets.controls.napari_window import (
    DOCKS,
    docked_widget,
    open_dock,
)
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of
from napari_xcebra.workspace_file import load_workspace
from napari_xcebra.workspace_file import save_workspace as write_workspace

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]


def area(dock):
    window = dock.parent()
    assert isinstance(window, QMainWindow)
    return window.dockWidgetArea(dock)


def test_all_docks_open_as_tabs_on_the_right_and_the_cells_at_the_bottom(viewer):
    open_workspace(viewer)
    docks = {name: docked_widget(viewer, name) for name in DOCKS}
    assert "Recording" in docks
    for name, dock in docks.items():
        wanted = Qt.DockWidgetArea.RightDockWidgetArea
        if name == "Cells":
            wanted = Qt.DockWidgetArea.BottomDockWidgetArea
        assert area(dock) == wanted
        assert dock.windowTitle() == name
    window = docks["Recording"].parent()
    beside = set(window.tabifiedDockWidgets(docks["Recording"]))
    assert beside == {d for n, d in docks.items() if n not in ("Recording", "Cells")}


def test_opening_all_docks_leaves_the_view_of_the_image_as_it_is(
    make_napari_viewer, small_field, qtbot
):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    state.show(small_field)
    camera = camera_of(viewer)
    camera.center, camera.zoom = (0, 20, 70), 3.0
    open_workspace(viewer)
    curate = docked_widget(viewer, "Curate")
    qtbot.waitUntil(lambda: not curate.widget().presence.now)
    qtbot.wait(50)  # what the docks put off until there is time
    assert (camera.center, camera.zoom) == ((0, 20, 70), 3.0)
    assert len(state.selection) == 0
    # who goes there to judge has a cell before them
    curate.raise_()
    qtbot.waitUntil(lambda: len(state.selection) == 1)
    assert camera.center != (0, 20, 70)
    services_of(state.viewer).close()


def test_opening_again_brings_forward_what_is_there(viewer):
    first = open_dock(viewer, "Recording")
    assert open_dock(viewer, "Recording") is first
    first.close()
    assert open_dock(viewer, "Recording") is first
    assert not first.isHidden()


def test_the_entry_of_the_menu_opens_the_docks_and_goes(viewer, qtbot):
    viewer.window.add_dock_widget(Workspace(viewer), name=napari_window.full_name("Workspace"))
    qtbot.waitUntil(lambda: docked_widget(viewer, "Recording") is not None, timeout=10_000)
    assert napari_window.full_name("Workspace") not in viewer.window.dock_widgets


def test_napari_finds_the_docks_under_the_names_of_its_menu(viewer):
    from npe2 import PluginManager

    manifest = PluginManager.instance().get_manifest("napari-xcebra")
    shown = {widget.display_name for widget in manifest.contributions.widgets}
    assert shown == {"Workspace", *DOCKS, *napari_window.ON_DEMAND}


def chosen_in_the_menu(command):
    from napari._app_model import get_app_model

    return get_app_model().commands.execute_command(command).result()


def test_the_menus_of_napari_open_the_docks(viewer, qtbot):
    chosen_in_the_menu("napari-xcebra.recording")
    assert docked_widget(viewer, "Recording") is not None
    first = docked_widget(viewer, "Recording")
    chosen_in_the_menu("napari-xcebra.workspace")
    qtbot.waitUntil(lambda: docked_widget(viewer, "Cells") is not None, timeout=20_000)
    assert docked_widget(viewer, "Recording") is first


def test_a_dock_that_was_closed_returns_as_the_tab_it_was(make_napari_viewer, qtbot):
    """From napari's menu too, which would put it below the others."""
    viewer = make_napari_viewer(show=True)
    open_workspace(viewer)
    window = docked_widget(viewer, "Recording").parent()

    def tabs():
        bars = [bar for bar in window.findChildren(QTabBar) if bar.count() == 4]
        return [bars[0].tabText(i) for i in range(4)] if bars else []

    right = ["Recording", "Train", "Attribution", "Curate"]
    qtbot.waitUntil(lambda: tabs() == right)
    for name in ("Train", "Recording"):
        viewer.window.remove_dock_widget(docked_widget(viewer, name).widget())
        chosen_in_the_menu(f"napari-xcebra.{name.lower()}")
        qtbot.waitUntil(lambda: tabs() == right)
    cells = docked_widget(viewer, "Cells")
    window.addDockWidget(Qt.DockWidgetArea.TopDockWidgetArea, cells)
    viewer.window.remove_dock_widget(cells.widget())
    chosen_in_the_menu("napari-xcebra.cells")
    top = Qt.DockWidgetArea.TopDockWidgetArea
    qtbot.waitUntil(lambda: area(docked_widget(viewer, "Cells")) == top)
    services_of(viewer).close()


def test_a_session_is_saved_and_opened_from_the_menu(
    viewer, state, small_field, tmp_path, qtbot, monkeypatch
):
    folder = tmp_path / "kept"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(folder), ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(folder))
    state.show(small_field)
    chosen_in_the_menu("napari-xcebra.save_workspace")
    qtbot.waitUntil(lambda: (folder / "session.json").exists(), timeout=20_000)
    chosen_in_the_menu("napari-xcebra.open_saved_workspace")
    qtbot.waitUntil(lambda: len(state.opened) == 2, timeout=20_000)
    assert state.recording.n_cells == small_field.n_cells


@pytest.mark.parametrize("name", ["", "session.json"])
def test_a_saved_workspace_that_is_dropped_on_the_image_is_opened(
    make_napari_viewer, small_field, tmp_path, qtbot, name
):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    state.show(small_field)
    folder = write_workspace(state.as_file(), tmp_path / "kept")
    state.forget(state.current)
    open_workspace(viewer)
    files = QMimeData()
    files.setUrls([QUrl.fromLocalFile(str(folder / name))])
    how = (Qt.DropAction.CopyAction, files, Qt.MouseButton.LeftButton, NO_KEY)
    image = viewer.window._qt_viewer
    QApplication.sendEvent(image, QDragEnterEvent(QPoint(5, 5), *how))
    QApplication.sendEvent(image, QDropEvent(QPointF(5, 5), *how))
    qtbot.waitUntil(lambda: state.current is not None)
    assert state.recording.n_cells == small_field.n_cells and len(state.opened) == 1
    services_of(viewer).close()


def test_a_recording_that_is_closed_while_it_is_saved_is_saved(
    viewer, state, small_field, tmp_path, qtbot
):
    folder = tmp_path / "kept"
    state.show(small_field)
    state.frame = 17
    save_workspace(viewer, folder)
    state.forget(state.current)
    qtbot.waitUntil(lambda: (folder / "session.json").exists(), timeout=20_000)
    saved = load_workspace(folder)
    assert saved.front.recording.n_cells == small_field.n_cells
    assert saved.shown[0]["frame"] == 17


def test_an_opened_workspace_has_its_docks_its_map_its_cells_and_its_frame(
    make_napari_viewer, tmp_path, qtbot
):
    viewer = make_napari_viewer(show=True)
    state = services_of(viewer).state
    run = scored_run("run 1")
    history = {name: np.ones(2, np.float32) for name in ("step", "penalty", "place")}
    state.show(scored_recording())
    state.add_run(replace(run, fit=replace(run.fit, history=history)))
    factor, method = run.fit.factors[-1], next(iter(run.attributions))
    state.shown = replace(state.shown, run="run 1", factor=factor, method=method)
    state.select([3, 1])
    state.frame = 17
    write_workspace(state.as_file(), tmp_path / "kept")
    state.forget(state.current)
    assert state.current is None and not viewer.layers
    open_saved_workspace(viewer, tmp_path / "kept")
    assert [bar.desc.rstrip(": ") for bar in progress._all_instances] == ["Opening kept"]
    qtbot.waitUntil(lambda: state.current is not None, timeout=20_000)
    assert not progress._all_instances
    assert (state.shown.run, state.shown.factor, state.shown.method) == ("run 1", factor, method)
    assert state.selection.tolist() == [3, 1]
    assert state.frame == 17
    qtbot.waitUntil(lambda: "scores" in map(role_of, viewer.layers), timeout=10_000)
    docks = {name: docked_widget(viewer, name) for name in DOCKS}
    assert None not in docks.values()
    qtbot.waitUntil(lambda: docks["Attribution"].widget().presence.now)
    services_of(viewer).close()
