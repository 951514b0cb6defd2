"""Two recordings in one window: trained together, and a run of one carried to the other."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt

from napari_xcebra.attribution.methods import FIRST
from napari_xcebra.learn import FitSettings, fit
from napari_xcebra.recording import Recording
from napari_xcebra.runs import Run
from napari_xcebra.simulate import arena, drifted
from napari_xcebra.widgets.controls.napari_window import canvas_of
from napari_xcebra.widgets.docks.train.dock import TrainDock
from napari_xcebra.widgets.layers.camera import camera_of
from napari_xcebra.widgets.state.state import role_of
from napari_xcebra.widgets.window import services_of

pytestmark = [pytest.mark.gui, pytest.mark.usefixtures("warm_child")]

CELLS = {"place": 0, "grid": 0, "direction": 12, "speed": 0, "frames": 1500, "noise": 0.3}
QUICK = {"steps": 30, "batch_size": 128, "penalty_batch": 32, "lambda_": 0.05}


@pytest.fixture(scope="module")
def days():
    first, second = arena(**CELLS), drifted(arena(**CELLS, day=1), lost=0.25)
    return [
        replace(each.recording, source=name)
        for each, name in ((first, "monday"), (second, "tuesday"))
    ]


@pytest.fixture
def dock(make_napari_viewer, days):
    """Tuesday is looked at; Monday is open, too."""
    viewer = make_napari_viewer()
    state = services_of(viewer).state
    for recording in days:
        state.show(recording)
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    yield dock
    services_of(state.viewer).close()


def wait_idle(dock, qtbot):
    qtbot.waitUntil(lambda: not dock.busy and not dock.training._unscored, timeout=60_000)


def test_a_run_is_carried_from_one_recording_to_the_other(dock, qtbot, days):
    monday, tuesday = dock.state.opened
    assert dock.runs._carry.isHidden()
    trained = fit(days[0], {"heading": ["direction"]}, FitSettings(**QUICK))
    dock.state.add_run(Run("run 1", "2026-11-16T09:30:00", {}, trained), monday)
    dock.runs.refresh()
    same_cells, _ = ways_to_carry(dock)
    same_cells.trigger()
    assert dock.busy
    wait_idle(dock, qtbot)
    (run,) = tuesday.runs
    assert run.name == "run 1 of monday"
    assert len(run.fit.inputs.cell_ids) == 9
    assert "9 of 12 cells; nothing was trained" in dock.notice.text
    assert set(run.attributions) == set(FIRST)
    assert dock.state.shown.run == run.name
    assert len(monday.runs) == 1


def ways_to_carry(dock):
    (of_monday,) = dock.runs._elsewhere.actions()
    assert of_monday.text() == "monday · run 1"
    return of_monday.menu().actions()


def test_a_run_is_carried_to_other_cells_though_their_ids_are_the_same(dock, qtbot, days):
    """Extractors number from 0: in another animal, the same ids are other cells."""
    monday, tuesday = dock.state.opened
    trained = fit(days[0], {"heading": ["direction"]}, FitSettings(**QUICK))
    dock.state.add_run(Run("run 1", "2026-11-16T09:30:00", {}, trained), monday)
    dock.runs.refresh()
    _, other_cells = ways_to_carry(dock)
    assert "input layer" in other_cells.text()
    other_cells.trigger()
    wait_idle(dock, qtbot)
    (run,) = tuesday.runs
    assert "nothing was trained" not in dock.notice.text
    assert run.complete


def test_maps_of_two_recordings_have_the_names_they_would_have_alone(dock, qtbot):
    """Each may have its run 1, and napari would number the layer of the second."""
    monday, tuesday = dock.state.opened
    dock.choice.form.value = replace(dock.choice.form.value, **QUICK)
    dock.choice.together.choose("monday")
    assert not dock.choice.live.isEnabled()
    dock.train()
    wait_idle(dock, qtbot)
    dock.state.current = monday
    dock.state.shown = replace(dock.state.shown, run="run 1", factor="direction")
    maps = {
        opened.name: [layer.name for layer in dock.state.layers.of(opened) if is_map(layer)]
        for opened in (monday, tuesday)
    }
    assert not any("[" in name for names in maps.values() for name in names)
    for name in ("monday", "tuesday"):
        assert maps[name][0].startswith("direction · both routes · run 1")
    dock.state.current = tuesday
    (run,) = tuesday.runs
    dock.state.replace_run("run 1", replace(run, name="better"))
    (layer,) = [layer for layer in dock.state.layers.of(tuesday) if is_map(layer)]
    assert layer.name.startswith("direction · both routes · better")


def is_map(layer):
    return role_of(layer) == "scores"


def test_recordings_are_trained_together_and_each_gets_its_own_run(dock, qtbot):
    monday, tuesday = dock.state.opened
    dock.choice.form.value = replace(dock.choice.form.value, **QUICK)
    assert dock.train_button.text() == "Train"
    dock.choice.together.choose("monday")
    assert dock.train_button.text() == "Train 2 together"
    qtbot.mouseClick(dock.train_button, Qt.MouseButton.LeftButton)
    wait_idle(dock, qtbot)
    for opened, cells in ((monday, 12), (tuesday, 9)):
        (run,) = opened.runs
        assert len(run.fit.inputs.cell_ids) == cells
        for attribution in run.attributions.values():
            assert len(attribution.cell_ids) == cells
        assert len(run.attributions) == 2
    assert dock.state.shown.run == tuesday.runs[0].name
    assert "Trained together with monday." in dock.notice.text


def test_one_recording_alone_offers_no_others(make_napari_viewer, days):
    viewer = make_napari_viewer()
    state = services_of(viewer).state
    state.show(days[0])
    dock = TrainDock(viewer)
    viewer.window.add_dock_widget(dock, name="Train")
    assert dock.choice.together.isHidden()
    assert dock.choice.together.chosen == []
    services_of(state.viewer).close()


def test_a_recording_of_another_field_is_shown_whole_and_one_of_the_same_leaves_the_view(
    make_napari_viewer, small_field
):
    viewer = make_napari_viewer(show=True)
    state, camera = services_of(viewer).state, camera_of(viewer)
    state.show(small_field)
    camera.center, camera.zoom = (0, 20, 70), 3.0
    state.show(replace(small_field, source="the next day"))
    assert (camera.center, camera.zoom) == ((0, 20, 70), 3.0)
    traces = np.random.default_rng(0).random((200, 4), np.float32)
    grid = state.show(Recording.from_arrays(traces, rate=10.0))
    height, width = grid.labels.shape[-2:]
    canvas = canvas_of(viewer)
    assert camera.center[-2:] == pytest.approx(((height - 1) / 2, (width - 1) / 2))
    assert camera.zoom == pytest.approx(
        0.95 * min(canvas.height() / height, canvas.width() / width), rel=0.05
    )
    services_of(state.viewer).close()
